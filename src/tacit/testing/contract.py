"""What every method must keep. Inherit `MethodContract` and say what the method is.

    class TestMyMethod(MethodContract):
        def method(self) -> Method:
            return MyMethod(rank=2)

        def check_learnt(self, score, world) -> None:
            ...  # a small world with a known answer

The world is small on purpose: a dozen users, one with no history, one with everything,
one who repeats an item. pytest collects the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from jaxtyping import Bool, Float, Int64

from tacit.audits.server_replay import check_replay
from tacit.audits.shuffler_minimum import check_minimum
from tacit.data.federated_data import FederatedData
from tacit.data.shards import Shards
from tacit.errors import EmptyCohort, Refused
from tacit.keys import Key, Keys
from tacit.method import (
    Candidates,
    Clients,
    Ledger,
    Method,
    Queryable,
    Scores,
    Unmetered,
    Updates,
    empty_reports,
    participate,
)
from tacit.plans import Plan
from tacit.release import Unit, View
from tacit.runtime import run
from tacit.runtime.checkpoint import load_checkpoint, save_checkpoint
from tacit.runtime.rounds import State
from tacit.runtime.run import RunDirectory, play
from tacit.runtime.simulate import Simulation, check_plan
from tacit.sampling import Everyone, Poisson
from tacit.statement import account
from tacit.testing.client_process import Client, answer_in_a_process
from tacit.testing.hostile_broadcasts import not_agreed, within
from tacit.transport.channels import Delivery, Each, RoundContext
from tacit.transport.codec import (
    decode_broadcast,
    decode_reports,
    encode_broadcast,
    encode_reports,
    wire_size,
)
from tacit.transport.messages import Broadcast, Layout, Reports
from tacit.tree import Array, Arrays, Tree

_STEPS = ("_spend", "_append", "save_checkpoint")  # of a round, in their order


def mixed_world() -> FederatedData:
    """Thirteen users of every kind and twenty items."""
    draws = Key.from_seed(1).generator()
    some = [sorted(draws.choice(20, size=n, replace=False)) for n in range(2, 12)]
    return FederatedData.of_histories(
        [[], list(range(20)), [3, 3, 7, 3], *some], n_items=20
    )


def checkerboard() -> FederatedData:
    """Two kinds of users: even ones like even items, odd ones odd items.

    Every user lacks one item of their kind: the answer that is to be found.
    """
    # Three items of each kind are missing, each in four of its twelve histories.
    kinds = [[i for i in range(12) if i % 2 == p % 2] for p in range(24)]
    histories = [[i for i in h if i != h[p % 6]] for p, h in enumerate(kinds)]
    return FederatedData.of_histories(histories, n_items=12)


ScoreFunction = Callable[[Shards], Scores]


def assert_checkerboard_learnt(score: ScoreFunction, shards: Shards) -> None:
    """The one item of their kind that a user lacks comes before all that they lack.

    `shards` begin with the 24 users of the checkerboard.
    """
    few = checkerboard().shards
    scores = score(shards)[: len(few)]
    owned = np.zeros(scores.shape, bool)
    owned[few.owners, few.items] = True
    first = np.where(owned, -np.inf, scores).argmax(axis=1)
    assert first.tolist() == [np.arange(12)[p % 2 :: 2][p % 6] for p in range(24)]


class MethodContract(ABC):
    """The tests that every method inherits."""

    rounds = 3  # a first, a middle and a last one

    @abstractmethod
    def method(self) -> Method:
        """The method under test, small, computing in float64 where it has floats."""

    @abstractmethod
    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        """Assert that the known answer of `answer_world` was found."""

    def world(self) -> FederatedData:
        """The world of the other tests; with features for a method that needs some."""
        return mixed_world()

    def answer_world(self) -> FederatedData:
        """A world with a known answer."""
        return checkerboard()

    def answer_plan(self, world: FederatedData) -> Plan:
        """A plan with enough rounds to learn the known answer."""
        return Plan(len(world.shards), rounds=self.rounds)

    def plan(self, world: FederatedData) -> Plan:
        """The plan of the other tests, in which some clients are not asked."""
        return Plan(len(world.shards), rounds=self.rounds, sampler=Poisson(0.6))

    # one client

    def test_a_cohort_equals_one_client_at_a_time(self) -> None:
        """A client never notices who else is in the batch."""
        round_ = self._round()
        after, reports, _ = round_.ask(np.arange(len(round_.shards)))
        alone = [round_.ask(np.array([row])) for row in range(len(round_.shards))]
        stacked = Tree.concatenate([r.tree for _, r, _ in alone])
        _assert_close(stacked, reports.tree)
        states = [clients.state for clients, _, _ in alone]
        _assert_close(Tree.concatenate(states), after.state)

    def test_the_same_through_two_processes(self) -> None:
        """Broadcast bytes in, report bytes out, in a process that shares nothing."""
        round_ = self._round()
        row = np.array([2])
        client = Client(
            self.method(),
            round_.clients.take(row),
            round_.shards.take(row),
            round_.keys[row],
        )
        after, messages = answer_in_a_process(
            client, encode_broadcast(round_.broadcast)
        )
        here, reports, _ = round_.ask(row)
        received = decode_reports(round_.broadcast, messages, round_.layout)
        _assert_close(received.tree, reports.tree)
        _assert_close(after.state, here.state)

    def test_reports_survive_the_wire_and_have_their_declared_size(self) -> None:
        """Every report has the declared number of bytes, whoever sends it."""
        round_ = self._round()
        _, reports, _ = round_.ask(np.arange(len(round_.shards)))
        messages = encode_reports(round_.broadcast, reports)
        assert {len(m) for m in messages} == {wire_size(round_.layout)}
        received = decode_reports(round_.broadcast, messages, round_.layout)
        _assert_equal_trees(received.tree, reports.tree)

    def test_a_broadcast_survives_the_wire(self) -> None:
        """What everyone sees arrives as it was sent."""
        broadcast = self._round().broadcast
        received = decode_broadcast(encode_broadcast(broadcast))
        assert (received.round, received.agreement) == (
            broadcast.round,
            broadcast.agreement,
        )
        _assert_equal(received.weights, broadcast.weights)

    def test_an_empty_cohort_is_refused_by_name(self) -> None:
        """Nobody is not a cohort."""
        with pytest.raises(EmptyCohort, match=type(self.method()).__name__):
            self._round().ask(np.array([], np.int64))

    def test_a_client_refuses_a_plan_it_did_not_agree_to(self) -> None:
        """A broadcast of another plan gets no answer and changes nothing."""
        round_ = self._round()
        other = replace(
            round_, broadcast=replace(round_.broadcast, agreement=bytes(16))
        )
        after, reports, took_part = other.ask(np.arange(3))
        assert not took_part.any()
        assert len(reports) == 0
        _assert_equal_trees(after.state, round_.clients.state.select(np.arange(3)))

    # what a server can ask

    def test_every_broadcast_is_as_agreed(self) -> None:
        """In every round and after the last one, whatever was learnt."""
        simulation = self._simulation()
        state, method = simulation.start(), simulation.method
        agreed = method.agreement(simulation.plan, simulation.catalog)
        agreed.check(method.broadcast(state.server))
        for after, _ in simulation.run(state):
            agreed.check(method.broadcast(after.server))

    def test_a_broadcast_that_was_not_agreed_is_refused_unseen(self) -> None:
        """It is refused before ledger or history are read, so by everyone alike."""
        round_ = self._round()
        for hostile in not_agreed(round_.broadcast):
            other = replace(round_, broadcast=hostile)
            _, reports, took_part = other.ask(np.arange(4), ledger=_NeverAsked())
            assert not took_part.any()
            assert not len(reports)

    def test_no_broadcast_silences_anybody(self) -> None:
        """Whatever numbers an agreed broadcast holds, every report is a legal one."""
        round_ = self._round()
        agreement = round_.clients.agreement
        assert agreement is not None
        layouts = agreement.broadcasts
        for hostile in within(round_.broadcast, layouts[round_.broadcast.phase]):
            other = replace(round_, broadcast=hostile)
            for user in range(len(round_.shards)):
                _, reports, took_part = other.ask(
                    np.array([user]), on_failure=lambda _: None
                )
                assert took_part.all()
                round_.layout.check(reports)
                reports.check_finite()

    def test_a_client_that_fails_contributes_nothing_and_says_so_like_others(
        self,
    ) -> None:
        """Its report looks like any other, its state stays; a simulation raises."""
        round_ = replace(self._round(), method=cast(Method, _Failing(self.method())))
        rows, seen = np.arange(3), list[Exception]()
        with pytest.raises(_Failure):
            round_.ask(rows)
        after, reports, took_part = round_.ask(rows, on_failure=seen.append)
        assert took_part.all()
        assert [type(error) for error in seen] == [_Failure] * len(rows)
        round_.layout.check(reports)
        _assert_equal_trees(after.state, round_.clients.state.select(rows))

    def test_a_client_that_fails_takes_no_other_report_along(self) -> None:
        """A sum moves by one report at most; the others are as if nobody had failed."""
        round_, rows, seen = self._round(), np.arange(4), list[Exception]()
        expected, honest, _ = round_.ask(rows)
        failing = cast(Method, _Failing(self.method(), number=2))
        round_ = replace(round_, method=failing)
        after, reports, took_part = round_.ask(rows, on_failure=seen.append)
        assert took_part.all()
        assert [type(error) for error in seen] == [_Failure]
        others = np.array([0, 1, 3])
        _assert_close(reports.tree.select(others), honest.tree.select(others))
        _assert_close(after.state.select(others), expected.state.select(others))
        _, alone, _ = round_.ask(np.array([2]), on_failure=seen.append)
        _assert_close(reports.tree.select([2]), alone.tree)
        _assert_equal_trees(after.state.select([2]), round_.clients.state.select([2]))

    def test_a_client_can_say_nothing_without_its_history(self) -> None:
        """What it then says is as large as any report, and finite.

        It is the same whatever the client holds, but for what it was shown.
        """
        round_ = self._round()
        made, clients, keys = round_.simulation, round_.clients, round_.keys
        empty, other = (
            empty_reports(made.method, round_.broadcast, clients, shards, keys)
            for shards in (made.shards, made.shards.only_shown())
        )
        round_.layout.check(empty)
        empty.check_finite()
        assert len(empty) == len(clients)
        _assert_equal_trees(empty.tree, other.tree)

    # one round

    @pytest.mark.parametrize("chunk", [1, 2, 5, None])
    def test_any_chunking_gives_the_same_server(self, chunk: int | None) -> None:
        """Integers are equal exactly, floats in float64 to 1e-9."""
        whole = self._simulation(chunk=1000)
        state = whole.start()
        expected, _ = whole.step(state)
        found, _ = replace(whole, chunk=chunk).step(state)
        _assert_near(found, expected)

    def test_any_order_gives_the_same_server(self) -> None:
        """Reports may arrive in any order."""
        simulation = self._simulation(chunk=4)
        state = simulation.start()
        expected, _ = simulation.step(state)
        found, _ = replace(simulation, channel=_Reordered()).step(state)
        _assert_near(found, expected)

    @pytest.mark.parametrize("chunk", [1, None])
    def test_clients_who_took_no_part_did_not_change(self, chunk: int | None) -> None:
        """Clients that were not asked or that refused keep their state."""
        refusing = _RefuseEven()
        simulation = replace(self._simulation(chunk=chunk), ledger=refusing)
        before = simulation.start()
        after, tally = simulation.step(before)
        assert 0 < tally.took_part < tally.asked
        is_everyone = isinstance(simulation.plan.sampler, Everyone)
        assert is_everyone == (tally.asked == len(simulation.shards))
        idle = np.setdiff1d(np.arange(len(simulation.shards)), refusing.permitted)
        _assert_equal_trees(
            after.clients.state.select(idle), before.clients.state.select(idle)
        )

    def test_a_refusal_counts_as_zero(self) -> None:
        """Leaving a report out equals a report of zeros: sums divide by the plan."""
        round_ = self._round()
        _, reports, _ = round_.ask(np.arange(len(round_.shards)))
        sent = np.arange(len(reports)) % 3 > 0
        left_out = round_.aggregate([reports.select(np.flatnonzero(sent))])
        zeroed = Reports(_zeroed(reports.tree, ~sent))
        _assert_near(left_out, round_.aggregate([zeroed]))

    def test_a_round_of_nobody_still_counts(self) -> None:
        """An empty draw of coins is a legal round: the server steps on nothing."""
        round_ = self._round()
        after = round_.aggregate([])
        assert after.server.round == round_.state.server.round + 1

    @pytest.mark.parametrize("channel", ["direct", "secure_sum"])
    def test_types_do_not_say_whether_anybody_answered(self, channel: str) -> None:
        """A round in which all refuse leaves a server of the same types and shapes."""
        plan = replace(self.plan(self.world()), channel=channel)
        try:
            answered = self._simulation(plan=plan)
        except Refused:
            pytest.skip(f"the method does not go with '{channel}'")
        refused = replace(answered, ledger=_RefuseAll())
        kinds = []
        for simulation in (answered, refused):
            played = [*simulation.run(simulation.start())]
            assert any(t.took_part for _, t in played) is (simulation is answered)
            server = played[-1][0].server
            kinds.append((_kinds(server.weights), _kinds(server.memory)))
        assert kinds[0] == kinds[1]

    def test_nothing_that_was_handed_over_is_changed(self) -> None:
        """Functions are pure: frozen inputs are enough to play a round."""
        simulation = self._simulation()
        state = simulation.start()
        _freeze(state)
        simulation.step(state)

    # many rounds

    def test_a_checkpoint_gives_the_state_back(self, tmp_path: Path) -> None:
        """A state that is saved and loaded is the same, bit for bit."""
        simulation = self._simulation()
        state, _ = simulation.step(simulation.start())
        save_checkpoint(tmp_path / "state", state, digest="x")
        loaded = load_checkpoint(tmp_path / "state", simulation.start(), digest="x")
        _assert_same(loaded, state)

    def test_killed_anywhere_and_resumed_equals_uninterrupted(
        self, tmp_path: Path
    ) -> None:
        """After any number of chunks, in any round, server and clients agree.

        One run dies at every chunk in turn; each life gets one chunk further.
        """
        simulation, path = self._simulation(chunk=3), tmp_path / "mortal"
        whole = _play_to_the_end(simulation, tmp_path / "whole")
        mortal, deaths = replace(simulation, channel=_Mortal()), 0
        while (ended := _lived(mortal, path)) is None:
            deaths += 1
        assert deaths > self.rounds  # else the test has killed nothing within a round
        _assert_same(ended, whole)
        logged = RunDirectory(path).rounds_logged()
        assert [line["round"] for line in logged] == list(range(self.rounds))

    def test_killed_between_the_steps_of_a_round(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A run resumes whichever file was written last: ledger, metrics, checkpoint.

        One run dies before and after every step of every round in turn.
        """
        simulation, path = self._simulation(), tmp_path / "mortal"
        whole = _play_to_the_end(simulation, tmp_path / "whole")
        deaths = product(range(self.rounds), _STEPS, ("before", "after"))
        for t, step, when in deaths:
            with monkeypatch.context() as patch:
                patch.setattr(run, step, _dying(getattr(run, step), when))
                assert _lived(simulation, path) is None
            logged = [line["round"] for line in RunDirectory(path).rounds_logged()]
            assert logged in (list(range(t)), list(range(t + 1)))
        _assert_same(_play_to_the_end(simulation, path), whole)
        logged = [line["round"] for line in RunDirectory(path).rounds_logged()]
        assert logged == list(range(self.rounds))

    def test_a_small_world_with_a_known_answer_is_learnt(self) -> None:
        """The method does what it is for."""
        world = self.answer_world()
        plan = self.answer_plan(world)
        simulation = self._simulation(world=world, plan=plan)
        state = simulation.start()
        while state.server.round < plan.rounds:
            state, _ = simulation.step(state)
        self.check_learnt(_scorer(self.method(), state, world), world)

    def test_a_server_could_rank_as_a_client_does(self) -> None:
        """Where items have public vectors, products with them order as scores do."""
        simulation = self._simulation()
        method, state = simulation.method, simulation.start()
        while not method.is_over(state.server):
            state, _ = simulation.step(state)
        if not isinstance(method, Queryable):
            return
        broadcast = method.broadcast(state.server)
        every = Candidates.all_of(simulation.catalog)
        try:
            space = method.item_space(broadcast, every)
        except Refused:
            return  # some settings of a method make a score that is no inner product
        keys = Key.from_seed(9).each(np.arange(len(simulation.shards)))
        tastes = method.represent(broadcast, state.clients, simulation.shards, keys)
        scores = method.score(broadcast, tastes, every)
        inner = space.scores(method.user_vectors(broadcast, tastes))
        apart = scores[:, :, None] - scores[:, None]
        is_clear = apart > 1e-6 * np.abs(scores).max()
        others = inner[:, :, None] - inner[:, None]
        assert (others[is_clear] > 0).all()

    # account

    def test_releases_speak_for_every_unit_and_view(self) -> None:
        """The releases of a plan amount to a total for every unit and view."""
        plan = self.plan(self.world())
        check_plan(self.method(), plan)
        found = account(plan, self.method().releases(plan))
        assert found.releases
        assert {(s.unit, s.view) for s in found.totals} == {
            (unit, view) for unit in Unit for view in View
        }

    # what the audit looks at

    def test_the_server_learns_from_the_delivery_alone(self) -> None:
        """Other histories, or none, under the same delivery change nothing."""
        own, data = self._simulation(), self._data()
        found = check_replay(own.method, own.plan, key=own.key, data=data)
        assert found.ok, found.measured

    def test_a_relay_below_its_minimum_delivers_nothing(self) -> None:
        """It is checked through the runtime, for methods that can read a relay."""
        own, data = self._simulation(), self._data()
        for found in check_minimum(own.method, own.plan, key=own.key, data=data):
            assert found.ok, found.measured

    def _data(self) -> FederatedData:
        own = self._simulation()
        return FederatedData(own.catalog, own.profiles, own.shards)

    def _round(self) -> _Round:
        simulation = self._simulation()
        state, _ = simulation.step(simulation.start())
        return _Round(simulation, state, self.method().broadcast(state.server))

    def _simulation(
        self,
        *,
        world: FederatedData | None = None,
        plan: Plan | None = None,
        chunk: int | None = None,
    ) -> Simulation:
        world = world or self.world()
        plan = plan or self.plan(world)
        return Simulation(
            self.method(),
            plan,
            world.catalog,
            world.profiles,
            world.shards,
            Key.from_seed(7),
            groups=np.repeat(np.arange(len(plan.groups)), [*plan.groups.values()]),
            chunk=chunk,
        )


