"""Cold start, what PrivRec is for: the paper says so and shows no figure of it.

    strangers   by how many events of theirs a client adapts with
    activity    strangers with all of their history, by how long it is
    items       what nobody had in training, ranked among such items only

Claims speak of Hits@10 as in the paper. All were written before the first run but the
last of each data set, against a feature that is only counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tacit.reproduction.cells import Found, Results
from tacit.reproduction.claims import Chance, is_above
from tacit.reproduction.study import Table
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)
from tacit.results import Evaluation, Groups

from .contenders import HITS, Bench
from .telling import CHANCE, ONE_FEATURE, TRAINED, Told, chances, new_items, strangers

HITS_10 = f"{HITS}@10"

ByName = Mapping[str, Told]


def cold_start(bench: Bench) -> Table:
    """The tables of one data set, for new users and for unseen items."""

    def make(results: Results) -> Reproduction:
        parts = strangers(bench, results), new_items(bench, results)
        return shown(bench, *parts, chances(bench, results))

    return Table(make, bench.trained(*TRAINED))


def shown(
    bench: Bench, users: ByName, items: ByName, by: tuple[Chance, Chance]
) -> Reproduction:
    """Three tables with their charts, and the claims."""
    on = bench.label
    parts = (
        _by_told(f"strangers by events told ({on})", users, bench.over),
        _by_activity(f"strangers by activity ({on})", users, bench.over),
        _by_told(f"unseen items by events told ({on})", items, bench.over),
    )
    of_users, of_items = by
    claims = (
        *_claims_of_users(on, users, of_users),
        *_claims_of_items(on, items, of_items),
    )
    return Reproduction.joined([*parts, Reproduction((), claims)])


def _by_told(what: str, found: ByName, over: str) -> Reproduction:
    """A table and a chart; who does not listen has one row, and a line across."""
    deaf = {who for who, told in found.items() if who != "PrivRec" and _is_flat(told)}
    rows = [
        _row(f"{who}, {'any number' if who in deaf else n} told", one)
        for who, told in found.items()
        for n, one in told.few.items()
        if who not in deaf or n == 0
    ]
    lines = {who: _line(told.few) for who, told in found.items() if who not in deaf}
    levels = {who: found[who].few[0].mean(HITS_10) for who in found if who in deaf}
    some = found["PrivRec"]
    name = f"PrivRec, {what}: {_users(some.few[0])} of {_users(some.whole)}"
    chart = Chart(name, "events told", "Hits@10", lines, levels, over)
    return Reproduction((ReproducedTable(name, tuple(rows)),), (), (chart,))


def _is_flat(told: Told) -> bool:
    return len({found.mean(HITS_10) for found in told.few.values()}) == 1


def _by_activity(what: str, found: ByName, over: str) -> Reproduction:
    """A table and a chart; groups stand side by side, from few events to many."""
    groups = {who: by_group(told.whole) for who, told in found.items()}
    rows = [
        _row(f"{who}, {label}", one)
        for who, members in groups.items()
        for label, one in members.items()
    ]
    labels = enumerate(groups["PrivRec"], 1)
    x = "events: " + ", ".join(f"{i} {label}" for i, label in labels)
    lines = {
        who: _line(dict(enumerate(members.values(), 1)))
        for who, members in groups.items()
    }
    name = f"PrivRec, {what}: {_users(found['PrivRec'].whole)}"
    chart = Chart(name, x, "Hits@10", lines, over=over)
    return Reproduction((ReproducedTable(name, tuple(rows)),), (), (chart,))


def by_group(whole: Found) -> dict[str, Found]:
    """The users of each group that has members in every seed."""
    everyone = (*whole.evaluations, *whole.among_all)
    return {
        label: Found(
            tuple(_within(one, label) for one in whole.evaluations),
            tuple(_within(one, label) for one in whole.among_all),
        )
        for label in whole.evaluations[0].groups.labels
        if all(label in one.by_group() for one in everyone)
    }


def _within(whole: Evaluation, label: str) -> Evaluation:
    mine = whole.groups.member_of == whole.groups.labels.index(label)
    users, values = whole.users[mine], {n: v[mine] for n, v in whole.values.items()}
    return Evaluation(whole.protocol, users, values, Groups.everyone(len(users)))


def _row(label: str, found: Found) -> Row:
    return Row(
        label,
        published=None,
        paper=None,
        sound=found.mean(HITS_10),
        ok=True,
        note=f"{_users(found)} users",
        budget="not private",
        beside={
            "nDCG@10": found.mean("ndcg_each@10"),
            "nDCG@10, full ranking": found.mean_among_all("ndcg@10"),
        },
        se=found.se(HITS_10),
    )


def _line(found: Mapping[int, Found]) -> Line:
    each = found.values()
    means, errors = (f.mean(HITS_10) for f in each), (f.se(HITS_10) for f in each)
    return Line(tuple(map(float, found)), tuple(means), tuple(e or 0.0 for e in errors))


def _users(found: Found) -> str:
    """How many were judged; whoever is in two seeds counts twice."""
    return f"{sum(map(len, found.evaluations)):,}"


def _claims_of_users(on: str, found: ByName, by: Chance) -> Iterator[Claim]:
    own = found["PrivRec"].few
    for n, who in ((5, "popularity"), (0, "FCF"), (1, "FCF")):
        text = f"{on}: PrivRec, told {n}, is above {who}, told {n}"
        yield _above(text, own[n], found[who].few[n], by)
    text = f"{on}: PrivRec, told 20, is above itself, told 0"
    yield _above(text, own[20], own[0], by)


def _claims_of_items(on: str, found: ByName, by: Chance) -> Iterator[Claim]:
    for who in (CHANCE, "FCF", ONE_FEATURE):
        text = f"{on}: on unseen items PrivRec, told 20, is above {who}"
        yield _above(text, found["PrivRec"].few[20], found[who].few[20], by)


def _above(text: str, more: Found, less: Found, by: Chance) -> Claim:
    pair = more.evaluations, less.evaluations
    return is_above(text, *pair, metric=HITS_10, chance=by, name="Hits@10")
