"""From the lines of a comparison to a verdict: what to use within which budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tacit.evaluation.significance import Interval, paired_interval
from tacit.experiment.comparison import Comparison, Line
from tacit.reporting.verdict import Choice, Price, Reason, Rival, Verdict

_ALARM = 0.05  # the chance that any interval of a comparison is wrong
_ROUNDING = 1 + 1e-6  # calibration may end a rounding above its target
_POPULARITY = ("private_popularity", "federated_popularity", "popularity")


def verdict_of(found: Comparison) -> Verdict:
    """What to use within each budget that was compared, by the first metric."""
    return _Contest(found).verdict()


@dataclass(frozen=True, eq=False)
class _Contest:
    """All lines, and how sure one of their differences must be."""

    found: Comparison

    @property
    def metric(self) -> str:
        return next(iter(self.found.lines[0].evaluations[0].values))

    @property
    def n_pairs(self) -> int:
        """All pairs, because which ones are looked at depends on the figures."""
        return max(1, math.comb(len(self.found.lines), 2))

    def verdict(self) -> Verdict:
        lines, seeds = self.found.lines, self.found.seeds
        proven = [line for line in lines if line.provable is not None]
        levels = sorted({line.epsilon for line in proven if line.epsilon is not None})
        chosen = [self._choice(level, self._within(level)) for level in levels]
        if len(proven) < len(lines):
            chosen.append(self._choice(None, lines))
        users = {u for one in lines[0].evaluations for u in one.users.tolist()}
        return Verdict(
            self.found.source,
            self.metric,
            len(users),
            len(seeds),
            self.n_pairs,
            tuple(chosen),
            tuple(self._prices()),
            tuple(one.label for one in lines if one.is_unproven),
            self.found.diverged,
        )

    def _within(self, level: float) -> list[Line]:
        """The lines whose proven epsilon keeps this budget."""
        return [
            line
            for line in self.found.lines
            if line.provable is not None and line.provable <= level * _ROUNDING
        ]

    def _choice(self, level: float | None, lines: Sequence[Line]) -> Choice:
        """The first by order of all lines than which none is shown to be better.

        The best mean alone would not do: a line that is not told apart from it may
        still be worse than a third one, from which it differs less between users.
        """
        unbeaten = [
            line for line in lines if not any(self._beats(one, line) for one in lines)
        ]
        chosen = min(unbeaten, key=lambda line: (*_order(line), -self._mean(line)))
        others = sorted((one for one in lines if one is not chosen), key=self._mean)
        return Choice(
            level,
            chosen.name,
            chosen.label,
            self._mean(chosen),
            chosen.name in _POPULARITY,
            self._reason(chosen, unbeaten, lines),
            tuple(self._rival(chosen, one) for one in reversed(others)),
        )

    def _beats(self, one: Line, other: Line) -> bool:
        if one is other:
            return False
        found = self._interval(one, other)
        return found.is_told_apart and found.mean > 0

    def _reason(
        self, chosen: Line, unbeaten: Sequence[Line], lines: Sequence[Line]
    ) -> Reason:
        """Why the chosen line comes before those that it is not told apart from."""
        if len(lines) == 1:
            return Reason.ONLY
        others = [line for line in lines if line is not chosen]
        if all(self._beats(chosen, line) for line in others):
            return Reason.BEST
        equals = [line for line in unbeaten if line is not chosen]
        return _of_tie(chosen, min(equals, key=_order)) if equals else Reason.UNBEATEN

    def _rival(self, chosen: Line, other: Line) -> Rival:
        found = self._interval(chosen, other)
        return Rival(
            other.label,
            self._mean(other),
            found.mean,
            found.low,
            found.high,
            found.is_told_apart,
        )

    def _prices(self) -> list[Price]:
        """What each method loses at each epsilon, where it was run without privacy."""
        free = {line.name: line for line in self.found.lines if line.is_open}
        return [
            Price(
                line.name, line.epsilon, gap.mean, gap.low, gap.high, gap.is_told_apart
            )
            for line in self.found.lines
            if line.provable is not None and line.epsilon and line.name in free
            for gap in [self._interval(free[line.name], line)]
        ]

    def _mean(self, line: Line) -> float:
        return line.pooled()[self.metric].mean

    def _interval(self, a: Line, b: Line) -> Interval:
        sure = 1 - _ALARM / self.n_pairs
        return paired_interval(
            a.evaluations, b.evaluations, self.metric, confidence=sure
        )


def _keys() -> dict[Reason, Callable[[Line], float]]:
    """What decides a tie, in this order; smaller is preferred."""
    return {
        Reason.PROVABLE: lambda line: line.provable is None,
        Reason.SIMPLER: lambda line: line.name not in _POPULARITY,
        Reason.MORE_PRIVATE: lambda line: line.epsilon or math.inf,
        Reason.CHEAPER: lambda line: line.cost.bytes_up or 0.0,
    }


def _order(line: Line) -> tuple[float, ...]:
    return tuple(key(line) for key in _keys().values())


def _of_tie(chosen: Line, other: Line) -> Reason:
    """What puts the chosen line before another that is as good."""
    for reason, key in _keys().items():
        if key(chosen) < key(other):
            return reason
    return Reason.LARGER_MEAN