@dataclass(frozen=True)
class _Round:
    """A round about to be played, with everything in reach."""

    simulation: Simulation
    state: State
    broadcast: Broadcast
    method: Method | None = None  # instead of the simulation's

    @property
    def shards(self) -> Shards:
        return self.simulation.shards

    @property
    def clients(self) -> Clients:
        return self.state.clients

    @property
    def keys(self) -> Keys:
        return self.simulation.population.keys

    @property
    def layout(self) -> Layout:
        return self.context.layout

    @property
    def context(self) -> RoundContext:
        server = self.state.server
        return self.simulation.method.context(server, self.broadcast, Key.from_seed(3))

    def ask(
        self,
        rows: Int64[np.ndarray, "rows"],
        *,
        ledger: Ledger | None = None,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> tuple[Clients, Reports, Bool[np.ndarray, "rows"]]:
        return participate(
            self.method or self.simulation.method,
            self.broadcast,
            self.clients.take(rows),
            self.shards.take(rows),
            self.keys[rows],
            ledger=ledger or Unmetered(),
            on_failure=on_failure,
        )

    def aggregate(self, chunks: list[Reports]) -> State:
        method, before = self.simulation.method, self.state.server
        server = method.aggregate(before, Each(chunks), self.context)
        return replace(self.state, server=server)


class _Killed(BaseException):
    """Stands for kill -9: no handler for errors may catch it."""


@dataclass
class _Reordered:
    """Delivers the same reports in another order, cut otherwise."""

    name: str = "direct"
    delivers: type[Delivery] = Each

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        everything = Reports(Tree.concatenate([chunk.tree for chunk in chunks]))
        order = Key.from_seed(5).generator().permutation(len(everything))
        return Each([everything.select(rows) for rows in np.array_split(order, 3)])


class _Mortal(_Reordered):
    """Dies at every chunk that it has not carried before, and carries it next time."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[tuple[Key, int]] = set()

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        return Each(self._die(chunks, context.key))

    def _die(self, chunks: Iterable[Reports], key: Key) -> Iterator[Reports]:
        for place, chunk in enumerate(chunks):
            if (key, place) not in self.known:
                self.known.add((key, place))
                raise _Killed
            yield chunk


class _Failure(Exception):
    """What goes wrong on one client because of what it holds."""


class _Failing:
    """A method whose clients fail, or one of them; all else is the method's own."""

    def __init__(self, method: Method, *, number: int | None = None) -> None:
        self._method, self._number = method, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)

    def local_update(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        if self._number is None or self._number in clients.numbers:
            raise _Failure
        return self._method.local_update(broadcast, clients, shards, keys)


class _NeverAsked:
    """A ledger that nobody may ask."""

    def permits(
        self,
        clients: Int64[np.ndarray, "clients"],
        *,
        round: int,
        multipliers: Float[np.ndarray, "clients"] | None = None,
    ) -> Bool[np.ndarray, "clients"]:
        raise AssertionError("the broadcast was to be refused before")


class _RefuseEven:
    """A ledger whose even clients have spent their budget."""

    def __init__(self) -> None:
        self.permitted: list[int] = []

    def permits(
        self,
        clients: Int64[np.ndarray, "clients"],
        *,
        round: int,
        multipliers: Float[np.ndarray, "clients"] | None = None,
    ) -> Bool[np.ndarray, "clients"]:
        willing = clients % 2 == 1
        self.permitted += clients[willing].tolist()
        return willing


class _RefuseAll:
    """A ledger whose clients have all spent their budgets."""

    def permits(
        self,
        clients: Int64[np.ndarray, "clients"],
        *,
        round: int,
        multipliers: Float[np.ndarray, "clients"] | None = None,
    ) -> Bool[np.ndarray, "clients"]:
        return np.zeros(len(clients), bool)


def _dying(step: Callable[..., None], when: str) -> Callable[..., None]:
    """The step, killed before or after its first call."""

    def die(*args: object, **named: object) -> None:
        if when == "after":
            step(*args, **named)
        raise _Killed

    return die


def _play_to_the_end(simulation: Simulation, path: Path) -> State:
    directory = RunDirectory(path)
    for _ in play(simulation, directory, digest="x", observe=lambda _s, _t: {}):
        pass
    return load_checkpoint(directory.checkpoint, simulation.start(), digest="x")


def _lived(simulation: Simulation, path: Path) -> State | None:
    """The end of the run, or None for a death before it."""
    try:
        return _play_to_the_end(simulation, path)
    except _Killed:
        return None


def _scorer(method: Method, state: State, world: FederatedData) -> ScoreFunction:
    broadcast = method.broadcast(state.server)
    keys = Key.from_seed(9).each(np.arange(len(world.shards)))

    def score(shards: Shards) -> Scores:
        tastes = method.represent(broadcast, state.clients, shards, keys)
        return method.score(broadcast, tastes, Candidates.all_of(world.catalog))

    return score


def _zeroed(tree: Tree, rows: Bool[np.ndarray, "clients"]) -> Tree:
    def zero(values: Array) -> Array:
        copy = values.copy()
        copy[rows] = 0
        return copy

    return Tree({name: leaf.map(zero) for name, leaf in tree.leaves.items()})


def _kinds(arrays: Arrays) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (value.dtype.name, value.shape) for name, value in arrays.items()}


