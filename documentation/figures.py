"""The pictures of README and site, each for a wide screen and for a phone.

    python -m documentation.figures           writes docs/figures/*.svg
    python -m documentation.figures --check   fails if one of them is not what it writes

Figures come from the tables of the pages or from the accountant, never from here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from documentation.charts import Area, Bar, Frontier, bars
from documentation.drawing import MARGIN, Drawing
from documentation.page_tables import ROOT, number, row

FOLDER = ROOT / "docs" / "figures"
WIDE, NARROW = 860, 358  # pixels: a column of text on a desk, and on a phone
GRAM, DPALS = "docs/methods/gram.md", "docs/methods/dpals.md"
FEDVAE, DPVAE = "docs/methods/fedvae.md", "docs/methods/dpvae.md"
LEAKS, BUDGETS = "docs/leaks.md", "docs/personal_budgets.md"


# --- Client, channel, server ---------------------------------------------------------

CLIENT = ("Client", "a program on a user's device")
CHANNEL = ("Channel", "adds up and adds noise")
SERVER = ("Server", "learns a model")
CLIENT_HAS = ("the history: never sent", "the ledger: what was said", "ranks by itself")
CHANNEL_HAS = ("every report, inside", "lets out one noisy sum", "for all users")
SERVER_HAS = ("the noisy sum", "no report, no history", "sends everyone the model")


def overview(is_wide: bool) -> Drawing:
    """Client, channel and server: what each has, and what passes between them."""
    title = "Client, channel, server"
    said = (
        "A client keeps the history on the user's device and sends a bounded report. "
        "The channel adds all reports up and adds noise. The server sees the noisy sum "
        "alone and sends the model to everyone; clients rank by themselves."
    )
    return _overview_wide(title, said) if is_wide else _overview_narrow(title, said)


def _station(
    drawing: Drawing,
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    names: tuple[str, str],
    has: Sequence[str],
    color: str = "line",
) -> None:
    fill = "good-fill" if color == "good" else "fill"
    drawing.box(x, y, width, height, fill=fill, stroke=color)
    drawing.text(x + 14, y + 26, names[0], size=17, bold=True)
    drawing.text(x + 14, y + 45, names[1], size=13, color="quiet")
    drawing.text(x + 14, y + 74, [f"· {line}" for line in has], size=13.5)


def _overview_wide(title: str, said: str) -> Drawing:
    drawing = Drawing(WIDE, 216, title=title, said=said)
    top, high, width = 34, 128, 216
    places = (MARGIN, (WIDE - width) / 2, WIDE - MARGIN - width)
    stations = ((CLIENT, CLIENT_HAS), (CHANNEL, CHANNEL_HAS), (SERVER, SERVER_HAS))
    for x, (names, has) in zip(places, stations, strict=True):
        color = "good" if names is CLIENT else "line"
        _station(drawing, x, top, width, high, names=names, has=has, color=color)
    y = top + 54
    edge = places[0] + width + 14
    for start, end, name in (
        (edge, places[1], "report"),
        (places[1] + width, places[2], "noisy sum"),
    ):
        drawing.line([(start + 4, y), (end - 5, y)], arrow=True)
        drawing.text(
            (start + end) / 2, y - 9, name, size=13.5, bold=True, anchor="middle"
        )
    drawing.line([(edge, 14), (edge, top + high + 8)], color="good", dashed=True)
    drawing.text(
        edge - 10,
        22,
        "the privacy boundary",
        size=13,
        color="good",
        anchor="end",
        bold=True,
    )
    low = top + high
    drawing.line(
        [
            (places[2] + width / 2, low + 4),
            (places[2] + width / 2, low + 28),
            (places[0] + width / 2, low + 28),
            (places[0] + width / 2, low + 6),
        ],
        arrow=True,
    )
    drawing.box(WIDE / 2 - 150, low + 16, 300, 24, fill="page", stroke="page")
    drawing.text(
        WIDE / 2,
        low + 33,
        "the model, which everyone may see",
        size=13.5,
        bold=True,
        anchor="middle",
    )
    return drawing


def _overview_narrow(title: str, said: str) -> Drawing:
    drawing = Drawing(NARROW, 566, title=title, said=said)
    high, gap, width = 128, 58, NARROW - 2 * MARGIN - 22
    stations = ((CLIENT, CLIENT_HAS), (CHANNEL, CHANNEL_HAS), (SERVER, SERVER_HAS))
    for place, (names, has) in enumerate(stations):
        y = MARGIN + place * (high + gap)
        color = "good" if names is CLIENT else "line"
        _station(drawing, MARGIN, y, width, high, names=names, has=has, color=color)
    x = MARGIN + 40
    for place, name in enumerate(("report", "noisy sum")):
        y = MARGIN + high + place * (high + gap)
        drawing.line([(x, y + 4), (x, y + gap - 5)], arrow=True)
        drawing.text(x + 14, y + gap / 2 + 14, name, size=13.5, bold=True)
    y = MARGIN + high + 14
    drawing.line([(MARGIN, y), (MARGIN + width, y)], color="good", dashed=True)
    drawing.text(
        MARGIN + width,
        y + 18,
        "the privacy boundary",
        size=13,
        color="good",
        anchor="end",
        bold=True,
    )
    low, right = MARGIN + 2 * (high + gap) + high / 2, MARGIN + width
    drawing.line(
        [
            (right + 3, low),
            (right + 16, low),
            (right + 16, MARGIN + high / 2),
            (right + 5, MARGIN + high / 2),
        ],
        arrow=True,
    )
    drawing.text(
        MARGIN + width, 566 - 18, "→ the model, to everyone", size=13.5, anchor="end"
    )
    return drawing


# --- Who sees what -------------------------------------------------------------------

SEEN = {  # over `secure_sum`: by the client, the aggregator, the server, everyone
    "history": (True, False, False, False),
    "shown list": (True, False, False, False),
    "report": (True, True, False, False),
    "who is asked": (False, True, True, False),
    "noisy sum": (True, True, True, True),
    "model": (True, True, True, True),
}
WATCHERS = ("client", "aggregator", "server", "everyone")


def who_sees_what(is_wide: bool) -> Drawing:
    """A table of dots: which data each party can see over `secure_sum`."""
    width = 640 if is_wide else NARROW
    size = 15 if is_wide else 12.5
    top, first = (34, 200) if is_wide else (44, 112)
    said = "; ".join(
        f"{name}: "
        + ", ".join(w for w, sees in zip(WATCHERS, seen, strict=True) if sees)
        for name, seen in SEEN.items()
    )
    height = top + 37 * len(SEEN) + 16
    drawing = Drawing(width, height, title="Who sees what", said=said)
    step = (width - MARGIN - first) / len(WATCHERS)
    columns = [first + (place + 0.5) * step for place in range(len(WATCHERS))]
    for place, (x, name) in enumerate(zip(columns, WATCHERS, strict=True)):
        y = top if is_wide or place % 2 else top - 18  # names are wider than columns
        drawing.text(x, y, name, size=size, bold=True, anchor="middle")
    for place, (name, seen) in enumerate(SEEN.items()):
        y = top + 36 + 37 * place
        drawing.line([(MARGIN, y - 23), (width - MARGIN, y - 23)], color="line")
        drawing.text(MARGIN, y + 1, name, size=size)
        for x, sees in zip(columns, seen, strict=True):
            drawing.dot(
                x,
                y - 4,
                radius=7,
                fill="good" if sees else "page",
                stroke="good" if sees else "line",
            )
    return drawing


# --- A round -------------------------------------------------------------------------

STEPS = (
    ("server", "Broadcast", ("The model so far and", "the plan go to everyone.")),
    (
        "client",
        "Ask the ledger",
        ("What would this add up to?", "Over the cap: refuse."),
    ),
    ("client", "Local update", ("The step of the method,", "on the user's history.")),
    ("client", "Privatize", ("Clip the update, or", "randomise it: the report.")),
    ("channel", "Add up", ("All reports into one sum,", "and noise upon it.")),
    ("server", "Aggregate", ("The noisy sum becomes", "the next model.")),
)


@dataclass(frozen=True)
class Grid:
    """Boxes of one size in rows, and the ways from each to the next."""

    columns: int
    width: float
    high: float
    gap: float  # between rows
    side: float = 0  # between the boxes of a row

    def corner(self, place: int) -> tuple[float, float]:
        """The upper left corner of a box."""
        row, column = divmod(place, self.columns)
        x = MARGIN + column * (self.width + self.side)
        return x, MARGIN + row * (self.high + self.gap)

    def way(self, place: int) -> list[tuple[float, float]]:
        """From a box to the next one: across, or down and around the end of a row."""
        x, y = self.corner(place)
        then_x, then_y = self.corner(place + 1)
        if then_y == y:
            return [
                (x + self.width + 4, y + self.high / 2),
                (then_x - 4, y + self.high / 2),
            ]
        here, there = x + self.width / 2, then_x + self.width / 2
        turn = y + self.high + self.gap / 2
        return [
            (here, y + self.high + 3),
            (here, turn),
            (there, turn),
            (there, then_y - 4),
        ]


def one_round(is_wide: bool) -> Drawing:
    """The six steps of a round and where each runs, in their order."""
    grid = (
        Grid(columns=3, width=248, high=112, gap=42, side=42)
        if is_wide
        else Grid(columns=1, width=NARROW - 2 * MARGIN, high=112, gap=26)
    )
    said = " ".join(
        f"{place}. {where}: {name}. {' '.join(lines)}"
        for place, (where, name, lines) in enumerate(STEPS, start=1)
    )
    height = grid.corner(len(STEPS) - 1)[1] + grid.high + MARGIN
    drawing = Drawing(WIDE if is_wide else NARROW, height, title="A round", said=said)
    for place, (where, name, lines) in enumerate(STEPS):
        x, y = grid.corner(place)
        own = where == "client"
        fill, stroke = ("good-fill", "good") if own else ("fill", "line")
        drawing.box(x, y, grid.width, grid.high, fill=fill, stroke=stroke)
        drawing.text(x + 14, y + 26, f"{place + 1}  {name}", size=16, bold=True)
        at = f"on the {where}" if own else f"at the {where}"
        color = "good" if own else "quiet"
        drawing.text(x + 14, y + 48, at, size=13, color=color)
        drawing.text(x + 14, y + 74, lines, size=13.5)
        if place + 1 < len(STEPS):
            drawing.line(grid.way(place), arrow=True)
    return drawing


# --- The ledger ----------------------------------------------------------------------

CAP, RUNS = 2.0, 4


def composed_epsilons() -> list[float]:
    """What 1, 2, … runs of epsilon 1 amount to for a user who was in all of them."""
    from tacit.methods.gram import Gram
    from tacit.plans import Plan
    from tacit.privacy import CentralGaussian
    from tacit.release import Unit, View
    from tacit.statement import Past, account

    plan = Plan(5034, rounds=3, channel="secure_sum", delta=1e-6, target_epsilon=1.0)
    method = Gram(privacy=CentralGaussian()).calibrated(plan)
    releases = method.releases(plan)
    past, found = Past(plan.population, releases), list[float]()
    for runs in range(1, RUNS + 1):
        told = account(plan, releases, earlier=[past] * (runs - 1))
        lines = told.both if runs > 1 else told.totals
        [line] = [e for e in lines if e.unit is Unit.USER and e.view is View.RELEASE]
        assert line.epsilon is not None
        found.append(line.epsilon)
    return found


def ledger(is_wide: bool) -> Drawing:
    """Runs of epsilon 1 in one client's ledger, until the next would pass the cap."""
    spent = composed_epsilons()
    width = 640 if is_wide else NARROW
    size = 15 if is_wide else 13
    said = ", ".join(f"after run {n}: {e:.2f}" for n, e in enumerate(spent, start=1))
    drawing = Drawing(
        width, 52 * RUNS + 102, title="The ledger of one client", said=said
    )
    left = MARGIN + (64 if is_wide else 50)
    scale = (width - MARGIN - left - 40) / spent[-1]
    for place, epsilon in enumerate(spent):
        y = 52 + 52 * place
        refused = epsilon > CAP
        color = "warn" if refused else "good"
        drawing.text(MARGIN, y + 20, f"run {place + 1}", size=size)
        drawing.box(
            left,
            y,
            scale * epsilon,
            30,
            fill=f"{color}-fill",
            stroke=color,
            dashed=refused,
            radius=4,
        )
        told = f"ε {epsilon:.2f}, {'refused' if refused else 'said'}"
        drawing.text(left + 10, y + 20, told, size=size, bold=True, color=color)
    x, low = left + scale * CAP, 52 + 52 * RUNS
    drawing.line([(x, 36), (x, low - 12)], color="ink", dashed=True)
    drawing.text(
        x + 20, 27, f"the user's cap: ε {CAP:g}", size=size, bold=True, anchor="end"
    )
    drawing.text(
        MARGIN,
        low + 14,
        "Each run alone has ε 1. Together they cost",
        size=size - 1,
        color="quiet",
    )
    drawing.text(
        MARGIN,
        low + 14 + 1.3 * size,
        "less than their sum, and more than any of them.",
        size=size - 1,
        color="quiet",
    )
    return drawing


