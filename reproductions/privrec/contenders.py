"""The contenders of Tables 1 and 2: an experiment file each, or a scorer beside one.

At full scale every cell is its file as it stands. Smaller scales change the data, the
rounds and the passes, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tacit.reproduction.cells import Cell, Found, Results
from tacit.reproduction.chance import best_by_chance
from tacit.reproduction.claims import Chance
from tacit.reproduction.study import Scale

from .beside import ScorerOf, central, counted, foretold, judged

HERE = Path(__file__).parent
EXPERIMENTS = HERE.parents[1] / "experiments" / "privrec"

PUBLISHED = ", as published"
QUIET = "DP-PrivRec, noise off"
COUNTED = "its features, counted"
FORETOLD = "its features, foretold"
CENTRAL = "PrivRec-CEN"
COUNTING = "method.count_rounds=20"  # of 300, or on Frappe of 60
HITS = "hr_each"  # the paper's Hits, each target alone
CENTRAL_RATE = "method.adapt_rate=0.02"  # docs/reproduction/privrec.md, Choices

Kind = Literal["published", "ours", "private", "other"]


@dataclass(frozen=True)
class Contender:
    """The experiment file of a contender; `{set}` stands for the data set's name."""

    file: str
    kind: Kind
    changes: tuple[str, ...] = ()
    is_shared: bool = True  # by `tacit train`; else the file is the study's own

    def path(self, data: str) -> Path:
        """The file for one of the data sets."""
        folder = EXPERIMENTS if self.is_shared else HERE
        return folder / f"{self.file.format(set=data)}.toml"


CONTENDERS: Mapping[str, Contender] = {
    f"PrivRec{PUBLISHED}": Contender("{set}-paper", "published"),
    # Figures 3 to 5 state no E1: it is PrivRec's beside it. The 1000 of the file are
    # those of the privacy loss, Section 4.4.
    f"DP-PrivRec{PUBLISHED}": Contender(
        "{set}-paper-dp", "published", ("run.rounds=100",)
    ),
    f"NN-SELF{PUBLISHED}": Contender("nn-self-{set}-paper", "published"),
    f"FOFL-SELF{PUBLISHED}": Contender("fofl-{set}-paper", "published"),
    "PrivRec": Contender("{set}", "ours"),
    "PrivRec, counting": Contender("{set}", "ours", (COUNTING,)),
    "DP-PrivRec": Contender("{set}-central", "private"),
    QUIET: Contender("{set}-noise-off", "private", is_shared=False),
    "NN-SELF": Contender("nn-self-{set}", "ours"),
    "FOFL-SELF": Contender("fofl-{set}", "ours"),
    "FCF": Contender("fcf", "other"),
    "noisy popularity": Contender("noisy-popularity", "other", is_shared=False),
}
BASELINES: Mapping[str, str] = {
    "popularity": "popularity",
    "item-kNN": "item_knn",
    "EASE": "ease",
    "iALS": "ials",
}
# Who is no experiment: on whose users it is judged, with which changes, and how.
BESIDE: Mapping[str, tuple[str, tuple[str, ...], ScorerOf]] = {
    f"{CENTRAL}{PUBLISHED}": (f"PrivRec{PUBLISHED}", (), central),
    CENTRAL: ("PrivRec", (CENTRAL_RATE,), central),
    COUNTED: (f"PrivRec{PUBLISHED}", (), counted),
    FORETOLD: (f"PrivRec{PUBLISHED}", (), foretold),
}


