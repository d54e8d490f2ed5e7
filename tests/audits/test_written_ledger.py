"""The ledger of a run has the lines of its plan's groups, each of its own account."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audits.subjects import POPULARITY, SCALE

from tacit.audits.small_world import small_data
from tacit.audits.written_ledger import check_written
from tacit.documents import read_document
from tacit.keys import Key
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.runtime.ledger import terms_of
from tacit.runtime.run import Spending
from tacit.runtime.simulate import Simulation
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
    data = small_data(20).repeated(plan.population)
    simulation = Simulation(
        method,
        plan,
        data.catalog,
        data.profiles,
        data.shards,
        Key.from_seed(1),
        groups=np.repeat(np.arange(len(plan.groups)), [*plan.groups.values()]),
    )
    spending = Spending(simulation, folder / "ledger.json", "digest")
    for number in range(begun):
        taken = number + 1 if most is None else min(most, number + 1)
        spending.begin(number, most=taken)
    return read_document(folder / "ledger.json")


def failed(method, plan, document):
    terms = [terms_of(method, plan, group=group) for group in plan.groups]
    found = check_written(terms, document, delta=plan.delta)
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
