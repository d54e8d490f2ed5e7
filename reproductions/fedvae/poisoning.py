"""FedVAE among attackers: the paper says that Krum makes it robust and shows no attack.

Krum is told the true number of attackers; a real server is not. A row has NDCG@100 of
test users (`sound` where noise protects it) and, beside it, how many of them are shown
the item that promoters promote, though they never chose it. What a claim asks was set
after a first look at validation users, and before the runs on test users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tacit.errors import Refused
from tacit.reproduction.cells import Cell, Results, has_data
from tacit.reproduction.chance import best_by_chance
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
from tacit.sampling import FixedSize

from .attacked import (
    ALONE,
    FLIPPED,
    LOUD,
    NDCG,
    PLAIN_ATTACKS,
    SPREAD,
    STEALTHY,
    Outcome,
    outcome,
    popularity,
)

HERE = Path(__file__).parent
REAL, WORLD = "movielens-1m", "synthetic-1m"
IN_10, IN_20 = "shown in top 10", "shown in top 20"
NONE, KRUM, MULTI_KRUM = "no defense", "Krum", "multi-Krum"
MEDIAN, TRIMMED = "median of 50 groups", "trimmed mean of 50 groups"
NOISE, NOISY_GROUPS = "noise, epsilon 8", "noise, epsilon 8, median of 5 groups"
PRIVATE = (NOISE, NOISY_GROUPS)
DEFENSES: Mapping[str, tuple[str, ...]] = {  # f: how many of a cohort attack
    NONE: (),
    KRUM: ("method.attackers={f}", "method.keep=1"),
    MULTI_KRUM: ("method.attackers={f}",),
    MEDIAN: ("method.groups=50",),
    TRIMMED: ("method.groups=50", "method.statistic=trimmed", "method.trim=20"),
    NOISE: (),
    NOISY_GROUPS: ("method.groups=5",),
}
BY_NOISE = (FLIPPED, STEALTHY)  # a clip makes longer reports the same
CLOSE = 0.95  # of what is reached without attackers

Met = Mapping[str, Sequence[str]]  # defense -> the attacks it meets


@dataclass(frozen=True)
class Bench:
    """Where and how often attackers meet defenses."""

    source: str
    seeds: int
    shares: tuple[float, ...]  # of attackers in a cohort
    changes: tuple[str, ...] = ()
    only_plain: tuple[str, ...] = ()  # changes where cohorts have one size
    only_private: tuple[str, ...] = ()

    @property
    def middle(self) -> float:
        """The share that claims are about."""
        return self.shares[len(self.shares) // 2]

    @cached_property
    def cohort(self) -> int:
        """How many users are in a round where nobody adds noise."""
        sampler = self.cell(NONE).experiments()[0].sampler
        assert isinstance(sampler, FixedSize)
        return sampler.size

    def attackers(self, share: float) -> int:
        """How many of a cohort attack."""
        return round(share * self.cohort)

    def cell(self, defense: str, f: int = 0) -> Cell:
        """A defense that is told of `f` attackers."""
        is_private = defense in PRIVATE
        file = "poisoning-private" if is_private else "poisoning"
        own = self.only_private if is_private else self.only_plain
        told = (change.format(f=f) for change in DEFENSES[defense])
        return Cell(HERE / f"{file}.toml", seeds=self.seeds).but(
            f"data.source={self.source}", *self.changes, *own, *told
        )


SMOKE = Bench(
    "synthetic",
    seeds=2,
    shares=(0.1, 0.2),
    changes=(
        "data.world={users = 160, items = 60, events_per_user = 12.0, repeats = 0.0}",
        "data.min_interactions=2",
        "data.subset={items = 40, choose = 'popular'}",
        "data.validation=20",
        "data.test=40",
        "run.rounds=2",
    ),
    only_plain=("run.sampler.size=30",),
    only_private=("run.sampler={name = 'everyone'}",),  # which needs no costly account
)


def poisoning(scale: Scale) -> Table:
    """Attacks at several shares of a cohort; quick has one seed and one share."""
    noisy: Met = {NOISE: BY_NOISE, NOISY_GROUPS: (*BY_NOISE, SPREAD)}
    if scale == "smoke":
        return attacked_table(SMOKE, {NONE: (FLIPPED, STEALTHY), NOISE: (STEALTHY,)})
    source = REAL if has_data(REAL) else WORLD
    if scale == "full":
        bench = Bench(source, 3, (0.05, 0.1, 0.2))
        return attacked_table(bench, {d: noisy.get(d, PLAIN_ATTACKS) for d in DEFENSES})
    some = {d: (FLIPPED, LOUD, STEALTHY) for d in DEFENSES if d != TRIMMED}
    return attacked_table(Bench(source, 1, (0.1,)), {**some, **noisy})


def attacked_table(bench: Bench, met: Met) -> Table:
    """A table per defense, a chart per attack, and what follows.

    Attackers are no setting of an experiment, so no cell is declared: every trial is
    kept by itself.
    """

    def make(results: Results) -> Reproduction:
        poisoned = Poisoned(bench, met, results)
        tables = tuple(poisoned.tables())
        return Reproduction(tables, poisoned.claims(), tuple(poisoned.charts()))

    return Table(make)


@dataclass(frozen=True, eq=False)
class Poisoned:
    """All trials of a bench: trained now, or read."""

    bench: Bench
    met: Met
    results: Results
    _known: dict[tuple[str, str | None, float], Outcome] = field(default_factory=dict)

    def outcome(
        self, defense: str, attack: str | None = None, share: float = 0.0
    ) -> Outcome:
        """Krum is told how many attack; where nobody does it is told of none."""
        asked = (defense, attack, share)
        if asked not in self._known:
            cell = self.bench.cell(defense, self.bench.attackers(share))
            self._known[asked] = self._trained(cell, defense, attack, share)
        return self._known[asked]

    def _trained(
        self, cell: Cell, defense: str, attack: str | None = None, share: float = 0.0
    ) -> Outcome:
        return outcome(self.results, cell, attack, share, defense=defense)

    @cached_property
    def popularity(self) -> float:
        """The NDCG@100 of counting alone, on the same test users."""
        return popularity(self.results, self.bench.cell(NONE)).ndcg.mean

    def tables(self) -> Iterator[ReproducedTable]:
        """A table per defense."""
        counted = self.popularity
        for defense, attacks in self.met.items():
            shares = self._shares(defense)
            pairs = [(attack, share) for attack in attacks for share in shares]
            rows = [self._row(defense, None, 0.0, counted)]
            rows += [self._row(defense, *pair, counted) for pair in pairs]
            name = f"Poisoning, {defense}, NDCG@100 ({self.bench.source})"
            yield ReproducedTable(name, tuple(rows))

    def _shares(self, defense: str) -> tuple[float, ...]:
        """Runs under noise have six times the users, so they get one share alone."""
        return (self.bench.middle,) if defense in PRIVATE else self.bench.shares

    def _row(
        self, defense: str, attack: str | None, share: float, counted: float
    ) -> Row:
        found = self.outcome(defense, attack, share)
        is_private = defense in PRIVATE
        shown = {IN_10: found.in_10.mean, IN_20: found.in_20.mean}
        return Row(
            f"{attack}, {share:.0%} attack" if attack else "nobody attacks",
            published=None,
            paper=None if is_private else found.ndcg.mean,
            sound=found.ndcg.mean if is_private else None,
            ok=True,
            beside={**shown, "popularity": counted},
            se=found.ndcg.se,
        )

    def charts(self) -> Iterator[Chart]:
        """Accuracy by the share of attackers, or exposure of a promoted item."""
        for attack in PLAIN_ATTACKS:
            lines = {
                defense: self._line(defense, attack)
                for defense, attacks in self.met.items()
                if attack in attacks and defense not in PRIVATE
            }
            if lines:
                y = IN_10 if _is_promoting(attack) else "NDCG@100"
                name = f"Poisoning: {attack} ({self.bench.source})"
                over = "seeds" if self.bench.seeds > 1 else "users"
                yield Chart(name, "attackers, % of a cohort", y, lines, over=over)

    def _line(self, defense: str, attack: str) -> Line:
        shares = self.bench.shares
        found = [self.outcome(defense)]
        found += [self.outcome(defense, attack, share) for share in shares]
        shown = [one.in_10 if _is_promoting(attack) else one.ndcg for one in found]
        return Line(
            tuple(100 * share for share in (0.0, *shares)),
            tuple(metric.mean for metric in shown),
            tuple(metric.se or 0.0 for metric in shown),
        )

    def claims(self) -> tuple[Claim, ...]:
        """What follows for the paper's claim, at the middle share of attackers."""
        return (
            self._one_is_enough(),
            self._krum_holds(),
            self._more_than_assumed(),
            self._too_many_assumed(),
            self._stealth_passes(),
            self._clip_bounds(),
        )

    def _one_is_enough(self) -> Claim:
        n, free = self.bench.cohort, self.outcome(NONE)
        alone = self.outcome(NONE, ALONE, 1 / n)
        counted = self.popularity
        return Claim(
            f"one attacker in {n} ({ALONE}) makes a mean worse than popularity",
            alone.ndcg.mean < counted,
            f"{_said(alone)}; popularity {counted:.3f}, no attacker {_said(free)}",
        )

    def _krum_holds(self) -> Claim:
        share, free = self.bench.middle, self.outcome(MULTI_KRUM)
        found = {a: self.outcome(MULTI_KRUM, a, share) for a in (FLIPPED, LOUD)}
        is_close = all(o.ndcg.mean >= CLOSE * free.ndcg.mean for o in found.values())
        shown = found[LOUD].in_10.mean
        said = ", ".join(f"{attack} {_said(one)}" for attack, one in found.items())
        claim = Claim(
            f"multi-Krum holds against {share:.0%} loud attackers, if told how many",
            is_close and shown < 0.05,
            f"{said}, without {_said(free)}; {shown:.0%} are shown the promoted item",
        )
        return self._learnt(claim, *found.values())

    def _more_than_assumed(self) -> Claim:
        share, free = self.bench.middle, self.outcome(MULTI_KRUM)
        half = self.bench.cell(MULTI_KRUM, self.bench.attackers(share) // 2)
        found = self._trained(half, "multi-Krum, half assumed", ALONE, share)
        claim = Claim(
            f"multi-Krum that assumes half of the {share:.0%} ({ALONE}) still holds",
            found.ndcg.mean >= CLOSE * free.ndcg.mean,
            f"{_said(found)}: it must keep all but f, and keeps attackers",
        )
        return self._learnt(claim, found)

    def _too_many_assumed(self) -> Claim:
        n = self.bench.cohort
        f = n // 2 - 1
        text = f"Krum refuses to assume {f} attackers among {n} (n < 2 f + 3)"
        try:
            self._trained(self.bench.cell(MULTI_KRUM, f), f"{MULTI_KRUM} of {f}")
        except Refused as refusal:
            return Claim(text, True, str(refusal))
        return Claim(text, False, "it ran")

    def _stealth_passes(self) -> Claim:
        share = self.bench.middle
        found, bare = (self.outcome(d, STEALTHY, share) for d in (MULTI_KRUM, NONE))
        return Claim(
            "a promoting report as long as the median honest one passes multi-Krum",
            found.in_10.mean > 0.5,
            f"{found.in_10.mean:.0%} are shown the item in their top 10, "
            f"{bare.in_10.mean:.0%} without Krum; nDCG@100 {_said(found)}",
        )

    def _clip_bounds(self) -> Claim:
        share, free = self.bench.middle, self.outcome(NOISE)
        found = self.outcome(NOISE, FLIPPED, share)
        kept = 1 - share
        claim = Claim(
            f"a clip and noise keep {kept:.0%} if {share:.0%} of reports are flipped",
            found.ndcg.mean >= kept * free.ndcg.mean,
            f"{_said(found)}, without {_said(free)}",
        )
        return self._learnt(claim, found)

    def _learnt(self, claim: Claim, *found: Outcome) -> Claim:
        """What nobody learnt, no attacker can take away."""
        by = best_by_chance(self.results, self.bench.cell(NONE))
        return is_learnt(claim, min(one.ndcg.mean for one in found), by[NDCG])


def _is_promoting(attack: str) -> bool:
    return attack in (LOUD, STEALTHY)


def _said(found: Outcome) -> str:
    return f"{found.ndcg.mean:.3f}"
