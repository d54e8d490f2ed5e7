"""The ledger of a run against its plan: every method, channel, operator and group.

No round is computed: who takes part in one, and how often, is what a ledger reads.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from methods.privrec.worlds import described
from methods.test_types_of_totals import SMALL

from tacit.errors import BadValue, Refused
from tacit.experiment.registry import method_class, method_names
from tacit.keys import Key
from tacit.ledger.budget import Cap
from tacit.method import Server
from tacit.plans import Plan
from tacit.release import CELLS, EVERYONE, Standing, View
from tacit.runtime.client import Client
from tacit.runtime.rounds import State
from tacit.runtime.run import Spending
from tacit.runtime.simulate import Simulation
from tacit.sampling import Everyone, Once, Poisson
from tacit.statement import Statement
from tacit.testing.contract import mixed_world

WORLD = described(mixed_world())
USERS = len(WORLD.shards)
ROUNDS = 5
CODES = np.repeat([0, 1], [4, USERS - 4])
GROUPS = {"strict": 4, "open": USERS - 4}
TARGETS = {"strict": 2.0, "open": 8.0}
ONE_MACHINE = "one_machine"
CHANNELS = ("direct", "secure_sum", "shuffle", "two_servers", "masked_sum")
_LEAST = {"two_servers": 5, "shuffle": 5, "masked_sum": USERS}
# Of operators who are apart: what one machine in both roles would undo.
OF_TWO = ("two_servers", "shuffle")


@dataclass(frozen=True)
class Way:
    """One way to run a method; not every method has every way."""

    mechanism: str
    channel: str
    view: str | None = None
    one_operator: str = ""
    has_groups: bool = False

    def plan(self, sampler) -> Plan:
        target = TARGETS if self.has_groups else 6.0
        return Plan(
            USERS,
            rounds=ROUNDS,
            sampler=sampler,
            channel=self.channel,
            delta=1e-6,
            target_epsilon=None if self.mechanism in ("none", "published") else target,
            target_view=self.view,
            groups=GROUPS if self.has_groups else {},
            min_contributors=_LEAST.get(self.channel, 1),
        )


def ways(name: str) -> Iterator[Way]:
    for mechanism, has_groups in product(method_class(name).mechanisms, (False, True)):
        for channel in CHANNELS:
            views = [None, "release"] if channel == "two_servers" else [None]
            machines = ["", ONE_MACHINE] if channel in OF_TWO else [""]
            for view, one in product(views, machines):
                yield Way(mechanism, channel, view, one, has_groups)


def simulated(name: str, way: Way, sampler) -> Simulation | None:
    """The method run this way; None where it, or the plan, refuses."""
    kind, settings = method_class(name), SMALL.get(name, {})
    if way.mechanism == "published":
        left = ("count_rounds", "head")  # what papers lack
        settings = {k: v for k, v in settings.items() if k not in left}
        settings["mode"] = "paper"
    try:
        plan = way.plan(sampler)
        method = kind(**settings, privacy=kind.mechanisms[way.mechanism]())
        made = Simulation(
            *(method.calibrated(plan), plan),
            *(WORLD.catalog, WORLD.profiles, WORLD.shards, Key.from_seed(3)),
            groups=CODES if way.has_groups else None,
            one_operator=way.one_operator,
        )
        assert made.account.totals
    except (BadValue, Refused):
        return None
    return made


def begun(made: Simulation, file, *, rounds: int = ROUNDS, sits_out=()) -> dict:
    """The ledger after so many rounds, in which everyone answers whom a cap permits."""
    server = Server(made.plan, made.catalog, 0, {}, {})
    taken = np.zeros((USERS, len(made.parts)), np.int64)
    spending = Spending(made, file, "x")
    for round_ in range(rounds):
        now = replace(server, round=round_)
        state = State(now, None, taken, np.zeros(USERS))
        spending.begin(round_, most=made.most_participations(state))
        if round_ not in sits_out:
            part = made.population.part_of(round_)
            taken[:, part] += taken[:, part] < made.limits.within(part, taken)
    return json.loads(file.read_text())


def cells(lines) -> dict:
    return {(line.group, line.unit, line.view): line for line in lines}


def figures(line: Statement) -> tuple:
    return line.epsilon, line.delta, line.standing, line.accountant, line.adjacency


def planned(made: Simulation) -> dict:
    """What the plan says for each of its groups."""
    said = cells(made.account.totals)
    return {
        (group, *cell): said.get((group, *cell)) or said[(EVERYONE, *cell)]
        for group in made.plan.groups
        for cell in CELLS
    }


def spent(entry: dict) -> dict:
    return cells(map(Statement.from_json, entry["spent"]))


def assert_at_most(entry: dict, made: Simulation) -> None:
    found = spent(entry)
    for name, said in planned(made).items():
        line = found[name]
        assert line.standing is not Standing.NOTHING
        if said.epsilon is not None:
            assert line.epsilon <= said.epsilon, name
        if line.epsilon is None:
            assert said.epsilon is None, name


# In how many ways each method can be run, by who is asked in a round: a way that is
# refused from now on would be looked at no more.
COUNTS = {
    "dpals": (13, 12, 12),
    "dplcf": (3, 3, 3),
    "dpmf": (21, 12, 12),
    "dpvae": (21, 20, 20),
    "federated_popularity": (29, 20, 20),
    "fedvae": (13, 12, 12),
    "fmf_ldp": (15, 15, 15),
    "fofl": (8, 8, 8),
    "gram": (25, 16, 16),
    "nn_self": (8, 8, 8),
    "privaterec": (25, 16, 16),
    "privaterec_local": (12, 12, 12),
    "privrec": (17, 12, 12),
}


def in_every_way(
    name: str, sampler, folder, *, channels=CHANNELS
) -> Iterator[tuple[Simulation, dict]]:
    """The method in each of its ways, with its ledger when all rounds have begun."""
    for number, way in enumerate(ways(name)):
        if way.channel not in channels:
            continue
        made = simulated(name, way, sampler)
        if made is None:
            continue
        yield made, begun(made, folder / f"{number}.json")
        for rounds in (1, ROUNDS - 1):
            file = folder / f"{number}, {rounds}.json"
            assert_at_most(begun(made, file, rounds=rounds), made)
        entry = begun(made, folder / f"{number}, sat out.json", sits_out=(0, 2))
        assert_at_most(entry, made)
        expected = 1 if isinstance(sampler, Once) else 3  # of five, and sat out two
        assert entry["most_participations"] == expected


def assert_what_was_planned_is_spent(name, sampler, folder, **some) -> int:
    """Cell by cell, whatever caps clients keep; in how many ways that was so."""
    count = 0
    for made, entry in in_every_way(name, sampler, folder, **some):
        found, said = spent(entry), planned(made)
        assert found.keys() == said.keys()
        for cell, line in found.items():
            assert figures(line) == figures(said[cell]), (made.plan, cell)
        count += 1
    return count


def test_over_two_servers_what_was_planned_is_spent_when_all_rounds_have_begun(
    tmp_path,
):
    """One machine or two, a target in either view, groups with targets of their own."""
    of_gram = ("gram", Everyone(), tmp_path)
    count = assert_what_was_planned_is_spent(*of_gram, channels=["two_servers"])
    assert count == 8


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [Everyone(), Once()], ids=["everyone", "once"])
@pytest.mark.parametrize("name", method_names())
def test_when_all_rounds_have_begun_what_was_planned_is_spent(name, sampler, tmp_path):
    """Over every channel."""
    count = assert_what_was_planned_is_spent(name, sampler, tmp_path)
    assert count == COUNTS[name][isinstance(sampler, Once)]


@pytest.mark.slow
@pytest.mark.parametrize("name", method_names())
def test_where_cohorts_are_drawn_no_more_than_planned_is_spent(name, tmp_path):
    """Everyone who is drawn once more may answer; the plan says how often it can be."""
    found = [*in_every_way(name, Poisson(0.3), tmp_path)]
    for made, entry in found:
        assert_at_most(entry, made)
    assert len(found) == COUNTS[name][2]


def test_every_method_that_is_installed_is_looked_at():
    assert COUNTS.keys() == {*method_names()}


ON_ONE = Way("central", "two_servers", one_operator=ONE_MACHINE)


def test_what_one_machine_undoes_is_not_said_to_cost_nothing(tmp_path):
    """Its caps were for two operators: by them nobody would have answered."""
    made = simulated("federated_popularity", ON_ONE, Everyone())
    entry = begun(made, tmp_path / "ledger.json")
    assert entry["most_participations"] == ROUNDS
    of_user = {line.view: line for line in spent(entry).values() if line.unit == "user"}
    assert of_user[View.RELEASE].epsilon > 3.0
    for view in (View.SERVER, View.COLLUSION):
        assert of_user[view].standing is Standing.NONE
    assert "one machine" in of_user[View.SERVER].reason


@pytest.mark.parametrize("one_operator", ["", ONE_MACHINE])
def test_a_client_keeps_the_caps_that_its_simulation_keeps(one_operator, tmp_path):
    """And in both it answers every round: its target was calibrated for them."""
    way = replace(ON_ONE, one_operator=one_operator)
    made = simulated("federated_popularity", way, Everyone())
    client = Client(
        *(tmp_path / "ledger", made.method, made.plan),
        catalog=WORLD.catalog,
        history=WORLD.shards.take(np.array([3])),
        one_operator=one_operator,
    )
    client.close()
    [caps] = made.limits.caps
    assert client.target == caps
    never = np.zeros((USERS, 1), np.int64)
    assert made.limits.within(0, never).tolist() == [ROUNDS] * USERS


def test_a_round_that_nobody_may_answer_does_not_begin(tmp_path):
    """A record of no participation would say that the run cost nothing."""
    made = simulated("federated_popularity", ON_ONE, Everyone())
    tight = replace(made, caps=(Cap(1e-3, view=View.RELEASE),))
    with pytest.raises(Refused, match="they answer 0 rounds"):
        begun(tight, tmp_path / "ledger.json")
    assert not (tmp_path / "ledger.json").exists()
