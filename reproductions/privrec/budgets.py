"""DP-PrivRec, Tables 3 and 4: the privacy budgets.

All 36 published cells come out of the paper's own bound with 1000 · M compositions,
where its text says 1000 rounds of M users. `sound` is what 1000 rounds cost: cohorts
of fixed size, replace_one, by the tight profile. The published figures promise less
than the method keeps; what the method keeps assumes a server that shows nobody its
cohorts.
"""

from __future__ import annotations

import math

from tacit.accounting.published import (
    PRIVREC_ROUNDS,
    EpsilonTable,
    fixed_size_epsilons,
    privrec_epsilon,
)
from tacit.reproduction.cells import Results
from tacit.reproduction.tables import Claim, ReproducedTable, Reproduction, Row


def epsilon_table(table: EpsilonTable, results: Results) -> Reproduction:
    """One of the two tables with its claim."""
    provable = results.measured(
        f"budgets {table.name}",
        {"sizes": [*table.rows], "people": table.population, "deltas": table.deltas},
        lambda: {str(size): _provable(table, size) for size in table.rows},
    )
    rows = tuple(
        _row(table, size, place, *figures)
        for size in table.rows
        for place, figures in enumerate(provable[str(size)])
    )
    above = [r.label for r in rows if (r.sound or math.inf) >= (r.published or 0.0)]
    claim = Claim(
        f"{table.name}: the stated budgets cover {PRIVREC_ROUNDS} rounds",
        not above,
        "every provable figure is below the published one"
        if not above
        else f"some provable figure is above the published one, such as {above[0]}",
    )
    return Reproduction((ReproducedTable(table.name, rows),), (claim,))


def _provable(table: EpsilonTable, size: int) -> list[tuple[float, float]]:
    """What the rounds cost by the tight profile and by Rényi divergence, per delta."""
    found = (
        fixed_size_epsilons(
            size,
            population=table.population,
            noise_multiplier=1.0,
            rounds=PRIVREC_ROUNDS,
            delta=delta,
        )
        for delta in table.deltas
    )
    return [(one.pld, one.rdp) for one in found]


def _row(table: EpsilonTable, size: int, place: int, pld: float, rdp: float) -> Row:
    delta, published = table.deltas[place], table.rows[size][place]
    again = privrec_epsilon(size, population=table.population, delta=delta)
    cut = math.floor(again * 1e4) / 1e4  # the paper cuts, it does not round
    return Row(
        label=f"M = {size}, delta = {delta:g}",
        published=published,
        paper=cut,
        sound=pld,
        ok=cut == published,
        note=f"by Rényi divergence {rdp:.4f}",
    )
