"""Cold start, what PrivRec is for: the paper says so and shows no figure of it.

    strangers   by how many events of theirs a device adapts with
    activity    strangers with all of their history, by how long it is
    items       what nobody had in training, ranked among such items only

Claims speak of Hits@10 as in the paper. All were written before the first run but the
last of each data set, against a feature that is only counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tacit.reproduction import Scale
from tacit.reproduction.claims import is_above
from tacit.reproduction.privrec.benches import Bench, Source
from tacit.reproduction.privrec.cold_start_items import UnseenItems
from tacit.reproduction.privrec.cold_start_trials import (
    CHANCE,
    OF_ITEMS,
    OF_PEOPLE,
    ONE_FEATURE,
    Told,
    told_trials,
)
from tacit.reproduction.privrec.trials import Judged
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)
from tacit.results import Evaluation, Groups, pool

_SOURCES: Sequence[Source] = ("movielens-1m", "frappe")

Found = Mapping[str, Told]  # by contender


def cold_start_table(scale: Scale) -> Reproduction:
    """MovieLens 1M and Frappe."""
    return Reproduction.joined([on(Bench(source, scale)) for source in _SOURCES])


def on(bench: Bench) -> Reproduction:
    """One data set."""
    unseen = UnseenItems(bench.source, bench.scale, bench.seed)
    people = {who: told_trials(who, bench) for who in OF_PEOPLE}
    items = {who: told_trials(who, unseen) for who in OF_ITEMS}
    parts = (
        _by_told(f"strangers by events told ({bench.source})", people),
        _by_activity(f"strangers by activity ({bench.source})", people),
        _by_told(f"unseen items by events told ({bench.source})", items),
        Reproduction((), tuple(_claims_of_people(bench.source, people))),
        Reproduction((), tuple(_claims_of_items(bench.source, items))),
    )
    return Reproduction.joined(parts)


def _by_told(what: str, found: Found) -> Reproduction:
    """A table and a chart; who does not listen has one row, and a line across."""
    deaf = {who for who, told in found.items() if who != "PrivRec" and _is_flat(told)}
    rows = [
        _row(f"{who}, {'any number' if who in deaf else n} told", judged)
        for who, told in found.items()
        for n, judged in told.few.items()
        if who not in deaf or n == 0
    ]
    lines = {who: _line(told.few) for who, told in found.items() if who not in deaf}
    levels = {who: found[who].few[0].mean("hr", 10) for who in found if who in deaf}
    some = found["PrivRec"]
    name = f"PrivRec, {what}: {_people(some.few[0])} of {_people(some.whole)}"
    chart = Chart(name, "events told", "Hits@10", lines, levels, _over(some.whole))
    return Reproduction((ReproducedTable(name, tuple(rows)),), (), (chart,))


def _is_flat(told: Told) -> bool:
    return len({judged.mean("hr", 10) for judged in told.few.values()}) == 1


def _by_activity(what: str, found: Found) -> Reproduction:
    """A table and a chart; groups stand side by side, from few events to many."""
    groups = {who: by_group(told.whole) for who, told in found.items()}
    rows = [
        _row(f"{who}, {label}", judged)
        for who, members in groups.items()
        for label, judged in members.items()
    ]
    labels = enumerate(groups["PrivRec"], 1)
    x = "events: " + ", ".join(f"{i} {label}" for i, label in labels)
    lines = {
        who: _line(dict(enumerate(members.values(), 1)))
        for who, members in groups.items()
    }
    whole = found["PrivRec"].whole
    name = f"PrivRec, {what}: {_people(whole)}"
    chart = Chart(name, x, "Hits@10", lines, over=_over(whole))
    return Reproduction((ReproducedTable(name, tuple(rows)),), (), (chart,))


def by_group(whole: Judged) -> dict[str, Judged]:
    """The people of each group that has members in every seed."""
    everyone = (*whole.alone, *whole.full)
    return {
        label: Judged(
            tuple(_within(one, label) for one in whole.alone),
            tuple(_within(one, label) for one in whole.full),
        )
        for label in whole.alone[0].groups.labels
        if all(label in one.by_group() for one in everyone)
    }


def _within(whole: Evaluation, label: str) -> Evaluation:
    mine = whole.groups.member_of == whole.groups.labels.index(label)
    users, values = whole.users[mine], {n: v[mine] for n, v in whole.values.items()}
    return Evaluation(whole.protocol, users, values, Groups.everyone(len(users)))


def _row(label: str, found: Judged) -> Row:
    return Row(
        label,
        published=None,
        paper=None,
        sound=found.mean("hr", 10),
        ok=True,
        note=f"{_people(found)} people",
        budget="not private",
        beside={
            "nDCG@10": found.mean("ndcg", 10),
            "nDCG@10, full ranking": pool(found.full)["ndcg@10"].mean,
        },
        se=found.se("hr", 10),
    )


def _line(found: Mapping[int, Judged]) -> Line:
    return Line(
        tuple(map(float, found)),
        tuple(judged.mean("hr", 10) for judged in found.values()),
        tuple(judged.se("hr", 10) or 0.0 for judged in found.values()),
    )


def _people(found: Judged) -> str:
    """How many were judged; whoever is in two seeds counts twice."""
    return f"{sum(map(len, found.alone)):,}"


def _over(found: Judged) -> str:
    return "people" if len(found.alone) == 1 else "seeds"


def _claims_of_people(source: Source, found: Found) -> Iterator[Claim]:
    own = found["PrivRec"].few
    for n, who in ((5, "popularity"), (0, "FCF"), (1, "FCF")):
        text = f"{source}: PrivRec, told {n}, is above {who}, told {n}"
        yield _above(text, own[n], found[who].few[n])
    yield _above(
        f"{source}: PrivRec, told 20, is above itself, told 0", own[20], own[0]
    )


def _claims_of_items(source: Source, found: Found) -> Iterator[Claim]:
    for who in (CHANCE, "FCF", ONE_FEATURE):
        text = f"{source}: on unseen items PrivRec, told 20, is above {who}"
        yield _above(text, found["PrivRec"].few[20], found[who].few[20])


def _above(text: str, more: Judged, less: Judged) -> Claim:
    return is_above(text, more.alone, less.alone, metric="hr_each@10", name="Hits@10")
