"""Table 2: users, items and ratings of the original and the pre-processed data."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.experiment.assemble import load_dataset
from tacit.reproduction.cells import Results
from tacit.reproduction.study import Table
from tacit.reproduction.tables import ReproducedTable, Reproduction, Row, is_near

from .benches import PUBLISHED, SOURCES, Bench, Data

ABSENT = "counted on the archive alone, at --scale full; docs/data.md says where it is"
OPEN = (
    "Section 3.2 does not say what d is, in which order users and items are dropped, "
    "and which ratings of Netflix are drawn; docs/reproduction/dpvae.md"
)
NEAR = 0.005  # of a count
TABLES: dict[Data, str] = {"OL": "table-2-original", "PD": "table-2"}


def table_2(benches: Sequence[Bench]) -> Table:
    """Counted on the paper's own data that are at hand; nothing is trained."""
    own = {one.name: one for one in benches if not one.is_stand_in}

    def make(results: Results) -> Reproduction:
        rows = tuple(
            row
            for name in SOURCES
            for data in TABLES
            for row in _rows(results, name, data, own.get(name))
        )
        name = "Table 2, users, items and ratings"
        return Reproduction((ReproducedTable(name, rows),), ())

    return Table(make)


def _rows(
    results: Results, name: str, data: Data, bench: Bench | None
) -> tuple[Row, ...]:
    printed = PUBLISHED[TABLES[data]].values[name]
    if bench is None:
        labels = (f"{name}, {data}, {what}" for what in printed)
        pairs = zip(labels, printed.values(), strict=True)
        return tuple(Row(t, n, None, None, False, reason=ABSENT) for t, n in pairs)
    counts = _counts(results, bench, data)
    return tuple(
        _row(f"{name}, {data}, {what}", printed[what], counts[what]) for what in printed
    )


def _row(label: str, printed: float, count: float) -> Row:
    ok = is_near(count, printed, within=NEAR * printed)
    return Row(label, printed, count, None, ok, reason="" if ok else OPEN)


def _counts(results: Results, bench: Bench, data: Data) -> dict[str, int]:
    # Table 2 drops nobody from ML-100K, and so does the study: no PD of its own there.
    side: Data = data if bench.name != "ML-100K" else "OL"
    [first, *_] = bench.vae(side).experiments()

    def make() -> dict[str, int]:
        log = load_dataset(first).interactions
        return {"users": log.n_users, "items": log.n_items, "ratings": len(log)}

    inputs = {"data": first.resolved()["data"]}
    counts: dict[str, int] = results.measured(f"sizes {bench.name}", inputs, make)
    return counts
