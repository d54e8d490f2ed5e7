"""No run of any method sends or receives more bytes than its plan says."""

from dataclasses import replace
from itertools import product

import pytest
from methods.test_types_of_totals import SMALL, WORLD

from tacit.errors import TacitError
from tacit.evaluation.released_metric import Measured, ReleasedMetric
from tacit.experiment.registry import method_class, method_names
from tacit.keys import Key
from tacit.method import CentralGaussian, Method
from tacit.methods import gram_heuristics as heuristics
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.runtime.traffic import Bytes, Traffic
from tacit.sampling import Everyone, Once, Poisson
from tacit.transport.channels import CHANNELS

USERS = len(WORLD.shards)


def plan_of(**fields) -> Plan:
    return Plan(USERS, rounds=3, **fields)


def counted(method: Method, plan: Plan) -> tuple[float, float]:
    """The bytes of one client as `compare` counts them: of all, over the clients."""
    simulation = Simulation(
        *(method, plan, WORLD.catalog, WORLD.profiles, WORLD.shards), Key.from_seed(3)
    )
    tallies = [tally for _, tally in simulation.run(simulation.start())]
    return tuple(
        sum(getattr(tally, name) for tally in tallies) / USERS
        for name in ("bytes_up", "bytes_down")
    )


def has_fixed_lengths(method: Method, plan: Plan) -> bool:
    layouts = method.broadcast_layouts(plan, WORLD.catalog)
    shapes = [slot.shape for layout in layouts for slot in layout.slots.values()]
    return all(isinstance(n, int) for shape in shapes for n in shape)


@pytest.mark.parametrize("name", method_names())
def test_no_run_has_more_bytes_than_its_plan(name):
    """And where there is one way, of which everyone takes part, it has as many."""
    kind, played = method_class(name), 0
    carried = [(channel, Everyone()) for channel in CHANNELS] + [
        ("direct", Poisson(0.6))
    ]
    # What papers published may be over after a round: their clients' budgets are spent.
    offered = [one for one in kind.mechanisms if one != "published"]
    for mechanism, (channel, sampler) in product(offered, carried):
        target = None if mechanism == "none" else 5.0
        plan = plan_of(
            sampler=sampler, channel=channel, delta=1e-6, target_epsilon=target
        )
        if plan.is_masked:  # of fewer than all there is no graph
            plan = replace(plan, min_contributors=USERS)
        try:
            protection = kind.mechanisms[mechanism]()
            method = kind(**SMALL.get(name, {}), privacy=protection)
            method = method.calibrated(plan)
            found = counted(method, plan)
        except TacitError:  # a method does not go with every channel and sampler
            continue
        traffic = Traffic.of(method, plan, WORLD.catalog)
        planned = traffic.up.of_a_client, traffic.down.of_a_client
        case = (name, mechanism, channel, sampler)
        assert found[0] <= planned[0], case
        assert found[1] <= planned[1], case
        played += 1
        if isinstance(sampler, Everyone):
            assert found[0] == planned[0] == traffic.up.expected, case
            if has_fixed_lengths(method, plan):
                assert found[1] == planned[1] == traffic.down.expected, case
    assert played


@pytest.mark.parametrize("release", [False, True])
def test_a_plan_has_the_most_over_all_ways_that_may_be_chosen(release, monkeypatch):
    plan = plan_of(channel="secure_sum", delta=1e-6, target_epsilon=5.0)
    method: Method = Gram(privacy=CentralGaussian(), head=5, count_share=0.2)
    if release:
        method = Measured.of(method, ReleasedMetric(share=0.1), plan.sampler)
        plan = plan.over(4)
    method = method.calibrated(plan)
    traffic = Traffic.of(method, plan, WORLD.catalog)
    found = set()
    # The round of counting after which it is enough, and whether tastes show then.
    for enough, shows in ((1, True), (1, False), (2, True), (9, True)):
        monkeypatch.setattr(
            Gram, "_is_enough", lambda _, server, __, e=enough: server.round + 1 == e
        )
        monkeypatch.setattr(heuristics, "shows_tastes", lambda _, s=shows: s)
        found.add(counted(method, plan))
    # Counting twice and relating takes as much in either order.
    assert len(found) == len(method.ways(plan)) - 1 == 3
    up, down = (max(sizes) for sizes in zip(*found, strict=True))
    assert (traffic.up.of_a_client, traffic.down.of_a_client) == (up, down)


def test_a_run_with_too_few_users_to_relate_has_one_way():
    plan = plan_of(channel="secure_sum", delta=1e-6, target_epsilon=0.1)
    method = Gram(privacy=CentralGaussian()).calibrated(plan)
    assert method.ways(plan) == (((0,),),)
    traffic = Traffic.of(method, plan, WORLD.catalog)
    assert traffic.rounds == 1
    assert counted(method, plan) == (traffic.up.expected, traffic.down.expected)


def test_bytes_of_ways_are_added_up_by_hand():
    """Two ways; a client of the first sends 5, then 3 or 1; of the second 5 and 2."""
    plan = Plan(10, rounds=3, sampler=Everyone())
    ways = (((0,), (1, 2)), ((0,), (3,), (3,)))
    found = Bytes.of([5, 3, 1, 2], ways, plan)
    assert found == Bytes(a_round=5, of_a_client=9, expected=9.0)
    once = Bytes.of([5, 3, 1, 2], ways, replace(plan, sampler=Once()))
    assert once == Bytes(a_round=5, of_a_client=5, expected=3.0)
