"""Table 7 (RQ3): a constant clip against that of Algorithm 2, without priors.

Sound mode has a constant public clip, and one that follows a noisy median of the norms
(Andrew et al. 2021), which is the sound form of a clip from the gradients.
"""

from __future__ import annotations

from tacit.reproduction.cells import Results
from tacit.reproduction.study import Table
from tacit.reproduction.tables import ReproducedTable, Reproduction, Row

from .benches import Bench
from .rows import above, because_of_noise, chance, printed_in, rows


def table_7(bench: Bench) -> Table:
    """CCB and OCB of DP-VAE, to the letter and in sound mode."""
    letter = {"CCB": bench.paper(clip=bench.clip), "OCB": bench.paper()}
    median = bench.sound(None, "privacy.clip_quantile=0.5")
    sound = {"CCB": bench.sound(), "OCB": median}
    popular = bench.beside("popularity")

    def make(results: Results) -> Reproduction:
        made: list[Row] = []
        for side, cell in letter.items():
            made += rows(
                f"DP-VAE, {side}",
                results[cell],
                printed_in("table-7", bench.name, side),
                popularity=results[popular],
                sound=results[sound[side]],
                reason=because_of_noise(bench),
                note="sound mode: a noisy median" if side == "OCB" else "",
            )
        name = f"Table 7, constant and optimal clip ({bench.label})"
        claims = tuple(
            above(
                f"RQ3: {text}",
                bench,
                results[cells["OCB"]],
                results[cells["CCB"]],
                by=chance(results, bench),
            )
            for text, cells in {
                "the optimal clip beats a constant one": letter,
                "in sound mode a noisy median beats a constant clip": sound,
            }.items()
        )
        return Reproduction((ReproducedTable(name, tuple(made)),), claims)

    return Table(make, (*letter.values(), *sound.values(), popular))
