"""Table 10 (RQ5): DP-VAE by the largest epsilon that users choose, on ML-100K.

To the letter users draw theirs uniformly up to it; in sound mode everyone has it, for
the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tacit.reproduction.cells import Cell, Results
from tacit.reproduction.study import Table
from tacit.reproduction.tables import (
    Chart,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)

from . import contenders
from .benches import MAIN, MOST_EPSILON, Bench
from .rows import above, because_of_noise, because_of_steps, chance, printed_in, rows

EPSILONS = (0.3, 0.5, 1.0, 1.5)
ADVISED = 0.5  # "we recommend setting the privacy budget to 0.5", Section 4.2.5


def table_10(bench: Bench) -> Table:
    """Four budgets, and the VAE without noise."""
    letter = {most: bench.paper(None, *_most(most), priors=True) for most in EPSILONS}
    sound = {most: bench.sound(None, *_target(most)) for most in EPSILONS}
    rivals = contenders.trained(bench, bench.usual, priors=True)

    def make(results: Results) -> Reproduction:
        found = contenders.found(results, bench, bench.usual, priors=True)
        popularity = found["popularity"]
        made: list[Row] = [
            *rows(
                "VAE",
                found["VAE"],
                printed_in("table-10", "VAE"),
                popularity=popularity,
                reason=because_of_steps(bench, found["by Adam"], popularity),
            )
        ]
        for most in EPSILONS:
            made += rows(
                f"DP-VAE ({most:g})",
                results[letter[most]],
                printed_in("table-10", f"{most:g}"),
                popularity=popularity,
                sound=results[sound[most]],
                reason=because_of_noise(bench, most=most),
            )
        by = chance(results, bench)
        rising = [
            above(
                f"RQ5: {name} is better at {more:g} than at {less:g}",
                bench,
                results[cells[more]],
                results[cells[less]],
                by=by,
            )
            for name, cells in {"DP-VAE": letter, "sound DP-VAE": sound}.items()
            for less, more in pairwise(EPSILONS)
        ]
        best = max(
            (who for who in contenders.RIVALS if who in found and who != "VAE"),
            key=lambda who: found[who].mean(MAIN),
        )
        text = f"RQ5: at {ADVISED:g} {{}} beats the best rival but the VAE, {best}"
        advised = [
            above(text.format(name), bench, results[cells[ADVISED]], found[best], by=by)
            for name, cells in {"DP-VAE": letter, "sound DP-VAE": sound}.items()
        ]
        name = f"Table 10, by the largest epsilon ({bench.label})"
        lines = {
            "DP-VAE to the letter": _line(results, letter),
            "sound DP-VAE": _line(results, sound),
        }
        levels = {"VAE": found["VAE"].mean(MAIN), "popularity": popularity.mean(MAIN)}
        chart = Chart(name, "epsilon", "NDCG@100", lines, levels, bench.over)
        tables = (ReproducedTable(name, tuple(made)),)
        return Reproduction(tables, (*rising, *advised), (chart,))

    return Table(make, (*letter.values(), *sound.values(), *rivals.values()))


def _most(most: float) -> tuple[str, ...]:
    """The change that users choose up to `most`; none for the file's own."""
    return () if most == MOST_EPSILON else (f"privacy.most_epsilon={most}",)


def _target(epsilon: float) -> tuple[str, ...]:
    """The change that everyone has `epsilon`; none for the file's own."""
    return () if epsilon == MOST_EPSILON else (f"privacy.target_epsilon={epsilon}",)


def _line(results: Results, cells: Mapping[float, Cell]) -> Line:
    found = [results[cell] for cell in cells.values()]
    means = tuple(one.mean(MAIN) for one in found)
    return Line(tuple(cells), means, tuple(one.se(MAIN) or 0.0 for one in found))
