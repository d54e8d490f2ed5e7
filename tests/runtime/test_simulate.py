import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import chi2

from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.gaussian import gaussian_event
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fedvae import FedVae
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.privacy.guarantees import set_of_items
from tacit.release import View
from tacit.runtime.ledger import run_statements
from tacit.runtime.simulate import Simulation, check_plan
from tacit.sampling import Everyone, FixedSize, Poisson, PoissonByGroup
from tacit.testing.contract import mixed_world
from tacit.testing.toy import ToyFactors
from tacit.transport.channels import Each, Sum, Unlinked

WORLD = mixed_world()
USERS = len(WORLD.shards)
BY_GROUP = Plan(
    USERS,
    rounds=2,
    sampler=PoissonByGroup({"rare": 1e-12, "sure": 1.0}),
    groups={"rare": 3, "sure": USERS - 3},
)
CODES = np.array([0] * 3 + [1] * (USERS - 3))


def simulation(**settings) -> Simulation:
    method = ToyFactors(dither=0.1, optimizer=Halfway())
    given = {"method": method, "plan": Plan(USERS, rounds=4), "key": Key.from_seed(3)}
    return Simulation(
        **given | settings,
        catalog=WORLD.catalog,
        profiles=WORLD.profiles,
        shards=WORLD.shards,
    )


@dataclass(frozen=True)
class Halfway:
    """A server optimizer that needs no torch."""

    def start(self, weights):
        return {}

    def step(self, weights, memory, gradient, *, epoch=0):
        return {name: w - 0.5 * gradient[name] for name, w in weights.items()}, {}


def test_it_runs_from_any_state_to_the_end_of_the_plan():
    made = simulation()
    states = [made.start(), *(state for state, _ in made.run(made.start()))]
    assert [state.server.round for state in states] == [0, 1, 2, 3, 4]
    *_, (again, _) = made.run(states[2])
    assert (
        again.server.weights["V"].tobytes() == states[4].server.weights["V"].tobytes()
    )
    assert [*made.run(states[4])] == []


def test_the_seed_is_all_that_a_run_depends_on():
    def weights(seed):
        made = simulation(key=Key.from_seed(seed))
        state, _ = made.step(made.start())
        return state.server.weights["V"].tobytes()

    assert weights(1) == weights(1)
    assert weights(1) != weights(2)


def test_a_group_is_sampled_at_its_own_rate():
    made = simulation(plan=BY_GROUP, groups=CODES)
    state, tally = made.step(made.start())
    assert tally.asked == USERS - 3
    assert state.clients.state["rounds"].tolist() == CODES.tolist()


@pytest.mark.parametrize(
    "groups",
    [None, CODES[::-1].copy() * 0 + 1, CODES[:-1], np.append(CODES, 1)],
    ids=["none", "other sizes", "too few", "too many"],
)
@pytest.mark.usefixtures("without_axis_checks")
def test_groups_must_be_as_large_as_the_plan_says(groups):
    """The account of a group is made from its size and rate in the plan."""
    with pytest.raises(BadValue, match="the plan says 13"):
        simulation(plan=BY_GROUP, groups=groups)


def test_a_group_that_the_plan_does_not_know_is_refused():
    with pytest.raises(BadValue, match=r"groups: 2 is not in \[0, 2\)"):
        simulation(plan=BY_GROUP, groups=CODES + 1)


def test_as_many_users_in_the_plan_as_there_are():
    with pytest.raises(BadValue, match="speaks of 14 users, profiles of 13"):
        simulation(plan=Plan(14))


def test_absent_users_are_in_the_plan_and_have_no_device():
    made = simulation(plan=Plan(20, rounds=4), absent=7)
    state, tally = made.step(made.start())
    assert tally.asked == len(state.clients) == USERS
    whole, _ = simulation().step(simulation().start())
    assert state.clients.state["rounds"].tolist() == [1] * USERS
    assert made.population.keys.words.tolist() == (
        simulation().population.keys.words.tolist()
    )
    moved, all_here = (
        one.server.weights["V"] - made.start().server.weights["V"]
        for one in (state, whole)
    )
    np.testing.assert_allclose(moved * 20, all_here * USERS)


