"""Figure 1: nDCG and recall by epoch, and what the text says of the curves.

    reaches     FedVAE ends at most 5 % below Mult-VAE, in nDCG, after as many epochs
    is faster   FedVAE_dec needs fewer epochs to 95 % of what FedVAE ends with
    is steadier FedVAE_dec falls less far below its best so far than the larger rate
                without decay
    ends above  the whole 95 % interval of the paired difference is above zero

Curves are of the validation users, ends of the test users; nothing is chosen on either.
The experiment files have the paper's first weights from N(0, 1), which are one curve of
each data set; the others start from Glorot's, since literal ones learn next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit.reproduction.cells import Cell, Found, Results
from tacit.reproduction.chance import best_by_chance
from tacit.reproduction.claims import Chance, difference, evidence, is_above, is_learnt
from tacit.reproduction.study import Table
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)

EXPERIMENTS = Path(__file__).parents[2] / "experiments" / "fedvae"
GAMMAS = (1.0, 3.0, 5.0)  # Section V-A
EPOCHS = 100  # Section V-B, and in the experiment files
CLOSE, MOST = 0.05, 0.95
NEVER_REACHED = "filmtrust"  # the paper's own exception
CENTRAL, POPULARITY = "Mult-VAE", "popularity"
PLAIN, LITERAL = "FedVAE", "FedVAE, first weights N(0, 1)"


@dataclass(frozen=True)
class Bench:
    """A data set, how many users train and are in a round, and which curves it gets."""

    source: str
    file: str  # of experiments/fedvae
    trained: int
    cohort: int  # R
    epochs: int = EPOCHS
    gammas: tuple[float, ...] = GAMMAS[-1:]  # with decay and without
    changes: tuple[str, ...] = ()  # what makes the experiment file fit the data

    @property
    def rounds_per_epoch(self) -> int:
        """M, the least with M R at least the number of users who train."""
        return math.ceil(self.trained / self.cohort)

    def cell(self, *changes: str) -> Cell:
        """FedVAE to the letter, with more changes; the file as it is at full scale."""
        own = Cell(EXPERIMENTS / f"{self.file}.toml").but(*self.changes)
        if self.epochs != EPOCHS:
            own = own.but(
                f"run.rounds={self.epochs * self.rounds_per_epoch}",
                f"evaluate.baseline_settings.mult_vae.epochs={self.epochs}",
            )
        return own.but(*changes)

    def cells(self) -> dict[str, Cell]:
        """All contenders by their names."""
        literal, usual = self.cell(), self.cell("method.init=xavier")
        boosts = {gamma: usual.but(f"method.boost={gamma}") for gamma in self.gammas}
        return {
            CENTRAL: literal.beside("mult_vae"),
            PLAIN: usual,
            **{boosted(gamma): cell for gamma, cell in boosts.items()},
            **{larger(g): cell.but("method.decay=1.0") for g, cell in boosts.items()},
            LITERAL: literal,
            POPULARITY: literal.beside("popularity"),
        }


def boosted(gamma: float) -> str:
    """The name of FedVAE_dec: a boost that decays."""
    return f"FedVAE_dec, gamma {gamma:g}"


def larger(gamma: float) -> str:
    """The name of the same boost without decay: a larger rate."""
    return f"FedVAE, gamma {gamma:g}"


def figure_1(benches: Sequence[Bench], absent: tuple[Row, ...]) -> Table:
    """On every data set of the scale; those left out have a row that says why."""
    cells = {bench: bench.cells() for bench in benches}

    def make(results: Results) -> Reproduction:
        panels = [
            Panel(
                bench,
                {name: results[cell] for name, cell in own.items()},
                best_by_chance(results, own[POPULARITY]),
            )
            for bench, own in cells.items()
        ]
        rest = (ReproducedTable("Figure 1, sets left out", absent),) if absent else ()
        whole = Reproduction(rest, (reached(panels),))
        return Reproduction.joined([*(panel.made() for panel in panels), whole])

    return Table(make, tuple(cell for own in cells.values() for cell in own.values()))


def epochs_to(curve: Line, level: float) -> float | None:
    """The first epoch looked at with at least this mean; None if there is none."""
    looks = zip(curve.x, curve.y, strict=True)
    return next((epoch for epoch, mean in looks if mean >= level), None)


def largest_drop(curve: Line) -> float:
    """How far the mean falls below its best so far, at the worst."""
    best, drop = 0.0, 0.0
    for mean in curve.y:
        best = max(best, mean)
        drop = max(drop, best - mean)
    return drop


@dataclass(frozen=True, eq=False)
class Panel:
    """One data set of the figure: what every contender yielded, by name."""

    bench: Bench
    found: Mapping[str, Found]
    chance: Chance

    @property
    def metrics(self) -> tuple[str, ...]:
        """NDCG, which claims are about, then recall."""
        return tuple(self.found[PLAIN].evaluations[0].values)

    def curve(self, contender: str, metric: str | None = None) -> Line:
        """By epoch; the log of a run counts rounds. NDCG if no metric is named."""
        line = self.found[contender].curve(metric or self.metrics[0])
        epochs = tuple(x / self.bench.rounds_per_epoch for x in line.x)
        return Line(epochs, line.y, line.se)

    def gap(self, contender: str = PLAIN) -> float:
        """By which share it ends above Mult-VAE."""
        ends = (self.found[who].mean(self.metrics[0]) for who in (contender, CENTRAL))
        return next(ends) / next(ends) - 1

    def epochs_to_most(self, contender: str) -> float | None:
        """After how many epochs it has 95 % of what FedVAE ends with."""
        return epochs_to(self.curve(contender), MOST * self.curve(PLAIN).y[-1])

    def made(self) -> Reproduction:
        """Its table, its claims and its charts."""
        name = f"Figure 1, {self.bench.source}, after {self.bench.epochs} epochs"
        rows = tuple(self._row(who) for who in self.found if who != POPULARITY)
        table = ReproducedTable(name, rows)
        return Reproduction((table,), tuple(self.claims()), tuple(self._charts()))

    def _row(self, contender: str) -> Row:
        found, (ndcg, recall) = self.found[contender], self.metrics
        beside = {recall: found.mean(recall)}
        beside["popularity"] = self.found[POPULARITY].mean(ndcg)
        if found.runs:  # a baseline has no curve
            beside["largest drop"] = largest_drop(self.curve(contender))
            if (epochs := self.epochs_to_most(contender)) is not None:
                rounds = epochs * self.bench.rounds_per_epoch
                beside |= {"epochs to 95 % of FedVAE": epochs, "rounds to it": rounds}
        label, mean, se = f"{contender}, {ndcg}", found.mean(ndcg), found.se(ndcg)
        return Row(label, None, mean, None, ok=True, beside=beside, se=se)

    def claims(self) -> Iterator[Claim]:
        """What the text says, of the largest gamma, which the paper recommends."""
        dec, rate = (name(self.bench.gammas[-1]) for name in (boosted, larger))
        yield self._reaches(PLAIN)
        yield self._reaches(LITERAL)
        yield self._is_faster(dec)
        yield self._is_steadier(dec, rate)
        for other in (rate, CENTRAL, PLAIN):
            yield is_above(
                f"{self.bench.source}: {dec}, ends above {other}",
                *(self.found[who].evaluations for who in (dec, other)),
                metric=self.metrics[0],
                chance=self.chance,
            )

    def _reaches(self, contender: str) -> Claim:
        ours, central = (self.found[who].evaluations for who in (contender, CENTRAL))
        ndcg, gap = self.metrics[0], self.gap(contender)
        text = f"{contender}, reaches Mult-VAE within {self.bench.epochs} epochs"
        said = f"{gap:+.1%}; {evidence(difference(ours, central, ndcg), ndcg)}"
        return self._claim(contender, text, gap >= -CLOSE, said)

    def _is_faster(self, dec: str) -> Claim:
        ours, plain = (self.epochs_to_most(who) for who in (dec, PLAIN))
        assert plain is not None, "FedVAE passes 95 % of its own last value"
        text = f"{dec}, is sooner at 95 % of FedVAE's last {self.metrics[0]}"
        said = f"{f'{ours:g}' if ours else 'more than all'} epochs, FedVAE {plain:g}"
        return self._claim(dec, text, ours is not None and ours < plain, said)

    def _is_steadier(self, dec: str, rate: str) -> Claim:
        steady, shaky = (largest_drop(self.curve(who)) for who in (dec, rate))
        text = f"{rate}, is less stable than with decay"
        said = f"at worst {shaky:.3f} below its best so far; with it {steady:.3f}"
        return self._claim(dec, text, shaky > steady, said)

    def _claim(self, contender: str, text: str, is_so: bool, said: str) -> Claim:
        """Holds only if the contender that it speaks well of has learnt something."""
        return is_learnt(
            Claim(f"{self.bench.source}: {text}", is_so, said), *self.learnt(contender)
        )

    def learnt(self, contender: str) -> tuple[float, float]:
        """A contender's mean of the first metric, and that of the best random list."""
        metric = self.metrics[0]
        return self.found[contender].mean(metric), self.chance[metric]

    def _charts(self) -> Iterator[Chart]:
        """As in the paper: left without decay, right with it; both metrics.

        The levels are where baselines end on the test users.
        """
        sides = {
            "a larger rate": [larger(g) for g in self.bench.gammas],
            "a decaying boost": [boosted(g) for g in self.bench.gammas],
            "first weights": [LITERAL],
        }
        for metric in self.metrics:
            levels = {
                f"{who}, at its end": self.found[who].mean(metric)
                for who in (CENTRAL, POPULARITY)
            }
            for side, shown in sides.items():
                lines = {who: self.curve(who, metric) for who in (PLAIN, *shown)}
                title = f"Figure 1: {self.bench.source}, {metric}, {side}"
                yield Chart(title, "epoch", metric, lines, levels)


def reached(panels: Sequence[Panel]) -> Claim:
    """The paper's sentence about all data sets at once."""
    gaps = {panel.bench.source: panel.gap() for panel in panels}
    asked = [gap for source, gap in gaps.items() if source != NEVER_REACHED]
    claim = Claim(
        "FedVAE reaches Mult-VAE on every set but FilmTrust",
        bool(asked) and min(asked) >= -CLOSE,
        "; ".join(f"{source} {gap:+.1%}" for source, gap in gaps.items())
        or "no data set is at hand",
    )
    for panel in panels:
        if panel.bench.source != NEVER_REACHED:
            claim = is_learnt(claim, *panel.learnt(PLAIN))
    return claim
