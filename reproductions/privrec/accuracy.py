"""Tables 1 and 2: Hits and nDCG of PrivRec and its rivals at 5, 10, 20 and 30.

A row has the published figure, ours with the paper's features and labels, and ours with
what works. Where a published figure is not reached the row says why, with what its
features give when they are simply counted, and in the order of one who knows the
answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from tacit.experiment.assemble import assemble
from tacit.release import Unit, View
from tacit.reporting.tables import epsilon, why
from tacit.reproduction.cells import Cell, Found, Results
from tacit.reproduction.claims import Chance, is_above
from tacit.reproduction.published import Published, PublishedTable
from tacit.reproduction.study import Table
from tacit.reproduction.tables import (
    DIVERGED,
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
    is_near,
)
from tacit.statement import Statement

from .beside import kinds_of
from .contenders import (
    BESIDE,
    CENTRAL,
    CONTENDERS,
    COUNTED,
    FORETOLD,
    HITS,
    PUBLISHED,
    Bench,
)

PRINTED = Published.read(Path(__file__).parent / "published.toml")

CLOSE = 0.01  # of Hits and nDCG
DEPTHS = (5, 10, 20, 30)
METRICS = {"Hits": HITS, "nDCG": "ndcg_each"}  # theirs -> ours
NAMES = (
    "PrivRec",
    "PrivRec, counting",
    "DP-PrivRec",
    CENTRAL,
    "NN-SELF",
    "FOFL-SELF",
    "FCF",
    COUNTED,
    FORETOLD,
    "popularity",
    "item-kNN",
    "EASE",
    "iALS",
)
_CAUSES: Mapping[str, str] = {
    "ml1m": "observed negatives teach what is liked among what was watched, and films "
    "of the same genres tie",
    "frappe": "no candidate has a count, and apps of the same price tie",
}


def accuracy(number: str, bench: Bench) -> Table:
    """Table 1 (MovieLens 1M) or 2 (Frappe)."""
    printed = PRINTED[f"table-{number}"]
    asked = dict.fromkeys((*NAMES, *map(as_published, NAMES)))

    def make(results: Results) -> Reproduction:
        found = {who: bench.found(results, who) for who in asked}
        reason = _reason(results, bench, found)
        rows = tuple(
            _row(who, metric, k, printed, found, reason)
            for who in NAMES
            for metric in METRICS
            for k in DEPTHS
        )
        name = f"PrivRec, Table {number} ({bench.label})"
        lines = {who: hits_by_depth(found[who]) for who in NAMES}
        chart = Chart(name, "k", "Hits@k", lines, over=bench.over)
        by = bench.chance(results)
        claims = (*_orders(number, found, by), rise(number, printed))
        claims += (follows(number, printed),)
        return Reproduction((ReproducedTable(name, rows),), claims, (chart,))

    # PrivRec-CEN is trained by torch, outside of any cell.
    return Table(make, bench.trained(*asked), extras={"torch": "train"})


def as_published(who: str) -> str:
    """The contender to the letter of the paper, where it differs from ours."""
    literal = f"{who}{PUBLISHED}"
    return literal if literal in CONTENDERS or literal in BESIDE else who


def _row(
    who: str,
    metric: str,
    k: int,
    printed: PublishedTable,
    found: Mapping[str, Found],
    reason: str,
) -> Row:
    at, literal = f"{METRICS[metric]}@{k}", found[as_published(who)]
    theirs = printed.value(metric, who, str(k))
    is_close = is_near(literal.mean(at), theirs, within=CLOSE)
    both = {n: found[n] for n in dict.fromkeys((as_published(who), who))}
    return Row(
        f"{who}, {metric}@{k}",
        theirs,
        paper=literal.mean(at),
        sound=found[who].mean(at) if len(both) == 2 else None,
        ok=is_close,
        reason="" if is_close else _why(who, metric, k, printed, reason),
        budget="; ".join(f"{n}: {spent(one)}" for n, one in both.items())
        if who == "DP-PrivRec"
        else "not private",
        beside={
            f"{n}, all items": found[who].mean_among_all(n)
            for n in ("ndcg@10", "recall@20")
        },
        se=literal.se(at),
    )


def _reason(results: Results, bench: Bench, found: Mapping[str, Found]) -> str:
    """What the published features can give at all."""
    cell = bench.cell(COUNTED)
    kinds, items = results.measured(
        f"kinds {cell.folder}",
        {"experiment": cell.experiments()[0].digest},
        lambda: _kinds(cell),
    )
    counted, foretold, popular = (
        found[who].mean(f"{HITS}@10") for who in (COUNTED, FORETOLD, "popularity")
    )
    return (
        f"{_CAUSES[bench.name]}; {kinds:,} kinds of {items:,} items have Hits@10 "
        f"{counted:.3f} counted, {foretold:.3f} in the order of one who knows the "
        f"answers; popularity has {popular:.3f}"
    )


def _kinds(cell: Cell) -> tuple[int, int]:
    kind_of = kinds_of(assemble(cell.experiments()[0]))
    return int(kind_of.max()) + 1, len(kind_of)


def _why(who: str, metric: str, k: int, printed: PublishedTable, reason: str) -> str:
    """Why the published figure is not reached, or passed."""
    if who == "FCF":
        reason = "FCF states no settings; ours stand in docs/methods/fmf_ldp.md"
    if metric == "Hits" and k in falls(printed, who):
        reason += (
            "; the printed Hits are fewer than at a smaller depth, which cannot be"
        )
    if metric == "nDCG":
        reason += "; the printed nDCG cannot come from the printed Hits"
    return f"{reason}; docs/reproduction/privrec.md"


def spent(found: Found) -> str:
    """What a user spends in a run against whoever sees models, with its terms."""
    if not found.runs:
        return DIVERGED
    lines = map(Statement.from_json, found.run(0).result["epsilons"])
    [said] = (s for s in lines if (s.unit, s.view) == (Unit.USER, View.RELEASE))
    return (
        f"{epsilon(said)}; {said.unit}, {said.view} view, {said.standing}, {why(said)}"
    )


def _orders(number: str, found: Mapping[str, Found], by: Chance) -> Iterator[Claim]:
    """What the paper says of the order, for the contenders as we train them."""
    rivals = ("FOFL-SELF", "NN-SELF", "FCF", "popularity")
    for less, more in (*((r, "PrivRec") for r in rivals), ("PrivRec", CENTRAL)):
        yield is_above(
            f"Table {number}: {more} beats {less}",
            found[more].evaluations,
            found[less].evaluations,
            metric=f"{HITS}@10",
            chance=by,
            name="Hits@10",
        )


def rise(number: str, printed: PublishedTable) -> Claim:
    """Whether no printed Hits fall with depth: a longer list has every hit."""
    wrong = [
        f"{who} at {k}" for who in printed.values["Hits"] for k in falls(printed, who)
    ]
    text = f"Table {number}: the printed Hits rise with k"
    return Claim(text, not wrong, f"not of {', '.join(wrong)}" if wrong else "all do")


def falls(printed: PublishedTable, who: str) -> list[int]:
    """The depths at which fewer Hits are printed than at the one before."""
    hits = [printed.value("Hits", who, str(k)) for k in DEPTHS]
    return [
        k
        for k, before, here in zip(DEPTHS[1:], hits, hits[1:], strict=False)
        if before is not None and here is not None and here < before
    ]


def follows(number: str, printed: PublishedTable) -> Claim:
    """Whether the printed nDCG can come from the printed Hits by Eq. 10 and 11.

    An item that enters the list between two depths stands behind the first, so it adds
    at most 1 / log2(first depth + 2) to nDCG.
    """
    wrong = [
        f"{who} from {a} to {b}"
        for who in printed.values["Hits"]
        for a, b, more, gain in _gains(printed, who)
        if gain > max(more, 0.0) / math.log2(a + 2) + 0.0015  # three roundings
    ]
    text = f"Table {number}: the printed nDCG can come from the printed Hits"
    many = f"{len(wrong)} steps are too high, such as {wrong[0]}" if wrong else ""
    return Claim(text, not wrong, many or "in all rows")


def _gains(
    printed: PublishedTable, who: str
) -> Iterator[tuple[int, int, float, float]]:
    """From each depth to the next: what Hits and nDCG rise by."""
    hits, ndcg = ([*printed.values[kind][who].values()] for kind in METRICS)
    for i in range(len(DEPTHS) - 1):
        yield DEPTHS[i], DEPTHS[i + 1], hits[i + 1] - hits[i], ndcg[i + 1] - ndcg[i]


def hits_by_depth(found: Found) -> Line:
    """A line of a chart."""
    at = [f"{HITS}@{k}" for k in DEPTHS]
    means, errors = map(found.mean, at), (found.se(name) or 0.0 for name in at)
    return Line(tuple(map(float, DEPTHS)), tuple(means), tuple(errors))
