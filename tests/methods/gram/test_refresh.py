"""Two runs that add up: what is learnt, what is spent, what is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from tacit.accounting.epsilon import compose
from tacit.data.catalog import Catalog
from tacit.data.features import Categories
from tacit.data.federated_data import FederatedData
from tacit.errors import Refused
from tacit.keys import Key
from tacit.method import CentralGaussian, LocalPrivUnit, Refreshable
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.methods.gram_heuristics import Evidence
from tacit.plans import Plan
from tacit.release import Unit, View
from tacit.runtime.simulate import Simulation
from tacit.runtime.warm_start import Earlier
from tacit.statement import Past, account
from tacit.testing.contract import mixed_world
from tacit.tree import mirrored

DELTA = 1e-6
CENTRAL = Gram(privacy=CentralGaussian())


def world(n, seed):
    """Some users of twenty items."""
    draws = np.random.default_rng(seed)
    sizes = draws.integers(2, 12, size=n)
    return FederatedData.of_histories(
        [sorted(draws.choice(20, size=k, replace=False)) for k in sizes], n_items=20
    )


def together(one, other):
    histories = [list(h) for w in (one, other) for h in w.shards.histories]
    return FederatedData.of_histories(histories, n_items=20)


def run(method, place, *, rounds, earlier=None, seed=0, **planned):
    plan = Plan(len(place.shards), rounds=rounds, **planned)
    simulation = Simulation(
        method,
        plan,
        place.catalog,
        place.profiles,
        place.shards,
        Key.from_seed(seed),
        earlier=earlier,
    )
    *_, (state, _) = simulation.run(simulation.start())
    return state.server


def left(server):
    return Earlier(server.weights, server.memory, ())


def test_one_cohort_and_then_another_equal_both_at_once():
    """Without noise, under the same head; new users, or the same again."""
    method = Gram(head=9, rank=5, weighting="values")
    first, second = world(30, 1), world(50, 2)
    old = run(method, first, rounds=2)
    found = run(method.refreshing(method), second, rounds=1, earlier=left(old))
    # The same head: both at once, from the counts that the first cohort gave.
    counted = run(method, first, rounds=2)
    fresh = Earlier(
        counted.weights,
        {"half": 0 * counted.memory["half"], **Evidence(0, 0).arrays()},
        (),
    )
    both = together(first, second)
    expected = run(method.refreshing(method), both, rounds=1, earlier=fresh)
    assert found.memory["half"] == pytest.approx(expected.memory["half"], abs=1e-12)
    assert found.memory["people"] == expected.memory["people"] == [80]
    for name in ("head", "weights", "popularity", "counts", "strengths"):
        assert found.weights[name] == pytest.approx(expected.weights[name]), name
    projector = [(s.weights["vectors"] @ s.weights["vectors"].T) for s in (found, old)]
    assert not np.allclose(*projector)  # something was learnt


def test_the_deviation_of_two_noisy_sums_is_known():
    """Nobody has a history, so the sum is noise alone.

    190 numbers beside the diagonal estimate its deviation within 5 %; 25 % are five
    standard errors. Forgetting the earlier noise, or its weight, would be 50 % off.
    """
    nobody = FederatedData.of_histories([[] for _ in range(40)], n_items=20)
    few = FederatedData.of_histories([[] for _ in range(20)], n_items=20)
    privacy = CentralGaussian({"counts": 1.0, "relations": 3.0})
    noisy = Gram(privacy=privacy, head=20)
    planned = {"channel": "secure_sum"}
    old = run(noisy, nobody, rounds=2, **planned)
    later = CentralGaussian({"relations": 1.0})
    again = replace(noisy.refreshing(noisy), privacy=later)
    found = run(again, few, rounds=1, earlier=left(old), seed=5, **planned)
    weight = (40 / 9) / (20 / 1)
    known = Evidence.of(found.memory)
    assert known.users == pytest.approx(weight * 40 + 20)
    assert known.variance == pytest.approx(weight**2 * 9 + 1)
    beside = mirrored(found.memory["half"])[np.triu_indices(20, 1)]
    assert beside.std() == pytest.approx(known.deviation / 2**0.5, rel=0.25)


@pytest.mark.parametrize("view", [View.RELEASE, View.SERVER])
def test_who_was_in_both_runs_spends_what_the_loss_distributions_compose_to(view):
    plan = Plan(5000, rounds=2, channel="secure_sum", delta=DELTA, target_epsilon=2.0)
    method = CENTRAL.calibrated(plan)
    later = Plan(3000, rounds=1, channel="secure_sum", delta=DELTA, target_epsilon=1.0)
    again = CENTRAL.refreshing(method).calibrated(later)
    assert again.head == method.head
    [(phase, noise)] = again.privacy.noise_multiplier.items()
    assert phase == "relations"
    assert noise == pytest.approx(4.2247, rel=1e-3)  # all of the budget
    past = Past(plan.population, method.releases(plan))
    told = account(later, again.releases(later), earlier=[past])

    def spent(lines):
        [line] = [s for s in lines if (s.unit, s.view) == (Unit.USER, view)]
        return line.epsilon

    noises = [*method.privacy.noise_multiplier.values(), noise]
    assert len(noises) == 3
    events = [(GaussianDpEvent(z), "zero_out") for z in noises]
    assert spent(told.totals) == pytest.approx(1.0, abs=1e-3)
    assert spent(told.earlier) == pytest.approx(2.0, abs=2e-3)
    assert spent(told.both) == compose(events, delta=DELTA).value
    assert 2.2 < spent(told.both) < 3.0


def test_a_refresh_of_everything_counts_on_and_relates_anew():
    method = Gram(head=9, rank=5, refresh="all")
    first, second = world(30, 1), world(50, 2)
    old = run(method, first, rounds=2)
    found = run(method.refreshing(method), second, rounds=2, earlier=left(old))
    alone = run(method, second, rounds=2)
    counts = old.weights["counts"] + alone.weights["counts"]
    assert found.weights["counts"] == pytest.approx(counts)
    assert found.memory["people"] == [50]


@pytest.mark.parametrize(
    "other",
    [
        {"weight_exponent": 0.2},
        {"weighting": "values"},
        {"half_life": 30.0},
        {"head": 7},
        {"content": ("genres",)},
    ],
)
def test_what_would_mean_something_else_is_refused(other):
    [(name, value)] = other.items()
    with pytest.raises(Refused, match=rf"{name}=.*now {re.escape(repr(value))}"):
        Gram(**other).refreshing(Gram(head=9))


@pytest.mark.parametrize("refresh", ["relations", "all"])
def test_another_kind_of_protection_is_refused(refresh):
    """Other noise of the same kind is not."""
    local, loud = LocalPrivUnit(1.0), CentralGaussian(9.0)
    with pytest.raises(Refused, match=r"Unprotected.*LocalPrivUnit"):
        Gram(privacy=local, refresh=refresh).refreshing(Gram(head=9))
    again = Gram(privacy=loud, refresh=refresh)
    assert again.refreshing(replace(CENTRAL, head=9)).privacy == loud


def test_what_only_shapes_the_answer_may_change():
    again = Gram(ridge=0.1, rank=3, content_weight=0.0).refreshing(Gram(head=9))
    assert (again.head, again.ridge, again.count_rounds) == (9, 0.1, 0)


def test_another_method_is_refused():
    with pytest.raises(Refused, match="Gram cannot refresh a run of FederatedPop"):
        Gram().refreshing(FederatedPopularity())
    assert isinstance(Gram(), Refreshable)
    assert not isinstance(FederatedPopularity(), Refreshable)


def test_content_that_changed_is_refused():
    place = mixed_world()

    def labelled(offset):
        labels = Categories.of([[str((i + offset) % 3)] for i in range(20)])
        catalog = Catalog(place.catalog.ids, place.catalog.titles, {"kind": labels})
        return replace(place, catalog=catalog)

    method = Gram(head=9, content=("kind",))
    old = run(method, labelled(0), rounds=2)
    again = method.refreshing(method)
    assert run(again, labelled(0), rounds=1, earlier=left(old)).round == 1
    with pytest.raises(Refused, match="content of the items has changed"):
        run(again, labelled(1), rounds=1, earlier=left(old))
