"""Figure 2: Hits@20 by rounds E1, passes of a client E2, and clients per round M.

Each is varied with the two others held: the paper does not say where. As published they
are held where the experiment file has them. Beside it stands PrivRec as we train it,
with one pass of a client, 40 rounds (where the paper finds accuracy stable) and M = 30.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tacit.reproduction.cells import Cell, Results
from tacit.reproduction.claims import is_learnt
from tacit.reproduction.study import Scale, Table
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)

from .contenders import HITS, PUBLISHED, Bench

WAYS: Mapping[str, str] = {
    "as published": f"PrivRec{PUBLISHED}",
    "as we train": "PrivRec",
}
HITS_20 = f"{HITS}@20"
_STABLE = 40  # rounds, as the paper says
_RISES, _FLAT = 0.05, 0.05  # of the later value


@dataclass(frozen=True)
class Knobs:
    """The values of each that are tried."""

    rounds: tuple[int, ...]  # E1
    passes: tuple[int, ...]  # E2 as published
    own_passes: tuple[int, ...]  # as we train: more only fit the client's own examples
    cohorts: tuple[int, ...]  # M
    stable: int = _STABLE


KNOBS: Mapping[Scale, Knobs] = {
    "smoke": Knobs((1, 2), (1, 2), (1, 2), (4, 12), stable=2),
    "quick": Knobs((5, 20, 40), (5, 20), (1, 5, 20), (2, 10, 40)),
    "full": Knobs(
        (5, 20, 40, 60, 80, 100),
        (5, 20, 40, 60, 80, 100, 120),
        (1, 5, 20),
        (2, 5, 10, 15, 20, 25, 30, 35, 40),
    ),
}

Places = dict[float, Cell]  # the value of a knob, and the cell with it


def figure_2(bench: Bench) -> Table:
    """One data set: three charts, their numbers, and what the text says of them."""
    cells = {
        knob: {way: dict(_cells(knob, way, bench)) for way in WAYS}
        for knob in ("E1", "E2", "M")
    }
    popularity = bench.cell("popularity", seeds=1)

    def make(results: Results) -> Reproduction:
        lines = {
            knob: {way: _line(results, places) for way, places in by_way.items()}
            for knob, by_way in cells.items()
        }
        levels = {"popularity": results[popularity].mean(HITS_20)}
        charts = tuple(
            Chart(f"Figure 2: {bench.label}, {knob}", knob, "Hits@20", found, levels)
            for knob, found in lines.items()
        )
        rows = tuple(row for knob, found in lines.items() for row in _rows(knob, found))
        table = ReproducedTable(f"Figure 2, Hits@20 ({bench.label})", rows)
        best = bench.chance(results)[HITS_20]
        stable = KNOBS[bench.scale].stable
        claims = tuple(_claims(bench, lines, stable, best))
        return Reproduction((table,), claims, charts)

    places = (by_way for of in cells.values() for by_way in of.values())
    return Table(make, (*(c for of in places for c in of.values()), popularity))


def _cells(knob: str, way: str, bench: Bench) -> Iterator[tuple[float, Cell]]:
    """A run for each value of one knob."""
    knobs, is_literal = KNOBS[bench.scale], way == "as published"
    held = () if is_literal else _held(bench.scale)
    passes = knobs.passes if is_literal else knobs.own_passes
    for value in {"E1": knobs.rounds, "E2": passes, "M": knobs.cohorts}[knob]:
        changed: tuple[str, ...] = {
            "E1": (f"run.rounds={value}",),
            "M": (_cohort(value),),
            "E2": (f"method.local_epochs={value}",),
        }[knob]
        # In print clients adapt as long as they train; ours as they always do.
        if knob == "E2" and is_literal:
            changed = (*changed, f"method.adapt_epochs={value}")
        yield float(value), bench.cell(WAYS[way], *held, *changed, seeds=1)


def _held(scale: Scale) -> tuple[str, ...]:
    """Where the other knobs stand as we train; as published the file says it."""
    rounds, cohort = {"smoke": (2, 12), "quick": (10, 30)}.get(scale, (_STABLE, 30))
    return f"run.rounds={rounds}", _cohort(cohort)


def _cohort(size: int) -> str:
    return f"run.sampler={{name = 'fixed_size', size = {size}}}"


def _line(results: Results, places: Places) -> Line:
    found = [results[cell] for cell in places.values()]
    means, errors = (f.mean(HITS_20) for f in found), (f.se(HITS_20) for f in found)
    return Line(tuple(places), tuple(means), tuple(e or 0.0 for e in errors))


def _claims(
    bench: Bench, lines: Mapping[str, Mapping[str, Line]], stable: int, best: float
) -> Iterator[Claim]:
    """Each holds only of runs that are above the best of the random lists."""
    for way in WAYS:
        e1, e2, m = (lines[knob][way] for knob in ("E1", "E2", "M"))
        said, so_far = f"Figure 2 ({bench.label}, {way})", f"E1 = {stable}"
        rising = rises(f"{said}: accuracy rises up to {so_far}", e1, to=stable)
        yield is_learnt(rising, e1.y[e1.x.index(stable)], best)
        flat = is_flat(f"{said}: it is stable above {so_far}", e1, above=stable)
        yield is_learnt(flat, e1.y[-1], best)
        rising = rises(f"{said}: accuracy rises with E2", e2, to=max(e2.x))
        yield is_learnt(rising, e2.y[e2.x.index(max(e2.x))], best)
        spread = {k: max(v.y) - min(v.y) for k, v in (("E1", e1), ("E2", e2), ("M", m))}
        least = Claim(
            f"{said}: M matters least",
            spread["M"] == min(spread.values()),
            ", ".join(f"{k} moves Hits@20 by {v:.4f}" for k, v in spread.items()),
        )
        yield is_learnt(least, max(m.y), best)


def _rows(knob: str, lines: Mapping[str, Line]) -> Iterator[Row]:
    """Values that both ways have share a row."""
    for x in sorted({x for found in lines.values() for x in found.x}):
        (paper, se), (ours, _) = (_at(lines[way], x) for way in WAYS)
        yield Row(f"{knob} = {x:g}", None, paper, ours, ok=True, se=se)


def _at(found: Line, x: float) -> tuple[float | None, float | None]:
    """The mean and its error, if the line has them."""
    if x not in found.x:
        return None, None
    place = found.x.index(x)
    return found.y[place], found.se[place]


def rises(text: str, found: Line, *, to: float) -> Claim:
    """By more than a share of itself, and by more than twice its standard error."""
    end = found.x.index(to)
    first, last = found.y[0], found.y[end]
    error = math.hypot(found.se[0], found.se[end])
    evidence = f"{first:.4f} at {found.x[0]:g}, {last:.4f} at {to:g} (± {error:.4f})"
    return Claim(text, last - first > max(_RISES * first, 2 * error), evidence)


def is_flat(text: str, found: Line, *, above: float) -> Claim:
    """Moves by less than a share of itself from there on."""
    later = [y for x, y in zip(found.x, found.y, strict=True) if x >= above]
    evidence = f"{min(later):.4f} to {max(later):.4f} from {above:g} on"
    is_known = len(later) > 1
    return Claim(
        text,
        is_known and max(later) - min(later) <= _FLAT * max(later),
        evidence if is_known else "not run so long at this scale",
    )