# --- The six cells -------------------------------------------------------------------

VIEWS = (
    ("collusion", ("server and", "aggregator")),
    ("server", ("the server", "alone")),
    ("release", ("everyone, by", "the model")),
)
UNITS = (("user", "a whole history"), ("item", "one interaction"))


def six_cells(is_wide: bool) -> Drawing:
    """Two units times three views; an arrow is an implication."""
    width = 640 if is_wide else NARROW
    size = 15 if is_wide else 12.5
    left, side = (150, 34) if is_wide else (90, 14)
    high, gap, top = 62, 42, 78
    said = "A promise for a cell holds for every cell that its arrows reach."
    drawing = Drawing(width, top + 2 * high + gap + 46, title="Six cells", said=said)
    wide = (width - MARGIN - left - 2 * side) / 3
    for column, (view, who) in enumerate(VIEWS):
        x = left + column * (wide + side)
        drawing.text(x + wide / 2, 26, view, size=size, bold=True, anchor="middle")
        drawing.text(
            x + wide / 2, 44, who, size=size - 2, color="quiet", anchor="middle"
        )
        for line, (unit, _) in enumerate(UNITS):
            y = top + line * (high + gap)
            drawing.box(x, y, wide, high, fill="good-fill", stroke="good")
            drawing.text(
                x + wide / 2,
                y + high / 2 - 3,
                [f"{unit} /", view],
                size=size,
                anchor="middle",
            )
            if column < 2:
                middle = y + high / 2
                drawing.line(
                    [(x + wide + 2, middle), (x + wide + side - 3, middle)], arrow=True
                )
        drawing.line(
            [(x + wide / 2, top + high + 3), (x + wide / 2, top + high + gap - 4)],
            arrow=True,
        )
    for line, (unit, what) in enumerate(UNITS):
        y = top + line * (high + gap) + high / 2 - 2
        drawing.text(MARGIN, y, unit, size=size, bold=True)
        words = [what] if is_wide else what.rsplit(" ", 1)
        drawing.text(MARGIN, y + 18, words, size=size - 2, color="quiet")
    drawing.text(
        MARGIN,
        top + 2 * high + gap + 28,
        "An arrow says: what is promised here holds there.",
        size=size - 1 if is_wide else 12.5,
        color="quiet",
    )
    return drawing


