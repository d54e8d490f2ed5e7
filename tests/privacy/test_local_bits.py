"""Votes about gradients: 200 seeds, slope and residuals; what leaves and is promised.

The estimate goes through every kernel, and a wrong scale is caught.
"""

from dataclasses import replace

import numpy as np
import pytest

from tacit.aggregation.krum import Krum
from tacit.aggregation.mean import Mean
from tacit.aggregation.votes import Votes
from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue, Refused
from tacit.kernels.dispatch import TABLE
from tacit.keys import Key
from tacit.models.implicit_factors import ImplicitFactors
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import LocalBits, PublishedVotes
from tacit.sampling import Once
from tacit.transport.channels import Each, RoundContext
from tacit.transport.messages import Reports, Slot
from tacit.tree import Tree

USERS, ITEMS, FACTORS, VOTES, CLIP = 400, 30, 5, 30, 0.2
SIZE = ITEMS * FACTORS
PHASE = Phase("gradients", range(2), what="gradients", is_clipped=True)
SLOTS = {"gradient": Slot("float64", (ITEMS, FACTORS))}


@pytest.fixture(scope="module")
def world():
    """A model and users whose gradients are partly cut at the bound."""
    draw = np.random.default_rng(0)
    sizes = draw.integers(0, 12, USERS)
    histories = [draw.choice(ITEMS, n, replace=False).tolist() for n in sizes]
    items = 0.3 + 0.3 * draw.standard_normal((ITEMS, FACTORS))
    model = ImplicitFactors(items, 0.5, 1.0)
    return model, FederatedData.of_histories(histories, n_items=ITEMS).shards


@pytest.fixture(scope="module")
def values(world):
    """What is to be estimated: everyone's gradient within the bound."""
    model, shards = world
    gradients = model.gradients(shards).reshape(USERS, -1)
    assert 0.001 < (np.abs(gradients) > CLIP).mean() < 0.5
    return np.clip(gradients, -CLIP, CLIP)


def said(privacy, tree, keys):
    codes = np.zeros(len(tree), np.int64)
    return Reports(privacy.report(tree, PHASE, {}, codes=codes, keys=keys))


def read(privacy, reports):
    """The sum as the server estimates it."""
    context = RoundContext(privacy.layout(PHASE, SLOTS), Key.from_seed(0))
    delivery = Each([reports])
    return privacy.total(delivery, context, PHASE, slots=SLOTS, wanted=Mean())


def estimates(privacy, world, *, seeds):
    """What the server makes of all reports, through every kernel, a row a seed."""
    model, shards = world
    again = shards.take(np.tile(np.arange(USERS), seeds))
    keys = Key.from_seed(0).each(np.arange(seeds * USERS))
    with pytest.MonkeyPatch.context() as patch:
        for name in (
            "one_bit.bits",
            "one_bit.places",
            "one_bit.tally",
            "implicit_factors.solver",
        ):
            patch.setitem(TABLE, name, TABLE[name].at(0))
        at = privacy.coordinates(SIZE, keys.at("local_update"))
        update = Tree.dense(coordinates=at, values=model.gradients_at(again, at))
        reports = said(privacy, update, keys.at("privatize"))
        rows = np.arange(seeds * USERS).reshape(seeds, USERS)
        found = [read(privacy, reports.select(r))["gradient"] for r in rows]
    assert {one.shape for one in found} == {(ITEMS, FACTORS)}
    return np.array([one.ravel() for one in found])


@pytest.fixture(scope="module")
def found(world):
    privacy = LocalBits(epsilon=2.5, votes=VOTES, clip=CLIP)
    return estimates(privacy, world, seeds=200)


def slope(found, values):
    """Of estimates on what they estimate."""
    truth = values.sum(axis=0)
    return (found @ truth).mean() / (truth @ truth)


def test_two_hundred_seeds(found, values):
    """Slope 1 ± 0.01 and residuals 1 ± 0.02 of the predicted deviation.

    Standard errors are 0.002 and 0.004: false alarm below 1e-4 for a new seed.
    """
    assert slope(found, values) == pytest.approx(1.0, abs=0.01)
    each = (CLIP / np.tanh(1.25)) ** 2 * SIZE / VOTES - values**2
    residuals = (found - values.sum(axis=0)) / np.sqrt(each.sum(axis=0))
    assert residuals.std() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("factor", [VOTES, 1.03])
def test_another_scale_is_caught(found, values, factor):
    """The paper's d in place of d/k, and one 3 % off."""
    assert abs(slope(factor * found, values) - 1.0) > 0.01


