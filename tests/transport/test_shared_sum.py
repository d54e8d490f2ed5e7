"""Two halves of a report: vectors, limits, and what one half and one array tell."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from tacit.cipher import SECRET_BYTES
from tacit.errors import BadMessage, Refused
from tacit.exact_sum import Noise, squares
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import ClippedSumWithBits
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.personal_budgets import ByClip
from tacit.mechanisms.sum_mechanism import Bounded
from tacit.transport.messages import Layout, Slot
from tacit.transport.shared_sum import (
    MOST_NUMBERS,
    SharedSum,
    add_stream,
    explicit,
    from_bytes,
    modulo,
    play,
    published,
    sealed_size,
    signed,
    step_size,
    stream,
    to_bytes,
)
from tacit.tree import Dense, Factored, Symmetric, Tree

FALSE_ALARM = 1e-9
SEEDS = st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES)
WHOLE = hnp.arrays(np.int64, 7, elements=st.integers(-(2**31), 2**31 - 1))


def counts(n: int) -> Layout:
    return Layout({"counts": Slot("float64", (n,))})


def shared(n: int = 5, *, z: float = 2.0, users: int = 1000) -> SharedSum:
    return SharedSum.of(GaussianSum(1.0, z), counts(n), most_reports=users)


def dense(rows) -> Tree:
    return Tree({"counts": Dense(np.asarray(rows, np.float64))})


# --- Vectors --------------------------------------------------------------------------


def test_the_stream_of_a_seed(federation_vectors):
    wanted = federation_vectors["stream"]
    found = stream(bytes.fromhex(wanted["seed"]), len(wanted["first"]))
    assert found.tolist() == wanted["first"]


@pytest.mark.parametrize("n", [1, 5, 2**14 - 1, 2**14, 2**14 + 3, 50_000])
def test_a_stream_added_piece_by_piece_is_the_same_stream(n):
    total, seed = np.arange(n, dtype=np.uint32), bytes(range(32))
    expected = total + stream(seed, n)
    add_stream(total, seed)
    np.testing.assert_array_equal(total, expected)


def test_the_explicit_half_of_a_report(federation_vectors):
    wanted = federation_vectors["explicit"]
    half = explicit(np.array(wanted["q"]), bytes.fromhex(wanted["seed"]))
    assert to_bytes(half).hex() == wanted["bytes"]


def test_the_noise_of_one_aggregator(federation_vectors):
    for wanted in federation_vectors["noise"]:
        nothing = np.zeros(len(wanted["k"]), np.uint32)
        seed = bytes.fromhex(wanted["seed"])
        found = published(nothing, sigma=wanted["sigma"], seed=seed)
        assert signed(found).tolist() == wanted["k"]


def test_relations_are_written_as_the_half_of_their_square(federation_vectors):
    for wanted in federation_vectors["encode"]:
        layout = Layout({"relations": Slot.symmetric("float64", len(wanted["z"]))})
        mechanism = GaussianSum(math.sqrt(0.5), 1.0)
        made = SharedSum.of(mechanism, layout, most_reports=100)
        assert made.steps == wanted["r"]
        tree = Tree({"relations": Symmetric(np.array([[wanted["z"]]], np.float64))})
        q = made.encoded(tree)
        assert q[0].tolist() == wanted["q"]
        assert squares(q)[0] == wanted["sum_of_squares"] <= made.limit


def test_loadings_are_written_row_by_row(federation_vectors):
    wanted = federation_vectors["loadings"]
    layout = Layout({"loadings": Slot("float64", (2, 2), rank=1)})
    made = SharedSum.of(GaussianSum(1.0, 1.0), layout, most_reports=100)
    q, t = (np.array([[wanted[name]]]) for name in "qt")
    [found] = made.encoded(Tree({"loadings": Factored(q, t)}))
    assert found.tolist() == wanted["encoded"]
    assert made.limit == wanted["limit"]


def test_what_is_no_number_is_a_report_of_zeros(federation_vectors):
    wanted = federation_vectors["zero"]
    [found] = shared(2).encoded(dense([[float(v) for v in wanted["v"]]]))
    assert found.tolist() == wanted["encoded"]


@pytest.mark.parametrize("phase", ["counts", "relations"])
def test_limits_and_noise_of_a_whole_run(federation_vectors, phase):
    """The numbers of Gram with two sums: from an epsilon to whole steps, and back."""
    from tacit.accounting.calibration import gaussian_epsilon, gaussian_noise

    for wanted in federation_vectors["epsilon"]:
        total = math.sqrt(2) * gaussian_noise(wanted["target"], delta=wanted["delta"])
        share = {"counts": wanted["share"], "relations": 1 - wanted["share"]}
        z = {name: total / math.sqrt(part) for name, part in share.items()}
        bound = {"counts": 1.0, "relations": math.sqrt(0.5)}
        slots = {
            "counts": Slot("float64", (wanted["items"],)),
            "relations": Slot.symmetric("float64", wanted["head"]),
        }
        made = {
            name: SharedSum.of(
                GaussianSum(bound[name], z[name]),
                Layout({name: slots[name]}),
                most_reports=6040,
            )
            for name in slots
        }
        assert made[phase].sigma == wanted[f"sigma_{phase}"]
        spent = sum(one.limit / one.sigma**2 for one in made.values())  # Σ 1/z²
        server = gaussian_epsilon(spent**-0.5, delta=wanted["delta"])
        release = gaussian_epsilon((spent / 2) ** -0.5, delta=wanted["delta"])
        assert server == pytest.approx(wanted["server"], abs=5e-5)
        assert server <= wanted["target"]
        assert release == pytest.approx(wanted["release"], abs=5e-5)


def test_the_size_of_a_report(federation_vectors):
    n = len(federation_vectors["explicit"]["q"])
    assert sealed_size(counts(n)) == len(federation_vectors["report"]["body"]) // 2
    for side, size in {300: 180_776, 600: 721_376, 900: 1_621_976}.items():
        layout = Layout({"relations": Slot.symmetric("float64", side)})
        assert sealed_size(layout) == size


# --- Limits ---------------------------------------------------------------------------


@given(
    hnp.arrays(
        np.float64,
        (3, 6),
        elements=st.floats(-1e308, 1e308) | st.sampled_from([np.nan, np.inf]),
    ),
    st.floats(1e-3, 1e3),
)
def test_no_report_passes_the_limit_whatever_it_is(rows, bound):
    made = SharedSum.of(GaussianSum(bound, 1.0), counts(6), most_reports=100)
    assert (squares(made.encoded(dense(rows))) <= made.limit).all()


@given(hnp.arrays(np.float64, (4, 6), elements=st.floats(-1, 1)))
def test_a_report_is_decoded_within_a_step(rows):
    made = shared(6)
    rows = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    total, n = made.total([dense(rows)])
    assert n == len(rows)
    found = made.decoded([total])["counts"]
    np.testing.assert_allclose(found, rows.sum(axis=0), atol=len(rows) / made.steps)


def test_reports_of_single_precision_are_not_lost():
    """A unit vector of float32 may be longer than 1 by more than a sum allows."""
    rows = np.random.default_rng(0).standard_normal((200, 50))
    single = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    assert (np.linalg.norm(single.astype(np.float64), axis=1) > 1 + 1e-9).any()
    q = shared(50).encoded(Tree({"counts": Dense(single)}))
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 2.0**16, rtol=1e-4)


def test_who_agreed_to_less_is_rounded_towards_zero():
    """Else rounding would add more to a short report than to a long one."""
    mechanism = ByClip(2.0, {"strict": 20.0, "open": 2.0})
    made = SharedSum.of(mechanism, counts(400), most_reports=100)
    assert made.has_smaller
    strict = np.full((1, 400), 0.1 / 20)  # of norm 0.1
    assert squares(made.encoded(dense(strict)))[0] <= made.limit * 0.1**2
    broken = np.array([[np.nan] * 400, [np.inf] * 400])
    assert not made.encoded(dense(broken)).any()


@given(st.integers(1, 10**6), st.floats(0.1, 100), st.floats(1e-3, 1e3))
def test_no_sum_of_the_planned_reports_wraps_around(users, z, bound):
    steps = step_size(bound, z * bound, most_reports=users)
    assert steps * bound <= 2**16
    # Reports of the largest norm, all in one number, and twelve deviations of noise.
    assert steps * (users * bound + 12 * 1.03 * z * bound) < 2**31
    finer = 2 * steps * (users * bound + 12 * 1.03 * z * bound)
    assert finer >= 2**31 - 1 or 2 * steps * bound > 2**16


def test_more_reports_than_planned_are_refused():
    with pytest.raises(Refused, match=r"3 reports.*2 at most"):
        shared(5, users=2).total([dense(np.zeros((2, 5))), dense(np.zeros((1, 5)))])


ONE, TWO = GaussianSum(1.0, 1.0), {name: Slot("float64", (2,)) for name in "ab"}


@pytest.mark.parametrize(
    ("mechanism", "layout", "reason"),
    [
        (None, counts(3), "neither noise nor bound"),
        (ONE, Layout(TWO), "2: a, b"),
        (ClippedSumWithBits(1.0, 1.0, 5.0), Layout(TWO), "a report has 2"),
        (ONE, counts(MOST_NUMBERS + 1), "500,001 numbers"),
    ],
    ids=["no noise", "two leaves", "a moving clip", "too many numbers"],
)
def test_what_cannot_be_shared_is_refused_with_the_reason(mechanism, layout, reason):
    with pytest.raises(Refused, match=reason):
        SharedSum.of(mechanism, layout, most_reports=10)


def test_noise_without_a_form_in_whole_numbers_is_refused():
    from tacit.mechanisms.skellam import SkellamSum

    with pytest.raises(Refused, match="SkellamSum has no form"):
        SharedSum.of(SkellamSum.__new__(SkellamSum), counts(3), most_reports=10)


def test_as_many_numbers_as_are_allowed():
    made = SharedSum.of(GaussianSum(1.0, 1.0), counts(MOST_NUMBERS), most_reports=10)
    assert made.size == MOST_NUMBERS


def test_the_bound_of_a_leaf_is_read_from_its_mechanism():
    class Other(GaussianSum):
        def bounded(self, leaves):
            return (Bounded(tuple(leaves), 4.0, 12.0),)

    made = SharedSum.of(Other(1.0, 1.0), counts(3), most_reports=10)
    assert (made.bound, made.steps) == (4.0, 2.0**14)
    assert made.sigma == math.ceil(3 / math.sqrt(2) * math.sqrt(made.limit))


# --- Halves ---------------------------------------------------------------------------


@given(WHOLE, SEEDS)
def test_two_halves_are_the_report(report, seed):
    half = explicit(report, seed)
    assert signed(half + stream(seed, len(report))).tolist() == report.tolist()


@given(hnp.arrays(np.int64, 4, elements=st.integers(-(2**62), 2**62)))
def test_remainders_and_signed_numbers(whole):
    found = modulo(whole)
    assert found.tolist() == [int(one) % 2**32 for one in whole]
    wanted = [(int(one) + 2**31) % 2**32 - 2**31 for one in whole]
    assert signed(found).tolist() == wanted


@given(hnp.arrays(np.uint32, 5), st.integers(0, 40))
def test_arrays_as_they_are_sent(numbers, other):
    assert from_bytes(to_bytes(numbers), 5).tolist() == numbers.tolist()
    assert to_bytes(numbers)[:4] == int(numbers[0]).to_bytes(4, "little")
    if other != 20:
        with pytest.raises(BadMessage, match=f"20 bytes; {other} were sent"):
            from_bytes(bytes(other), 5)


@pytest.mark.parametrize("report", [0, 2**16], ids=["nothing", "all"])
def test_a_half_alone_is_uniform_whatever_the_report(report):
    """False alarm 4e-9 for new seeds; sees a bit that is set 2 % too often."""
    n = 2**18
    whole = np.full(n, report)
    for half in (explicit(whole, bytes(32)), stream(bytes(32), n)):
        ones = np.unpackbits(half.view(np.uint8)).reshape(n, 32).sum(axis=0)
        chances = 2 * stats.binom.sf(n / 2 + np.abs(ones - n / 2) - 1, n, 0.5)
        assert chances.min() > FALSE_ALARM / 32
        spread = stats.kstest(half / 2**32, "uniform")
        assert spread.pvalue > FALSE_ALARM


# --- Aggregators ----------------------------------------------------------------------


@given(
    hnp.arrays(np.int64, (6, 5), elements=st.integers(-(2**16), 2**16)),
    st.permutations(range(6)),
    st.integers(1, 5),
)
def test_neither_order_nor_batches_matter(reports, order, cut):
    """What services do, batch by batch, is what the twin does at once."""
    made = shared(5)
    seeds = [bytes([i]) * 32 for i in range(6)]
    batches = order[:cut], order[cut:]
    leader = [sum_of([explicit(reports[i], seeds[i]) for i in b]) for b in batches]
    helper = [sum_of([stream(seeds[i], 5) for i in b]) for b in batches]
    noisy = (
        published(sum_of(leader), sigma=9, seed=bytes(32)),
        published(sum_of(helper), sigma=9, seed=bytes(range(32))),
    )
    noises = [Noise(s).draw(81, 5) for s in (bytes(32), bytes(range(32)))]
    wanted = reports.sum(axis=0) + sum(noises)
    assert (made.decoded(noisy)["counts"] == wanted / made.steps).all()


def sum_of(arrays) -> np.ndarray:
    total = np.zeros(5, np.uint32)
    for one in arrays:
        total += one
    return total


def test_the_twin_publishes_what_services_would():
    made, key = shared(5), Key.from_seed(3)
    reports = np.random.default_rng(0).integers(-(2**15), 2**15, (4, 5))
    leader, helper = play(modulo(reports.sum(axis=0)), made, key)
    assert (leader.halves + helper.halves == modulo(reports.sum(axis=0))).all()
    for one, role in ((leader, "leader"), (helper, "helper")):
        seed = key.at(role).secret_of()
        noise = Noise(seed).draw(made.sigma**2, 5)
        assert (one.published == one.halves + modulo(noise)).all()


def test_rounds_and_roles_draw_their_own():
    made, nothing = shared(64), np.zeros(64, np.uint32)
    arrays = [
        one.published - one.halves
        for seed in (1, 2)
        for one in play(nothing, made, Key.from_seed(seed))
    ]
    assert len({to_bytes(array) for array in arrays}) == 4
    again = play(nothing, made, Key.from_seed(1))
    assert (again[0].published - again[0].halves == arrays[0]).all()


def test_one_published_array_is_uniform_without_the_other():
    """False alarm 1e-9 for a new key: readers of one array learn nothing at all."""
    made = shared(2**14)
    everything = np.full(2**14, 12345, np.uint32)
    for one in play(everything, made, Key.from_seed(0)):
        assert stats.kstest(one.published / 2**32, "uniform").pvalue > FALSE_ALARM / 2


def test_both_together_open_the_report():
    """Why nothing is promised against both: the noise is theirs to leave out."""
    report = np.random.default_rng(0).integers(-(2**16), 2**16, 5)
    leader, helper = play(modulo(report), shared(5), Key.from_seed(0))
    assert signed(leader.halves + helper.halves).tolist() == report.tolist()


def test_who_holds_one_half_and_picks_one_victim_sees_the_noise_of_the_other():
    """False alarm 4e-9 for a new key; sees a deviation that is 4 % off."""
    made = shared(2**14)
    [report] = made.encoded(dense(np.eye(1, 2**14)))
    leader, helper = play(modulo(report), made, Key.from_seed(0))
    law = partial(stats.norm.cdf, scale=made.sigma)
    for honest, other in ((leader, helper), (helper, leader)):
        draws = signed(honest.published + other.halves) - report
        square = float(((draws / made.sigma) ** 2).sum())
        chances = stats.chi2.cdf(square, len(draws)), stats.chi2.sf(square, len(draws))
        assert 2 * min(chances) > FALSE_ALARM
        assert stats.kstest(draws, law).pvalue > FALSE_ALARM
    assert made.sigma / math.sqrt(made.limit) >= 2.0 / math.sqrt(2)  # z of a server