# --- The evidence --------------------------------------------------------------------

EPSILONS = (1.0, 2.0, 4.0, 8.0)


def frontier_figures() -> dict[str, list[float]]:
    """NDCG@100 on MovieLens 1M at each epsilon, as the methods' pages have it."""
    return {
        "Gram (ours)": [_floor(epsilon, 1) for epsilon in EPSILONS],
        "DPALS": [number(c) for c in row(DPALS, "epsilon", "DPALS")],
        "DP-VAE": [
            number(c) for c in row(DPVAE, "epsilon", "DP-VAE, sound, test users")
        ],
        "FedVAE": [
            number(c)
            for c in row(FEDVAE, "epsilon", "FedVAE, tied, latent 64, head 800")
        ],
        "private popularity": [_floor(epsilon, 2) for epsilon in EPSILONS],
    }


def _floor(epsilon: float, column: int) -> float:
    """A cell of the table of Gram beside private popularity: one line per epsilon."""
    text = (ROOT / GRAM).read_text("utf-8")
    start = f"| ml-1m (5,034 × 3,533) | {epsilon:g} |"
    [line] = [one for one in text.splitlines() if one.startswith(start)]
    return number(line.split("|")[2 + column].strip())


def attack_bars() -> list[Bar]:
    """How much of a history the server finds in one round (MovieLens 100K)."""
    shown = (
        ("none: the raw gradient", "no protection", False),
        ("clipping alone", "clipping alone", False),
        ("PrivUnitG on the device", "noise on the device, ε 8", True),
        ("`secure_sum` with noise", "noise on the sum, ε 8", True),
    )
    return [
        Bar(label, number(row(LEAKS, "mechanism", name)[2]), protected)
        for name, label, protected in shown
    ]


