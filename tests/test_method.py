"""The privacy boundary: who is asked, in which order, with which keys."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tacit.aggregation.server_optimizers import Sgd
from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue, EmptyCohort, Refused
from tacit.keys import Key, Keys
from tacit.method import (
    Candidates,
    Clients,
    Explainable,
    Exportable,
    Queryable,
    Refreshable,
    Server,
    Unmetered,
    enrol,
    participate,
)
from tacit.plans import Plan
from tacit.testing.contract import mixed_world
from tacit.testing.toy import ToyFactors
from tacit.transport.messages import Broadcast, Reports
from tacit.tree import Tree

WORLD = mixed_world()
USERS = len(WORLD.shards)
PLAN = Plan(USERS, rounds=3)
KEYS = Key.from_seed(5).each(np.arange(USERS))


@dataclass(frozen=True)
class Watched(ToyFactors):
    """Writes down what it was handed, and when."""

    log: list = field(default_factory=list, compare=False)

    def local_update(self, broadcast, clients, shards, keys):
        self.log.append(("local_update", clients, shards, keys))
        return super().local_update(broadcast, clients, shards, keys)

    def privatize(self, broadcast, clients, updates, keys):
        self.log.append(("privatize", clients, updates, keys))
        return super().privatize(broadcast, clients, updates, keys)

    def enrol(self, profiles, keys):
        self.log.append(("enrol", None, None, keys))
        return super().enrol(profiles, keys)


class Some:
    """A ledger that permits some, and writes down when it was asked."""

    def __init__(self, permitted, log=None):
        self.permitted, self.log = permitted, [] if log is None else log

    def permits(self, clients, *, round, multipliers=None):
        self.log.append(("ledger", clients.tolist(), round))
        return np.isin(clients, self.permitted)


def broadcast_of(method, round_: int = 0, plan: Plan = PLAN) -> Broadcast:
    server = method.start(plan, WORLD.catalog, Key.from_seed(0))
    return method.broadcast(replace(server, round=round_))


def clients_of(method) -> Clients:
    return enrol(method, PLAN, WORLD.profiles, KEYS, catalog=WORLD.catalog)


def take_part(method, *, broadcast=None, clients=None, ledger=None, **options):
    return participate(
        method,
        broadcast or broadcast_of(method),
        clients_of(method) if clients is None else clients,
        WORLD.shards,
        KEYS,
        ledger=ledger or Unmetered(),
        **options,
    )


def keys_of(log, name: str) -> list[Keys]:
    return [keys for step, _, _, keys in log if step == name]


# --- The ledger ----------------------------------------------------------------------


def test_the_ledger_is_asked_first_and_once_with_the_clients_and_the_round():
    method = Watched()
    clients = clients_of(method)
    method.log.clear()
    take_part(
        method,
        broadcast=broadcast_of(method, 2),
        clients=clients,
        ledger=Some([1], method.log),
    )
    assert [entry[0] for entry in method.log] == ["ledger", "local_update", "privatize"]
    assert method.log[0] == ("ledger", [*range(USERS)], 2)


def test_only_those_who_may_compute_and_with_their_own_data():
    method, permitted = Watched(), [1, 4, 7]
    after, reports, took_part = take_part(method, ledger=Some(permitted))
    _, clients, shards, keys = method.log[1]
    assert clients.numbers.tolist() == permitted
    assert [h.tolist() for h in shards.histories] == [
        WORLD.shards.histories[row].tolist() for row in permitted
    ]
    assert len(keys) == len(reports) == 3
    assert np.flatnonzero(took_part).tolist() == permitted
    assert after.state["rounds"].tolist() == [
        int(row in permitted) for row in range(USERS)
    ]


def test_who_refuses_is_unchanged_and_the_others_are_as_if_alone():
    method = ToyFactors()
    before = clients_of(method)
    after, reports, _ = take_part(method, ledger=Some([3, 5]))
    idle = np.setdiff1d(np.arange(USERS), [3, 5])
    np.testing.assert_array_equal(after.state["u"][idle], before.state["u"][idle])
    _, everyones, _ = take_part(method)
    np.testing.assert_array_equal(reports.tree["b"], everyones.tree["b"][[3, 5]])


def test_if_all_refuse_nothing_is_computed_or_said():
    method = Watched()
    clients = clients_of(method)
    method.log.clear()
    after, reports, took_part = take_part(method, clients=clients, ledger=Some([]))
    assert method.log == []
    assert after is clients
    assert len(reports) == 0
    assert not took_part.any()


def test_another_plan_is_refused_without_asking_the_ledger():
    """So that it charges nobody for a round that does not take place."""
    method, ledger = ToyFactors(), Some([*range(USERS)])
    other = broadcast_of(method, plan=replace(PLAN, rounds=4))
    _, reports, took_part = take_part(method, broadcast=other, ledger=ledger)
    assert ledger.log == []
    assert len(reports) == took_part.sum() == 0


def test_nobody_is_no_cohort():
    nobody = clients_of(ToyFactors()).take(np.array([], np.int64))
    with pytest.raises(EmptyCohort, match="ToyFactors, round 0: nobody was asked"):
        take_part(ToyFactors(), clients=nobody)


# --- Keys ----------------------------------------------------------------------------


def test_no_key_serves_two_rounds_purposes_or_devices():
    method = Watched()
    clients = clients_of(method)
    for round_ in range(3):
        take_part(method, broadcast=broadcast_of(method, round_), clients=clients)
    handed_over = [
        tuple(words)
        for name in ("enrol", "local_update", "privatize")
        for keys in keys_of(method.log, name)
        for words in [*keys.words.tolist()]
    ]
    assert len(handed_over) == 7 * USERS
    everything = {*handed_over, *(tuple(words) for words in KEYS.words.tolist())}
    assert len(everything) == 8 * USERS


def test_from_equal_state_two_rounds_differ_in_their_noise_and_only_there():
    method, quiet = ToyFactors(dither=1.0), ToyFactors(dither=0.0)
    first, second = (
        take_part(method, broadcast=broadcast_of(method, round_))[1].tree
        for round_ in (0, 1)
    )
    bare = take_part(quiet, broadcast=broadcast_of(quiet))[1].tree["b"]
    assert ((first["b"] - bare) != (second["b"] - bare)).all()
    for one, two in zip(
        first.leaves["V"].parts.values(), second.leaves["V"].parts.values(), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_the_same_round_played_again_says_the_same():
    method = ToyFactors(dither=1.0)
    first, second = (take_part(method)[1].tree["b"] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_privatize_sees_the_state_after_the_update():
    method = Watched()
    take_part(method)
    _, clients, _, _ = next(entry for entry in method.log if entry[0] == "privatize")
    assert clients.state["rounds"].tolist() == [1] * USERS


# --- Clients that fail ----------------------------------------------------------------


@dataclass(frozen=True)
class FailsFor(ToyFactors):
    """Some clients fail, or say what is no number; a stack may be too large."""

    failing: tuple[int, ...] = ()
    nan: tuple[int, ...] = ()
    most: int = USERS
    stacks: list = field(default_factory=list, compare=False)

    def local_update(self, broadcast, clients, shards, keys):
        self.stacks.append(len(clients))
        if np.isin(clients.numbers, self.failing).any() or len(clients) > self.most:
            raise ArithmeticError(f"one of {clients.numbers.tolist()}")
        state, updates = super().local_update(broadcast, clients, shards, keys)
        updates.tree["b"][np.isin(clients.numbers, self.nan)] = np.nan
        return state, updates


@pytest.mark.parametrize("how", ["failing", "nan"])
def test_who_fails_is_nothing_and_the_others_are_as_they_were_to_the_last_bit(how):
    honest, before = ToyFactors(), clients_of(ToyFactors())
    expected, everyones, _ = take_part(honest)
    method, seen = FailsFor(**{how: (1, 4)}), []
    after, reports, took_part = take_part(method, on_failure=seen.append)
    assert took_part.all()
    assert len(seen) == 2
    others = np.setdiff1d(np.arange(USERS), [1, 4])
    found, told = reports.tree.to_dense(), everyones.tree.to_dense()
    for name in ("V", "b"):
        np.testing.assert_array_equal(found[name][others], told[name][others])
    np.testing.assert_array_equal(after.state["u"][others], expected.state["u"][others])
    np.testing.assert_array_equal(after.state["u"][[1, 4]], before.state["u"][[1, 4]])
    assert np.isfinite(reports.tree["b"]).all()
    # Once whole, each alone, and whole again without those who fail.
    assert method.stacks == [USERS, *[1] * USERS, USERS]


def test_a_stack_that_is_too_large_is_answered_one_by_one():
    """Nobody fails alone: nobody is left out, and whoever may look learns why."""
    _, everyones, _ = take_part(ToyFactors())
    seen = []
    _, reports, _ = take_part(FailsFor(most=1), on_failure=seen.append)
    assert len(seen) == 1
    np.testing.assert_allclose(reports.tree["b"], everyones.tree["b"], rtol=1e-6)


def test_if_all_fail_each_says_nothing_and_changes_nothing():
    everyone, seen = tuple(range(USERS)), []
    before = clients_of(ToyFactors())
    method = FailsFor(failing=everyone)
    after, reports, _ = take_part(method, on_failure=seen.append)
    assert len(seen) == len(reports) == USERS
    np.testing.assert_array_equal(after.state["u"], before.state["u"])


# --- Methods that do not keep the shape ----------------------------------------------


@dataclass(frozen=True)
class SaysLess(ToyFactors):
    def privatize(self, broadcast, clients, updates, keys):
        reports = super().privatize(broadcast, clients, updates, keys)
        return reports.select(slice(1, None))


@dataclass(frozen=True)
class SaysNothing(ToyFactors):
    def privatize(self, broadcast, clients, updates, keys):
        return Reports.nobody()


@pytest.mark.parametrize("broken", [SaysLess, SaysNothing])
def test_a_device_that_took_part_says_exactly_one_thing(broken):
    """A missing report would pass for a refusal that the ledger knows nothing of."""
    with pytest.raises(Refused, match=rf"{broken.__name__}.privatize gave \d+ reports"):
        take_part(broken())


@dataclass(frozen=True)
class KeepsWhatItNeverHad(ToyFactors):
    def enrol(self, profiles, keys):
        return Tree({})

    def local_update(self, broadcast, clients, shards, keys):
        counted = replace(clients, state=Tree.dense(rounds=np.zeros(len(clients))))
        return super().local_update(broadcast, counted, shards, keys)


def test_state_that_nobody_enrolled_with_is_not_lost_in_silence():
    with pytest.raises(BadValue, match="keep nothing were given"):
        take_part(KeepsWhatItNeverHad())


# --- The rest of the file ------------------------------------------------------------


def test_clients_are_numbered_and_in_one_group_unless_told_otherwise():
    clients = clients_of(ToyFactors())
    assert clients.numbers.tolist() == [*range(USERS)]
    assert clients.groups.tolist() == [0] * USERS
    assert clients.plan is PLAN


@pytest.mark.usefixtures("without_axis_checks")
def test_clients_that_do_not_fit_together_are_refused():
    with pytest.raises(BadValue, match="13 numbers, 2 groups"):
        enrol(ToyFactors(), PLAN, WORLD.profiles, KEYS, groups=np.zeros(2, np.int64))


def test_taking_clients_keeps_their_order_and_putting_back_their_place():
    clients = clients_of(ToyFactors())
    some = clients.take([4, 2])
    assert some.numbers.tolist() == [4, 2]
    changed = Tree.dense(u=np.array([[4.0, 4.0], [2.0, 2.0]]), rounds=np.array([4, 2]))
    after = clients.with_state([4, 2], changed)
    assert after.state["rounds"].tolist() == [0, 0, 2, 0, 4, *[0] * (USERS - 5)]
    assert clients.state["rounds"].sum() == 0


class Everything(ToyFactors):
    """Can all that only some methods can."""

    def item_space(self, broadcast, candidates): ...

    def user_vectors(self, broadcast, tastes): ...

    def formula(self, broadcast): ...

    def reasons(self, broadcast, shards, item): ...

    def refreshing(self, earlier): ...

    def continued(self, server, *, weights, memory): ...


@pytest.mark.parametrize("can", [Queryable, Exportable, Explainable, Refreshable])
def test_what_only_some_methods_can_is_asked_for_by_its_protocol(can):
    """A method that ranks on the device asks nothing, and offers nothing to ask."""
    assert not isinstance(ToyFactors(), can)
    assert isinstance(Everything(), can)


def test_by_default_everyone_sees_the_weights_and_nothing_else():
    method = ToyFactors()
    server = method.start(PLAN, WORLD.catalog, Key.from_seed(0))
    broadcast = method.broadcast(server)
    assert broadcast.weights is server.weights
    assert (broadcast.round, broadcast.agreement) == (
        0,
        method.agreement(PLAN, WORLD.catalog).digest,
    )


def test_the_next_server_is_one_round_later_and_the_old_one_is_as_it_was():
    server = ToyFactors().start(PLAN, WORLD.catalog, Key.from_seed(0))
    after = server.after(weights={}, memory={})
    assert (server.round, after.round) == (0, 1)
    assert after.plan is server.plan
    assert server.weights


def test_a_step_moves_what_the_gradient_has_and_keeps_the_rest():
    """Weights minus rate times gradient; a step later, whatever else is kept."""
    weights = {"theta": np.ones(2), "told": np.arange(3)}
    server = Server(PLAN, WORLD.catalog, 4, weights, {"clip": np.array(7.0)})
    after = server.stepped(Sgd(0.5), {"theta": np.array([2.0, -2.0])})
    assert after.round == 5
    assert after.weights["theta"].tolist() == [0.0, 2.0]
    assert after.weights["told"].tolist() == [0, 1, 2]
    assert after.memory["clip"] == 7.0


def test_all_candidates_are_the_catalog():
    world = FederatedData.of_histories([[0]], n_items=3)
    assert Candidates.all_of(world.catalog).items.tolist() == [0, 1, 2]