def _freeze(state: State) -> None:
    trees = [leaf.parts for leaf in state.clients.state.leaves.values()]
    for arrays in [state.server.weights, state.server.memory, *trees]:
        for value in arrays.values():
            value.setflags(write=False)


def _assert_near(found: State, expected: State) -> None:
    for name in ("weights", "memory"):
        pairs = getattr(found.server, name), getattr(expected.server, name)
        _assert_close_arrays(*pairs)
    _assert_close(found.clients.state, expected.clients.state)


def _assert_same(found: State, expected: State) -> None:
    assert found.server.round == expected.server.round
    _assert_equal(found.server.weights, expected.server.weights)
    _assert_equal(found.server.memory, expected.server.memory)
    _assert_equal_trees(found.clients.state, expected.clients.state)


def _assert_equal(found: Arrays, expected: Arrays) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, name
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def _assert_close_arrays(found: Arrays, expected: Arrays) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        _assert_close_array(found[name], value, name)


def _assert_close_array(found: Array, expected: Array, name: str) -> None:
    assert found.dtype == expected.dtype, name
    if expected.dtype.kind == "f":
        # Sums of a dozen float64 in another order differ by 1e-15 or so; a client that
        # was counted twice or not at all would be off by a tenth.
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=name)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=name)


def _assert_close(found: Tree, expected: Tree) -> None:
    assert found.leaves.keys() == expected.leaves.keys()
    for name, leaf in expected.leaves.items():
        _assert_close_arrays(found.leaves[name].parts, leaf.parts)


def _assert_equal_trees(found: Tree, expected: Tree) -> None:
    assert found.leaves.keys() == expected.leaves.keys()
    for name, leaf in expected.leaves.items():
        _assert_equal(found.leaves[name].parts, leaf.parts)
