"""The noisy sum of a release: exact, bounded in integers, and normal."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import Refused
from tacit.exact_sum import encode
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT, ClippedSumWithBits
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.personal_budgets import ByClip, ByClipWithBits
from tacit.mechanisms.skellam import SkellamSum
from tacit.mechanisms.sum_mechanism import Bounded
from tacit.transport import exact_total as module
from tacit.transport.channels import Each, RoundContext, SecureSum, bare_sum, summed
from tacit.transport.exact_total import (
    check_exact,
    exact_sum,
    exact_total,
    longest_sums,
)
from tacit.transport.messages import Layout, Reports, Slot
from tacit.tree import (
    Dense,
    Factored,
    Grouped,
    SparseFactored,
    SparseRests,
    Symmetric,
    TouchedRows,
    Tree,
)

SECRET = bytes(range(32))
FALSE_ALARM = 1e-9
USERS = 60


def draws(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def roots(n, side):
    made = draws(n, 1, side)
    return made / np.linalg.norm(made, axis=2, keepdims=True)


def in_groups(n, groups=3):
    return np.eye(groups)[np.random.default_rng(1).integers(0, groups, n)]


def worlds():
    """Reports of every kind, with what bounds them."""
    n = USERS
    plain = Tree.dense(a=draws(n, 30), b=draws(n, 2, 3))
    yield (
        "dense",
        plain,
        {"a": Slot("float64", (30,)), "b": Slot("float64", (2, 3))},
        GaussianSum(0.3, 2.0),
    )
    layers = Tree(
        {
            "W": Factored(draws(n, 1, 20), draws(n, 1, 10, seed=1)).map(np.float32),
            "v": Dense(draws(n, 10).astype(np.float32)),
        }
    )
    slots = {"W": Slot("float32", (20, 10), 1), "v": Slot("float32", (10,))}
    yield "factored", layers, slots, GaussianSum(0.3, 1.0)
    two = Tree({"W": Factored(draws(n, 2, 6), draws(n, 2, 5, seed=1))})
    yield "rank 2", two, {"W": Slot("float64", (6, 5), 2)}, GaussianSum(2.0, 1.0)
    half = Tree({"S": Symmetric(roots(n, 12))})
    symmetric = {"S": Slot.symmetric("float64", 12)}
    yield "symmetric", half, symmetric, GaussianSum(math.sqrt(0.5), 0.7)
    both = Tree({**half.leaves, "a": Dense(draws(n, 4))})
    yield (
        "symmetric and dense",
        both,
        {**symmetric, "a": Slot("float64", (4,))},
        GaussianSum(1.0, 1.0),
    )
    bits = ClippedSumWithBits(0.5, 1.0, 10.0)
    slots = {"a": Slot("float64", (30,)), BIT: Slot("float64", ())}
    yield "clip bits", bits.bound(Tree.dense(a=draws(n, 30))), slots, bits
    groups = ByClip(2.0, {"few": 4.0, "many": 2.0})
    codes = np.arange(n) % 2
    made = groups.bound(Tree.dense(a=draws(n, 30)), codes)
    yield "budgets", made, {"a": Slot("float64", (30,))}, groups
    both = ByClipWithBits(bits, {"few": 0.3, "many": 1.0})
    yield (
        "budgets, clip bits",
        both.bound(Tree.dense(a=draws(n, 30)), codes),
        slots,
        both,
    )
    placed = Tree({"a": Grouped(Dense(draws(n, 8)), in_groups(n))})
    yield "groups", placed, {"a": Slot("float64", (8,)).grouped(3)}, GaussianSum(1.0, 1)
    inner = Factored(draws(n, 1, 6), draws(n, 1, 5))
    placed = Tree({"a": Grouped(inner, in_groups(n))})
    slot = Slot("float64", (6, 5), 1).grouped(3)
    yield "factored groups", placed, {"a": slot}, GaussianSum(1.0, 1.0)
    placed = Tree({"a": Grouped(Symmetric(roots(n, 5)), in_groups(n))})
    slot = Slot.symmetric("float64", 5).grouped(3)
    yield "symmetric groups", placed, {"a": slot}, GaussianSum(1.0, 1.0)
    numbers = np.arange(4 * n, dtype=np.int32).reshape(n, 4) % 9
    touched = TouchedRows(numbers, draws(n, 4, 3), 8)
    rows = Slot.touched_rows("float64", (8, 3), most=4)
    yield "touched rows", Tree({"V": touched}), {"V": rows}, GaussianSum(1.5, 1.0)
    rests = SparseRests(
        *(np.arange(0, 3 * n + 1, 3), np.arange(3 * n) % 8, draws(8), draws(8, seed=1)),
        draws(n, 2, seed=2),
    )
    few = Tree({"S": SparseFactored(rests, draws(n, 1, 5))})
    yield "few items", few, {"S": Slot("float64", (8, 5), 1)}, GaussianSum(1.0, 1.0)
    placed = Tree({"V": Grouped(touched, in_groups(n))})
    yield "groups of rows", placed, {"V": rows.grouped(3)}, GaussianSum(1.5, 1.0)


WORLDS = {name: rest for name, *rest in worlds()}
every_world = pytest.mark.parametrize("name", WORLDS)


def total(name, tree, secret=SECRET):
    _, slots, mechanism = WORLDS[name]
    trees = [tree] if isinstance(tree, Tree) else tree
    return exact_total(trees, mechanism, Layout(slots), secret)


def codes_of(name):
    _, slots, mechanism = WORLDS[name]
    return [
        module._Code(part, {leaf: slots[leaf] for leaf in part.leaves})
        for part in mechanism.bounded([*slots])
    ]


# The sum


@every_world
def test_the_sum_is_that_of_floats_but_for_the_steps(name):
    tree, slots, mechanism = WORLDS[name]
    with_users, alone = total(name, tree), total(name, [])
    wanted = bare_sum([mechanism.enforce(tree)], Layout(slots))
    for leaf, value in wanted.items():
        found = with_users[leaf] - alone[leaf]
        np.testing.assert_allclose(found, value, atol=USERS * 2e-3 * 0.3)


@every_world
def test_no_order_and_no_chunk_changes_a_bit(name):
    tree, _, _ = WORLDS[name]
    whole = total(name, tree)
    order = np.random.default_rng(3).permutation(USERS)
    cut = [tree.select(order[:1]), tree.select(order[1:17]), tree.select(order[17:])]
    for leaf, value in total(name, cut).items():
        np.testing.assert_array_equal(value, whole[leaf], strict=True)


@every_world
def test_blocks_of_any_size_give_the_same_bits(name, monkeypatch):
    tree, _, _ = WORLDS[name]
    whole = total(name, tree)
    monkeypatch.setattr(module, "_CACHED", 1)  # one client at a time
    for leaf, value in total(name, tree).items():
        np.testing.assert_array_equal(value, whole[leaf], strict=True)


@every_world
def test_the_type_and_shape_do_not_tell_who_took_part(name):
    tree, slots, _ = WORLDS[name]
    for users in ([], tree.select([0]), tree):
        found = total(name, users)
        assert {n: v.dtype for n, v in found.items()} == dict.fromkeys(slots, float)
        assert {n: v.shape for n, v in found.items()} == {
            n: slot.shape for n, slot in slots.items()
        }


@every_world
def test_one_report_moves_the_sum_by_no_more_than_the_limit(name):
    """In whole numbers, with everyone else there and with nobody."""
    tree, slots, _ = WORLDS[name]
    for code in codes_of(name):
        for others in ([], [*range(1, USERS)]):
            sums = []
            for rows in (others, [0, *others]):
                made = {n: np.zeros(slots[n].shape, np.int64) for n in code.slots}
                if rows:
                    code.add_to(made, tree.select(rows))
                sums.append(made)
            moved = sum(
                _twice_square(sums[1][n] - sums[0][n], slots[n]) for n in code.slots
            )
            assert 0 < moved <= code.twice_limit


def _twice_square(moved, slot):
    """Twice the squared norm in Python's integers; a square's pairs count twice."""
    weights = np.full(moved.shape[-1:] if slot.side else moved.shape, 2, object)
    if slot.side is not None and slot.rank == 1:
        weights[module.diagonal(slot.side)] = 1
    return int(np.sum(moved.astype(object) ** 2 * weights))


@every_world
def test_the_noise_is_what_the_account_says_or_a_little_more(name):
    """σ over the longest report is the promised multiplier, to 1 percent."""
    for code in codes_of(name):
        promised = code.part.deviation / code.part.bound
        longest = math.sqrt(code.twice_limit / 2)
        assert promised <= code.deviation / longest <= promised * (1 + 1e-3)
        assert longest <= 1.01 * code.steps * code.part.bound


def test_a_smaller_bound_of_ones_own_is_kept_exactly():
    """Nothing is rounded up: a group's reports keep the group's own limit."""
    tree, _, mechanism = WORLDS["budgets"]
    [code] = codes_of("budgets")
    encoded = code._encoded(tree)
    lengths = np.sqrt(module._twice_squares(encoded["a"]) / 2)
    for group, multiplier in enumerate(mechanism.multipliers.values()):
        most = code.deviation / multiplier
        assert (lengths[group::2] <= most).all()


# Neighbours that floats could not bear


def test_neighbours_whose_float32_sums_lie_more_than_a_clip_apart():
    """Every report is within the clip; in floats the others are rounded anew."""
    rows, columns = 64, 4
    clip = math.sqrt(columns)
    small = np.float32(2.0**-11 * (1 + 2.0**-10))

    def cohort(large):
        sizes = np.array([1.0] * large + [small] * 2047, np.float32)
        left = np.zeros((len(sizes), 1, rows), np.float32)
        left[:, 0, 0] = 1
        right = sizes[:, None, None] * np.ones((1, 1, columns), np.float32)
        return Tree({"W": Factored(left, right)})

    layout = Layout({"W": Slot("float32", (rows, columns), rank=1)})
    mechanism = GaussianSum(clip, 1.0)

    def moved(sum_of):
        with_her, without = (sum_of(cohort(n)) for n in (8192, 8191))
        return np.linalg.norm(with_her["W"].astype(float) - without["W"]) / clip

    assert moved(lambda tree: bare_sum([mechanism.enforce(tree)], layout)) > 1.0004
    exact = moved(lambda tree: exact_total([tree], mechanism, layout, SECRET))
    assert exact <= 1


def test_low_bits_do_not_tell_whether_anybody_has_an_item():
    """Mironov's event: the sum lies on a grid that only a value that was added makes.

    Of floats it has a hundred times the probability with a user; of whole steps the
    grid is everyone's.
    """
    n = 2**16
    layout, mechanism = Layout({"x": Slot("float64", (n,))}), GaussianSum(1.0, 4.0)

    def on_the_grid(found):
        grid = found * 2.0**53
        return int(((np.abs(found) < 2.0**-4) & (grid == np.rint(grid))).sum())

    floats = [
        sum(
            on_the_grid(mechanism.add({"x": np.full(n, value)}, Key.from_seed(i))["x"])
            for i in range(10)
        )
        for value in (0.0, 1.0)
    ]
    assert floats[1] > 20 * max(1, floats[0])
    mine = np.zeros((1, n))
    mine[0, 0] = 1.0
    for users in ([], [Tree.dense(x=mine)]):
        steps = exact_total(users, mechanism, layout, SECRET)["x"] * 2.0**16
        np.testing.assert_array_equal(steps, np.rint(steps))


# The noise


@pytest.mark.parametrize("name", ["dense", "factored", "symmetric"])
def test_the_noise_is_normal_with_the_scale_of_a_simulation(name):
    _, slots, mechanism = WORLDS[name]
    layout = Layout(slots)
    found = [
        np.concatenate(
            [v.ravel() / mechanism.scale(n) for n, v in noise.items()],
        )
        for noise in (
            exact_total([], mechanism, layout, bytes([i]) * 32) for i in range(60)
        )
    ]
    assert stats.kstest(np.concatenate(found), "norm").pvalue > FALSE_ALARM


def test_the_diagonal_of_a_half_has_the_noise_of_its_pairs():
    """√2 σ on the squares, which the half divides by √2; σ would be too little."""
    _, slots, mechanism = WORLDS["symmetric"]
    halves = [total("symmetric", [], bytes([i]) * 32)["S"] for i in range(200)]
    on = module.diagonal(slots["S"].side)
    for found in (np.array(halves)[:, on], np.delete(halves, on, axis=1)):
        scaled = found.ravel() / mechanism.scale("S")
        assert stats.kstest(scaled, "norm").pvalue > FALSE_ALARM


def test_a_dense_report_is_encoded_as_a_device_encodes_it():
    """The rule stands in `exact_sum` for one vector, here for any leaves."""
    x = draws(USERS, 300)
    flat = np.zeros((USERS, 300))
    flat[:, :5] = 1 / math.sqrt(5)  # rounded towards zero
    both = np.concatenate([x / np.linalg.norm(x, axis=1)[:, None] * 0.999, flat])
    part = Bounded(("a",), 1.0, 2.0)
    code = module._Code(part, {"a": Slot("float64", (300,))})
    found = code._encoded(Tree.dense(a=both))["a"].values
    np.testing.assert_array_equal(found, encode(both, 1.0, steps=code.steps))


def test_both_purposes_have_one_law():
    """The sums of a simulation and of a release, of the same reports."""
    tree, slots, mechanism = WORLDS["dense"]
    simulated, released = [], []
    for i in range(150):
        context = RoundContext(Layout(slots), Key.from_seed(i), mechanism)
        simulated.append(summed([tree], context)["a"])
        secret = Key.from_seed(i).secret_of()
        released.append(summed([tree], replace(context, secret=secret))["a"])
    for place in range(30):
        one, other = (np.array(sums)[:, place] for sums in (simulated, released))
        assert stats.ks_2samp(one, other).pvalue > FALSE_ALARM


def test_leaves_and_secrets_have_draws_of_their_own():
    one, other = total("dense", []), total("dense", [], bytes(32))
    assert not np.array_equal(one["a"], other["a"])
    assert not np.array_equal(one["a"].ravel()[:6], one["b"].ravel())


# Reports that arrive


@given(
    st.sampled_from([n for n in WORLDS if n != "clip bits"]),
    st.sampled_from([np.nan, np.inf, 1e308, -1e200, 1e-320, -0.0]),
    st.integers(0, 10**6),
)
def test_whatever_arrives_keeps_the_limit_and_harms_nobody(name, value, place):
    tree, slots, _ = WORLDS[name]
    made = {}
    for leaf_name, leaf in tree.select([0]).leaves.items():
        parts = {s: p.copy() for s, p in leaf.parts.items()}
        for part in parts.values():
            is_number = part.dtype.kind == "f"  # else it says which row is touched
            with np.errstate(over="ignore"):
                sent = value if is_number else place % 12 - 2
                part.reshape(-1)[place % part.size] = sent
        made[leaf_name] = leaf.with_parts(parts)
    for code in codes_of(name):
        sums = {n: np.zeros(slots[n].shape, np.int64) for n in code.slots}
        code.add_to(sums, Tree(made))
        moved = sum(_twice_square(sums[n], slots[n]) for n in code.slots)
        assert moved <= code.twice_limit


def test_who_claims_two_groups_counts_in_none():
    shares = np.array([[1.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    placed = Tree({"a": Grouped(Dense(draws(3, 8)), shares)})
    found = total("groups", placed)["a"] - total("groups", [])["a"]
    assert not found[:2].any()
    assert found[2].any()


def test_a_trusted_sum_and_a_server_give_the_same_bytes():
    tree, slots, mechanism = WORLDS["dense"]
    context = RoundContext(Layout(slots), Key.from_seed(0), mechanism, secret=SECRET)
    trusted = SecureSum().carry([Reports(tree)], context).total
    own = summed((chunk.tree for chunk in Each([Reports(tree)]).chunks), context)
    for name in slots:
        np.testing.assert_array_equal(trusted[name], own[name])


def test_noise_that_is_not_gaussian_is_refused():
    mechanism = SkellamSum(1.0, 2.0, 1000.0, 3)
    with pytest.raises(Refused, match="SkellamSum has no form in whole numbers"):
        exact_total([], mechanism, Layout({"a": Slot("float64", (3,))}), SECRET)


def test_a_release_of_too_large_a_model_never_begins():
    """More than 1.01 times the noise of real numbers is refused with the plan."""
    layout = Layout({"a": Slot("float64", (10**9,))})
    with pytest.raises(Refused, match=r"1\.01 times is the most"):
        check_exact(GaussianSum(1.0, 1.0), layout)
    with pytest.raises(Refused, match="has no form in whole numbers"):
        check_exact(SkellamSum(1.0, 2.0, 1000.0, 3), layout)


def test_more_reports_than_can_be_added_exactly_are_refused(monkeypatch):
    monkeypatch.setattr(module, "_EXACT", 1000)
    with pytest.raises(Refused, match="60 reports at once are too many"):
        total("dense", WORLDS["dense"][0])


@every_world
def test_so_many_equal_reports_make_a_sum_that_is_so_many_times_as_long(name):
    """The length of a sum is counted as the limit is: no report is longer than √L."""
    tree, slots, mechanism = WORLDS[name]
    layout = Layout(slots)
    one = tree.select(slice(0, 1))
    alone = [*longest_sums(exact_sum([one], mechanism, layout), mechanism, layout)]
    many = [*longest_sums(exact_sum([one] * 9, mechanism, layout), mechanism, layout)]
    for (length, most), (nine_times, same) in zip(alone, many, strict=True):
        assert length <= most == same
        assert nine_times == pytest.approx(9 * length)
    whole = exact_sum([tree], mechanism, layout)
    for length, most in longest_sums(whole, mechanism, layout):
        assert length <= len(tree) * most
    # Some report is about as long as it may be: the bound is not a loose one. The
    # halves of unit squares in groups have the length √½ under a bound of 1.
    each = [exact_sum([tree.select([row])], mechanism, layout) for row in range(USERS)]
    pairs = [pair for one in each for pair in longest_sums(one, mechanism, layout)]
    assert max(length / most for length, most in pairs) > 0.7


def test_a_bound_is_a_value():
    assert Bounded(("a",), 1.0, 2.0) == GaussianSum(1.0, 2.0).bounded(["a"])[0]