def test_groups_may_have_absent_members_and_no_more_than_planned():
    plan = replace(BY_GROUP, population=20, groups={"rare": 5, "sure": 15})
    made = simulation(plan=plan, groups=CODES, absent=7)
    assert made.step(made.start())[1].asked == USERS - 3
    few = replace(BY_GROUP, population=20, groups={"rare": 2, "sure": 18})
    with pytest.raises(BadValue, match="of whom 7 are absent"):
        simulation(plan=few, groups=CODES, absent=7)


def test_nobody_is_absent_from_a_cohort_of_fixed_size():
    with pytest.raises(BadValue, match="more often than the account says"):
        simulation(plan=Plan(20, sampler=FixedSize(3)), absent=7)


def test_every_device_has_a_key_of_its_own_and_keeps_it():
    made = simulation()
    words = made.population.keys.words
    assert len(np.unique(words, axis=0)) == USERS
    assert replace(made, chunk=2).population.keys.words.tolist() == words.tolist()
    assert made.population is made.population  # derived once, not in every round


def test_an_unknown_channel_is_refused_before_anything_is_trained():
    with pytest.raises(BadValue, match="'carrier pigeon' is not known"):
        simulation(plan=Plan(USERS, channel="carrier pigeon"))


# --- two servers ---------------------------------------------------------------------

SHARED = Plan(USERS, rounds=2, channel="two_servers", delta=1e-6, target_epsilon=4.0)
CENTRAL = FederatedPopularity(privacy=CentralGaussian())
LOCAL = FederatedPopularity(privacy=LocalPrivUnit(1.0))
SELECTED = (set_of_items(replace(SHARED, channel="secure_sum"), gaussian_event(9.0)),)


def over_two_servers(**settings) -> Simulation:
    return simulation(
        **{"method": CENTRAL.calibrated(SHARED), "plan": SHARED} | settings
    )


def test_over_two_servers_a_model_is_learnt_from_whole_numbers():
    made = over_two_servers()
    state, tally = made.step(made.start())
    steps = state.server.memory["votes"] * 2.0**16
    assert (steps == np.rint(steps)).all()
    assert tally.bytes_up == USERS * (176 + 4 * len(WORLD.catalog))
    again, _ = over_two_servers(chunk=3).step(made.start())
    assert (again.server.memory["votes"] == state.server.memory["votes"]).all()


def test_the_noise_over_two_servers_is_that_of_the_plan():
    """20 users, so nearly all is noise; false alarm 1e-9 with a new seed."""
    loud = CENTRAL.calibrated(replace(SHARED, target_epsilon=1e-2))
    made = over_two_servers(method=loud)
    *_, (state, _) = made.run(made.start())
    deviation = math.sqrt(
        2 * loud.privacy.variance(loud.phases(SHARED)[0], users=1, size=1)
    )
    square = float(((state.server.memory["votes"] / deviation) ** 2).sum())
    n = len(WORLD.catalog)
    assert 2 * min(chi2.cdf(square, n), chi2.sf(square, n)) > 1e-9


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {"plan": replace(SHARED, sampler=Poisson(0.5))},
            "an operator sees who reports",
        ),
        ({"plan": replace(SHARED, sampler=FixedSize(3))}, "the sampler is FixedSize"),
        ({"plan": replace(SHARED, before=SELECTED)}, "'set of items' is released"),
        ({"method": FederatedPopularity()}, "neither noise nor bound"),
        ({"method": LOCAL}, "neither noise nor bound"),
    ],
    ids=["coins", "fixed size", "items", "no noise", "local noise"],
)
def test_what_two_servers_cannot_carry_is_refused_with_the_reason(changed, reason):
    with pytest.raises(Refused, match=reason):
        over_two_servers(**changed)


def test_over_two_servers_a_mean_is_over_those_who_came():
    """Half of the users have no client: both aggregators count, so it is known."""
    quiet = replace(CENTRAL, privacy=CentralGaussian(noise_multiplier=1e-4))
    whole, half = 2 * USERS, over_two_servers(method=quiet)
    absent = over_two_servers(
        method=quiet, plan=replace(SHARED, population=whole, groups={}), absent=USERS
    )
    few, _ = half.step(half.start())
    many, _ = absent.step(absent.start())
    assert many.server.plan.population == whole
    np.testing.assert_allclose(
        many.server.weights["share"], few.server.weights["share"], atol=1e-3
    )


