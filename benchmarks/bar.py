"""What a bar is, and what measuring it gives."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Case:
    """One comparison: how many times the baseline's speed ours has."""

    name: str
    ratio: float
    seconds: dict[str, float]
    note: str = ""


@dataclass(frozen=True)
class Bar:
    """A ratio that must hold; of the cases that `measure` gives the worst counts."""

    number: int
    name: str
    bar: float
    measure: Callable[[bool], Sequence[Case]]
    sense: Literal[">=", "<="] = ">="

    def run(self, *, quick: bool) -> Outcome:
        """Measure; a bar that cannot be measured has failed, and says why."""
        try:
            return Outcome(self, tuple(self.measure(quick)), None)
        except Exception as error:  # the other bars are still worth measuring
            return Outcome(self, (), f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class Outcome:
    """A bar that was measured."""

    bar: Bar
    cases: tuple[Case, ...]
    error: str | None

    @property
    def ratio(self) -> float | None:
        """The ratio of the worst case."""
        worst = min if self.bar.sense == ">=" else max
        return worst((case.ratio for case in self.cases), default=None)

    @property
    def ok(self) -> bool:
        """Whether every case holds."""
        holds = operator.ge if self.bar.sense == ">=" else operator.le
        return self.ratio is not None and holds(self.ratio, self.bar.bar)

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, for bench.json."""
        return {
            "number": self.bar.number,
            "name": self.bar.name,
            "ratio": self.ratio,
            "bar": self.bar.bar,
            "sense": self.bar.sense,
            "ok": self.ok,
            "error": self.error,
            "cases": [vars(case) for case in self.cases],
        }
