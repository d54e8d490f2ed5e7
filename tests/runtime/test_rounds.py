import tracemalloc
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tacit.data.catalog import Catalog, Profiles
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadMessage, BadValue, Refused
from tacit.keys import Key
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plans import Plan
from tacit.runtime import rounds
from tacit.runtime.rounds import Tally, chunk_size
from tacit.runtime.simulate import Simulation
from tacit.sampling import Once, Poisson
from tacit.testing.contract import mixed_world
from tacit.transport.channels import Direct, Each
from tacit.transport.codec import encode_broadcast, encode_reports
from tacit.transport.messages import Reports
from tacit.tree import Tree

WORLD = mixed_world()


def simulation(method=None, **settings) -> Simulation:
    plan = Plan(len(WORLD.shards), rounds=20, sampler=Poisson(0.6))
    return Simulation(
        method or FederatedPopularity(max_votes=4),
        **{"plan": plan, "key": Key.from_seed(7)} | settings,
        catalog=WORLD.catalog,
        profiles=WORLD.profiles,
        shards=WORLD.shards,
    )


@dataclass(frozen=True)
class Tapped(Direct):
    """The direct channel, overheard."""

    heard: list = field(default_factory=list)

    def carry(self, chunks, context):
        return Each(self.heard.append(chunk) or chunk for chunk in chunks)


# --- What a round counts -------------------------------------------------------------


def test_bytes_are_those_of_the_real_messages():
    tap = Tapped()
    made = simulation(channel=tap, chunk=3)
    state = made.start()
    broadcast = made.method.broadcast(state.server)
    _, tally = made.step(state)
    messages = [m for chunk in tap.heard for m in encode_reports(broadcast, chunk)]
    assert tally.took_part == tally.asked == len(messages) > 0
    assert tally.bytes_up == sum(map(len, messages))
    assert tally.bytes_down == tally.asked * len(encode_broadcast(broadcast))


class OddOnes:
    def permits(self, clients, *, round, multipliers=None):
        return clients % 2 == 1


@pytest.mark.parametrize("chunk", [1, 4, None])
def test_who_refuses_was_asked_and_sent_nothing(chunk):
    """Also where a whole chunk refuses: the server sees no empty report."""
    tap = Tapped()
    everyone = Plan(len(WORLD.shards))
    made = simulation(plan=everyone, ledger=OddOnes(), chunk=chunk, channel=tap)
    _, tally = made.step(made.start())
    assert (tally.asked, tally.took_part) == (13, 6)
    assert tally.bytes_up == 6 * len(encode_reports_of(tap)[0])
    assert sum(len(heard) for heard in tap.heard) == 6
    assert all(len(heard) for heard in tap.heard)


def encode_reports_of(tap: Tapped) -> list[bytes]:
    made = simulation()
    broadcast = made.method.broadcast(made.start().server)
    return [m for chunk in tap.heard for m in encode_reports(broadcast, chunk)]


def test_a_round_that_asks_nobody_counts():
    made = simulation(plan=Plan(len(WORLD.shards), rounds=1000, sampler=Once()))
    state = made.start()
    empty, tally = made.step(replace(state, server=replace(state.server, round=999)))
    assert tally == Tally(999, 0, 0, 0, 0)
    assert empty.server.round == 1000
    assert empty.clients is state.clients


# --- Chunks --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "limit", "clients"),
    [(1_000, 50_000, 50), (1_000, 50_999, 50), (1_000, 10, 1), (0, 10, 10)],
)
def test_as_many_clients_as_fit(one, limit, clients):
    assert chunk_size(one, limit=limit) == clients