WHO = {
    "release": "everyone, by the model",
    "server": "the server",
    "collusion": "server and aggregator",
}


def promises() -> list[tuple[str, float | None, str]]:
    """What the demo promises a user: who looks, epsilon if there is one, standing."""
    from tacit.cli.demo import DELTA, EPSILON
    from tacit.methods.gram import Gram
    from tacit.plans import Plan
    from tacit.privacy import CentralGaussian
    from tacit.release import Unit
    from tacit.statement import account

    plan = Plan(
        1050, rounds=3, channel="secure_sum", delta=DELTA, target_epsilon=EPSILON
    )
    method = Gram(privacy=CentralGaussian()).calibrated(plan)
    lines = account(plan, method.releases(plan)).totals
    return [
        (WHO[line.view.value], line.epsilon, line.standing.value)
        for line in lines
        if line.unit is Unit.USER
    ]


def evidence(is_wide: bool) -> Drawing:
    """The frontier on MovieLens 1M, an attack on one round, and what is promised."""
    ease = number(row(GRAM, "without privacy, same split", "EASE")[0])
    chance = number(row(LEAKS, "mechanism", "guessing the most popular items")[2])
    series = frontier_figures()
    title = "How good private lists are, what a server finds out, what is promised"
    if is_wide:
        drawing = Drawing(WIDE, 350, title=title, said=_told(series, ease))
        areas = (
            Area(MARGIN, 78, 412, 258, 12.5),
            Area(462, 78, 188, 260, 12.5),
            Area(672, 78, WIDE - 672 - MARGIN, 260, 12.5),
        )
        for x in (444, 656):
            drawing.line([(x, 20), (x, 330)], color="line")
    else:
        drawing = Drawing(NARROW, 980, title=title, said=_told(series, ease))
        areas = (
            Area(MARGIN, 78, NARROW - 2 * MARGIN, 262, 12),
            Area(MARGIN, 428, NARROW - 2 * MARGIN, 246, 13),
            Area(MARGIN, 766, NARROW - 2 * MARGIN, 200, 13.5),
        )
        for y in (356, 694):
            drawing.line([(MARGIN, y), (NARROW - MARGIN, y)], color="line")
    curves, attack, card = areas
    _headed(drawing, curves, "How good lists are", "NDCG@100, MovieLens 1M")
    _headed(drawing, attack, "What leaks", "of a history, in one round")
    _headed(drawing, card, "What is promised", "the demo, a whole history")
    levels = {"EASE, no privacy": ease}
    lines = Frontier(EPSILONS, series, levels, low=0.15, top=0.45)
    lines.draw(drawing, curves)
    bars(drawing, attack, attack_bars(), chance=chance, said=f"| a guess: {chance:.0%}")
    _card(drawing, card)
    return drawing


