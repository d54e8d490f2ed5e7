from dataclasses import dataclass

import numpy as np
import pytest

from tacit.aggregation.mean import Mean
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.transport.channels import Each, RoundContext, Sum, Unlinked
from tacit.transport.messages import Layout, Reports, Slot
from tacit.tree import Dense, Factored, Tree

LAYOUT = Layout(
    {
        "votes": Slot("uint8", (2,)),
        "b": Slot("float32", (2,)),
        "V": Slot("float64", (2, 3), rank=1),
    }
)
LEFT = np.array([[[1.0, 2.0]], [[0.0, 1.0]], [[-1.0, 1.0]]])
RIGHT = np.array([[[1.0, 0.0, 2.0]], [[3.0, 1.0, 0.0]], [[1.0, 1.0, 1.0]]])
REPORTS = Reports(
    Tree(
        {
            "votes": Dense(np.array([[255, 1], [255, 0], [255, 0]], np.uint8)),
            "b": Dense(np.array([[0.5, 1], [0.25, 0], [0, -4]], np.float32)),
            "V": Factored(LEFT, RIGHT),
        }
    )
)
TOTAL = {
    "votes": np.array([765, 1]),
    "b": np.array([0.75, -3.0]),
    # (1,2)ᵀ(1,0,2) + (0,1)ᵀ(3,1,0) + (-1,1)ᵀ(1,1,1)
    "V": np.array([[0.0, -1.0, 1.0], [6.0, 2.0, 5.0]]),
}


def agreed(layout=LAYOUT, **changes) -> RoundContext:
    return RoundContext(layout, Key.from_seed(0), **changes)


def assert_total(found) -> None:
    assert found.keys() == TOTAL.keys()
    for name, value in TOTAL.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("cuts", [[[0, 1, 2]], [[2], [0], [1]], [[0, 1], [2]]])
def test_the_sum_is_the_same_however_reports_come(cuts):
    """Bytes do not overflow: votes of 255 add up to 765."""
    delivery = Each(REPORTS.select(rows) for rows in cuts)
    assert_total(Mean().total(delivery, agreed()))


def test_a_sum_is_taken_as_it_is():
    assert_total(Mean().total(Sum(TOTAL), agreed()))


@pytest.mark.parametrize("chunks", [[], [Reports.nobody()], [Reports.nobody()] * 2])
def test_the_sum_of_nobody_is_zero(chunks):
    found = Mean().total(Each(chunks), agreed())
    assert {name: v.dtype for name, v in found.items()} == {
        name: v.dtype for name, v in TOTAL.items()
    }
    assert not any(value.any() for value in found.values())


def test_a_chunk_in_which_all_refused_counts_as_zero():
    chunks = [Reports.nobody(), REPORTS, Reports.nobody()]
    assert_total(Mean().total(Each(chunks), agreed()))


@pytest.mark.parametrize("planned", [1.0, 3.0, 8.0])
def test_the_mean_is_over_the_planned_size_whoever_came(planned):
    """Whoever divides divides by what was planned; the sum itself knows nothing."""
    context = agreed(planned=planned)
    found = Mean().total(Each([REPORTS]), context)
    assert_total(found)
    for name, value in TOTAL.items():
        mean = found[name] / context.planned
        np.testing.assert_array_equal(mean, value / planned)
        assert mean.dtype == np.float64


def test_large_whole_numbers_add_up_exactly():
    """2**53 + 1 is no float64."""
    layout = Layout({"n": Slot("int64", ())})
    chunks = [
        Reports(Tree.dense(n=np.array([2**53]))),
        Reports(Tree.dense(n=np.array([1]))),
    ]
    assert Mean().total(Each(chunks), agreed(layout))["n"] == 2**53 + 1


def test_messages_without_senders_are_refused_with_a_way_out():
    with pytest.raises(Refused, match=r"Unlinked.*Each or Sum"):
        Mean().total(Unlinked(Tree({}), contributors=3), agreed())
    assert Unlinked not in Mean().accepts


@pytest.mark.parametrize("changed", [{"b": np.zeros(3)}, {"more": np.zeros(1)}])
def test_a_sum_of_another_shape_is_refused(changed):
    with pytest.raises(BadValue, match="totals differ"):
        Mean().total(Sum(TOTAL | changed), agreed())


def test_chunks_are_folded_one_at_a_time():
    """The second chunk is not made before the first is summed."""
    alive = []

    class Counted(Tree):
        def sum(self):
            alive.append("summed")
            return super().sum()

        def add_to(self, total):
            alive.append("summed")
            super().add_to(total)

    def chunks():
        for _ in range(3):
            alive.append("made")
            yield Reports(Counted(REPORTS.tree.leaves))

    Mean().total(Each(chunks()), agreed())
    assert alive == ["made", "summed"] * 3


@dataclass(frozen=True)
class One:
    """Noise that can be recognised."""

    def enforce(self, tree):
        return tree

    def add(self, total, key):
        return {name: value + 1 for name, value in total.items()}


def test_noise_is_added_once_whoever_adds_it():
    """Over Each by the server; a Sum has it already."""
    noisy = agreed(mechanism=One())
    plain = Mean().total(Each([]), agreed())
    here = Mean().total(Each([]), noisy)
    before = Mean().total(Sum(One().add(plain, noisy.key)), noisy)
    for name, value in plain.items():
        assert (here[name] == value + 1).all()
        assert (before[name] == value + 1).all()


def test_messages_that_protect_themselves_are_added_up_if_it_is_told_to():
    """What a relay delivers has no senders, and a sum needs none."""
    relayed = Mean((Each, Unlinked, Sum))
    found = relayed.total(Unlinked(REPORTS.tree, contributors=3), agreed())
    assert_total(found)
