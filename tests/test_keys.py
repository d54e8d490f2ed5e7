"""Streams: the right bits, one stream a client, no two purposes alike, fair draws."""

import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import permutations

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick import some_of
from scipy import stats
from scipy.stats import norm, uniform

from tacit import cipher
from tacit import keys as module
from tacit.errors import BadValue
from tacit.kernels.dispatch import TABLE
from tacit.keys import Key, Keys
from tacit.testing.statistics import (
    assert_distribution,
    assert_frequencies,
    assert_independent,
    samples_to_see,
)

ROOT = Key.from_seed(7)
FALSE_ALARM = 1e-9

# Tests check annotations at run time; without that, the code's own check says no.
REFUSED = (BadValue, jaxtyping.TypeCheckError)


def clients(n, seed=7):
    return Key.from_seed(seed).each(range(n))


@pytest.fixture(params=["plain", "compiled"])
def twin(request, monkeypatch):
    """Every draw by one twin, whatever its size."""
    is_compiled = request.param == "compiled"
    monkeypatch.setattr(module, "_is_compiled_worth", lambda blocks: is_compiled)


# The bits


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 1001])
def test_bits_are_numpys_philox(twin, n):
    keys = clients(5)
    last = np.full(
        4, 2**64 - 1, np.uint64
    )  # numpy counts up before it draws, so it begins at zero
    for i in range(5):
        theirs = np.random.Philox(key=keys.words[i], counter=last).random_raw(n)
        np.testing.assert_array_equal(keys.bits(n)[i], theirs)


@pytest.mark.parametrize("number", [0, 1, 2**32, 2**63, 2**64 - 1])
def test_derivation_is_numpys_philox_at_its_own_counter(twin, number):
    counter = [number, 0, 0, 1]
    before = (sum(c << 64 * i for i, c in enumerate(counter)) - 1) % 2**256
    words = np.array([before >> 64 * i & (2**64 - 1) for i in range(4)], np.uint64)
    theirs = np.random.Philox(key=ROOT.words, counter=words).random_raw(2)
    np.testing.assert_array_equal(ROOT.at(number).words, theirs)


@given(st.integers(0, 4), st.integers(0, 5), st.integers(0, 2**32), st.booleans())
def test_twins_agree(clients, n, seed, domain):
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**64, (clients, 2), np.uint64)
    first = rng.integers(0, 2**64, clients, np.uint64)
    np.testing.assert_array_equal(
        module._philox_compiled()(words, first, n, int(domain)),
        module._philox_plain(words, first, n, int(domain)),
        strict=True,
    )


def test_the_compiled_twin_takes_over_once_it_has_paid_for_itself(monkeypatch):
    """Blocks are counted over all draws; what is drawn is the same on both sides."""
    made = []

    def counted(name, twin):
        def draw(words, first, n, domain):
            made.append(name)
            return twin(words, first, n, domain)

        return draw

    keys = clients(100)
    compiled = counted("compiled", module._philox_compiled())
    monkeypatch.setattr(module, "_philox_compiled", lambda: compiled)
    plain = counted("plain", module._philox_plain)
    monkeypatch.setattr(module, "_philox_plain", plain)
    monkeypatch.delitem(sys.modules, "numba")
    monkeypatch.setattr(module, "_blocks_so_far", 0)
    twin = replace(TABLE["philox.philox"], smallest=250)
    monkeypatch.setitem(TABLE, "philox.philox", twin)
    drawn = [keys.bits(4) for _ in range(3)]
    assert made == ["plain", "plain", "compiled"]
    np.testing.assert_array_equal(drawn[0], drawn[2])
    monkeypatch.setitem(sys.modules, "numba", module)
    monkeypatch.setattr(module, "_blocks_so_far", 0)
    keys.bits(4)
    assert made[-1] == "compiled"  # whoever loaded numba already paid


def test_seeds_are_fixed_for_ever():
    """Stored runs resume only if these never change."""
    assert ROOT.at("round", 3).each([5]).bits(1)[0, 0] == 13520849727371747331


def test_seeds_are_reproducible_and_differ():
    assert Key.from_seed(3) == Key.from_seed(3)
    seeds = [-1, 0, 1, 2, 10, 2**63]
    assert len({Key.from_seed(seed) for seed in seeds}) == len(seeds)


def test_the_operating_system_gives_a_new_key_each_time():
    assert len({Key.from_os() for _ in range(100)}) == 100