def test_no_process_plays_both_operators_in_a_release():
    made = over_two_servers(is_release=True)  # its account may be asked for
    assert made.account.worst(view=View.SERVER) is not None
    with pytest.raises(Refused, match="this process would be both"):
        made.step(made.start())


MASKED = replace(
    SHARED, channel="masked_sum", min_contributors=USERS - 1, assumed_sybils=1
)
SMALL_FEDVAE = FedVae(hidden=(5,), latent=3, privacy=CentralGaussian())


@pytest.mark.parametrize(
    "method",
    [CENTRAL, Gram(privacy=CentralGaussian(), head=5), SMALL_FEDVAE],
    ids=["popularity", "gram", "fedvae"],
)
def test_methods_of_sums_learn_under_masks(method):
    made = simulation(method=method.calibrated(MASKED), plan=MASKED)
    state, tally = made.step(made.start())
    assert tally.took_part == USERS
    again, _ = replace(made, chunk=3).step(made.start())
    for name, value in state.server.weights.items():
        np.testing.assert_allclose(value, again.server.weights[name], atol=1e-3)


def test_the_noise_under_masks_is_that_of_the_plan():
    """20 users, so nearly all is noise; false alarm 1e-9 with a new seed."""
    loud = CENTRAL.calibrated(replace(MASKED, target_epsilon=1e-2))
    made = simulation(method=loud, plan=MASKED)
    *_, (state, _) = made.run(made.start())
    deviation = math.sqrt(
        2 * loud.privacy.variance(loud.phases(MASKED)[0], users=1, size=1)
    )
    square = float(((state.server.memory["votes"] / deviation) ** 2).sum())
    n = len(WORLD.catalog)
    assert 2 * min(chi2.cdf(square, n), chi2.sf(square, n)) > 1e-9


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"plan": replace(MASKED, sampler=Poisson(0.5))}, "an operator sees who"),
        ({"plan": replace(MASKED, before=SELECTED)}, "'set of items' is released"),
        ({"plan": replace(MASKED, min_contributors=2)}, "min_contributors, the least"),
        ({"method": FederatedPopularity()}, "none in whole numbers"),
        ({"method": LOCAL}, "none in whole numbers"),
    ],
    ids=["coins", "items", "few survivors", "no noise", "local noise"],
)
def test_what_masks_cannot_carry_is_refused_with_the_reason(changed, reason):
    settings = {"method": CENTRAL.calibrated(MASKED), "plan": MASKED} | changed
    with pytest.raises(Refused, match=reason):
        simulation(**settings)


def test_nothing_is_released_under_masks():
    made = simulation(method=CENTRAL.calibrated(MASKED), plan=MASKED, is_release=True)
    with pytest.raises(Refused, match="mask their own reports"):
        made.step(made.start())


def test_no_process_is_a_relay_and_its_collector_in_a_release():
    """It would know whose report is whose, and no relay hands out a ticket."""
    mixed = Plan(USERS, rounds=2, channel="shuffle", delta=1e-6, min_contributors=5)
    made = simulation(method=LOCAL, plan=mixed, is_release=True)
    with pytest.raises(Refused, match="whose report is whose"):
        made.step(made.start())


def test_what_a_release_assumes_stands_in_account_and_terms_alike():
    plan = replace(SHARED, channel="secure_sum")
    made = simulation(method=CENTRAL.calibrated(plan), plan=plan, is_release=True)
    [terms] = made.terms
    found = run_statements(terms, range(2), delta=plan.delta)
    told = [line.assumes for line in made.account.totals]
    assert [line.assumes for line in found] == told
    assert any("operating system's randomness" in one for one in told)