@pytest.mark.parametrize("chunk", [1, 2, 5, 100])
def test_no_chunk_is_larger_than_asked_for(chunk):
    tap = Tapped()
    made = simulation(channel=tap, chunk=chunk)
    _, tally = made.step(made.start())
    sizes = [len(heard) for heard in tap.heard]
    assert max(sizes) == min(chunk, tally.asked)
    assert len(sizes) == -(-tally.asked // chunk)


@pytest.mark.parametrize("chunk", [0, -1, 2.5])
def test_a_chunk_is_a_count(chunk):
    with pytest.raises(BadValue, match="chunk="):
        simulation(chunk=chunk)


def test_a_cohort_is_ordered_by_length_so_that_a_chunk_is_even():
    made = simulation()
    population = made.population
    cohort = rounds._cohort(made.start(), population, population.cohort_keys)
    lengths = WORLD.shards.lengths[cohort]
    assert (np.diff(lengths) >= 0).all()
    assert len(set(cohort.tolist())) == len(cohort) > 3


@pytest.mark.slow
def test_a_cohort_is_never_in_memory_at_once():
    """20,000 clients × 5,000 items: all reports are 400 MB, a chunk of 125 is 2.5."""
    n_users, items = 20_000, 5_000
    users = np.repeat(np.arange(n_users), 3)
    held = Key.from_seed(1).generator().integers(items, size=len(users))
    log = Interactions.of_columns(users, held, n_users=n_users, n_items=items)
    made = Simulation(
        FederatedPopularity(max_votes=3),
        Plan(n_users),
        Catalog.of_ids([str(i) for i in range(items)]),
        Profiles(Strings.of(str(i) for i in range(n_users))),
        Shards.of(log),
        Key.from_seed(0),
        chunk=125,
    )
    state = made.start()
    tracemalloc.start()
    after, tally = made.step(state)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tally.took_part == n_users
    assert peak < 20e6
    counts = log.distinct().per_item
    np.testing.assert_array_equal(after.server.memory["votes"], counts)


# --- Methods that break the round ----------------------------------------------------


@dataclass(frozen=True)
class OtherType(FederatedPopularity):
    def privatize(self, broadcast, clients, updates, keys):
        return Reports(Tree.dense(votes=updates.tree["votes"].astype(np.int64)))


@dataclass(frozen=True)
class OtherName(FederatedPopularity):
    def privatize(self, broadcast, clients, updates, keys):
        return Reports(Tree.dense(ballots=updates.tree["votes"]))


@dataclass(frozen=True)
class LongerForSome(FederatedPopularity):
    """The size of a report would say how long the history is."""

    def privatize(self, broadcast, clients, updates, keys):
        votes = updates.tree["votes"]
        most = int(votes.sum(axis=1).max())
        return Reports(Tree.dense(votes=np.sort(votes)[:, -most:]))


@pytest.mark.parametrize("broken", [OtherType, OtherName, LongerForSome])
def test_a_report_that_is_not_as_declared_is_refused(broken):
    made = simulation(broken(max_votes=4), chunk=2)
    with pytest.raises(BadMessage, match=r"declared is votes: float32\[20\]"):
        made.step(made.start())


@dataclass(frozen=True)
class ReadsOne(FederatedPopularity):
    def aggregate(self, server, delivery, context):
        first = next(iter(delivery.chunks))
        return super().aggregate(server, Each([first]), context)


@dataclass(frozen=True)
class ReadsNone(FederatedPopularity):
    def aggregate(self, server, delivery, context):
        return super().aggregate(server, Each([]), context)


@pytest.mark.parametrize(("broken", "read"), [(ReadsOne, 2), (ReadsNone, 0)])
def test_an_aggregate_that_does_not_read_everything_is_refused(broken, read):
    """Clients that were not read did not take part, though the ledger may say so."""
    made = simulation(broken(max_votes=4), chunk=2)
    complaint = rf"{broken.__name__}.aggregate read {read} of \d+ reports"
    with pytest.raises(Refused, match=complaint):
        made.step(made.start())


# --- Keys ----------------------------------------------------------------------------


def test_the_server_gets_another_key_in_every_round():
    seen = []

    @dataclass(frozen=True)
    class Watched(FederatedPopularity):
        def aggregate(self, server, delivery, context):
            seen.append(context.key)
            return super().aggregate(server, delivery, context)

    made = simulation(Watched())
    for _ in made.run(made.start()):
        pass
    assert len(set(seen)) == 20
    assert made.key not in seen


def test_cohorts_change_from_round_to_round_and_with_the_seed():
    def cohorts(seed):
        plan = Plan(len(WORLD.shards), rounds=6, sampler=Poisson(0.5))
        made = simulation(plan=plan, key=Key.from_seed(seed))
        return [tally.asked for _, tally in made.run(made.start())]

    assert len(set(cohorts(1))) > 1
    assert cohorts(1) == cohorts(1)
    assert cohorts(1) != cohorts(2)
