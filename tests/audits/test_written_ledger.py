"""The ledger of a run has the lines of its plan's groups, each of its own account."""

from __future__ import annotations

from dataclasses import replace

import pytest
from audits.subjects import POPULARITY, SCALE

from tacit.audits.small_world import simulation_of
from tacit.audits.written_ledger import check_written
from tacit.documents import read_document
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.runtime.run import Spending
from tacit.sampling import Once, Poisson

GROUPS = {"strict": 12, "open": 24}
PLAN = Plan(36, 6, channel="secure_sum", delta=1e-6, groups=GROUPS)
SCALED = FederatedPopularity(privacy=CentralGaussian(8.0, scale=SCALE))
PHASES = Gram(
    head=6,
    privacy=CentralGaussian({"counts": 9.0, "relations": 5.0}, scale=SCALE),
)


def written(method, plan, folder, *, begun, most=None):
    """What stands in ledger.json once so many rounds have begun."""
    spending = Spending(simulation_of(method, plan), folder / "ledger.json", "digest")
    for number in range(begun):
        taken = number + 1 if most is None else min(most, number + 1)
        spending.begin(number, most=taken)
    return read_document(folder / "ledger.json")


def failed(method, plan, document, **settings):
    found = check_written(simulation_of(method, plan), document, **settings)
    return [check.name.split()[0] for check in found if not check.ok]


@pytest.mark.parametrize("begun", [1, 2, 3, 6])
@pytest.mark.parametrize(
    ("method", "plan", "most"),
    [
        (SCALED, PLAN, None),
        (PHASES, PLAN, None),
        (SCALED, replace(PLAN, sampler=Poisson(0.2)), 2),
        (FederatedPopularity(privacy=LocalPrivUnit(1.0)), PLAN, None),
        (
            FederatedPopularity(privacy=LocalPrivUnit(1.0)),
            replace(PLAN, channel="direct", sampler=Once()),
            1,
        ),
        (POPULARITY, Plan(36, 6, channel="two_servers", delta=1e-6), None),
        (FederatedPopularity(), replace(PLAN, channel="direct"), None),
    ],
    ids=["scaled", "phases", "coins", "local", "once", "two", "bare"],
)
def test_an_honest_ledger_is_within_its_groups_accounts(
    method, plan, most, begun, tmp_path
):
    document = written(method, plan, tmp_path, begun=begun, most=most)
    assert failed(method, plan, document) == []


def _of(group):
    return lambda line: line["group"] == group


def _swapped(line):
    other = {"strict": "open", "open": "strict"}
    return {**line, "group": other[line["group"]]}


def _nothing_said(line):
    return {**line, "epsilon": 0.0} if line["epsilon"] is not None else line


def _halved(line):
    return {**line, "epsilon": line["epsilon"] and line["epsilon"] / 2}


BROKEN = {
    "a group is missing": (lambda s: [*filter(_of("open"), s)], ["lines"]),
    "a foreign group": (
        lambda s: [*s, *({**x, "group": "free"} for x in s[:6])],
        ["lines"],
    ),
    "a group under another name": (
        lambda s: [x | {"group": "open"} for x in s],
        ["lines", "share"],
    ),
    "the groups exchanged": (lambda s: [*map(_swapped, s)], ["share"]),
    "a line twice": (lambda s: [*s, s[0]], ["lines"]),
    "no line": (lambda s: [], ["lines"]),
    "nothing was said": (lambda s: [*map(_nothing_said, s)], ["share"]),
    "half of it": (lambda s: [*map(_halved, s)], ["share"]),
    "twice of it": (
        lambda s: [x | {"epsilon": x["epsilon"] and 2 * x["epsilon"]} for x in s],
        ["share"],
    ),
    "a figure where none is proven": (
        lambda s: [x | {"epsilon": x["epsilon"] or 1.0} for x in s],
        ["share"],
    ),
}


