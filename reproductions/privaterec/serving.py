"""PrivateRec's serving: Figures 4 and 5, on models that the study trains.

A client of each test history makes one query, and a server ranks what was shown from it
(Algorithm 1). Several draws of noise and padding are averaged, per seed of training.

    printed    the noise that the paper prints for a claimed epsilon, SoftPlus; what is
               proven of it for a user and for one interaction stands beside it
    sound      noise for which the same figure is proven, for one interaction where the
               history is padded, else for a user; by SoftPlus and by regression
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tacit.data.impressions import Impressions, Slates
from tacit.data.shards import Shards
from tacit.evaluation.impressions import SlateScorer, evaluate_impressions
from tacit.evaluation.slate_scores import history_shards
from tacit.experiment.assemble import assemble
from tacit.experiment.saved_run import SavedRun, load
from tacit.keys import Key
from tacit.mechanisms.padding import Padding
from tacit.release import Unit, View
from tacit.reproduction.cells import Cell, Found, Results
from tacit.results import Evaluation
from tacit.serving.noisy_attention import Reading
from tacit.serving.population import USERS, invented_histories
from tacit.serving.query import Mode
from tacit.serving.query_mechanism import QueryMechanism
from tacit.serving.queryable import space_of, vectors_of
from tacit.serving.recommender import Recommender
from tacit.serving.serving_account import outlook
from tacit.serving.settings import ServingSettings
from tacit.serving.trained_basis import encodings_of, trained_basis

DRAWS = 5  # of noise and padding, averaged
AUC = "auc"
_PUBLIC = Key.from_seed(24)


@dataclass(frozen=True)
class Way:
    """How the users of a cell's models are served; without settings on the device."""

    cell: Cell
    settings: ServingSettings | None = None
    as_one: bool = False  # everybody gets the list of the mean user vector


@dataclass(frozen=True, eq=False)
class Served:
    """What a way of serving is worth, and what is proven of one query."""

    found: Found
    budget: str


def dpa(epsilon: float, *, padding: float, reading: str = "printed") -> ServingSettings:
    """Attention over the basis; `epsilon` is of one interaction, claimed or proven."""
    if reading == "printed":
        return ServingSettings(Mode.DPA, epsilon, padding=padding, noise="paper")
    whole = Padding(padding).inner_epsilon(epsilon) if padding else epsilon
    how: Reading = "regression" if reading == "regression" else "softplus"
    return ServingSettings(Mode.DPA, whole, padding=padding, reading=how)


def vdp(epsilon: float, *, is_printed: bool) -> ServingSettings:
    """The whole user vector, the paper's baseline."""
    return ServingSettings(Mode.VDP, epsilon, noise="paper" if is_printed else "sound")


def serve(results: Results, way: Way) -> Served:
    """The evaluations of the served test impressions, one per seed of training."""
    runs = results[way.cell].runs
    models = [_model(run.directory.path) for run in runs]
    inputs = {
        "models": [model.digest for model in models],
        "settings": repr(way.settings),
        "as one": way.as_one,
        "draws": DRAWS,
    }

    def make() -> dict[str, object]:
        pairs = zip(runs, models, strict=True)
        each = [_evaluated(run, model, way).to_json() for run, model in pairs]
        return {"evaluations": each, "budget": _budget(models[0], way.settings)}

    made = results.measured(f"served {way.cell.folder}", inputs, make)
    each = tuple(map(Evaluation.from_json, made["evaluations"]))
    return Served(Found(each, ()), made["budget"])


def _budget(recommender: Recommender, settings: ServingSettings | None) -> str:
    """What one query costs a user, and what one interaction; beside it the claim."""
    if settings is None:
        return "nothing is sent"
    mechanism = _mechanism(recommender, settings)
    seen = [s for s in outlook(mechanism, horizons=(1,)) if s.view is View.SERVER]
    user, item = (
        next("none" if s.epsilon is None else f"{s.epsilon:.4g}" for s in own)
        for own in ([s for s in seen if s.unit is unit] for unit in Unit)
    )
    proven = f"proven {user} for a user and {item} for one interaction"
    if mechanism.claimed is None:
        return proven
    return f"claimed {mechanism.claimed:g} for one interaction, {proven}"


def _evaluated(run: SavedRun, recommender: Recommender, way: Way) -> Evaluation:
    test, settings = assemble(run.experiment).split.test, way.settings
    assert isinstance(test, Impressions)
    mechanism = None if settings is None else _mechanism(recommender, settings)
    draws = 1 if mechanism is None else DRAWS
    each = [
        evaluate_impressions(
            _scorer(recommender, mechanism, Key.from_seed(2000 + n), as_one=way.as_one),
            test,
            metrics=[AUC],
        )
        for n in range(draws)
    ]
    mean = np.mean([one.values[AUC] for one in each], axis=0)
    return replace(each[0], values={AUC: mean})


_model = cache(load)  # what is made of a model is kept with it


@cache
def _invented(recommender: Recommender, count: int) -> Shards:
    return invented_histories(recommender, _PUBLIC.at("users"), users=count)


def _mechanism(recommender: Recommender, settings: ServingSettings) -> QueryMechanism:
    """What `served_model` makes."""
    settings = settings.of_method(recommender.method)
    basis = trained_basis(recommender) if settings.has_trained_basis else None
    # The printed noise asks nothing of users but how wide their vectors are.
    count = 1 if settings.is_printed else USERS
    histories = _invented(recommender, count)
    encode = vectors_of if basis is None else encodings_of
    users, key = encode(recommender, histories), _PUBLIC.at("interests")
    return settings.mechanism(space_of(recommender), users, key, basis=basis)


def _scorer(
    recommender: Recommender,
    mechanism: QueryMechanism | None,
    key: Key,
    *,
    as_one: bool,
) -> SlateScorer:
    space = space_of(recommender)

    def score(slates: Slates) -> np.ndarray:
        rows = np.arange(len(slates.histories))
        histories = history_shards(slates, rows)
        if mechanism is not None and mechanism.has_trained_basis:
            pads = mechanism.padding
            users = encodings_of(recommender, histories, padding=pads, key=key.at("p"))
        else:
            users = vectors_of(recommender, histories)
        if mechanism is not None:
            said = mechanism.release(users, key.at("query").each(rows))
            users = mechanism.decode(said)
        if as_one:
            users = np.broadcast_to(users.mean(axis=0), users.shape)
        shown, owners = slates.shown.values, slates.shown.owners
        own = users[slates.history_of[owners]]
        inner = np.einsum("ij,ij->i", own, space.vectors[shown])
        return np.asarray(inner + space.offsets[shown])

    return score
