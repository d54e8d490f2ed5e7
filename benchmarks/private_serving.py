"""What lists are worth at equal budgets, by how they are served: tables and plots.

    TACIT_DATA=… python -m benchmarks.private_serving --out serving
    python -m benchmarks.private_serving --sets smoke --epsilons 2 --out serving

For each epsilon of one release, each mode has the sizes that were best on validation
users, and is measured once on test users: krr with up to 20 interests in expectation
over its responses, all else over several draws of the noise. Then the same total
budgets over 30 and 365 days: a fresh query every day, or one that is used for all of
them while interests drift (`served_sets`). `--part validation` chooses only.

Interests and decoders come from invented users. Only `krr, released` knows more: the
means and shares of those who trained, a release of its own with an epsilon of 1, of
which there are several draws, too.

The list that is the same for all is that of the mean vector of those who trained, and
once more that of those who are served, whom no server knows. Both need a release. The
difference to either has its standard error over users. `--modes` measures some modes
only, without the days.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.kept_values import KeptValues
from benchmarks.plots import lines
from benchmarks.served_sets import (
    SETS,
    Part,
    ServedSet,
    Values,
    Vectors,
    served_set,
)
from tacit.accounting.calibration import gaussian_epsilon
from tacit.accounting.dp_events import SelfComposedDpEvent
from tacit.accounting.epsilon import epsilon as epsilon_of
from tacit.accounting.events import pure_local
from tacit.keys import Key
from tacit.mechanisms.gaussian import least_multiplier
from tacit.release import Unit
from tacit.serving.interests import Interests, find_interests, score_axes
from tacit.serving.noisy_attention import NoisyAttention
from tacit.serving.noisy_vector import NoisyVector
from tacit.serving.query_mechanism import InterestResponse, QueryMechanism
from tacit.serving.released_interests import InterestSums

EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
DELTA = 1e-6
PRIOR = 1.0  # epsilon of the released prior, once, for those who trained
SIZES = (3, 5, 10, 20, 50, 100, 300)
FEW = 20  # interests; responses of so many are not drawn but averaged
NOISES = (0.0, DELTA)  # Laplace, Gaussian
GRIDS: dict[str, tuple[tuple[int, float], ...]] = {
    "krr": tuple((size, 0.0) for size in SIZES),
    "krr, released": tuple((size, 0.0) for size in (3, 5, 10, 20)),
    "dpa": tuple((size, delta) for size in (5, 10, 20) for delta in NOISES),
    "dpa, softplus": tuple((size, 0.0) for size in (3, 5, 10)),
    "vdp": tuple((0, delta) for delta in NOISES),
    "vdp, projected": tuple((size, delta) for size in (1, 2, 4) for delta in NOISES),
}
SERVED = "not personalised, served"  # not in plots, where it hides another line
HORIZONS = {30: (0.0, 10.0, 20.0, 30.0), 365: (0.0, 45.0, 90.0, 180.0, 365.0)}


@dataclass(frozen=True)
class Cell:
    """One mode at one epsilon, on test users."""

    set: str
    mode: str
    epsilon: float
    size: int  # interests or axes
    delta: float
    mean: float
    above: float  # the list that is the same for all, from those who trained
    error: float  # of that difference, over users
    above_served: float  # the same, from those who are served
    error_served: float
    month: float | None  # epsilon of 30 daily releases at 1e-6
    year: float | None

    def shown(self) -> str:
        """One line of a table."""
        noise = (
            ""
            if self.mode.startswith("krr")
            else (" Gaussian" if self.delta else " Laplace")
        )
        size = f"{self.size}{noise}" if self.size else noise.strip()
        return (
            f"| {self.mode} | {self.epsilon:g} | {size} | {self.mean:.4f} | "
            f"{self.above:+.4f} ± {self.error:.4f} | "
            f"{self.above_served:+.4f} ± {self.error_served:.4f} | "
            f"{_shown(self.month)} | {_shown(self.year)} |"
        )


class Study:
    """One set: mechanisms by mode, epsilon and size, and what they are worth."""

    def __init__(self, served: ServedSet, kept: KeptValues, draws: int) -> None:
        self.set, self.kept, self.draws = served, kept, draws
        self._interests: dict[int, Interests] = {}
        self._axes = score_axes(served.space)

    def interests(self, size: int) -> Interests:
        """So many interests of the invented users."""
        if size not in self._interests:
            key = Key.from_seed(24).at("interests")
            users = self.set.invented
            found = find_interests(self.set.space, users, count=size, key=key)
            self._interests[size] = found
        return self._interests[size]

    def released(self, size: int, draw: int) -> Interests:
        """The same interests with means and shares of those who trained, released."""
        sums = InterestSums.calibrated(
            self.interests(size), self.set.invented, epsilon=PRIOR, delta=DELTA
        )
        return sums.learn(sums.noisy_sum(self.set.trained, Key.from_seed(3 + draw)))

    def mechanism(
        self, mode: str, epsilon: float, size: int, delta: float, *, draw: int = 0
    ) -> QueryMechanism:
        """The mechanism of a mode; a released prior is another one with each draw."""
        users = self.set.invented
        if mode == "krr":
            return InterestResponse(epsilon, self.interests(size))
        if mode == "krr, released":
            return InterestResponse(epsilon, self.released(size, draw))
        if mode.startswith("dpa"):
            return NoisyAttention.fitted(
                epsilon,
                self.interests(size),
                users,
                delta=delta,
                reading="softplus" if "softplus" in mode else "regression",
            )
        if mode == "vdp":
            return NoisyVector.whole(epsilon, users, delta=delta)
        return NoisyVector.projected(
            epsilon, users, axes=size, metric=self._axes, delta=delta
        )

    def served(
        self, part: Part, mechanism: QueryMechanism, *, age: float, draw: int
    ) -> Values:
        """What lists are worth in one draw of the noise, from queries this old."""
        key = Key.from_seed(1000 + draw)
        users = part.users_at(age, key.at("drift"))
        if isinstance(mechanism, InterestResponse) and mechanism.choices <= FEW:
            return _expected(part, mechanism, users)
        keys = key.at("noise").each(np.arange(len(users)))
        return part.values(mechanism.decode(mechanism.release(users, keys)))

    def values(
        self,
        part: str,
        mode: str,
        epsilon: float,
        size: int,
        delta: float,
        *,
        age: float = 0.0,
        draws: int = 2,
    ) -> Values:
        """The mean over draws, looked up if it was measured before."""

        def compute() -> dict[str, Values]:
            own = self.set.parts[part]
            is_exact = mode == "krr" and size <= FEW and not age
            found = [
                self.served(
                    own,
                    self.mechanism(mode, epsilon, size, delta, draw=draw),
                    age=age,
                    draw=draw,
                )
                for draw in range(1 if is_exact else draws)
            ]
            return {part: np.mean(found, axis=0)}

        run = {
            "set": self.set.name,
            "mode": mode,
            "epsilon": epsilon,
            "size": size,
            "delta": delta,
            "age": age,
            "draws": draws,
            "part": part,
        }
        return self.kept.of(run, compute)[part]

    def chosen(self, mode: str, epsilon: float) -> tuple[int, float]:
        """The size and the noise that are best on validation users."""

        def worth(one: tuple[int, float]) -> float:
            draws = self.draws if mode.startswith("krr") else 1
            own = self.values("validation", mode, epsilon, *one, draws=draws)
            return float(own.mean())

        fits = [one for one in GRIDS[mode] if one[0] <= len(self.set.invented)]
        if mode == "vdp, projected":
            fits = [one for one in fits if one[0] <= self._axes.shape[1]]
        return max(fits, key=worth)

    def levels(self, part: str) -> dict[str, Values]:
        """What needs no query: the client ranks, or everybody gets one list."""
        own = self.set.parts[part]
        same = np.ones((len(own.users), 1))
        return {
            "on_device": own.values(own.users),
            "not personalised": own.values(same * self.set.trained.mean(0)),
            SERVED: own.values(same * own.users.mean(0)),
            "not personalised, public": own.values(same * self.set.invented.mean(0)),
        }

    def cells(
        self, part: str, epsilons: list[float], modes: list[str]
    ) -> Iterator[Cell]:
        """One cell per mode and epsilon."""
        levels = self.levels(part)
        for epsilon in epsilons:
            for mode in modes:
                size, delta = self.chosen(mode, epsilon)
                found = self.values(part, mode, epsilon, size, delta, draws=self.draws)
                mechanism = self.mechanism(mode, epsilon, size, delta)
                yield Cell(
                    self.set.name,
                    mode,
                    epsilon,
                    size,
                    delta,
                    float(found.mean()),
                    *_above(found, levels["not personalised"]),
                    *_above(found, levels[SERVED]),
                    _total(mechanism.event(Unit.USER), 30),
                    _total(mechanism.event(Unit.USER), 365),
                )

    def horizons(self, part: str, epsilons: list[float]) -> Iterator[dict[str, object]]:
        """Daily queries against one that is reused, at the same total, by krr."""
        for days, ages in HORIZONS.items():
            for total in epsilons:
                each = daily_epsilon(total, days, SIZES[0])
                size, _ = self.chosen("krr", total)
                fresh = self.values(part, "krr", each, SIZES[0], 0.0, draws=self.draws)
                reused = [
                    self.values(part, "krr", total, size, 0.0, age=age, draws=1).mean()
                    for age in ages
                ]
                gaussian = daily_gaussian(total, days)
                noisy = {
                    mode: self.values(part, mode, gaussian, size, DELTA, draws=1)
                    for mode, size in (("dpa", 5), ("vdp, projected", 1))
                }
                yield {
                    "set": self.set.name,
                    "days": days,
                    "total": total,
                    "krr, each": each,
                    "krr, daily": float(fresh.mean()),
                    "Gaussian, each": gaussian,
                    **{f"{mode}, daily": float(v.mean()) for mode, v in noisy.items()},
                    "krr, once": float(np.trapezoid(reused, ages) / ages[-1]),
                    "krr, once, at the end": float(reused[-1]),
                }


def _expected(part: Part, mechanism: InterestResponse, users: Vectors) -> Values:
    """What lists are worth over all that a client may say, by how likely it is."""
    rows = np.ones((len(users), 1))
    every = mechanism.decode(np.arange(mechanism.choices)[:, None])
    worth = np.stack([part.values(rows * one) for one in every], axis=1)
    own = mechanism.interests.nearest(users)[part.owners]
    return (mechanism.response.likelihoods()[own] * worth).sum(axis=1)


def _above(found: Values, level: Values) -> tuple[float, float]:
    """The mean difference and its standard error, over users."""
    apart = found - level
    return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart)))


@cache
def daily_epsilon(total: float, days: int, choices: int) -> float:
    """The epsilon of each of so many responses that together are (total, 1e-6)-DP."""

    def spent(each: float) -> float:
        event = SelfComposedDpEvent(pure_local(each, choices=choices), days)
        return epsilon_of(event, delta=DELTA, adjacency="replace_one").value or np.inf

    low, high = total / days, total
    for _ in range(8):  # to 2 %
        middle = np.sqrt(low * high)
        low, high = (middle, high) if spent(middle) <= total else (low, middle)
    return float(low)


def daily_gaussian(total: float, days: int) -> float:
    """The epsilon at 1e-6 of each of so many Gaussian releases, as above."""
    return gaussian_epsilon(
        least_multiplier(total, DELTA) * math.sqrt(days), delta=DELTA
    )


@cache
def _total(event: object, times: int) -> float | None:
    composed = SelfComposedDpEvent(event, times)
    return epsilon_of(composed, delta=DELTA, adjacency="replace_one").value


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def _table(study: Study, cells: list[Cell], part: str) -> str:
    levels = {name: v.mean() for name, v in study.levels(part).items()}
    text = [f"## {study.set.name}: {study.set.metric}, {part} users", ""]
    text += [f"{name} {level:.4f}" for name, level in levels.items()]
    head = "epsilon of a release | size | value | above not personalised | … served"
    text += ["", f"| mode | {head} | 30 days | 365 days |", "|" + "---|" * 8]
    return "\n".join([*text, *(cell.shown() for cell in cells), ""])


def _horizon_table(rows: list[dict[str, object]]) -> str:
    names = [*rows[0]][1:]
    head = f"| {' | '.join(names)} |\n|{'---|' * len(names)}\n"
    return head + "\n".join(
        "| " + " | ".join(f"{row[name]:.4g}" for name in names) + " |" for row in rows
    )


def _plot(study: Study, cells: list[Cell], part: str) -> str:
    series = {
        mode: [(c.epsilon, c.mean, c.error) for c in cells if c.mode == mode]
        for mode in dict.fromkeys(cell.mode for cell in cells)
        if mode != "vdp" or study.set.metric == "auc"  # else far below all others
    }
    levels = study.levels(part)
    return lines(
        f"serving {study.set.name}",
        series,
        x="epsilon of one query",
        y=study.set.metric,
        levels={n: float(v.mean()) for n, v in levels.items() if n != SERVED},
    )


def main() -> None:
    """Print tables; write them, the figures and the plots to a folder."""
    asked = _options()
    if asked.out is not None:
        asked.out.mkdir(parents=True, exist_ok=True)
    for name in asked.sets:
        kept = None if asked.out is None else asked.out / f"{name}.jsonl"
        study = Study(served_set(name), KeptValues(kept), asked.draws)
        cells = [*study.cells(asked.part, asked.epsilons, asked.modes)]
        text, plot = _table(study, cells, asked.part), _plot(study, cells, asked.part)
        print(text, flush=True)
        rows = []
        if asked.modes == [*GRIDS]:
            rows = [*study.horizons(asked.part, [e for e in asked.epsilons if e >= 2])]
            text += "\n" + _horizon_table(rows) + "\n"
            print(_horizon_table(rows), flush=True)
        if asked.out is not None:
            found = {"cells": [asdict(cell) for cell in cells], "horizons": rows}
            path = asked.out / f"{name}-{asked.part}"
            path.with_suffix(".md").write_text(text)
            path.with_suffix(".svg").write_text(plot)
            path.with_suffix(".json").write_text(json.dumps(found, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.private_serving")
    real = [name for name in SETS if name != "smoke"]
    parser.add_argument("--sets", nargs="+", choices=[*SETS], default=real)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[*EPSILONS])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--part", choices=["validation", "test"], default="test")
    parser.add_argument("--modes", nargs="+", choices=[*GRIDS], default=[*GRIDS])
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
