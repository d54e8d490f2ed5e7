"""Table 6 (RQ2): DP-VAE with a constant clip and the VAE, without and with priors.

To the letter priors get the noise of Equation 11; in sound mode they stay on the client
and have none, in the paper's network under central noise.
"""

from __future__ import annotations

from tacit.reproduction.cells import Cell, Results
from tacit.reproduction.study import Table
from tacit.reproduction.tables import ReproducedTable, Reproduction, Row

from .benches import Bench
from .rows import above, because_of_noise, because_of_steps, chance, printed_in, rows

SIDES = {"NUP": False, "ULP": True}  # without and with priors


def table_6(bench: Bench) -> Table:
    """NUP and ULP of DP-VAE, of the VAE and of the sound form of DP-VAE's network."""
    letter = {
        side: bench.paper(priors=has, clip=bench.clip) for side, has in SIDES.items()
    }
    plain = {side: bench.vae(priors=has) for side, has in SIDES.items()}
    sound = {side: _sound(bench, has) for side, has in SIDES.items()}
    popular, adam = bench.beside("popularity"), bench.beside("mult_vae")

    def make(results: Results) -> Reproduction:
        popularity = results[popular]
        reasons = {
            "DP-VAE": because_of_noise(bench),
            "VAE": because_of_steps(bench, results[adam], popularity),
        }
        made: list[Row] = []
        for who, cells in {"DP-VAE": letter, "VAE": plain}.items():
            for side, cell in cells.items():
                made += rows(
                    f"{who}, {side}",
                    results[cell],
                    printed_in("table-6", who, bench.name, side),
                    popularity=popularity,
                    sound=results[sound[side]] if who == "DP-VAE" else None,
                    reason=reasons[who],
                )
        name = f"Table 6, without and with priors of users ({bench.label})"
        claims = tuple(
            above(
                f"RQ2: priors help {who}",
                bench,
                results[cells["ULP"]],
                results[cells["NUP"]],
                by=chance(results, bench),
            )
            for who, cells in {
                "DP-VAE": letter,
                "the VAE without noise": plain,
                "DP-VAE's network in sound mode": sound,
            }.items()
        )
        return Reproduction((ReproducedTable(name, tuple(made)),), claims)

    cells = (*letter.values(), *plain.values(), *sound.values())
    return Table(make, (*cells, popular, adam))


def _sound(bench: Bench, has_priors: bool) -> Cell:
    """The paper's network under central noise; means are over public labels."""
    cell = bench.sound(None, "method.model=vae")
    return bench.with_priors(cell, "labels") if has_priors else cell
