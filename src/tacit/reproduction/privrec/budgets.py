"""DP-PrivRec, Tables 3 and 4: the privacy budgets.

All 36 published cells come out of the paper's own bound with 1000 · M compositions,
where its text says 1000 rounds of M people. `sound` is what 1000 rounds cost: cohorts
of fixed size, replace_one, by the tight profile. The published figures promise less
than the method keeps; what the method keeps assumes a server that shows nobody its
cohorts.
"""

from __future__ import annotations

import math

from tacit.accounting.published import (
    PRIVREC_ROUNDS,
    PRIVREC_TABLES,
    EpsilonTable,
    fixed_size_epsilons,
    privrec_epsilon,
)
from tacit.reproduction.tables import Claim, ReproducedTable, Reproduction, Row


def table_3() -> Reproduction:
    """MovieLens."""
    return epsilon_table(PRIVREC_TABLES[0])


def table_4() -> Reproduction:
    """Frappe."""
    return epsilon_table(PRIVREC_TABLES[1])


def epsilon_table(table: EpsilonTable) -> Reproduction:
    """One of the two tables with its claim."""
    rows = tuple(
        _row(table, size, place)
        for size in table.rows
        for place in range(len(table.deltas))
    )
    below = all(
        row.sound is not None
        and row.published is not None
        and row.sound < row.published
        for row in rows
    )
    claim = Claim(
        f"{table.name}: the stated budgets cover {PRIVREC_ROUNDS} rounds",
        below,
        "every provable figure is below the published one"
        if below
        else "some provable figure is above the published one",
    )
    return Reproduction((ReproducedTable(table.name, rows),), (claim,))


def _row(table: EpsilonTable, size: int, place: int) -> Row:
    delta, published = table.deltas[place], table.rows[size][place]
    again = privrec_epsilon(size, population=table.population, delta=delta)
    cut = math.floor(again * 1e4) / 1e4  # the paper cuts, it does not round
    provable = fixed_size_epsilons(
        size,
        population=table.population,
        noise_multiplier=1.0,
        rounds=PRIVREC_ROUNDS,
        delta=delta,
    )
    return Row(
        label=f"M = {size}, delta = {delta:g}",
        published=published,
        paper=cut,
        sound=provable.pld,
        ok=cut == published,
        note=f"by Rényi divergence {provable.rdp:.4f}",
    )
