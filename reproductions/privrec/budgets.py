"""DP-PrivRec, Tables 3 and 4: the privacy budgets.

All 36 published cells come out of the paper's own bound with 1000 · M compositions,
where its text says 1000 rounds of M users. `sound` is what 1000 rounds cost as they are
published, at step 1: cohorts of fixed size, replace_one, by the tight profile. The bit
is taken after the clip, so it is 1 for everyone and tells nothing; beside it stands
what a bit taken before the clip would cost. The published figures promise less than
the method keeps; what the method keeps assumes a server that shows nobody its cohorts.
"""

from __future__ import annotations

import math

from tacit.accounting.published import (
    PRIVREC_ROUNDS,
    EpsilonTable,
    Provable,
    fixed_size_epsilons,
    privrec_epsilon,
)
from tacit.reproduction.cells import Results
from tacit.reproduction.tables import Claim, ReproducedTable, Reproduction, Row

BALANCE = 0.7  # h, Section 4.3


def epsilon_table(table: EpsilonTable, results: Results) -> Reproduction:
    """One of the two tables with its claim."""
    provable = results.measured(
        f"budgets {table.name}",
        {
            "sizes": [*table.rows],
            "people": table.population,
            "deltas": table.deltas,
            "balance": BALANCE,
        },
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


def _provable(table: EpsilonTable, size: int) -> list[tuple[float, float, float]]:
    """What the rounds cost for each delta: tightly, by Rényi divergence; a true bit."""

    def found(noise_multiplier: float, delta: float) -> Provable:
        return fixed_size_epsilons(
            size,
            population=table.population,
            noise_multiplier=noise_multiplier,
            rounds=PRIVREC_ROUNDS,
            delta=delta,
        )

    update_alone = 1 / math.sqrt(1 - BALANCE)
    each = [(found(update_alone, d), found(1.0, d)) for d in table.deltas]
    return [(own.pld, own.rdp, with_bit.pld) for own, with_bit in each]


def _row(
    table: EpsilonTable, size: int, place: int, pld: float, rdp: float, bit: float
) -> Row:
    delta, published = table.deltas[place], table.rows[size][place]
    again = privrec_epsilon(size, population=table.population, delta=delta)
    cut = math.floor(again * 1e4) / 1e4  # the paper cuts, it does not round
    return Row(
        label=f"M = {size}, delta = {delta:g}",
        published=published,
        paper=cut,
        sound=pld,
        ok=cut == published,
        note=f"by Rényi divergence {rdp:.4f}; with the bit before the clip {bit:.4f}",
    )
