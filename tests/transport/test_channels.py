from dataclasses import dataclass

import numpy as np
import pytest
from quick import some_or_all

from tacit.errors import BadValue, Refused
from tacit.exact_sum import Noise
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum
from tacit.transport.channels import (
    Each,
    RoundContext,
    Sum,
    Unlinked,
    bare_sum,
    channel,
    count_bytes,
    partial_slots,
    partial_sum,
    shared_sum,
    summed,
    total_of_parts,
)
from tacit.transport.codec import wire_size
from tacit.transport.messages import Layout, Reports, Slot
from tacit.tree import Dense, Factored, Tree

LAYOUT = Layout({"v": Slot("int64", (3,)), "w": Slot("float64", (2, 2), rank=1)})
SPLIT = Layout({"a": Slot("int64", (4,)), "b": Slot("int64", (4, 2))}, split_axis=0)


@dataclass(frozen=True)
class Hundred:
    """Noise that can be recognised: a hundred, and a draw from the key."""

    def enforce(self, tree):
        return tree

    def add(self, total, key):
        draw = key.generator().integers(0, 50)
        return {name: value + 100 + draw for name, value in total.items()}


def reports(n: int, start: int = 0) -> Reports:
    v = np.arange(start, start + n)[:, None] * np.ones(3, np.int64)
    ones = np.ones((n, 1, 2))
    return Reports(Tree({"v": Dense(v.astype(np.int64)), "w": Factored(ones, ones)}))


def agreed(**changes) -> RoundContext:
    return RoundContext(**{"layout": LAYOUT, "key": Key.from_seed(0), **changes})


def test_an_unknown_channel_suggests_the_nearest():
    with pytest.raises(BadValue, match="'dirct' is not known; did you mean 'direct'"):
        channel("dirct")


# --- direct --------------------------------------------------------------------------


def test_direct_hands_reports_over_as_they_are_and_only_when_asked():
    asked = []

    def chunks():
        for start in (0, 3):
            asked.append(start)
            yield reports(3, start)

    delivery = channel("direct").carry(chunks(), agreed())
    assert isinstance(delivery, Each)
    assert asked == []
    assert [len(chunk) for chunk in delivery.chunks] == [3, 3]


def test_direct_adds_no_noise():
    """It could only come too late: the server has seen the reports."""
    delivery = channel("direct").carry([reports(3)], agreed(mechanism=Hundred()))
    (chunk,) = delivery.chunks
    assert (chunk.tree["v"] == reports(3).tree["v"]).all()


# --- secure_sum ----------------------------------------------------------------------


def test_the_sum_and_nothing_else():
    delivery = channel("secure_sum").carry([reports(3), reports(2, 3)], agreed())
    assert isinstance(delivery, Sum)
    assert vars(delivery).keys() == {"total", "contributors"}
    assert delivery.contributors is None
    assert delivery.total["v"].tolist() == [10, 10, 10]
    assert delivery.total["w"].tolist() == [[5.0, 5.0], [5.0, 5.0]]


def test_noise_is_in_the_sum_before_anybody_sees_it():
    quiet = channel("secure_sum").carry([reports(3)], agreed())
    noisy = channel("secure_sum").carry([reports(3)], agreed(mechanism=Hundred()))
    gap = noisy.total["v"] - quiet.total["v"]
    assert (gap >= 100).all()
    other = agreed(mechanism=Hundred(), key=Key.from_seed(1))
    assert (channel("secure_sum").carry([reports(3)], other).total["v"] != gap).any()


def test_nobody_still_gets_noise():
    """An empty cohort must look like any other: noise on zero."""
    delivery = channel("secure_sum").carry([], agreed(mechanism=Hundred()))
    assert (delivery.total["v"] >= 100).all()
    assert delivery.total["w"].shape == (2, 2)


# --- shuffle -------------------------------------------------------------------------


def split_reports(n: int) -> Reports:
    a = np.arange(n * 4).reshape(n, 4)
    return Reports(Tree.dense(a=a, b=np.stack([a, -a], axis=-1)))