# --- How many people a budget needs ---------------------------------------------------


def how_many(is_wide: bool) -> Drawing:
    """What so many people give without noise, and what everyone gives at an epsilon."""
    people = [125, 250, 500, 1000, 5034]  # six numbers do not fit on a phone
    curve = [number(row(BUDGETS, "people, no noise", f"{n:,}")[0]) for n in people]
    levels = {
        f"all at ε {epsilon}": number(
            row(BUDGETS, "5,034 people at epsilon", str(epsilon))[0]
        )
        for epsilon in (8, 4, 1)
    }
    invented = [2_000, 8_000, 32_000, 128_000]
    cells = [row(BUDGETS, "invented people", f"{n:,}") for n in invented]
    both = {
        name: [number(line[column]) for line in cells]
        for column, name in enumerate(("without noise", "all at ε 1"))
    }
    said = [
        *(
            f"{n:,} people without noise {v:.4f}"
            for n, v in zip(people, curve, strict=True)
        ),
        *(f"{name} {value:.4f}" for name, value in levels.items()),
    ]
    grows = [
        f"{n:,} people {bare:.4f} without noise, {noisy:.4f} at ε 1"
        for n, bare, noisy in zip(invented, *both.values(), strict=True)
    ]
    drawing, areas = _two_areas(
        is_wide,
        "How many people a budget needs",
        f"NDCG@100. MovieLens 1M: {'; '.join(said)}. "
        f"An invented world: {'; '.join(grows)}.",
    )
    lines = partial(
        Frontier,
        low=0.25,
        top=0.45,
        unit="",
        ends=("← fewer people", "more people →"),
    )
    _headed(drawing, areas[0], "MovieLens 1M", "NDCG@100 of some, without noise")
    lines(people, {"without noise": curve}, levels).draw(drawing, areas[0])
    _headed(drawing, areas[1], "An invented world", "NDCG@100 as it grows")
    lines(invented, both, {}).draw(drawing, areas[1])
    return drawing


