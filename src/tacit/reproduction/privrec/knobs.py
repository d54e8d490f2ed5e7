"""Figure 2: Hits@20 by rounds E1, passes of a device E2, and people a round M.

Each is varied with the two others held: the paper does not say where. Beside the paper
to the letter stands PrivRec as we train it, with one pass of a device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tacit.methods.privrec import PrivRec
from tacit.plan import Plan
from tacit.reproduction import Scale
from tacit.reproduction.privrec.benches import Bench, Source
from tacit.reproduction.privrec.courses import after, line, looked
from tacit.reproduction.privrec.settings import AsPublished, AsWeWould
from tacit.reproduction.privrec.trials import trials
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)
from tacit.sampling import FixedSize

Way = Literal["as published", "as we train"]
WAYS: tuple[Way, ...] = ("as published", "as we train")

_STABLE = 40  # rounds, as the paper says
_RISES, _FLAT = 0.05, 0.05  # of the later value


@dataclass(frozen=True)
class Knobs:
    """Values to try of each, and where the two others are held meanwhile."""

    rounds: tuple[int, ...]  # E1
    epochs: tuple[int, ...]  # E2
    cohorts: tuple[int, ...]  # M
    held: tuple[int, int, int]  # E1, E2, M


QUICK = Knobs((5, 20, 40), (5, 20), (2, 10, 40), held=(10, 5, 30))
FULL = Knobs(
    (5, 20, 40, 60, 80, 100),
    (5, 20, 40, 60, 80, 100, 120),
    (2, 5, 10, 15, 20, 25, 30, 35, 40),
    held=(40, 20, 30),
)
_OURS = (1, 5, 20)  # passes that we try; more only fit the device's own examples


def figure_2(scale: Scale) -> Reproduction:
    """MovieLens 1M, and at full scale Frappe."""
    sources: tuple[Source, ...] = ("movielens-1m", "frappe")
    shown = sources if scale == "full" else sources[:1]
    knobs = FULL if scale == "full" else QUICK
    return Reproduction.joined([Panel(Bench(s, scale), knobs).made() for s in shown])


@dataclass(frozen=True)
class Panel:
    """One data set of the figure."""

    bench: Bench
    knobs: Knobs

    def made(self) -> Reproduction:
        """Three charts, their numbers, and what the text says of them."""
        lines: dict[str, dict[str, Line]] = {
            "E1": {way: self.by_rounds(way) for way in WAYS},
            "E2": {way: self.by_epochs(way) for way in WAYS},
            "M": {way: self.by_cohort(way) for way in WAYS},
        }
        source = self.bench.source
        popular = {"popularity": trials("popularity", self.bench).mean("hr", 20)}
        charts = tuple(
            Chart(f"Figure 2: {source}, {knob}", knob, "Hits@20", found, popular)
            for knob, found in lines.items()
        )
        rows = tuple(row for knob, found in lines.items() for row in _rows(knob, found))
        table = ReproducedTable(f"Figure 2, Hits@20 ({source})", rows)
        return Reproduction((table,), tuple(self._claims(lines)), charts)

    def by_rounds(self, way: Way) -> Line:
        """One run, looked at on its way."""
        rounds = self.knobs.rounds
        method, plan = self._method(way), self._plan(rounds=max(rounds))
        found = looked(method, plan, self.bench, rounds=rounds)
        return line(rounds, [found[t] for t in rounds])

    def by_epochs(self, way: Way) -> Line:
        """A run for each number of passes."""
        epochs = self.knobs.epochs if way == "as published" else _OURS
        plan = self._plan()
        found = [after(self._method(way, e), plan, self.bench) for e in epochs]
        return line(epochs, found)

    def by_cohort(self, way: Way) -> Line:
        """A run for each number of people."""
        method, cohorts = self._method(way), self.knobs.cohorts
        found = [after(method, self._plan(cohort=m), self.bench) for m in cohorts]
        return line(cohorts, found)

    def _method(self, way: Way, epochs: int | None = None) -> PrivRec:
        """Devices adapt as long as they train in print; ours as they always do."""
        if way == "as we train":
            return replace(AsWeWould(self.bench).privrec, local_epochs=epochs or 1)
        passes = epochs or self.knobs.held[1]
        method = AsPublished(self.bench).privrec
        return replace(method, local_epochs=passes, adapt_epochs=passes)

    def _plan(self, *, rounds: int | None = None, cohort: int | None = None) -> Plan:
        people = len(self.bench.split().users)
        size = min(people, cohort or self.knobs.held[2])
        return Plan(
            people, rounds=rounds or self.knobs.held[0], sampler=FixedSize(size)
        )

    def _claims(self, lines: dict[str, dict[str, Line]]) -> Iterator[Claim]:
        for way in WAYS:
            e1, e2, m = (lines[knob][way] for knob in ("E1", "E2", "M"))
            said = f"Figure 2 ({self.bench.source}, {way})"
            so_far = f"E1 = {_STABLE}"
            yield _rises(f"{said}: accuracy rises up to {so_far}", e1, to=_STABLE)
            yield _is_flat(f"{said}: it is stable above {so_far}", e1, above=_STABLE)
            yield _rises(f"{said}: accuracy rises with E2", e2, to=max(e2.x))
            spread = {"E1": _spread(e1), "E2": _spread(e2), "M": _spread(m)}
            yield Claim(
                f"{said}: M matters least",
                spread["M"] == min(spread.values()),
                ", ".join(f"{k} moves Hits@20 by {v:.4f}" for k, v in spread.items()),
            )


def _rows(knob: str, lines: dict[str, Line]) -> Iterator[Row]:
    """Values that both ways have share a row."""
    places = sorted({x for found in lines.values() for x in found.x})
    for x in places:
        (paper, se), (ours, _) = (_at(lines[way], x) for way in WAYS)
        yield Row(f"{knob} = {x:g}", None, paper, ours, ok=True, se=se)


def _at(found: Line, x: float) -> tuple[float | None, float | None]:
    """The mean and its error, if the line has them."""
    if x not in found.x:
        return None, None
    place = found.x.index(x)
    return found.y[place], found.se[place]


def _rises(text: str, found: Line, *, to: float) -> Claim:
    """By more than a share of itself, and by more than twice its standard error."""
    end = found.x.index(to)
    first, last = found.y[0], found.y[end]
    error = math.hypot(found.se[0], found.se[end])
    evidence = f"{first:.4f} at {found.x[0]:g}, {last:.4f} at {to:g} (± {error:.4f})"
    return Claim(text, last - first > max(_RISES * first, 2 * error), evidence)


def _is_flat(text: str, found: Line, *, above: float) -> Claim:
    later: Sequence[float] = [
        y for x, y in zip(found.x, found.y, strict=True) if x >= above
    ]
    evidence = f"{min(later):.4f} to {max(later):.4f} from {above:g} on"
    is_known = len(later) > 1
    return Claim(
        text,
        is_known and max(later) - min(later) <= _FLAT * max(later),
        evidence if is_known else "not run so long at this scale",
    )


def _spread(found: Line) -> float:
    return max(found.y) - min(found.y)