def test_every_message_arrives_once_and_parts_of_a_message_stay_together():
    chunks = [split_reports(5)]
    delivery = channel("shuffle").carry(chunks, agreed(layout=SPLIT))
    assert isinstance(delivery, Unlinked)
    assert delivery.contributors == 5
    a, b = delivery.messages["a"], delivery.messages["b"]
    assert sorted(a.tolist()) == list(range(20))
    assert (b == np.stack([a, -a], axis=-1)).all()


def test_a_report_without_an_axis_travels_whole():
    delivery = channel("shuffle").carry([reports(4), reports(3, 4)], agreed())
    assert sorted(delivery.messages["v"][:, 0].tolist()) == list(range(7))


@some_or_all("draws", 1000, 4000)
def test_the_order_says_nothing(draws):
    """Where the first message ends up is uniform: exact binomial, false alarm 1e-9."""
    from tacit.testing.statistics import assert_frequencies

    places = [
        int(np.flatnonzero(found.messages["v"][:, 0] == 0)[0])
        for seed in range(draws)
        for found in [
            channel("shuffle").carry([reports(5)], agreed(key=Key.from_seed(seed)))
        ]
    ]
    counts = np.bincount(places, minlength=5)
    assert_frequencies(counts, np.full(5, 0.2), false_alarm=1e-9)


def test_too_few_contributors_and_nothing_is_delivered():
    with pytest.raises(Refused, match="3 contributed and the plan promises at least 4"):
        channel("shuffle").carry([reports(3)], agreed(min_contributors=4))
    with pytest.raises(Refused, match="0 contributed"):
        channel("shuffle").carry([], agreed())


# --- two servers ---------------------------------------------------------------------

VOTES = Layout({"votes": Slot("float64", (500,))})


def votes(n: int) -> Reports:
    return Reports(Tree.dense(votes=np.eye(n, 500)))


def shared(**changes) -> RoundContext:
    noise = {"mechanism": GaussianSum(1.0, 1.5), "most_reports": 100}
    return agreed(**{"layout": VOTES, **noise, **changes})


def test_two_servers_deliver_the_sum_with_both_noises():
    delivery = channel("two_servers").carry([votes(3), votes(4)], shared())
    assert isinstance(delivery, Sum)
    total = delivery.total["votes"] * 2.0**16
    assert (total == np.rint(total)).all()
    made = shared_sum(shared())
    noises = [
        Noise(Key.from_seed(0).at(role).secret_of()).draw(made.sigma**2, 500)
        for role in ("leader", "helper")
    ]
    bare = np.eye(3, 500).sum(axis=0) + np.eye(4, 500).sum(axis=0)
    assert (total == bare * 2**16 + sum(noises)).all()


def test_over_two_servers_order_and_chunks_do_not_matter():
    whole = channel("two_servers").carry([votes(7)], shared()).total["votes"]
    rows = np.random.default_rng(0).permutation(7)
    parts = [votes(7).select(rows[:2]), votes(7).select(rows[2:])]
    assert (channel("two_servers").carry(parts, shared()).total["votes"] == whole).all()


def test_a_release_over_two_servers_draws_from_its_secret():
    first, again, other = (
        channel("two_servers").carry([], shared(secret=secret)).total["votes"]
        for secret in (bytes(32), bytes(32), bytes(range(32)))
    )
    assert (first == again).all()
    assert (first != other).any()


def test_below_the_minimum_no_aggregator_publishes_anything():
    with pytest.raises(Refused, match="3 contributed and the plan promises at least 4"):
        channel("two_servers").carry([votes(3)], shared(min_contributors=4))
    found = channel("two_servers").carry([], shared()).total["votes"]
    assert np.abs(found).max() > 0  # nobody spoke, and there is noise all the same