def _two_areas(is_wide: bool, title: str, said: str) -> tuple[Drawing, list[Area]]:
    """Side by side, or on a phone below one another, with a line between."""
    if is_wide:
        drawing, half = Drawing(WIDE, 350, title=title, said=said), WIDE / 2
        drawing.line([(half, 20), (half, 330)], color="line")
        sides = (MARGIN, half + MARGIN)
        return drawing, [Area(x, 78, half - 2 * MARGIN, 262, 12) for x in sides]
    drawing = Drawing(NARROW, 700, title=title, said=said)
    drawing.line([(MARGIN, 350), (NARROW - MARGIN, 350)], color="line")
    return drawing, [Area(MARGIN, y, NARROW - 2 * MARGIN, 262, 11.5) for y in (78, 428)]


def _told(series: dict[str, list[float]], ease: float) -> str:
    """The curves in words, for those who hear the picture."""
    said = "; ".join(
        f"{name}: " + ", ".join(f"{value:.4f}" for value in values)
        for name, values in series.items()
    )
    return f"NDCG@100 at epsilon 1, 2, 4, 8. {said}; EASE without privacy {ease:.4f}."


def _card(drawing: Drawing, area: Area) -> None:
    """One box per observer with what is promised, or that nothing is."""
    size, high = area.size, 58
    for place, (who, epsilon, standing) in enumerate(promises()):
        y = area.y + place * (high + 12)
        color = "warn" if epsilon is None else "good"
        drawing.box(area.x, y, area.width, high, fill=f"{color}-fill", stroke=color)
        drawing.text(area.x + 10, y + 23, who, size=size)
        told = "no promise" if epsilon is None else f"ε {epsilon:.2f}"
        drawing.text(area.x + 10, y + 45, told, size=size, bold=True, color=color)
        drawing.text(
            area.x + area.width - 10,
            y + 45,
            standing,
            size=size - 1,
            bold=True,
            color=color,
            anchor="end",
        )


def _headed(drawing: Drawing, area: Area, title: str, below: str) -> None:
    drawing.text(area.x, area.y - 44, title, size=16, bold=True)
    drawing.text(area.x, area.y - 24, below, size=12.5, color="quiet")


# --- All of them ---------------------------------------------------------------------

FIGURES: dict[str, Callable[[bool], Drawing]] = {
    "overview": overview,
    "evidence": evidence,
    "who-sees-what": who_sees_what,
    "a-round": one_round,
    "how-many": how_many,
    "ledger": ledger,
    "six-cells": six_cells,
}


def files() -> dict[Path, str]:
    """The text of every picture by its place: NAME.svg and NAME-phone.svg."""
    return {
        FOLDER / f"{name}{'' if is_wide else '-phone'}.svg": draw(is_wide).svg()
        for name, draw in FIGURES.items()
        for is_wide in (True, False)
    }


def stale() -> list[str]:
    """The pictures that are not what this module draws now."""
    return [
        path.name
        for path, text in files().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]


def main() -> int:
    """Write all pictures, or say which ones are stale."""
    parser = argparse.ArgumentParser(description="Draws the pictures of the pages.")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    if parser.parse_args().check:
        found = stale()
        if found:
            print(f"stale: {', '.join(found)}; run python -m documentation.figures")
        return int(bool(found))
    FOLDER.mkdir(exist_ok=True)
    for path, text in files().items():
        path.write_text(text, "utf-8")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