def test_key_is_a_value_and_does_not_print_its_secret():
    assert ROOT != "seed 7"
    assert pickle.loads(pickle.dumps(ROOT)) == ROOT
    assert str(ROOT.words[0]) not in repr(ROOT) + repr(clients(1))
    assert str(clients(1).words[0, 0]) not in repr(clients(1))


# Of a secret, a cipher's


SECRET = Key.from_secret(bytes(range(32)))


def test_a_secrets_draws_are_the_mac_of_key_and_counter():
    [words] = SECRET.each([7]).words
    tag = cipher.blocks(SECRET.secret, words[None])[0]
    inputs = [
        (tag[0] ^ np.uint64(j), tag[1] ^ np.uint64(h)) for j in (0, 1) for h in (0, 1)
    ]
    wanted = cipher.blocks(SECRET.secret, np.array(inputs, np.uint64)).ravel()
    np.testing.assert_array_equal(SECRET.each([7]).bits(7)[0], wanted[:7])


@given(st.lists(st.integers(0, 2**64 - 1), max_size=5), st.integers(0, 9))
def test_of_a_secret_too_a_draw_does_not_depend_on_who_else_is_there(numbers, n):
    batch = SECRET.each(np.array(numbers, np.uint64)).at("noise", n)
    for i, number in enumerate(numbers):
        one = SECRET.each(np.array([number], np.uint64)).at("noise", n)
        np.testing.assert_array_equal(batch.bits(n)[i], one.bits(n)[0])
        np.testing.assert_array_equal(batch[[i]].normal(n), one.normal(n))
    ragged = batch.bits_ragged(np.arange(len(numbers)))
    parts = [batch.bits(i)[i] for i in range(len(numbers))]
    np.testing.assert_array_equal(
        ragged, np.concatenate([*parts, np.empty(0, np.uint64)])
    )


def test_secrets_differ_and_are_not_printed():
    other = Key.from_secret(bytes(32))
    assert other != SECRET
    assert Key.from_secret(bytes(range(32))) == SECRET
    assert not np.array_equal(SECRET.at("a").words, other.at("a").words)
    assert "secret" not in repr(SECRET) + repr(SECRET.each([1]))
    assert Key.from_os().secret is not None
    assert len({SECRET.at(i).secret_of() for i in range(50)}) == 50
    with pytest.raises(BadValue, match="a secret of 3 bytes; needed are 32"):
        Key.from_secret(b"abc")


@pytest.mark.parametrize("root", some_of([ROOT, SECRET], 1))
def test_a_permutation_has_every_place_once_and_every_order_as_often(root):
    orders = [tuple(root.at(i).permutation(3).tolist()) for i in range(3000)]
    counts = [orders.count(order) for order in permutations(range(3))]
    assert sum(counts) == 3000
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


# One stream a client


@given(st.lists(st.integers(0, 2**64 - 1), max_size=5), st.integers(0, 9))
def test_a_draw_does_not_depend_on_who_else_is_there(numbers, n):
    """Any subset, any order, any repetition: the batch equals one at a time."""
    batch = ROOT.each(np.array(numbers, np.uint64)).at("noise", n)
    for i, number in enumerate(numbers):
        alone = ROOT.each(np.array([number], np.uint64)).at("noise", n)
        np.testing.assert_array_equal(batch.bits(n)[i], alone.bits(n)[0])
        np.testing.assert_array_equal(batch.normal(n)[i], alone.normal(n)[0])


@given(st.lists(st.integers(0, 19), max_size=30), st.integers(1, 9))
def test_rows_of_keys_are_rows_of_draws(rows, n):
    keys = clients(20)
    np.testing.assert_array_equal(keys[rows].bits(n), keys.bits(n)[rows_of(rows)])


def rows_of(rows):
    return np.array(rows, np.int64)


@given(st.lists(st.integers(0, 13), max_size=8))
def test_ragged_equals_rectangular(counts):
    keys = clients(len(counts))
    whole = keys.bits(13)
    rows = [whole[i, :n] for i, n in enumerate(counts)]
    expected = np.concatenate([np.zeros(0, np.uint64), *rows])
    np.testing.assert_array_equal(keys.bits_ragged(counts), expected)
    np.testing.assert_array_equal(
        keys.uniform_ragged(counts),
        np.concatenate(
            [np.zeros(0), *(keys.uniform(13)[i, :n] for i, n in enumerate(counts))]
        ),
    )


