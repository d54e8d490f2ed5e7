"""A whole report of several leaves is one PrivUnitG report, and adds up."""

import numpy as np
import pytest

from tacit.aggregation.krum import Krum
from tacit.aggregation.mean import Mean
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.priv_unit import PrivUnit
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import LocalPrivUnit
from tacit.release import Unit, View
from tacit.sampling import Everyone, Once
from tacit.statement import account
from tacit.transport.channels import Each, RoundContext, Sum, Unlinked
from tacit.transport.messages import Reports, Slot
from tacit.tree import Dense, Factored, Tree

PHASE = Phase("updates", range(3), what="updates", bound=2.0, is_clipped=True)
SLOTS = {"w": Slot("float64", (4, 3), rank=1), "b": Slot("float64", (5,))}
N = 2000
KEYS = Key.from_seed(1).each(np.arange(N))


def updates(n=N):
    draws = np.random.default_rng(0)
    left, right = draws.normal(size=(n, 1, 4)), draws.normal(size=(n, 1, 3))
    return Tree({"w": Factored(left, right), "b": Dense(draws.normal(size=(n, 5)))})


def said(privacy, tree, keys=KEYS, phase=PHASE):
    codes = np.zeros(len(tree), np.int64)
    return privacy.report(tree, phase, {}, codes=codes, keys=keys)


def test_all_leaves_are_one_vector():
    """Not a report a leaf: that would cost epsilon as often as there are leaves."""
    privacy, tree = LocalPrivUnit(epsilon=3.0, clip=1.5), updates()
    found = said(privacy, tree)
    dense = tree.to_dense()
    whole = np.concatenate([dense[n].reshape(N, -1) for n in SLOTS], axis=1)
    expected = PrivUnit(3.0, 17, 1.5).privatize(whole, KEYS)
    np.testing.assert_array_equal(
        np.concatenate([found[n] for n in SLOTS], axis=1), expected
    )
    privacy.layout(PHASE, SLOTS).check(Reports(found))


@pytest.mark.parametrize("relay", [False, True])
def test_the_total_has_the_shape_of_the_method(relay):
    privacy, tree = LocalPrivUnit(epsilon=3.0), updates()
    sent = said(privacy, tree)
    delivery = Unlinked(sent, N) if relay else Each([Reports(sent)])
    context = RoundContext(privacy.layout(PHASE, SLOTS), Key.from_seed(0))
    found = privacy.total(delivery, context, PHASE, slots=SLOTS, wanted=Mean())
    assert {name: v.shape for name, v in found.items()} == {"w": (4, 3), "b": (5,)}
    expected = sent["w"].sum(axis=0, dtype=np.float64).reshape(4, 3)
    np.testing.assert_allclose(found["w"], expected, atol=1e-6)


def test_the_noise_of_the_sum_is_the_one_that_is_stated():
    """At norm S; 17 × 2,000 numbers, so the variance is known within 0.8 %."""
    privacy = LocalPrivUnit(epsilon=3.0, clip=1.5)
    long = updates().scale(1e3)  # cut to the clip, all of them
    norms = np.sqrt((long.norms()) ** 2)
    unit = long.scale(1.5 / norms)
    sent, meant = said(privacy, long), unit.to_dense()
    gaps = np.concatenate([(sent[n] - meant[n].reshape(N, -1)).ravel() for n in SLOTS])
    stated = privacy.variance(PHASE, users=1.0, size=17)
    assert gaps.var() == pytest.approx(stated, rel=0.04)
    many = privacy.variance(PHASE, users=7.0, size=17)
    assert many == pytest.approx(7 * stated)


def test_a_clip_is_for_phases_whose_bound_is_a_choice():
    """Where the bound is a theorem it stays, whatever clip is asked for."""
    proven = Phase("counts", range(3), what="histories", bound=2.0)
    asked, own = LocalPrivUnit(3.0, clip=0.5), LocalPrivUnit(3.0)
    tree = updates()
    np.testing.assert_array_equal(
        said(asked, tree, phase=proven)["b"], said(own, tree, phase=proven)["b"]
    )
    assert (said(asked, tree)["b"] != said(own, tree)["b"]).any()