def test_the_papers_reports_add_up_to_k_times_the_gradient(world, values):
    """Within 2 %; a standard error is 0.5 %."""
    privacy = PublishedVotes(epsilon=2.5, votes=VOTES, clip=CLIP)
    printed = estimates(privacy, world, seeds=50)
    assert slope(printed, values) == pytest.approx(VOTES, rel=0.02)


# --- What leaves ---------------------------------------------------------------------


def test_a_report_is_as_many_votes_as_were_agreed():
    """Signed places of coordinates, each between 1 and d; a relay may cut them."""
    privacy = LocalBits(epsilon=1.0, votes=7)
    keys = Key.from_seed(1).each(np.arange(50))
    at = privacy.coordinates(SIZE, keys)
    assert at.shape == (50, 7)
    reports = said(privacy, Tree.dense(coordinates=at, values=0.0 * at), keys)
    layout = privacy.layout(PHASE, SLOTS)
    layout.check(reports)
    assert layout.split_axis == 0
    np.testing.assert_array_equal(np.abs(reports.tree["votes"]) - 1, at)


def test_a_clip_that_is_not_given_is_the_phases_own():
    """Nearly without flips, a value at the bound is always a vote for 1."""
    phase = replace(PHASE, bound=0.5)
    keys, codes = Key.from_seed(1).each(np.arange(100)), np.zeros(100, np.int64)
    at = np.zeros((100, 1), np.int32)
    tree = Tree.dense(coordinates=at, values=np.full((100, 1), 0.5))
    own = LocalBits(epsilon=60.0, votes=1)
    assert (own.report(tree, phase, {}, codes=codes, keys=keys)["votes"] == 1).all()
    wide = LocalBits(epsilon=60.0, votes=1, clip=1.0)
    votes = wide.report(tree, phase, {}, codes=codes, keys=keys)["votes"]
    assert 0.5 < (votes == 1).mean() < 0.98


def test_votes_are_counted_whatever_the_method_wanted():
    assert isinstance(LocalBits(1.0, 3).aggregator(Mean()), Votes)
    assert isinstance(LocalBits(1.0, 3).aggregator(Krum(1)), Votes)


# --- What is promised ----------------------------------------------------------------


def test_votes_and_epsilon_follow_from_the_target():
    plan = Plan(10, 2, Once(), target_epsilon=8.0)
    made = LocalBits(clip=0.3).calibrated(plan, (PHASE,))
    assert made == LocalBits(epsilon=2.0, votes=4, clip=0.3)
    assert made.calibrated(plan, (PHASE,)) == made
    few = LocalBits(votes=2).calibrated(plan, (PHASE,))
    assert few == LocalBits(epsilon=4.0, votes=2)


def test_one_release_for_the_whole_run():
    [release] = LocalBits(1.0, 3).releases(Plan(10, rounds=2), (PHASE,))
    assert release.what == "randomised bits of gradients"
    assert release.rounds is None


# --- What is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"clip": 0.0}, "clip=0.0"),
        ({"votes": 0}, "votes=0"),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
    ],
)
@pytest.mark.parametrize("kind", [LocalBits, PublishedVotes])
def test_fields_that_cannot_be(kind, fields, complaint):
    with pytest.raises(BadValue, match=complaint):
        kind(**fields)


def test_what_is_not_set_is_asked_for():
    with pytest.raises(BadValue, match="epsilon is not set"):
        LocalBits(votes=3).releases(Plan(10, rounds=2), (PHASE,))
    with pytest.raises(BadValue, match="votes is not set"):
        LocalBits(epsilon=3.0).layout(PHASE, SLOTS)


def test_more_votes_than_coordinates_are_refused_before_anybody_is_asked():
    """Every part needs a coordinate; the paper draws with replacement."""
    many = {"epsilon": 1.0, "votes": SIZE + 1}
    with pytest.raises(BadValue, match="count=151 and dimension=150"):
        LocalBits(**many).layout(PHASE, SLOTS)
    assert PublishedVotes(**many).layout(PHASE, SLOTS).slots["votes"].shape == (151,)


def test_votes_have_no_one_variance():
    with pytest.raises(Refused, match="votes"):
        LocalBits(1.0, 3).variance(PHASE, users=9.0, size=SIZE)


def test_a_vote_for_no_coordinate_is_not_legal():
    votes = np.int32([1, -1, SIZE, -SIZE, 0, SIZE + 1, -SIZE - 1, -(2**31)])
    found = LocalBits(epsilon=1.0, votes=VOTES).legal(
        Tree.dense(votes=votes), PHASE, slots=SLOTS
    )
    assert found.tolist() == [True] * 4 + [False] * 4
