"""Gains of Gram that a plan foretells, next to those measured; each set left out once.

    python -m benchmarks.gram_forecast
    TACIT_DATA=… python -m benchmarks.gram_forecast --measure lastfm --seeds 3 --draws 3

A gain is NDCG@100 of Gram over that of private popularity of the same budget, on users
who never trained. `gram_forecast.json` beside this file has those measured: figures of
whole sets, and nothing of anybody. A range is foretold from users, items, epsilon,
delta and the rounded length of a usual history alone, and every constant of the fit of
a set follows from the other sets and worlds: how their counts fall, how strong their
strongest taste is, and their gains on validation users. What is right is judged by test
users.

Score: that of an interval for log gains (Gneiting and Raftery 2007, equation 43), its
width plus 2 / alpha for each unit that the gain lies outside; lower is better. The
constant range is [1, 1.6].
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from unittest.mock import patch

import numpy as np

from benchmarks.gram_floor import METRIC, SETS, _assembled
from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.experiment.assemble import Assembled
from tacit.experiment.evaluate import evaluate_method
from tacit.keys import Key
from tacit.method import CentralGaussian
from tacit.methods import gram_heuristics as heuristics
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.methods.gram_forecast import (
    FIT,
    WIDEST,
    Fit,
    Gain,
    foretell,
    round_history,
    usual_history,
)
from tacit.methods.gram_heuristics import shows_tastes
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation

KEPT = Path(__file__).with_suffix(".json")
REAL = (
    *("ml-1m", "ml-100k", "lastfm", "citeulike-a"),
    *("steam", "filmtrust", "frappe", "mind"),
)
PARTS = ("validation", "test")
ALPHA = 0.2  # four ranges of five are to be right
CONSTANT = (0.0, math.log(WIDEST))
_DELTA = 1e-6
_BEST = 100  # items by which the fall of counts is judged
_SLOPES = [0.2, 0.25, 0.3, 0.35, 0.4, 0.45]
_MOST = [0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8]


@dataclass(frozen=True)
class Cell:
    """What was measured on a set at one epsilon, and what was known beforehand."""

    name: str
    epsilon: float
    users: int
    items: int
    history: float  # the usual length, not rounded
    fall: float  # of counts with the rank; known after training only, as is the next
    strongest: (
        float | None
    )  # direction, over the edge of the noise; None: none was asked
    ended: str  # the last phase of the runs
    validation: float  # gains
    test: float

    def foretold(self, fit: Fit) -> Gain:
        """The range for this cell by these constants."""
        history = round_history(self.history)
        known = _known(self.users, self.items, self.epsilon, history, fit.falls)
        return foretell(*known, history=history, fit=fit)

    @property
    def taste(self) -> float:
        """The strength of the strongest direction, per user and item of a history."""
        edge = _calibrated(self.users, self.epsilon).usual_edge(
            _plan(self.users, self.epsilon)
        )
        return (self.strongest or 0.0) * edge / round_history(self.history)


@cache
def _known(
    users: int, items: int, epsilon: float, history: int, falls: tuple[float, ...]
) -> tuple[float, tuple[bool, ...]]:
    """The edge of the noise, and where the rule relates, before training."""
    plan = _plan(users, epsilon)
    method = replace(_calibrated(users, epsilon), usual_history=history)
    catalog = Catalog.of_ids([str(item) for item in range(items)])
    return method.usual_edge(plan), method.relates_usually(plan, catalog, falls)


@cache
def _calibrated(users: int, epsilon: float) -> Gram:
    return Gram(privacy=CentralGaussian()).calibrated(_plan(users, epsilon))


def _plan(users: int, epsilon: float, rounds: int = 3) -> Plan:
    return Plan(
        users,
        rounds=rounds,
        channel="secure_sum",
        delta=_DELTA,
        target_epsilon=epsilon,
    )


def score(gain: float, low: float, high: float, *, alpha: float = ALPHA) -> float:
    """The interval score of a log gain.

    >>> score(0.2, 0.1, 0.3, alpha=0.5), score(0.4, 0.1, 0.3, alpha=0.5)
    (0.19999999999999998, 0.6000000000000001)
    """
    outside = max(0.0, low - gain, gain - high)
    return high - low + 2 / alpha * outside


def mean_score(
    gains: Iterable[float],
    ranges: Iterable[tuple[float, float]],
    *,
    alpha: float = ALPHA,
) -> float:
    """The mean over cells; gains are ratios, ranges are in logarithms."""
    pairs = zip(gains, ranges, strict=True)
    return fmean(score(math.log(one), *ends, alpha=alpha) for one, ends in pairs)


def logarithms(gain: Gain) -> tuple[float, float]:
    """The ends of a range as logarithms."""
    return math.log(gain.low), math.log(gain.high)


def fitted(cells: Sequence[Cell]) -> Fit:
    """The constants that follow from these cells, by their validation users."""
    falls = [math.log(fall) for fall in {one.name: one.fall for one in cells}.values()]
    by_noise = sorted(cells, key=lambda one: one.epsilon)  # the least noise is the last
    asked = {one.name: one for one in by_noise if one.strongest}
    tastes = [math.log(one.taste) for one in asked.values()]
    z = NormalDist().inv_cdf(1 - ALPHA / 2)
    usual = Fit(
        *(0.0, 0.0, math.exp(fmean(falls)), math.exp(z * stdev(falls))),
        taste=math.exp(fmean(tastes) - z * stdev(tastes)),
    )
    gains = [cell.validation for cell in cells]

    def badness(fit: Fit) -> float:
        return mean_score(gains, [logarithms(c.foretold(fit)) for c in cells])

    tried = [replace(usual, slope=s, most=m) for s, m in product(_SLOPES, _MOST)]
    return min(tried, key=badness)


def left_out(cells: Sequence[Cell]) -> list[tuple[Cell, Gain]]:
    """Each cell with the range that follows from all other sets."""
    names = dict.fromkeys(cell.name for cell in cells)
    fits = {name: fitted([c for c in cells if c.name != name]) for name in names}
    return [(cell, cell.foretold(fits[cell.name])) for cell in cells]


def kept() -> list[Cell]:
    """All cells that were measured."""
    return [Cell(**fields) for fields in json.loads(KEPT.read_text("utf-8"))]


# --- Measuring ------------------------------------------------------------------------


def measured(
    name: str, epsilons: Sequence[float], seeds: int, draws: int
) -> list[Cell]:
    """The gains on a set that is at hand, or on an invented world."""
    places = [_assembled(name, seed) for seed in range(seeds)]
    train = places[0].split.train
    cells = []
    for epsilon in epsilons:
        runs = [
            (place, epsilon, Key.from_seed(100 * seed + draw))
            for (seed, place), draw in product(enumerate(places), range(draws))
        ]
        strongest = list[float]()

        def noted(one: float, asked: list[float] = strongest) -> bool:
            asked.append(one)
            return shows_tastes(one)

        with patch.object(heuristics, "shows_tastes", noted):
            ended, gram = zip(*(_played(*run, Gram) for run in runs), strict=True)
        beside = [_played(*run, FederatedPopularity)[1] for run in runs]
        gains = np.mean(gram, axis=0) / np.mean(beside, axis=0)
        usual = usual_history(train.lengths.tolist())
        cells.append(
            Cell(
                *(name, epsilon, len(train), train.n_items),
                *(round(usual, 1), round(_fall(train), 2)),
                round(fmean(strongest), 2) if strongest else None,
                ", ".join(sorted(set(ended))),
                *(round(float(gain), 3) for gain in gains),
            )
        )
    return cells


def _played(
    place: Assembled,
    epsilon: float,
    key: Key,
    kind: type[Gram] | type[FederatedPopularity],
) -> tuple[str, tuple[float, ...]]:
    """The last phase of one run, and its metric on validation and test users."""
    split = place.split
    plan = _plan(len(split.train), epsilon, rounds=3 if kind is Gram else 1)
    method = kind(privacy=CentralGaussian()).calibrated(plan)
    people = split.profiles.take(split.users)
    simulation = Simulation(method, plan, split.catalog, people, split.train, key)
    state, last = simulation.start(), ""
    while not method.is_over(state.server):
        phase = method.next_phase(state.server)
        last = phase.name if phase else last
        state, _ = simulation.step(state)
    judged = replace(place, simulation=simulation)
    parts = (evaluate_method(judged, state, getattr(split, part)) for part in PARTS)
    return last, tuple(float(one.values[METRIC].mean()) for one in parts)


def _fall(train: Shards) -> float:
    """The power of the rank by which the first hundred have their share of counts."""
    counts = np.zeros(train.n_items)
    own = 1 / np.sqrt(np.maximum(train.lengths, 1))
    np.add.at(counts, train.items, own[train.owners])
    return fall_of(train.n_items, np.sort(counts)[::-1][:_BEST].sum() / counts.sum())


def fall_of(n_items: int, share: float) -> float:
    """The power of the rank under which the best hundred have this share.

    >>> round(fall_of(1000, 0.1), 3)  # as many as of all items
    0.0
    """
    rank, low, high = np.arange(1, n_items + 1), 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        shares = rank**-middle
        enough = shares[:_BEST].sum() / shares.sum() >= share
        low, high = (low, middle) if enough else (middle, high)
    return (low + high) / 2


# --- Showing --------------------------------------------------------------------------


def table(pairs: Sequence[tuple[Cell, Gain]]) -> list[str]:
    """One line per cell: what was foretold and what was measured."""
    lines = [
        "| set (users × items, usual history) | epsilon | foretold | validation | "
        "test | right | ended with |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell, gain in pairs:
        known = f"{cell.users:,} × {cell.items:,}, {round_history(cell.history)}"
        right = "yes" if gain.low <= cell.test <= gain.high else "**no**"
        lines.append(
            f"| {cell.name} ({known}) | {cell.epsilon:g} | {gain.low:.2f} to "
            f"{gain.high:.2f} | {cell.validation:.3f} | {cell.test:.3f} | {right} | "
            f"{cell.ended} |"
        )
    return lines


def summary(pairs: Sequence[tuple[Cell, Gain]], part: str) -> str:
    """How many ranges are right, and the score next to that of the constant range."""
    gains = [getattr(cell, part) for cell, _ in pairs]
    ranges = [logarithms(gain) for _, gain in pairs]
    right = sum(
        g.low <= one <= g.high for one, (_, g) in zip(gains, pairs, strict=True)
    )
    scores = []
    for alpha in (ALPHA, 1 / 8):
        own = mean_score(gains, ranges, alpha=alpha)
        constant = mean_score(gains, [CONSTANT] * len(gains), alpha=alpha)
        scores.append(
            f"alpha {alpha:g}: {own:.3f}, constant range {constant:.3f} "
            f"({1 - own / constant:+.0%})"
        )
    return f"{part}: right on {right} of {len(gains)}; score at " + "; ".join(scores)


def main() -> None:
    """Print the table, each set left out; or measure some sets, as lines to keep."""
    asked = _options()
    if asked.measure:
        made = [
            cell
            for name in asked.measure
            for cell in measured(name, asked.epsilons, asked.seeds, asked.draws)
        ]
        print(",\n".join(json.dumps(vars(cell)) for cell in made))
        return
    cells = [cell for cell in kept() if cell.epsilon in asked.epsilons]
    pairs = left_out(cells)
    for title, is_real in (("Sets of data", True), ("Invented worlds", False)):
        some = [pair for pair in pairs if (pair[0].name in REAL) == is_real]
        if some:
            print(f"{title}, each left out of its own fit", *table(some), sep="\n")
            print(*(summary(some, part) for part in PARTS), sep="\n")
    print(f"fitted to all: {fitted(cells)}; in use: {FIT}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gram_forecast")
    parser.add_argument("--measure", nargs="+", choices=[*SETS], default=[])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