def test_what_reads_it():
    reader = LocalPrivUnit(1.0).aggregator(Mean())
    assert {*reader.accepts} == {Each, Unlinked, Sum}
    with pytest.raises(Refused, match="Krum"):
        LocalPrivUnit(1.0).aggregator(Krum(1))


# --- What is promised ----------------------------------------------------------------

COUNTS = Phase("counts", range(1), what="histories")
LATER = Phase("updates", range(1, 4), what="updates", is_clipped=True)


def worst(privacy, plan, phases):
    return account(plan, privacy.releases(plan, phases)).worst(view=View.COLLUSION)


def test_phases_add_up_unless_clients_speak_once():
    plan = Plan(100, 4, Everyone())
    releases = LocalPrivUnit(3.0).releases(plan, (COUNTS, LATER))
    assert [r.what for r in releases] == ["randomised histories", "randomised updates"]
    assert [r.rounds for r in releases] == [range(1), range(1, 4)]
    assert worst(LocalPrivUnit(3.0), plan, (COUNTS, LATER)) == pytest.approx(12.0)
    once = Plan(100, 4, Once())
    [release] = LocalPrivUnit(3.0).releases(once, (COUNTS, LATER))
    assert release.rounds is None
    assert [one.what for one in release.leaving()] == [r.what for r in releases]
    assert [one.when for one in release.leaving()] == [r.when for r in releases]
    assert worst(LocalPrivUnit(3.0), once, (COUNTS, LATER)) == pytest.approx(3.0)


@pytest.mark.parametrize(("sampler", "each"), [(Once(), 4.0), (Everyone(), 1.0)])
def test_epsilon_follows_from_the_target(sampler, each):
    plan, phases = Plan(100, 4, sampler, target_epsilon=4.0), (COUNTS, LATER)
    made = LocalPrivUnit(clip=0.3).calibrated(plan, phases)
    assert made == LocalPrivUnit(epsilon=each, clip=0.3)
    assert worst(made, plan, phases) == pytest.approx(4.0)
    given = LocalPrivUnit(epsilon=9.0)
    assert given.calibrated(plan, phases) == given


def test_a_relay_changes_nothing_if_it_sides_with_the_server():
    plan = Plan(1000, channel="shuffle", min_contributors=1000, delta=1e-6)
    [release] = LocalPrivUnit(1.0).releases(plan, (COUNTS,))
    told = {s.view: s for s in account(plan, (release,)).totals if s.unit is Unit.USER}
    assert told[View.SERVER].epsilon < 0.5
    assert told[View.COLLUSION].epsilon == 1.0


# --- What is refused -----------------------------------------------------------------


@pytest.mark.parametrize("fields", [{"epsilon": -1.0}, {"epsilon": 0.0}, {"clip": 0.0}])
def test_fields_that_cannot_be(fields):
    [(name, value)] = fields.items()
    with pytest.raises(BadValue, match=f"{name}={value}"):
        LocalPrivUnit(**fields)


def test_what_is_not_set_is_asked_for():
    with pytest.raises(BadValue, match="epsilon is not set"):
        LocalPrivUnit().releases(Plan(10), (COUNTS,))
    with pytest.raises(BadValue, match="target_epsilon"):
        LocalPrivUnit().calibrated(Plan(10), (COUNTS,))


def test_a_vector_is_legal_up_to_the_longest_that_is_sent():
    """Every honest one is; the bound is exact, and reached by no more than it."""
    privacy = LocalPrivUnit(epsilon=3.0, clip=1.5)
    assert privacy.legal(said(privacy, updates()), PHASE, slots=SLOTS).all()
    most = PrivUnit(3.0, 17, 1.5).most_norm
    first = np.float32([most / 1.001, most * 1.001, 3e38, 0.0])
    rows = np.zeros((4, 17), np.float32)
    rows[:, 0] = first
    tree = Tree.dense(w=rows[:, :12], b=rows[:, 12:])
    found = privacy.legal(tree, PHASE, slots=SLOTS)
    assert found.tolist() == [True, False, False, True]
