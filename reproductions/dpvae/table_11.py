"""Table 11 (RQ6): the paper's strategy on SVD, MF and the autoencoder, in sound form.

The paper has each model without privacy (OL), by DPSGD at epsilon 1 (DP), and by DPSGD
with its optimal clip (DP-O). That clip is computed from a user's own gradients, and its
noise is made for one step: no budget can be proved for either, so nothing is run to the
letter here. Each model has a sound form, at epsilon 1 for the whole user and run:

    SVD  Gram, the eigenvectors of a noisy sum; OL is PureSVD of rank 100
    MF   DPMF, SGD on the rows that a client touches
    AE   DP-VAE's autoencoder

    DP      a public constant clip
    DP-O    a clip that follows the median of norms under noise (Andrew et al. 2021),
            its budget included: what an optimal clip can be if it may not leak. SVD has
            a proven bound in place of a clip, so there is nothing to choose
    budgets users choose 1, 4 or 8 (54, 37 and 9 of a hundred): the idea of personal
            budgets, which the paper's Table 11 does not have
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tacit.release import View
from tacit.reproduction.cells import Cell, Found, Results, has_data
from tacit.reproduction.chance import best_by_chance
from tacit.reproduction.claims import Chance, is_above
from tacit.reproduction.published import Published
from tacit.reproduction.study import Scale, Table
from tacit.reproduction.tables import (
    Claim,
    ReproducedTable,
    Reproduction,
    Row,
    is_near,
)

HERE = Path(__file__).parent
EXPERIMENTS = HERE.parents[1] / "experiments" / "dpvae"
PRINTED = Published.read(HERE / "published-table-11.toml")["table-11"]
METRICS = {"ndcg@100": "NDCG@100", "recall@20": "Recall@20", "recall@50": "Recall@50"}
MAIN, CLOSE = "ndcg@100", 0.01  # the paper prints two digits
SEEDS: Mapping[Scale, int] = {"smoke": 1, "quick": 1, "full": 5}  # Section 4.1.5

FOLLOWING = ("privacy.clip_quantile=0.5",)
CHOSEN = (
    "privacy.groups={strict = 54, balanced = 37, open = 9}",
    "privacy.target_epsilon={strict = 1.0, balanced = 4.0, open = 8.0}",
)
_WORLD = (
    "data.source=synthetic",
    "data.world={users = 120, items = 60, events_per_user = 30.0, "
    "activity_spread = 0.2, repeats = 0.0}",
    "run.rounds=4",
    "run.sampler={name = 'everyone'}",
    "evaluate.every=4",
)
NO_CLIP = "histories of norm 1 have a proven bound: there is no clip to choose"
NOT_PROVABLE = (
    "not run to the letter: a clip from a user's own gradients, and noise for one "
    "step, prove no budget (docs/errata/dpvae.md); the sound form stands beside it"
)
OPEN = (
    "the paper does not say how it ranks; popularity has NDCG@100 {popularity:.3f} on "
    "this split"
)


@dataclass(frozen=True)
class Model:
    """A model of the table: its file, and what fits the file to an invented world."""

    name: str
    file: str
    baseline: str | None = None  # what it is without privacy; None: without noise
    has_clip: bool = True
    small: tuple[str, ...] = ()

    def cells(self, scale: Scale) -> dict[str, Cell]:
        """The cells of the model by column."""
        cell = self._cell(self.file, scale)
        bare = self._cell(f"{self.file}-noise-off", scale)
        made = {"OL": cell.beside(self.baseline) if self.baseline else bare, "DP": cell}
        if self.has_clip:
            made["DP-O"] = cell.but(*FOLLOWING)
        return {**made, "budgets": cell.but(*CHOSEN)}

    def _cell(self, file: str, scale: Scale) -> Cell:
        cell = Cell(EXPERIMENTS / f"{file}.toml", seeds=SEEDS[scale])
        return cell.but(*_WORLD, *self.small) if scale == "smoke" else cell


MODELS = (
    Model(
        "SVD",
        "ml100k-svd",
        baseline="pure_svd",
        has_clip=False,
        small=("run.rounds=3", "evaluate.baseline_settings.pure_svd.factors=8"),
    ),
    Model("MF", "ml100k-mf", small=("method.head=20", "method.factors=3")),
    Model("AE", "ml100k-ae", small=("method.head=20", "method.latent=4")),
)


def table_11(scale: Scale) -> Table:
    """All models in all columns on MovieLens 100K, or on an invented world."""
    if scale != "smoke" and not has_data("movielens-100k"):
        reason = "movielens-100k is not at hand; docs/data.md says where to get it"
        row = Row("Table 11", None, None, None, ok=False, reason=reason)
        empty = Reproduction((ReproducedTable("Table 11, not run", (row,)),), ())
        return Table(lambda _: empty)
    cells = {model.name: model.cells(scale) for model in MODELS}
    popular = cells["MF"]["DP"].beside("popularity")

    def make(results: Results) -> Reproduction:
        popularity = results[popular]
        made: list[Row] = []
        claims: list[Claim] = []
        for model in MODELS:
            found = {at: results[cell] for at, cell in cells[model.name].items()}
            made += _rows(model, found, popularity)
            by = best_by_chance(results, cells[model.name]["DP"])
            claims += _claims(model, found, popularity, by)
        name = "Table 11, the strategy on other models (ML-100K, epsilon 1, sound)"
        return Reproduction((ReproducedTable(name, tuple(made)),), tuple(claims))

    return Table(make, (*(c for of in cells.values() for c in of.values()), popular))


def _rows(model: Model, found: Mapping[str, Found], popularity: Found) -> Iterator[Row]:
    for column in ("OL", "DP", "DP-O", "budgets"):
        for metric, name in METRICS.items():
            label = f"{model.name}, {column}, {name}"
            printed = PRINTED.value(model.name, column, metric)
            if column not in found:
                yield Row(label, printed, None, None, ok=False, reason=NO_CLIP)
            elif column == "OL":
                yield _open(label, found[column], printed, metric, popularity)
            else:
                yield _sound(label, found[column], printed, metric, popularity)


def _open(
    label: str, one: Found, printed: float | None, metric: str, popularity: Found
) -> Row:
    ok = is_near(one.mean(metric), printed, within=CLOSE)
    return Row(
        label,
        printed,
        one.mean(metric),
        None,
        ok=ok,
        reason="" if ok else OPEN.format(popularity=popularity.mean(MAIN)),
        budget="not private",
        beside={"popularity": popularity.mean(metric)},
        se=one.se(metric),
    )


def _sound(
    label: str, one: Found, printed: float | None, metric: str, popularity: Found
) -> Row:
    spent = one.spent(View.RELEASE)
    return Row(
        label,
        printed,
        None,
        one.mean(metric),
        ok=printed is None,
        reason="" if printed is None else NOT_PROVABLE,
        budget="not proved" if spent is None else f"proved {spent:.2f}",
        beside={"popularity": popularity.mean(metric)},
        se=one.se(metric),
    )


def _claims(
    model: Model, found: Mapping[str, Found], popularity: Found, by: Chance
) -> Iterator[Claim]:
    if "DP-O" in found:
        text = f"RQ6: a clip that follows the norms helps {model.name}"
        yield _above(text, found["DP-O"], found["DP"], by)
    text = f"RQ6: budgets that users choose help {model.name}"
    yield _above(text, found["budgets"], found["DP"], by)
    text = f"RQ6: {model.name} at epsilon 1 is above popularity without noise"
    yield _above(text, found["DP"], popularity, by)


def _above(text: str, more: Found, less: Found, by: Chance) -> Claim:
    pair = more.evaluations, less.evaluations
    return is_above(text, *pair, metric=MAIN, chance=by, name="NDCG@100")
