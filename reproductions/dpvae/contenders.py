"""The rivals of Tables 5 and 8 and of Figure 3, on the split of a bench.

    KNN      the nearest users by cosine, K chosen from 1 to 40 on validation items
    SVD      PureSVD of the 0/1 matrix, rank 100
    LightFM  with the WARP loss, where its extra is installed
    VAE      DP-VAE's network and steps without clip and noise
    DPMF     clients' SGD on the rows that they touch, at epsilon 1
    DPAE     sound DP-VAE's autoencoder with the paper's latent dimension, at epsilon 1

Two more that the paper does not have stand beside them: popularity, and the VAE's
network by Adam.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from tacit.baselines.user_knn import UserKnn
from tacit.experiment.assemble import assemble, root_key
from tacit.experiment.evaluate import evaluate_scores
from tacit.experiment.scorer import scorer
from tacit.experiment.search import search
from tacit.experiment.settings import Experiment
from tacit.reproduction.cells import Cell, Found, Results
from tacit.results import Evaluation

from .benches import MAIN, Bench, Data

RIVALS = ("KNN", "SVD", "LightFM", "VAE", "DPMF", "DPAE")
NO_LIGHTFM = "needs the extra 'lightfm', which is not installed"


def trained(bench: Bench, data: Data, *, priors: bool) -> dict[str, Cell]:
    """The cells of all rivals but the nearest neighbors, and of those beside them.

    `priors` says whether the VAE has them: in Table 8, not in Table 5.
    """
    made = {
        "SVD": bench.beside("pure_svd", data),
        "VAE": bench.vae(data, priors=priors),
        "DPMF": bench.dpmf(data),
        "DPAE": bench.sound(data, f"method.latent={bench.latent}"),
        "popularity": bench.beside("popularity", data),
        "by Adam": bench.beside("mult_vae", data),
    }
    if find_spec("lightfm"):
        made["LightFM"] = bench.beside("lightfm", data)
    return made


def found(
    results: Results, bench: Bench, data: Data, *, priors: bool
) -> dict[str, Found]:
    """What every contender yields that can be had here; the others are left out."""
    cells = trained(bench, data, priors=priors)
    rest = {name: results[cell] for name, cell in cells.items()}
    return {"KNN": nearest(results, bench, data), **rest}


def nearest(results: Results, bench: Bench, data: Data) -> Found:
    """The nearest neighbors of every seed; their number is chosen on validation items.

    A user who trained is the nearest to themselves and has nothing new to say, so that
    K neighbors are K + 1 here.
    """
    documents = [
        results.measured(
            f"nearest neighbors {bench.source} {data} seed {one.split_seed}",
            {"experiment": one.digest, "K": [*bench.neighbors]},
            partial(_nearest, one, bench.neighbors),
        )
        for one in bench.beside("user_knn", data).experiments()
    ]
    own = tuple(Evaluation.from_json(document["own"]) for document in documents)
    return Found(own, ())


def _nearest(experiment: Experiment, counts: tuple[int, ...]) -> Mapping[str, Any]:
    assembled = assemble(experiment)
    split, key = assembled.split, root_key(experiment).at("nearest neighbors")
    grid = {"neighbors": tuple(k + 1 for k in counts)}
    tried = search(
        UserKnn(), split, metric=MAIN, budget=len(counts), grid=grid, key=key
    )
    best = tried.best.ranker
    own = evaluate_scores(
        assembled, scorer(best.fit(split.train, key=key)), split.test
    ).to_json()
    return {"K": int(tried.best.settings["neighbors"]) - 1, "own": own}
