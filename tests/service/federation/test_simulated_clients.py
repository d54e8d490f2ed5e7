"""Many clients in one process: what both operators add up is what they computed.

Also `tacit.service.federation.posting`, the connections over which they send.
"""

import numpy as np
import pytest
from service.federation.two_operators import TwoOperators, invitation_of

from tacit.errors import BadValue, Refused
from tacit.evaluation.released_metric import Measured, ReleasedMetric
from tacit.keys import Key
from tacit.method import CentralGaussian
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.sampling import Everyone
from tacit.service.federation.exchange import Fate
from tacit.service.federation.sealing import body_size
from tacit.service.federation.simulated_clients import SimulatedClients
from tacit.testing.contract import mixed_world
from tacit.transport.shared_sum import signed

WORLD = mixed_world()
USERS = len(WORLD.shards)
PLAN = Plan(USERS, rounds=4, channel="two_servers", delta=1e-6, target_epsilon=4.0)
CENTRAL = CentralGaussian()
MEASURED = Measured.of(
    Gram(head=6, count_rounds=1, load_rounds=1, privacy=CENTRAL),
    ReleasedMetric(0.1, 3),
    Everyone(),
)


@pytest.fixture
def world():
    popular = FederatedPopularity(privacy=CENTRAL)
    made = invitation_of("federated_popularity", popular, PLAN, WORLD.catalog)
    with TwoOperators(made).running() as found:
        yield found


def clients(world, shards=WORLD.shards, **settings) -> SimulatedClients:
    key = Key.from_seed(3)
    return SimulatedClients(world.url, world.invitation, shards, key, **settings)


def test_all_phases_add_up_to_what_was_computed():
    """Counts, relations, loadings and a hit rate; every number is equal."""
    made = invitation_of("gram", MEASURED, PLAN, WORLD.catalog)
    with TwoOperators(made).running() as world:
        some = clients(world, chunk=3)
        for round_ in range(PLAN.rounds):
            opened = world.open()
            counts = some.answer(keeps_total=True)
            assert (counts.round, counts.delivered) == (round_, USERS)
            assert len(opened.reports) == USERS
            both = sum(world.halves(opened).values(), np.zeros(1, np.uint32))
            assert (signed(both) == counts.total).all()
            world.close()
        assert world.invitation.method.is_over(world.server)


def test_a_round_is_answered_once(world):
    some, told = clients(world), []
    assert some.answer() is None
    world.open()
    assert some.answer(progress=lambda *one: told.append(one)).posted == USERS
    assert told[-1] == (USERS, USERS)
    assert some.answer() is None
    assert len(world.bodies) == len({*world.bodies}) == USERS
    assert {len(one) for one in world.bodies} == {body_size(len(WORLD.catalog))}


def test_the_same_bytes_are_sent_until_they_are_taken(world):
    world.open()
    world.answers += [503, 429, 500, 200, 503]
    counts = clients(world).answer(keeps_total=True)
    assert counts.delivered == USERS
    assert counts.posted == len(world.bodies) == USERS + 4
    assert len({*world.bodies}) == USERS


def test_what_is_not_taken_is_not_in_the_total(world):
    opened = world.open()
    world.answers += [400, 409, 403]
    counts = clients(world, connections=2).answer(keeps_total=True)
    assert counts.fates == {
        Fate.DELIVERED: USERS - 3,
        Fate.DROPPED: 2,
        Fate.GIVEN_UP: 1,
        Fate.AGAIN: 0,
    }
    both = sum(world.halves(opened).values(), np.zeros(1, np.uint32))
    assert (signed(both) == counts.total).all()


def test_connections_are_kept(world):
    world.open()
    world.answers += [200, 503, 400]  # errors keep them too
    assert clients(world, connections=2).answer().posted == USERS + 1
    assert len(world.ports) == 2


def test_patience_ends(world):
    world.open(url="http://127.0.0.1:9")
    counts = clients(world, patience=0.01).answer()
    assert counts.fates[Fate.AGAIN] == USERS


def test_a_check_that_raises_ends_the_round_at_once(world):
    """While nobody takes reports, and the clients would send them for ten minutes."""
    world.open(url="http://127.0.0.1:9")
    looks = iter(range(3))

    def check():
        if next(looks, None) is None:
            raise Refused("a process has died")

    with pytest.raises(Refused, match="has died"):
        clients(world).answer(check=check)


def test_what_was_not_agreed_is_not_answered(world):
    world.open(least_reports=1, sigma=1)
    with pytest.raises(Refused, match="the noise of one operator"):
        clients(world).answer()
    assert world.bodies == []


def test_histories_are_over_the_catalog_of_the_invitation(world):
    other = WORLD.shards.of_histories([[0]], n_items=3)
    with pytest.raises(BadValue, match="histories over 3 items"):
        clients(world, other)
