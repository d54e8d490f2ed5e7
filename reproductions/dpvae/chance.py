"""How good one random list is that everybody gets.

What the paper's noise leaves is nearly the same list for all users. Such a list is good
or bad by chance, for everyone alike, so that an interval over users does not cover it:
of two of them one is always "better". A model counts as having learnt something if it
is above the best of N lists that were drawn. Of one more random list that is true once
in N + 1 times.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float32

from tacit.data.shards import Shards
from tacit.evaluation.evaluate import evaluate
from tacit.experiment.assemble import assemble, protocol, root_key
from tacit.experiment.settings import Experiment
from tacit.method import Scores
from tacit.reproduction.cells import Found, Results
from tacit.reproduction.tables import Claim

from .benches import MAIN, Bench, Data
from .rows import above

LISTS = 20


def best_by_chance(results: Results, bench: Bench, data: Data | None = None) -> float:
    """The highest NDCG@100 of twenty random lists on the test items of seed 0."""
    [one, *_] = bench.beside("random", data).experiments()
    found: list[float] = results.measured(
        f"random lists {bench.source} {data or bench.usual}",
        {"experiment": one.digest, "lists": LISTS},
        lambda: _random_lists(one),
    )
    return max(found)


def _random_lists(experiment: Experiment) -> list[float]:
    assembled = assemble(experiment)
    draw = root_key(experiment).at("random lists").generator()
    n_items = len(assembled.split.catalog)
    found = [
        evaluate(
            _for_all(draw.permutation(n_items).astype(np.float32)),
            assembled.split.test,
            metrics=(MAIN,),
            protocol=protocol(experiment),
        )
        for _ in range(LISTS)
    ]
    return [float(one.values[MAIN].mean()) for one in found]


def _for_all(
    scores: Float32[np.ndarray, "items"],
) -> Callable[[Shards], Scores]:
    """The same scores for every history."""
    return lambda history: np.tile(scores, (len(history), 1))


def is_learnt(claim: Claim, more: Found, best: float) -> Claim:
    """The claim, if the better of the two is above the best of the random lists."""
    mean = more.mean(MAIN)
    where = "above" if mean > best else "not above"
    evidence = (
        f"{claim.evidence}; {mean:.3f} is {where} the best of {LISTS} random lists, "
        f"{best:.3f}"
    )
    return Claim(claim.text, claim.ok and mean > best, evidence)


def above_chance(
    results: Results, text: str, bench: Bench, more: Found, less: Found
) -> Claim:
    """That one is above another under noise, and above what chance gives."""
    best = best_by_chance(results, bench)
    return is_learnt(above(text, bench, more, less), more, best)