@pytest.mark.parametrize("method", [SCALED, PHASES], ids=["scaled", "phases"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_ledger_that_is_not_its_groups_is_caught(name, method, tmp_path):
    document = written(method, PLAN, tmp_path, begun=6)
    change, names = BROKEN[name]
    assert (
        failed(method, PLAN, document | {"spent": change(document["spent"])}) == names
    )


def _nothing(line):
    return line | {"epsilon": None, "delta": None, "standing": "NOTHING"}


def _proven(line):
    return line | {"epsilon": 0.0, "standing": "PROVEN"}


def _each(change):
    return lambda document: {"spent": [*map(change, document["spent"])]}


LIES = {
    "nothing after three rounds": (_each(_nothing), ["share", "deltas,"]),
    "no figure where there is one": (
        _each(lambda x: x | {"epsilon": None}),
        ["share"],
    ),
    "0.00 PROVEN, of nobody": (
        lambda d: {"most_participations": 0, **_each(_proven)(d)},
        ["rounds", "share", "deltas,"],
    ),
    "a count of nobody": (lambda d: {"most_participations": 0}, ["rounds"]),
    "one participation of three": (lambda d: {"most_participations": 1}, ["rounds"]),
    "four participations of three": (
        lambda d: {"most_participations": 4},
        ["rounds"],
    ),
    "no round": (lambda d: {"rounds_begun": 0}, ["rounds", "share"]),
    "a delta below the plan's": (
        _each(lambda x: x | {"delta": x["delta"] and 1e-12}),
        ["deltas,"],
    ),
    "a proof where there is none": (
        _each(lambda x: x | {"standing": "PROVEN"}),
        ["deltas,"],
    ),
    "an assumption that nobody checks": (
        _each(lambda x: x | {"standing": "ASSUMED"}),
        ["deltas,"],
    ),
    "no assumption": (_each(lambda x: x | {"assumes": "nothing"}), ["deltas,"]),
    "other neighbours": (
        _each(lambda x: x | {"adjacency": "replace_one"}),
        ["deltas,"],
    ),
}


@pytest.mark.parametrize("method", [SCALED, PHASES], ids=["scaled", "phases"])
@pytest.mark.parametrize("name", LIES)
def test_a_line_that_says_less_than_was_spent_is_caught(name, method, tmp_path):
    document = written(method, PLAN, tmp_path, begun=3)
    change, names = LIES[name]
    assert failed(method, PLAN, document | change(document)) == names


def test_a_smaller_count_with_the_lines_that_belong_to_it_is_caught(tmp_path):
    """Everyone was asked in six rounds; these are the lines of somebody in two."""
    document = written(SCALED, PLAN, tmp_path, begun=6, most=2)
    assert failed(SCALED, PLAN, document) == ["rounds", "share"]
    coins = replace(PLAN, sampler=Poisson(0.2))  # two is what coins may give
    (tmp_path / "coins").mkdir()
    document = written(SCALED, coins, tmp_path / "coins", begun=6, most=2)
    assert failed(SCALED, coins, document) == []


def test_rounds_that_the_run_has_logged_have_begun(tmp_path):
    document = written(SCALED, PLAN, tmp_path, begun=2)
    assert failed(SCALED, PLAN, document, logged=2) == []
    assert failed(SCALED, PLAN, document, logged=6) == ["rounds", "share"]


def test_clients_whose_cap_ends_them_early_are_not_counted_as_if_they_went_on(tmp_path):
    """The plan's target is kept as a cap: what is forced ends where it does."""
    plan = Plan(36, 6, channel="secure_sum", delta=1e-6, target_epsilon=0.9)
    method = FederatedPopularity(privacy=CentralGaussian(8.0))
    [*states] = simulation_of(method, plan).run(simulation_of(method, plan).start())
    most = int(states[-1][0].taken.sum(axis=1).max())
    assert 0 < most < 6
    document = written(method, plan, tmp_path, begun=6, most=most)
    assert failed(method, plan, document) == []
    assert failed(method, plan, document | {"most_participations": most - 1})


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("most_participations"),
        lambda d: d.pop("rounds_begun"),
        lambda d: d.pop("spent"),
        lambda d: d["spent"][0].pop("standing"),
        lambda d: d["spent"][0].pop("horizon"),
        lambda d: d["spent"][0].update(standing="SURE"),
        lambda d: d["spent"][0].update(epsilon="low"),
        lambda d: d["spent"][0].update(epsilon=float("nan")),
        lambda d: d.update(spent=7),
        lambda d: d.update(most_participations=None),
    ],
)
def test_a_ledger_of_another_form_is_a_finding(change, tmp_path):
    document = written(SCALED, PLAN, tmp_path, begun=2)
    change(document)
    [check] = check_written(simulation_of(SCALED, PLAN), document)
    assert not check.ok
    assert "train again" in check.detail
