"""Which figures of noisy sums are proven: plans, ledgers, caps, every channel."""

import math

import pytest

from tacit.accounting.profiles import gaussian_noise
from tacit.accounting.proven import most_epsilon
from tacit.errors import Refused
from tacit.ledger.budget import Cap, allowed_rounds, spent
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plans import Plan
from tacit.privacy import CentralGaussian
from tacit.release import Standing, Unit, View
from tacit.runtime.ledger import caps_of, run_statements, terms_of
from tacit.sampling import Everyone, FixedSize, Poisson, PoissonByGroup
from tacit.statement import account

DELTA = 1e-6
EPSILONS = [16, 24, 32, 40, 60, 75, 100, 200]
CHANNELS = ["direct", "secure_sum", "two_servers"]
GROUPS = {"strict": 400, "open": 600}
ROUNDS = 3


def plan_of(channel, sampler, target=None, groups=None):
    return Plan(
        1000,
        rounds=ROUNDS,
        sampler=sampler,
        channel=channel,
        delta=DELTA,
        target_epsilon=target,
        groups=groups or {},
    )


def lines(method, plan):
    """The user's totals that are about sums under somebody else's noise."""
    totals = account(plan, method.releases(plan)).totals
    hidden = {View.RELEASE, View.SERVER}
    if plan.channel == "direct":
        hidden.remove(View.SERVER)
    return [s for s in totals if s.unit is Unit.USER and s.view in hidden]


def check(line, limit):
    """Proven within the limit; beyond it none, and the reason says which limit."""
    if line.standing is Standing.PROVEN:
        assert line.epsilon is not None
        assert line.epsilon <= limit
    else:
        assert line.standing is Standing.NONE
        assert line.epsilon is None
        assert f"none above {limit}" in line.reason


@pytest.mark.parametrize("target", EPSILONS)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("channel", CHANNELS)
def test_a_target_is_met_and_proven_or_refused(channel, grouped, target):
    """Before anything is trained, in each group and view, with the value to ask for."""
    groups = GROUPS if grouped else {}
    targets = {"strict": 1.0, "open": float(target)} if grouped else float(target)
    plan = plan_of(channel, Everyone(), targets, groups)
    limit = most_epsilon(DELTA)
    if target > limit:
        with pytest.raises(Refused, match=rf"epsilon={target}\.00.*none above {limit}"):
            FederatedPopularity(privacy=CentralGaussian()).calibrated(plan)
        return
    method = FederatedPopularity(privacy=CentralGaussian()).calibrated(plan)
    found = lines(method, plan)
    assert len(found) == (2 if grouped else 1) * (1 if channel == "direct" else 2)
    for line in found:
        wanted = plan.target_of(line.group)
        if line.view is plan.calibrated_view:
            assert line.standing is Standing.PROVEN
            assert 0.999 * wanted < line.epsilon <= wanted
            terms = terms_of(method, plan, group=line.group)
            caps = caps_of(plan, line.group)
            assert allowed_rounds(terms, caps) == ROUNDS  # nobody refuses later
        check(line, limit)


def slowest(epsilons):
    """All but the ends of the range and of what is proven wait for `make test-all`."""
    kept = (16, 60, 75)
    return [
        pytest.param(e, marks=() if e in kept else pytest.mark.slow) for e in epsilons
    ]


@pytest.mark.parametrize("target", slowest(EPSILONS))
@pytest.mark.parametrize(
    "sampler",
    [Everyone(), Poisson(0.3), PoissonByGroup({"strict": 0.1, "open": 0.3})],
    ids=lambda s: type(s).__name__,
)
@pytest.mark.parametrize("channel", CHANNELS)
def test_noise_that_is_given_has_a_figure_or_the_reason(channel, sampler, target):
    """What plan, ledger and cap say of it is one decision."""
    grouped = isinstance(sampler, PoissonByGroup)
    plan = plan_of(channel, sampler, groups=GROUPS if grouped else None)
    # As much in all as one release of this epsilon, if a client is in every round.
    noise = gaussian_noise(target, delta=DELTA) * math.sqrt(ROUNDS)
    if channel == "two_servers":
        noise *= math.sqrt(2)
    method = FederatedPopularity(privacy=CentralGaussian(noise_multiplier=noise))
    limit = most_epsilon(DELTA)
    for line in lines(method, plan):
        check(line, limit)
        if line.view is View.SERVER:
            assert (line.standing is Standing.PROVEN) == (target <= limit)
        terms = terms_of(method, plan, group=line.group)
        rounds = range(ROUNDS)
        told = {
            (s.unit, s.view): s for s in run_statements(terms, rounds, delta=DELTA)
        }[line.unit, line.view]
        assert (told.standing, told.epsilon) == (line.standing, line.epsilon)
        name = (line.unit, line.view)
        assert spent([(terms, rounds)], name, delta=DELTA).value == line.epsilon
        cap = Cap(float(limit) + 200, DELTA, view=line.view)
        assert cap.holds([(terms, rounds)]) == (line.standing is Standing.PROVEN)


def test_a_cohort_of_fixed_size_counts_an_exchange():
    """Twice the distance of a removal, also in the limit."""
    plan = plan_of("secure_sum", FixedSize(1000))
    for target in EPSILONS:
        noise = 2 * gaussian_noise(target, delta=DELTA) * math.sqrt(ROUNDS)
        method = FederatedPopularity(privacy=CentralGaussian(noise_multiplier=noise))
        for line in lines(method, plan):
            check(line, most_epsilon(DELTA))
            proven = line.standing is Standing.PROVEN
            assert proven == (target <= most_epsilon(DELTA))


def test_noise_that_is_given_does_not_save_a_target_that_nothing_meets():
    """Clients keep the target as a cap, and would refuse every round."""
    plan = plan_of("secure_sum", Everyone(), 200.0)
    loud = FederatedPopularity(privacy=CentralGaussian(noise_multiplier=0.2))
    with pytest.raises(Refused, match=r"epsilon=200\.00.*none above 67"):
        loud.calibrated(plan)
