"""Figure 4: HR@10 for people × items, and what the choice of items alone does to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.reproduction import Scale
from tacit.reproduction.fmf_ldp.benches import Bench, for_each
from tacit.reproduction.fmf_ldp.comparing import RIVALS, Judge, line
from tacit.reproduction.fmf_ldp.published import FIGURE_4
from tacit.reproduction.fmf_ldp.subsets import Subset
from tacit.reproduction.fmf_ldp.trials import (
    MF_NP,
    POPULARITY,
    PRINTED,
    Paper,
    Sound,
)
from tacit.reproduction.tables import (
    Chart,
    Claim,
    ReproducedTable,
    Reproduction,
    Row,
)

_LATER = "not run at this scale; use --scale full"


def figure_4(scale: Scale) -> Reproduction:
    """On every bench of the scale; then the published cells that none of them has."""
    made = for_each(scale, _on)
    done = {row.published for table in made.tables for row in table.rows}
    later = tuple(
        Row(f"{n:,} people × {m:,} items", figure, None, None, False, reason=_LATER)
        for (n, m), figure in FIGURE_4.items()
        if figure not in done
    )
    left = (ReproducedTable("Figure 4, cells not run", later),) if later else ()
    return replace(made, tables=(*made.tables, *left))


def _on(bench: Bench) -> Reproduction:
    judge, name = Judge(bench), f"Figure 4, HR@10 ({bench.source})"
    cells = [bench.cell(n, m) for n in bench.people for m in bench.items]
    rows = tuple(
        judge.row(
            str(cell),
            Paper(),
            cell,
            published=_published(cell),
            sound=Sound(),
            others={**RIVALS, "printed rate": PRINTED},
        )
        for cell in (*cells, bench.popular)
    )
    tables = (ReproducedTable(name, rows), _popularity(judge))
    return Reproduction(tables, _claims(judge), (_chart(judge, name),))


def _published(cell: Subset) -> float | None:
    """Of the paper's cells, whose items are drawn at random."""
    if cell.choice == "popular":
        return None
    return FIGURE_4.get((cell.people or 0, cell.items or 0))


def _claims(judge: Judge) -> tuple[Claim, ...]:
    bench, few = judge.bench, judge.bench.many
    many = bench.cell(bench.people[-1], bench.items[-1])
    popular = bench.popular
    return (
        judge.rises("more items hurt", (Paper(), many), (Paper(), few)),
        judge.reaches(
            f"it reaches popularity ({popular})",
            (Paper(), popular),
            (POPULARITY, popular),
        ),
        judge.rises(
            f"a tenth of the printed learning rate does better ({popular})",
            (PRINTED, popular),
            (Paper(), popular),
        ),
    )


def _chart(judge: Judge, name: str) -> Chart:
    bench = judge.bench
    lines = {
        f"{people:,} people" if people else "all people": line(
            {
                float(len(cell.split().catalog)): judge.of(Paper(), cell)
                for cell in (bench.cell(people, items) for items in bench.items)
            }
        )
        for people in bench.people
    }
    return Chart(name, "items", "HR@10", lines)


def _popularity(judge: Judge) -> ReproducedTable:
    """Popularity under 99 negatives, for each reading of "sampled items"."""
    bench, many = judge.bench, judge.bench.many
    cells = (
        bench.popular,
        replace(many, choice="popular"),
        many,
        replace(many, items=bench.items[-1]),
        replace(many, items=None, is_filtered=False),
    )
    name = f"Popularity alone among 99 negatives ({bench.source})"
    return ReproducedTable(name, tuple(_alone(judge, cell) for cell in cells))


def _alone(judge: Judge, cell: Subset) -> Row:
    found = judge.of(POPULARITY, cell)
    return Row(
        str(cell),
        published=None,
        paper=found.hr(),
        sound=None,
        ok=True,
        note=f"a tenth of the items has {_top_tenth(cell):.0%} of the clicks",
        beside={"MF-NP": judge.of(MF_NP, cell).hr()},
        se=found.se(),
    )


def _top_tenth(cell: Subset) -> float:
    counts = np.sort(cell.split().train.log.per_item)[::-1]
    return float(counts[: max(1, len(counts) // 10)].sum() / counts.sum())
