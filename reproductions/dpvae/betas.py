"""Equation 7: the β that is best, raised from 0 to 1, chosen on validation items.

The paper adopts "the best β" by "gradually increasing β from 0 to 1", and prints one
for each data set in Table 3. The VAE without noise is trained with each β; under the
paper's noise no β could be told from another. Test items are looked at, and choose
nothing.
"""

from __future__ import annotations

from tacit.reproduction.cells import Results
from tacit.reproduction.study import Scale, Table
from tacit.reproduction.tables import Claim, ReproducedTable, Reproduction, Row

from .benches import MAIN, PUBLISHED, Bench

STEPS: dict[Scale, int] = {"smoke": 2, "quick": 5, "full": 10}  # from 0 to 1


def beta(bench: Bench, scale: Scale) -> Table:
    """A row for each β, with the validation items' NDCG that chooses."""
    steps = STEPS[scale]
    last = f"evaluate.every={bench.rounds(bench.epochs, bench.usual)}"
    cells = {
        step / steps: bench.vae(None, last, f"method.beta={step / steps}")
        for step in range(steps + 1)
    }

    def make(results: Results) -> Reproduction:
        found = {value: results[cell] for value, cell in cells.items()}
        chosen_by = {value: one.curve(MAIN).y[-1] for value, one in found.items()}
        best = max(chosen_by, key=lambda value: chosen_by[value])
        printed = PUBLISHED["table-3"].values[bench.name]["beta"]
        rows = tuple(
            Row(
                f"β = {value:g}",
                None,
                paper=one.mean(MAIN),
                sound=None,
                ok=True,
                note="chosen on validation items" if value == best else "",
                beside={"validation": chosen_by[value]},
                se=one.se(MAIN),
            )
            for value, one in found.items()
        )
        near = min(chosen_by, key=lambda value: abs(value - printed))
        claim = Claim(
            f"Table 3: β = {printed:g} is the best of the VAE",
            best == near,
            f"on validation items β = {best:g} has {chosen_by[best]:.4f}, "
            f"β = {near:g} {chosen_by[near]:.4f}",
        )
        name = f"Equation 7, NDCG@100 of the VAE by β ({bench.label})"
        return Reproduction((ReproducedTable(name, rows),), (claim,))

    return Table(make, (*cells.values(),))