def test_one_operator_in_both_roles_promises_nothing_in_the_servers_view():
    made = over_two_servers(one_operator="one_machine")
    assert made.account.worst(view=View.SERVER) is None
    assert made.account.worst(view=View.RELEASE) is not None
    [line, *_] = [one for one in made.account.totals if one.view is View.SERVER]
    assert "one machine" in line.reason


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_gram_learns_over_two_servers_what_a_trusted_sum_teaches(rounds):
    """Counts, relations and loadings, with next to no noise and whole steps."""
    quiet = CentralGaussian(noise_multiplier=1e-4)
    method = Gram(head=6, count_rounds=1, load_rounds=1, privacy=quiet)
    plan = Plan(USERS, rounds=3, channel="two_servers", delta=1e-6)
    trusted = replace(plan, channel="secure_sum")
    made = [
        simulation(method=method.calibrated(one), plan=one) for one in (plan, trusted)
    ]
    states = [one.start() for one in made]
    for _ in range(rounds):
        states = [one.step(state)[0] for one, state in zip(made, states, strict=True)]
    one, other = (state.server for state in states)
    for name in ("counts", *(["half"] if rounds > 1 else [])):
        found, wanted = ({**s.weights, **s.memory}[name] for s in (one, other))
        np.testing.assert_allclose(found, wanted, atol=USERS * 2.0**-16 + 1e-3)
        assert np.abs(wanted).max() > 0.1


def test_gram_chooses_a_head_that_two_servers_can_carry():
    shared = Plan(
        10**6, rounds=3, channel="two_servers", delta=1e-7, target_epsilon=8.0
    )
    central = Gram(privacy=CentralGaussian())
    assert central.calibrated(shared).head == 999
    assert central.calibrated(replace(shared, channel="secure_sum")).head > 999


def test_a_method_that_knows_its_noise_by_the_round_is_refused_in_the_first():
    made = over_two_servers(method=ToyFactors(dither=0.1, optimizer=Halfway()))
    with pytest.raises(Refused, match="neither noise nor bound"):
        made.step(made.start())


def test_a_model_with_many_arrays_is_refused_over_two_servers():
    method = FedVae(privacy=CentralGaussian()).calibrated(SHARED)
    with pytest.raises(Refused, match="one array per round, and a report has"):
        over_two_servers(method=method)


@dataclass(frozen=True)
class NeedsSums:
    accepts: tuple[type, ...] = (Sum, Unlinked)


@dataclass(frozen=True)
class Unfed(FederatedPopularity):
    def robust(self, phase):
        return NeedsSums()


def test_a_channel_that_cannot_feed_the_aggregator_is_refused_by_name():
    complaint = "'direct' delivers Each, and NeedsSums in Unfed needs Sum or Unlinked"
    with pytest.raises(Refused, match=complaint):
        check_plan(Unfed(), Plan(3))
    with pytest.raises(Refused, match=complaint):
        simulation(method=Unfed())


@dataclass(frozen=True)
class Choosy:
    """An aggregator that drops reports it dislikes before the noise."""

    accepts: tuple = (Each, Sum)
    is_plain_sum: bool = False


@dataclass(frozen=True)
class ChoosyPopularity(FederatedPopularity):
    """Federated popularity with a filter in front of the noise."""

    def aggregators(self, plan):
        return (Choosy(),)


@pytest.mark.parametrize("sampler", [Everyone(), Poisson(0.2), FixedSize(3)])
def test_a_filter_before_the_noise_is_refused(sampler):
    """One user could move what the others' reports do: more than a clip."""
    plan = Plan(USERS, sampler=sampler, channel="secure_sum", delta=1e-6)
    with pytest.raises(Refused, match="Choosy looks at reports before the noise"):
        check_plan(ChoosyPopularity(privacy=CentralGaussian(1.0)), plan)
    check_plan(ChoosyPopularity(), plan)  # nothing is claimed, nothing is broken
    local = ChoosyPopularity(privacy=LocalPrivUnit(1.0))
    check_plan(local, plan)  # free after local privacy


@dataclass(frozen=True)
class RobustPopularity(FederatedPopularity):
    """The same by the hook that a method has for it."""

    def robust(self, phase):
        return Choosy()


def test_a_robust_statistic_is_held_against_the_protection_it_gets():
    plan = Plan(USERS, channel="secure_sum", delta=1e-6)
    with pytest.raises(Refused, match="Choosy looks at reports before the noise"):
        check_plan(RobustPopularity(privacy=CentralGaussian(1.0)), plan)
    check_plan(RobustPopularity(), plan)
    with pytest.raises(Refused, match=r"Choosy compares reports.*nearly all noise"):
        check_plan(RobustPopularity(privacy=LocalPrivUnit(1.0)), plan)
