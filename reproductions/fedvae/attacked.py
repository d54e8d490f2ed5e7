"""Train FedVAE among attackers, and count whom the promoted item is shown to.

A trial is an experiment, an attack and a share of attackers. It is kept as JSON by
these three, so a study that was stopped goes on from the trials that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from tacit.attacks.poisoning import (
    Attack,
    EveryGroup,
    Gaussian,
    Infiltrated,
    Promote,
    Scaled,
    exposure,
)
from tacit.data.splits import Heldout, Split
from tacit.evaluation.ranking import Scorer
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import baseline_scorer, evaluate_scores, method_scorer
from tacit.experiment.settings import Experiment
from tacit.reproduction.cells import Cell, Results
from tacit.results import Json, Metric
from tacit.transport.channels import channel

NDCG = "ndcg@100"
OUTPUT = "decoder/0"  # the layer whose gradient promotes an item

FLIPPED, LOUD, STEALTHY = "flipped x10", "promoting x10", "promoting x1"
ALONE, SPREAD = "flipped x1000", "promoting x1, in every group"

ATTACKS: Mapping[str, Callable[[int], Attack]] = {  # from the item to be promoted
    "scaled x10": lambda _: Scaled(10.0),
    "scaled x100": lambda _: Scaled(100.0),
    "flipped x1": lambda _: Scaled(-1.0),
    FLIPPED: lambda _: Scaled(-10.0),
    "Gaussian x10": lambda _: Gaussian(10.0),
    LOUD: lambda item: Promote(item, OUTPUT, 10.0),
    STEALTHY: lambda item: Promote(item, OUTPUT),
    SPREAD: lambda item: EveryGroup(Promote(item, OUTPUT)),
    ALONE: lambda _: Scaled(-1000.0),
}
PLAIN_ATTACKS = tuple(name for name in ATTACKS if name not in (ALONE, SPREAD))


@dataclass(frozen=True)
class Outcome:
    """What test users get after training."""

    ndcg: Metric
    in_10: Metric  # are shown the promoted item though it is nothing to them
    in_20: Metric

    @classmethod
    def pooled(cls, seeds: Sequence[Outcome]) -> Outcome:
        """Means over seeds; errors are over them, or over users if there is one."""
        return cls(
            _over([one.ndcg for one in seeds]),
            _over([one.in_10 for one in seeds]),
            _over([one.in_20 for one in seeds]),
        )


def outcome(
    results: Results,
    cell: Cell,
    attack: str | None = None,
    share: float = 0.0,
    *,
    defense: str,
) -> Outcome:
    """The cell among attackers, if any, over its seeds; `defense` names it."""
    name = f"{defense}, {attack or 'nobody attacks'}, {share:.1%}"
    forged = repr(ATTACKS[attack](0)) if attack else None  # 0 stands for any item

    def trial(experiment: Experiment) -> Outcome:
        settings = experiment.resolved()
        inputs = {"experiment": settings, "attack": forged, "share": share}
        return _read(
            results.measured(
                f"{name}, seed {experiment.split_seed}",
                inputs,
                lambda: _attacked(assemble(experiment), attack, share),
            )
        )

    return Outcome.pooled([trial(experiment) for experiment in cell.experiments()])


def popularity(results: Results, cell: Cell) -> Outcome:
    """What counting gives the same users, over the same seeds."""

    def fitted(experiment: Experiment) -> Outcome:
        inputs = {"data": experiment.resolved()["data"]}

        def make() -> Json:
            assembled = assemble(experiment)
            return _judged(
                assembled, baseline_scorer(assembled, "popularity", budget=0)[0]
            )

        name = f"popularity, seed {experiment.split_seed}"
        return _read(results.measured(name, inputs, make))

    return Outcome.pooled([fitted(experiment) for experiment in cell.experiments()])


def promoted(split: Split) -> int:
    """An item that nine in ten are more popular than."""
    counts = np.bincount(split.train.items, minlength=len(split.catalog))
    return int(np.argsort(counts, kind="stable")[len(counts) // 10])


def _attacked(assembled: Assembled, attack: str | None, share: float) -> Json:
    simulation = assembled.simulation
    if attack is not None:
        forge = ATTACKS[attack](promoted(assembled.split))
        honest = channel(simulation.plan.channel)
        simulation = replace(simulation, channel=Infiltrated(honest, forge, share))
    *_, (state, _) = simulation.run(simulation.start())
    return _judged(assembled, method_scorer(assembled, state))


def _judged(assembled: Assembled, scorer: Scorer) -> Json:
    users, item = assembled.split.test, promoted(assembled.split)
    assert isinstance(users, Heldout)
    found = evaluate_scores(assembled, scorer, users).metrics()[NDCG]
    shown = (exposure(scorer, users, item, k=k) for k in (10, 20))
    return asdict(Outcome(found, *shown))


def _read(document: Json) -> Outcome:
    return Outcome(**{name: Metric(**one) for name, one in document.items()})


def _over(seeds: Sequence[Metric]) -> Metric:
    if len(seeds) == 1:
        return seeds[0]
    return Metric.of(np.array([metric.mean for metric in seeds]))