def test_fewer_draws_are_the_first_of_more(twin):
    keys = clients(3)
    for n in range(9):
        np.testing.assert_array_equal(keys.bits(n), keys.bits(9)[:, :n])


def test_each_is_at_for_every_number():
    for number in (0, 5, 2**40):
        assert Key(ROOT.each([number]).words[0]) == ROOT.at(number)


def test_nobody_and_nothing(twin):
    nobody = ROOT.each([])
    assert nobody.at("round", 1).normal(3).shape == (0, 3)
    assert nobody.bits_ragged([]).shape == (0,)
    assert nobody.integers(2, below=[]).shape == (0, 2)
    assert clients(4).uniform(0).shape == (4, 0)
    assert clients(2).bits_ragged([0, 0]).shape == (0,)


def test_masks_and_slices_choose_clients():
    keys = clients(4)
    np.testing.assert_array_equal(keys[1:3].words, keys[[1, 2]].words)
    np.testing.assert_array_equal(
        keys[[True, False, False, True]].words, keys[[0, 3]].words
    )
    assert len(keys[[]]) == 0


# Paths


PATHS = [
    (),
    ("round",),
    ("round", 1),
    ("round1",),
    (1, "round"),
    (1,),
    ("1",),
    ("",),
    ("", ""),
    ("round", 1, 1),
    (0,),
    (0, 0),
    ("a", "b"),
    ("ab",),
    ("b", "a"),
]


def test_different_paths_give_different_keys():
    assert len({ROOT.at(*path) for path in PATHS}) == len(PATHS)
    assert ROOT.at("a", 1, "b") == ROOT.at("a").at(1).at("b")


def test_derived_keys_never_coincide_with_draws():
    draws = set(Keys(ROOT.words[None]).bits(40_000)[0].tolist())
    derived = ROOT.each(range(10_000)).words.ravel().tolist()
    assert len(draws) == 40_000
    assert len(set(derived)) == 20_000
    assert not draws & set(derived)


@pytest.mark.parametrize("step", [-1, 2**64, 1.0, 1.5, None, b"x", np.float32(2)])
def test_a_step_is_a_text_or_a_number_from_0(step):
    with pytest.raises(REFUSED, match=r"step|path"):
        ROOT.at(step)


# Refusals


@pytest.mark.parametrize("numbers", [[-1], [0.5], ["a"], 3, [[1]], [True]])
def test_client_numbers_are_whole(numbers):
    with pytest.raises(REFUSED, match="numbers"):
        ROOT.each(numbers)


@pytest.mark.parametrize("n", [-1, 2.5, "3", None, 2**50])
def test_the_number_of_draws_is_whole(n):
    with pytest.raises(REFUSED, match="n"):
        clients(2).bits(n)


@pytest.mark.parametrize("counts", [[1], [1, 2, 3], [-1, 2], [0.5, 1], 2])
def test_counts_are_one_a_client(counts):
    with pytest.raises(REFUSED):
        clients(2).bits_ragged(counts)


@pytest.mark.parametrize(
    "below", [0, -1, 1.5, "9", [1, 0], [2, 3, 4], [-5, 2], 2**63 + 1, np.inf]
)
def test_below_is_whole_and_from_1(below):
    with pytest.raises(REFUSED):
        clients(2).integers(3, below=below)


def test_one_below_does_not_stand_for_many_clients():
    with pytest.raises(BadValue, match="3 numbers for 1 clients"):
        clients(1).integers(2, below=[5, 2, 3])


@pytest.mark.parametrize("rows", [[5], [-1], 2, [0.0], [True]])
def test_rows_are_places_of_clients(rows):
    with pytest.raises(REFUSED):
        clients(5)[rows]


@pytest.mark.parametrize("words", [np.zeros(2), np.zeros(3, np.uint64)])
def test_words_are_two_of_64_bits(words):
    with pytest.raises(REFUSED, match="words"):
        Key(words)
    with pytest.raises(REFUSED, match="words"):
        Keys(words[None])


@pytest.mark.parametrize("seed", [1.0, "1", None, 2**64])
def test_a_seed_is_whole(seed):
    with pytest.raises(REFUSED, match="seed"):
        Key.from_seed(seed)


# Distributions