@dataclass(frozen=True)
class Bench:
    """A data set of the paper at one scale."""

    name: Literal["ml1m", "frappe"]
    scale: Scale

    @property
    def source(self) -> str:
        """Its name among the sources of data."""
        real = {"ml1m": "movielens-1m", "frappe": "frappe"}[self.name]
        return "synthetic" if self.scale == "smoke" else real

    @property
    def label(self) -> str:
        """Its name in a table, with the share of its users."""
        added = {"smoke": f", as {self.name}", "quick": ", a tenth of the users"}
        return f"{self.source}{added.get(self.scale, '')}"

    @property
    def over(self) -> str:
        """What standard errors are over."""
        return "seeds" if self.scale == "full" else "users"

    def cell(self, who: str, *changes: str, seeds: int | None = None) -> Cell:
        """A contender on this bench, with more changes."""
        if who in BASELINES:
            return self.cell("PrivRec", *changes, seeds=seeds).beside(BASELINES[who])
        if who in BESIDE:
            of, own, _ = BESIDE[who]
            return self.cell(of, *own, *changes, seeds=seeds)
        contender = CONTENDERS[who]
        n_seeds = seeds or (3 if self.scale == "full" else 1)
        return Cell(contender.path(self.name), seeds=n_seeds).but(
            f"data.source={self.source}",
            'evaluate.full_metrics=["ndcg@10", "recall@20"]',
            *contender.changes,
            *self._smaller(contender),
            *changes,
        )

    def trained(self, *who: str) -> tuple[Cell, ...]:
        """The cells to declare for these contenders."""
        return tuple(self.cell(one) for one in who if one not in BESIDE)

    def found(self, results: Results, who: str) -> Found:
        """What a contender yielded, of whichever kind it is."""
        cell = self.cell(who)
        if who not in BESIDE:
            return results[cell]
        *_, scorer = BESIDE[who]
        return judged(results, who, cell, scorer)

    def chance(self, results: Results) -> Chance:
        """The best of the random lists on the test users."""
        return best_by_chance(results, self.cell("popularity"))

    def _smaller(self, contender: Contender) -> Iterator[str]:
        """What a scale below the full one changes: data, rounds and passes."""
        passes = {"smoke": 1, "quick": 5}.get(self.scale)
        has_passes = not contender.file.startswith("nn-self")  # which has steps
        if passes and has_passes and contender.kind == "published":
            yield from (f"method.{when}_epochs={passes}" for when in ("local", "adapt"))
        if self.scale == "quick":
            yield f"data.subset={{users = {604 if self.name == 'ml1m' else 95}}}"
            yield from _QUICK[self.name, contender.kind]
        if self.scale == "smoke":
            yield _WORLD
            yield from _SMOKE[contender.kind]
            yield from _features_of_the_world(contender)


def _features_of_the_world(contender: Contender) -> Iterator[str]:
    """What the invented world knows of items and users, and a tiny network."""
    if contender.kind == "other":
        return
    yield from ("method.embedding=4", "method.widths=[4]")
    if contender.file.startswith("fofl"):  # over ids
        return
    yield f"method.items={['topics'] + ['year'] * (contender.kind != 'published')}"
    yield "method.people={age_group = 5, gender = 3, occupation = 6}"
    yield "method.situations={}"
    if contender.file.startswith("nn-self"):
        yield "method.inner_steps=1"
    if COUNTING in contender.changes:
        yield "method.count_rounds=1"


_WORLD = (
    "data.world={users = 60, items = 110, events_per_user = 50.0, "
    "activity_spread = 0.2, repeats = 0.0}"
)
_SMOKE: Mapping[Kind, tuple[str, ...]] = {
    "published": ("run.rounds=2", "run.sampler={name = 'fixed_size', size = 12}"),
    "ours": ("run.rounds=2", "run.sampler={name = 'poisson', rate = 0.3}"),
    "private": ("run.rounds=3", "run.sampler={name = 'poisson', rate = 0.3}"),
    "other": (),
}
# A tenth of the users has as many in a round as all of them have in the files.
_QUICK: Mapping[tuple[str, Kind], tuple[str, ...]] = {
    ("ml1m", "published"): ("run.rounds=10",),
    ("ml1m", "ours"): ("run.rounds=60", "run.sampler.rate=0.1"),
    ("ml1m", "private"): ("run.rounds=50", "run.sampler.rate=0.5"),
    ("ml1m", "other"): (),
    ("frappe", "published"): ("run.rounds=10",),
    ("frappe", "ours"): ("run.rounds=30", "run.sampler.rate=0.6"),
    ("frappe", "private"): ("run.rounds=30", "run.sampler.rate=0.5"),
    ("frappe", "other"): (),
}