def test_what_two_servers_cannot_add_is_refused_before_a_report_is_read():
    with pytest.raises(Refused, match="neither noise nor bound"):
        channel("two_servers").carry(iter([]), shared(mechanism=None))


def test_a_report_is_as_long_as_its_channel_makes_it():
    crowd = {"clients": 100, "survivors": 90, "colluders": 5}
    assert count_bytes("secure_sum", VOTES, {}, **crowd) == (wire_size(VOTES), 72)
    assert count_bytes("two_servers", VOTES, {}, **crowd)[0] == 176 + 4 * 500
    # Adverts, 26 neighbors' envelopes and shares, and four bytes per number.
    sent = 96 + 26 * (80 + 32) + 4 * 500
    received = 26 * (96 + 80) + 13 + 72
    assert count_bytes("masked_sum", VOTES, {}, **crowd) == (sent, received)


def test_one_report_can_move_a_rounded_sum_by_two_clips():
    """What float sums do not promise: in float32 halves of a last place are lost.

    8,191 reports of 1 and 2,047 small ones; one more of 1 passes 2^13, and from there
    on the small ones no longer count.
    """
    rows, columns, clip = 512, 4, 2.0
    layout = Layout({"w": Slot("float32", (rows, columns), rank=1)})
    small = np.float32(2.0**-11 * (1 + 2.0**-10))

    def total(ones: int):
        sizes = np.array([1.0] * ones + [small] * 2047, np.float32)
        left = np.zeros((len(sizes), 1, rows), np.float32)
        left[:, 0, 0] = 1
        right = sizes[:, None, None] * np.ones((1, 1, columns), np.float32)
        reports = Tree({"w": Factored(left, right, is_sparse=True)})
        tree = GaussianSum(clip, 1.0).enforce(reports)
        assert (tree.norms() <= clip * (1 + 1e-6)).all()
        return bare_sum([tree], layout)["w"].astype(np.float64)

    moved = np.linalg.norm(total(8192) - total(8191))
    assert moved / clip == pytest.approx(2.0, abs=0.01)  # one, if sums were exact


# --- a sum in parts ------------------------------------------------------------------


def vectors(n: int, dtype: str) -> Reports:
    values = np.random.default_rng(n).normal(size=(n, 5)).astype(dtype)
    return Reports(Tree({"x": Dense(values)}))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mechanism", [None, GaussianSum(1.0, 1.0)])
def test_parts_add_up_to_the_whole_and_get_the_noise_once(mechanism, dtype):
    context = agreed(layout=Layout({"x": Slot(dtype, (5,))}), mechanism=mechanism)
    trees = [vectors(n, dtype).tree for n in (3, 1, 4)]
    parts = [partial_sum([tree], context) for tree in trees]
    slots = partial_slots(context)
    for part in parts:
        found = {name: (str(a.dtype), a.shape) for name, a in part.items()}
        assert found == slots == {"x": ("float64", (5,))}
    found, expected = total_of_parts(parts, context), summed(trees, context)
    assert found["x"].dtype == expected["x"].dtype
    exact = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(found["x"], expected["x"], atol=exact)


def test_parts_of_a_release_are_whole_numbers_and_add_up_exactly():
    layout = Layout({"x": Slot("float64", (5,))})
    mechanism = GaussianSum(1.0, 1.0)
    whole = agreed(layout=layout, mechanism=mechanism, secret=bytes(32))
    bare = agreed(layout=layout, mechanism=mechanism, is_partial=True)
    trees = [vectors(n, "float64").tree for n in (3, 1, 4)]
    parts = [partial_sum([tree], bare) for tree in trees]
    assert partial_slots(bare) == {"x": ("int64", (5,))}
    assert all(part["x"].dtype == np.int64 for part in parts)
    found, expected = total_of_parts(parts, whole), summed(trees, whole)
    np.testing.assert_array_equal(found["x"], expected["x"])


def test_no_part_at_all_still_gets_noise():
    found = total_of_parts([], agreed(mechanism=Hundred()))
    assert (found["v"] >= 100).all()