def test_uniform_is_uniform():
    """False alarm below 1e-9; sees a distribution function off by 0.01."""
    n = samples_to_see(0.01, false_alarm=FALSE_ALARM) // 100 + 1
    draws = clients(n).uniform(100)
    assert 0 <= draws.min() < 1e-3
    assert 1 - 1e-3 < draws.max() < 1
    assert_distribution(draws, uniform.cdf, false_alarm=FALSE_ALARM)


def test_normal_is_normal():
    """False alarm below 1e-9; sees a scale 3 % off."""
    n = samples_to_see(0.007, false_alarm=FALSE_ALARM) // 1000 + 1
    draws = clients(n).normal(1000)
    assert_distribution(draws, norm.cdf, false_alarm=FALSE_ALARM)
    with pytest.raises(AssertionError):
        assert_distribution(draws * 1.03, norm.cdf, false_alarm=FALSE_ALARM)


def test_normal_is_finite_at_the_ends(monkeypatch):
    ends = np.array([[0, 2**64 - 1]], np.uint64)
    monkeypatch.setattr(Keys, "bits", lambda self, n: ends)
    low, high = clients(1).normal(2)[0]
    assert low == -high
    assert 8.2 < high < 8.21
    zero, one = clients(1).uniform(2)[0]
    assert zero == 0
    assert one == 1 - 2**-53
    np.testing.assert_array_equal(clients(1).integers(2, below=2**63), [[0, 2**63 - 1]])


@pytest.mark.parametrize("below", [2, 3, 10])
def test_integers_are_even(below):
    """False alarm below 1e-9; sees a cell whose probability is off by 0.015."""
    draws = clients(2000).integers(100, below=below)
    counts = np.bincount(draws.ravel(), minlength=below)
    assert_frequencies(counts, np.full(below, 1 / below), false_alarm=FALSE_ALARM)


def test_integers_below_one_is_zero_and_below_may_differ():
    assert not clients(5).integers(9, below=1).any()
    below = np.array([1, 2, 1000, 2**40, 2**63], np.uint64)
    draws = clients(5).integers(500, below=below)
    assert (draws >= 0).all()
    assert (draws.max(axis=1) < below.astype(object)).all()
    assert (draws[1:].max(axis=1) > 0.9 * (below[1:] - 1).astype(float)).all()
    np.testing.assert_array_equal(
        draws[2], clients(5)[[2]].integers(500, below=1000)[0]
    )


def test_clients_positions_and_purposes_are_uncorrelated():
    """Four false alarms below 1e-9 each; sees a correlation of 0.05."""
    keys = clients(20_000)
    draws = keys.uniform(8)
    pairs = [
        (draws[0::2], draws[1::2]),  # neighbouring clients
        (draws[:, 0::2], draws[:, 1::2]),  # neighbouring draws
        (draws, keys.at("other").uniform(8)),
        (draws, Key.from_seed(8).each(range(20_000)).uniform(8)),
    ]
    for x, y in pairs:
        assert_independent(x, y, false_alarm=FALSE_ALARM)


def test_bits_are_fair_in_every_place():
    """False alarm below 1e-9; sees a bit whose probability is off by 0.02."""
    bits = clients(1000).bits(100).ravel()
    for place in range(64):
        ones = int((bits >> np.uint64(place) & np.uint64(1)).sum())
        counts = [len(bits) - ones, ones]
        assert_frequencies(counts, [0.5, 0.5], false_alarm=FALSE_ALARM / 64)


# Processes and speed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_compiled_draws_survive_a_fork_and_threads():
    keys = clients(TABLE["philox.philox"].smallest)
    expected = keys.bits(1)
    with ThreadPoolExecutor(4) as pool:
        for made in pool.map(keys.bits, [1] * 8):
            np.testing.assert_array_equal(made, expected)
    child = os.fork()
    if child == 0:
        os._exit(0 if (keys.bits(1) == expected).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_all_clients_draw_in_one_call_of_the_generator(monkeypatch):
    """A call per client would take a thousand times as long for a large cohort."""
    asked, generator = [], module._philox

    def counted(words, first, n, domain):
        asked.append((len(words), n))
        return generator(words, first, n, domain)

    monkeypatch.setattr(module, "_philox", counted)
    clients(500).bits(100)
    ragged = clients(500).uniform_ragged(np.arange(500))
    assert asked == [(500, 1), (500, 25), (500, 1), (-(-np.arange(500) // 4).sum(), 1)]
    assert len(ragged) == 500 * 499 // 2
