"""Readings of Table 1: under which of them PrivRec's printed Hits could arise.

The text leaves open, or contradicts itself in, who is a negative example, what a user
shall find, among which items, whether users or targets are averaged, and whether the
model adapts before the test. PrivRec as published is trained once for each reading of
the labels and seed, and judged under every reading of the rest.

    labels       above 3 stars against other ratings (Section 3.2); the same, with 4
                 items that the user never touched for each that is liked; every rating
                 against such items
    targets      the liked items of the test half; all of them
    candidates   all items that the user never touched (Section 3.3); 1,000; 99 of them
    average      over users (Section 3.3); over targets
    adaptation   as published; none

The reading that comes closest is the one whose Hits at 5, 10, 20 and 30 are, in the
mean, nearest to the printed ones by their logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.evaluation.candidate_sets import EachTargetAlone, SampledCandidates
from tacit.evaluation.metrics import hr_each
from tacit.evaluation.ranking import Ranks, Scorer, rank
from tacit.experiment.assemble import assemble, root_key
from tacit.experiment.evaluate import baseline_scorer, method_scorer
from tacit.experiment.settings import Experiment
from tacit.experiment.training import last_state
from tacit.keys import Key
from tacit.reproduction.cells import Cell, Results
from tacit.reproduction.study import Table
from tacit.reproduction.tables import Claim, ReproducedTable, Reproduction, Row, is_near
from tacit.runtime.run import RunDirectory

from .accuracy import CLOSE, DEPTHS, PRINTED
from .contenders import PUBLISHED, Bench
from .telling import not_adapting
from .unseen_items import joined

SEEDS = 3
WHO = f"PrivRec{PUBLISHED}"
POPULARITY = "popularity"
LABELS: Mapping[str, tuple[str, ...]] = {
    "above 3 stars against the others": (),
    "the same and 4 drawn": ("method.negatives=4",),
    "every rating against 4 drawn": ("method.negatives=4", "method.positive_from=0.5"),
}
TARGETS = ("liked", "every rating")
CANDIDATES = (None, 1000, 99)  # items never touched; None: all of them
AVERAGES = ("users", "targets")
ADAPTED, AS_IS = "adapted", "not adapted"

_QUICK = ("run.rounds=40", "method.local_epochs=20", "method.adapt_epochs=20")
_SMOKE = (None, 20)  # of the invented world, which has few items

Hits = dict[str, dict[str, float]]  # by reading and depth


@dataclass(frozen=True)
class Among:
    """Each target alone among some of the items that the user never touched."""

    n: int | None
    key: Key

    @property
    def name(self) -> str:
        """The name beside every number made with this protocol."""
        every = EachTargetAlone().name
        return every if self.n is None else f"{every}, among {self.n} others"

    def excluded(self, heldout: Heldout) -> Ragged:
        """The items that are no candidates."""
        if self.n is None:
            return EachTargetAlone().excluded(heldout)
        touched = Heldout(heldout.users, _but_targets(heldout), heldout.targets)
        return SampledCandidates(self.n, self.key).excluded(touched)


def readings(bench: Bench) -> Table:
    """Every reading on one data set, beside popularity under the same one.

    At scale quick it has all users and fewer passes: what a tenth of the users learns
    says nothing of the printed figures.
    """
    is_smoke = bench.scale == "smoke"
    whole = bench if is_smoke else Bench(bench.name, "full")
    fewer = _QUICK if bench.scale == "quick" else ()
    cells = {
        name: whole.cell(WHO, *fewer, *changes, seeds=1 if is_smoke else SEEDS)
        for name, changes in LABELS.items()
    }

    def make(results: Results) -> Reproduction:
        found: dict[str, list[Hits]] = {
            name: _judged(results, name, cell) for name, cell in cells.items()
        }
        return shown(whole, found)

    return Table(make, tuple(cells.values()))


def _judged(results: Results, name: str, cell: Cell) -> list[Hits]:
    runs = results[cell].runs
    return [
        results.measured(
            f"readings {cell.folder} seed {one.split_seed}",
            {"experiment": one.digest, "labels": name, "depths": DEPTHS},
            partial(judge, one, run.directory),
        )
        for one, run in zip(cell.experiments(), runs, strict=True)
    ]


def judge(experiment: Experiment, directory: RunDirectory) -> Hits:
    """Hits of one trained model, and of popularity, under every other reading."""
    assembled = assemble(experiment)
    state, key = last_state(assembled, directory), root_key(experiment)
    scorers: dict[str, Scorer] = {
        ADAPTED: method_scorer(assembled, state),
        AS_IS: not_adapting(assembled, state),
        POPULARITY: baseline_scorer(assembled, POPULARITY, budget=0)[0],
    }
    heldout = assembled.split.test
    assert isinstance(heldout, Heldout)
    found: Hits = {}
    is_small = heldout.history.n_items < 1000
    sizes = _SMOKE if is_small else CANDIDATES
    for (who, score), targets, n in product(scorers.items(), TARGETS, sizes):
        own = heldout if targets == "liked" else _with_all_targets(heldout)
        ranks = rank(score, own, candidates=Among(n, key.at("readings")))
        for average in AVERAGES:
            label = reading(who, targets, n, average)
            found[label] = {str(k): _mean(ranks, k, average) for k in DEPTHS}
    return found


def reading(who: str, targets: str, n: int | None, average: str) -> str:
    """One reading of everything but the labels, in words."""
    among = "all others" if n is None else f"{n:,} others"
    return f"{who}; targets: {targets}; among {among}; mean over {average}"


def shown(bench: Bench, found: Mapping[str, list[Hits]]) -> Reproduction:
    """A row for each reading, and a claim that names the closest."""
    rows = tuple(_rows(found))
    mine = [row for row in rows if POPULARITY not in row.label]
    closest = min(mine, key=lambda row: _distance(row.beside))
    name = f"PrivRec, Table 1 by reading ({bench.label}), Hits@20"
    nearest = ", ".join(f"{value:.3f}" for value in closest.beside.values())
    printed = ", ".join(f"{_printed(k):.3f}" for k in DEPTHS)
    claim = Claim(
        "a reading of the text gives the printed Hits of PrivRec",
        all(
            is_near(closest.beside[f"@{k}"], _printed(k), within=CLOSE) for k in DEPTHS
        ),
        f"closest: {closest.label}: {nearest} at {DEPTHS}, printed {printed}",
    )
    return Reproduction((ReproducedTable(name, rows),), (claim,))


def _rows(found: Mapping[str, list[Hits]]) -> Iterator[Row]:
    for labels, seeds in found.items():
        for label in seeds[0]:
            if POPULARITY in label and labels != next(iter(found)):
                continue  # it has no labels
            each = {k: [one[label][str(k)] for one in seeds] for k in DEPTHS}
            mean = float(np.mean(each[20]))
            is_close = is_near(mean, _printed(20), within=CLOSE)
            yield Row(
                label if POPULARITY in label else f"{labels}; {label}",
                _printed(20),
                paper=mean,
                sound=None,
                ok=is_close,
                reason="" if is_close else "another reading of the text",
                beside={f"@{k}": float(np.mean(each[k])) for k in DEPTHS},
                se=_error(each[20]),
            )


def _distance(hits: Mapping[str, float]) -> float:
    """The mean distance from the printed Hits, by their logarithm."""
    gaps = [math.log(max(hits[f"@{k}"], 1e-4) / _printed(k)) for k in DEPTHS]
    return sum(map(abs, gaps)) / len(gaps)


def _printed(k: int) -> float:
    value = PRINTED["table-1"].value("Hits", "PrivRec", str(k))
    assert value is not None
    return value


def _error(values: list[float]) -> float | None:
    n = len(values)
    return float(np.std(values, ddof=1) / math.sqrt(n)) if n > 1 else None


def _mean(ranks: Ranks, k: int, average: str) -> float:
    weights = ranks.n_targets if average == "targets" else None
    return float(np.average(hr_each(ranks, k), weights=weights))


def _with_all_targets(heldout: Heldout) -> Heldout:
    """The whole test half is to be found, liked or not."""
    if heldout.disliked is None:
        return heldout
    alone = Heldout(heldout.users, heldout.targets, heldout.disliked)
    return Heldout(heldout.users, heldout.history, Shards.of(joined(alone)))


def _but_targets(heldout: Heldout) -> Shards:
    """All that a user touched, except what shall be found."""
    if heldout.disliked is None:
        return heldout.history
    return Shards.of(joined(replace(heldout, targets=heldout.disliked, disliked=None)))
