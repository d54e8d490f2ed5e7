"""From the lines of a comparison to a verdict: what to use within which budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tacit.experiment.comparison import Comparison, Line
from tacit.reporting.pairs import Paired
from tacit.reporting.verdict import Choice, Price, Promises, Reason, Verdict

_ROUNDING = 1 + 1e-6  # calibration may end a rounding above its target
_POPULARITY = ("private_popularity", "federated_popularity", "popularity")


def verdict_of(found: Comparison) -> Verdict:
    """What to use within each budget that was compared, by the first metric."""
    return _Contest(found).verdict()


@dataclass(frozen=True, eq=False)
class _Contest:
    """All lines, and the metric that decides."""

    found: Comparison

    @property
    def metric(self) -> str:
        return next(iter(self.found.lines[0].evaluations[0].values))

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
            self.found.n_pairs,
            tuple(chosen),
            tuple(self._prices()),
            tuple(one.label for one in lines if one.is_unproven),
            self.found.diverged,
            tuple(_promises(one) for one in lines if one.is_mixed or one.asks),
            {line.label: told for line in lines if (told := line.chosen) is not None},
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
            tuple(self._pair(chosen, one) for one in reversed(others)),
        )

    def _beats(self, one: Line, other: Line) -> bool:
        if one is other:
            return False
        found = self._pair(one, other)
        return found.is_told_apart and found.method == one.label

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

    def _prices(self) -> list[Price]:
        """Each method at each epsilon, beside itself without privacy if it was run."""
        free = {line.name: line for line in self.found.lines if line.is_open}
        return [
            Price(line.name, line.epsilon, self._pair(free[line.name], line))
            for line in self.found.lines
            if line.provable is not None and line.epsilon and line.name in free
        ]

    def _mean(self, line: Line) -> float:
        return line.pooled()[self.metric].mean

    def _pair(self, a: Line, b: Line) -> Paired:
        pairs = self.found.pair(a.label, b.label)
        return next(pair for pair in pairs if pair.metric == self.metric)


def _promises(line: Line) -> Promises:
    """What a line promises to each group that it asks."""
    asked = line.by_group.keys() if line.asks is None else line.asks
    return Promises(
        line.label,
        {group: line.by_group.get(group) for group in asked},
        tuple(group for group in line.by_group if group not in asked),
    )


def _keys() -> dict[Reason, Callable[[Line], float]]:
    """What decides a tie, in this order; smaller is preferred."""
    return {
        Reason.PROVABLE: lambda line: line.provable is None,
        Reason.SIMPLER: lambda line: line.name not in _POPULARITY,
        Reason.MORE_PRIVATE: lambda line: line.epsilon or math.inf,
        # A baseline sends nothing because it is no client: it has all histories.
        Reason.FEDERATED: lambda line: line.is_baseline,
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
