"""Figures 4 and 5: what a list is worth by the epsilon of a query, and by the padding.

Beside every figure stand the device's own list (ε_s = ∞), the list of the mean user
vector for all, and the same queries to a model before its first round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tacit.reproduction.cells import Cell, Found, Results
from tacit.reproduction.chance import best_by_chance
from tacit.reproduction.claims import Chance, is_above_for_seeds
from tacit.reproduction.study import Table
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)

from .serving import AUC, Way, dpa, serve, vdp

EPSILONS = (1.0, 5.0, 10.0, 20.0)
PADDINGS = (0.0, 0.2, 0.5, 0.8)
BEST = {3: 0.2, 5: 0.5}  # padding by the number of interests, as printed
AT = (1.0, 10.0)  # claimed epsilons of Figure 5, which prints none
_B, _P = 5, BEST[5]  # of Figure 4


@dataclass(frozen=True)
class Models:
    """What is served, trained by the study; each by its number of interests."""

    private: Callable[[int], Cell]
    untrained: Callable[[int], Cell]
    rival: Cell  # FedRec: DP-FedRec without noise in training
    content: Cell  # for the bar of random lists


@dataclass(frozen=True)
class _Line:
    """One line of a figure: how it is served at each place, and before training."""

    name: str
    at: Callable[[float], Way]
    start: Callable[[float], Way] | None
    is_sound: bool

    def row(self, results: Results, x: float, label: str) -> Row:
        served, cell = serve(results, self.at(x)), self.at(x).cell
        ways = {"on the device": Way(cell), "one list for all": Way(cell, as_one=True)}
        if self.start is not None:
            ways["untrained"] = self.start(x)
        beside = {n: serve(results, way).found.mean(AUC) for n, way in ways.items()}
        mean = served.found.mean(AUC)
        return Row(
            f"{self.name}, {label}",
            None,
            None if self.is_sound else mean,
            mean if self.is_sound else None,
            ok=True,
            budget=served.budget,
            beside=beside,
            se=served.found.se(AUC),
        )

    def drawn(self, results: Results, places: tuple[float, ...]) -> Line:
        found = [serve(results, self.at(x)).found for x in places]
        means, errors = (one.mean(AUC) for one in found), (one.se(AUC) for one in found)
        return Line(places, tuple(means), tuple(se or 0.0 for se in errors))


def figure_4(models: Models, *, where: str, name: str) -> Table:
    """By the epsilon of a query, with B = 5 and p = .5."""
    lines = _by_epsilon(models)

    def make(results: Results) -> Reproduction:
        by = best_by_chance(results, models.content)
        label = "ε_s = {:g}"
        rows = [one.row(results, e, label.format(e)) for e in EPSILONS for one in lines]
        named = {one.name: one for one in lines}

        def found(line: str, epsilon: float) -> Found:
            return serve(results, named[line].at(epsilon)).found

        pairs = ("PrivateRec", "DP-FedRec"), ("PrivateRec, SoftPlus", "FedRec, vdp")
        claims = [
            _claim(
                f"serving, ε_s = {e:g}: {more} is above {less}",
                (found(more, e), found(less, e)),
                by,
            )
            for more, less in pairs
            for e in EPSILONS
        ]
        claims += [
            _claim(
                f"serving, ε_s = {e:g}: {one.name} is above its one list for all",
                (
                    found(one.name, e),
                    serve(results, Way(one.at(e).cell, as_one=True)).found,
                ),
                by,
            )
            for one in lines
            for e in EPSILONS
        ]
        low, high = EPSILONS[0], EPSILONS[-1]
        claims += [
            _claim(
                f"serving: {one} gains from ε_s = {low:g} to {high:g}",
                (found(one, high), found(one, low)),
                by,
            )
            for one in named
        ]
        return _figure(name, where, rows, claims, lines, results, EPSILONS, x="ε_s")

    cells = models.private(_B), models.untrained(_B), models.rival, models.content
    return Table(make, cells)


def _by_epsilon(models: Models) -> tuple[_Line, ...]:
    own, start, rival = models.private(_B), models.untrained(_B), models.rival

    def attention(name: str, reading: str) -> _Line:
        def of(cell: Cell) -> Callable[[float], Way]:
            return lambda e: Way(cell, dpa(e, padding=_P, reading=reading))

        return _Line(name, of(own), of(start), reading != "printed")

    def vector(name: str, *, is_printed: bool) -> _Line:
        def at(epsilon: float) -> Way:
            return Way(rival, vdp(epsilon, is_printed=is_printed))

        return _Line(name, at, None, not is_printed)

    return (
        attention("PrivateRec", "printed"),
        vector("DP-FedRec", is_printed=True),
        attention("PrivateRec, SoftPlus", "softplus"),
        attention("PrivateRec, regression", "regression"),
        vector("FedRec, vdp", is_printed=False),
    )


def figure_5(models: Models, *, where: str, name: str) -> Table:
    """By the padding of a query, with B = 3 and 5."""
    lines = {
        (b, e, reading): _by_padding(models, b, e, reading)
        for e in AT
        for b in BEST
        for reading in ("printed", "softplus")
    }

    def make(results: Results) -> Reproduction:
        by = best_by_chance(results, models.content)
        rows = [
            line.row(results, p, f"p = {p:g}")
            for line in lines.values()
            for p in PADDINGS
        ]
        claims = [
            _claim(
                f"serving, {lines[key].name}: p = {BEST[key[0]]:g} is above p = {p:g}",
                tuple(
                    serve(results, lines[key].at(q)).found for q in (BEST[key[0]], p)
                ),
                by,
            )
            for key in lines
            for p in PADDINGS
            if p != BEST[key[0]]
        ]
        drawn = tuple(lines.values())
        return _figure(name, where, rows, claims, drawn, results, PADDINGS, x="p")

    own = [kind(b) for b in BEST for kind in (models.private, models.untrained)]
    return Table(make, (*own, models.content))


def _by_padding(models: Models, b: int, epsilon: float, reading: str) -> _Line:
    def of(cell: Cell) -> Callable[[float], Way]:
        return lambda p: Way(cell, dpa(epsilon, padding=p, reading=reading))

    how = "" if reading == "printed" else ", SoftPlus"
    name = f"B = {b}, ε_s = {epsilon:g}{how}"
    return _Line(
        name, of(models.private(b)), of(models.untrained(b)), reading != "printed"
    )


def _figure(
    name: str,
    where: str,
    rows: list[Row],
    claims: list[Claim],
    lines: tuple[_Line, ...],
    results: Results,
    places: tuple[float, ...],
    *,
    x: str,
) -> Reproduction:
    title = f"{name}, of serving, AUC on {where}"
    drawn: Mapping[str, Line] = {one.name: one.drawn(results, places) for one in lines}
    chart = Chart(title, x, "AUC", drawn)
    return Reproduction((ReproducedTable(title, tuple(rows)),), tuple(claims), (chart,))


def _claim(text: str, pair: tuple[Found, ...], by: Chance) -> Claim:
    """Holds if both 95 % intervals are above zero, over users and over seeds."""
    more, less = (found.evaluations for found in pair)
    return is_above_for_seeds(text, more, less, metric=AUC, chance=by, name="AUC")
