"""The data sets of the study, and DP-VAE's cells on each.

    ML-100K   MovieLens 100K, as in the paper
    ML-20M    MovieLens 1M stands in for it, with the paper's settings for ML-20M
    Netflix   MovieLens 1M stands in for it, with the paper's settings for Netflix

A full run has the archives themselves where they are at hand, for what needs no priors.

A cell is to the letter (`paper`, with the noise of Algorithm 3), the same network and
steps without clip and noise (`vae`), or sound at a proven epsilon (`sound`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tacit.reproduction.cells import Cell
from tacit.reproduction.published import Published

HERE = Path(__file__).parent
EXPERIMENTS = HERE.parents[1] / "experiments" / "dpvae"
PUBLISHED = Published.read(HERE / "published.toml")

METRICS = {"ndcg@100": "NDCG@100", "recall@20": "Recall@20", "recall@50": "Recall@50"}
MAIN = "ndcg@100"
TRAINED = 0.8  # of the ratings, Section 4.1.1
MOST_EPSILON = 1.0  # users choose theirs in (0, 1], Section 4.1.3
WORD_FILES = ("glove.6B.50d.txt", "glove.6B.50d.zip", "glove.6B.50d.trimmed.zip")

# With noise, the same of Table 8 and Figure 3, and without noise.
QUICK_EPOCHS = {"ML-100K": (1, 3, 30), "ML-20M": (0.07, 0.07, 5)}

SOURCES = {  # of the paper
    "ML-100K": "movielens-100k",
    "ML-20M": "movielens-20m",
    "Netflix": "netflix-prize",
}

Data = Literal["OL", "PD"]  # the original data, or the pre-processed ones


@dataclass(frozen=True)
class Bench:
    """A data set of the paper, what stands in for it, and how long a scale trains.

    `users` are those who train, on original and on pre-processed data. Epochs of runs
    with and without noise differ only where a scale has fewer than the paper: a round
    with noise takes up to thirty times as long as one without. DP-VAE of Table 8 may
    have more epochs than the other runs with noise.
    """

    name: str  # in the paper
    source: str
    letter: str  # of its experiment files: -paper and -vae are to the letter
    files: str  # of the others: -sound and -mf
    clip: float  # S of Tables 5 to 7
    batch: int
    users: Mapping[Data, int]
    noisy_epochs: float
    main_epochs: float  # with noise, of DP-VAE in Table 8 and Figure 3
    epochs: float  # without noise
    words: Path | None  # vectors of words, for priors
    kinds: tuple[str, ...] = ("gender", "age_group", "occupation", "zip")
    # Section 3.2 with the paper's omega, delta and p
    construction: str = "data.construction={}"
    seeds: int = 1
    neighbors: tuple[int, ...] = tuple(range(1, 41))  # K, Table 4
    latent: int = 20
    data_changes: tuple[str, ...] = ()  # what makes the files fit other data
    baseline_changes: tuple[str, ...] = ()  # the same, of baselines
    changes: tuple[str, ...] = ()  # the same, of runs to the letter
    sound_changes: tuple[str, ...] = ()  # the same, of sound mode
    dpmf_changes: tuple[str, ...] = ()  # the same, of DPMF
    noise_delta: float | None = None  # of paper mode, if not the file's

    @property
    def is_stand_in(self) -> bool:
        """Whether the paper's figures are of other data."""
        return self.source != SOURCES[self.name]

    @property
    def label(self) -> str:
        """The data set in words, and what stands in for it."""
        return (
            f"{self.name}: {self.source} stands in" if self.is_stand_in else self.name
        )

    @property
    def over(self) -> str:
        """What standard errors are over."""
        return "users" if self.seeds == 1 else "seeds"

    @property
    def usual(self) -> Data:
        """The data of Tables 6, 7 and 9: pre-processed, but for ML-100K."""
        return "OL" if self.name == "ML-100K" else "PD"

    def rounds(self, epochs: float, data: Data) -> int:
        """Rounds in so many epochs, at least one."""
        return max(1, round(epochs * math.ceil(self.users[data] / self.batch)))

    # cells

    def paper(
        self,
        data: Data | None = None,
        *changes: str,
        priors: bool = False,
        clip: float | None = None,
    ) -> Cell:
        """Algorithm 3 with its noise; without a clip that of Algorithm 2."""
        rounds = self.rounds(self.noisy_epochs, data or self.usual)
        cell = self._cell(f"{self.letter}-paper", data, *self.changes, *changes)
        cell = cell.but(f"run.rounds={rounds}")
        if self.noise_delta is not None:
            cell = cell.but(f"privacy.noise_delta={self.noise_delta}")
        if clip is not None:
            cell = cell.but(f"privacy.clip={clip}")
        return self.with_priors(cell, "users") if priors else cell

    def main(self) -> Cell:
        """DP-VAE of Table 8 and Figure 3: optimal clip and priors."""
        return replace(self, noisy_epochs=self.main_epochs).paper(priors=True)

    def vae(
        self, data: Data | None = None, *changes: str, priors: bool = False
    ) -> Cell:
        """The same network and steps without clip and noise."""
        rounds = self.rounds(self.epochs, data or self.usual)
        cell = self._vae(data, *self.changes, *changes).but(f"run.rounds={rounds}")
        return self.with_priors(cell, "users") if priors else cell

    def beside(self, baseline: str, data: Data | None = None) -> Cell:
        """A baseline on the same split; Mult-VAE has as many epochs as the VAE."""
        epochs = max(1, math.ceil(self.epochs))
        adam = f"evaluate.baseline_settings.mult_vae.epochs={epochs}"
        return self._vae(data, adam).beside(baseline)

    def sound(self, data: Data | None = None, *changes: str) -> Cell:
        """Sound mode, everyone at the file's epsilon."""
        return self._cell(f"{self.files}-sound", data, *self.sound_changes, *changes)

    def dpmf(self, data: Data | None = None) -> Cell:
        """DPMF, everyone at the file's epsilon."""
        return self._cell(f"{self.files}-mf", data, *self.dpmf_changes)

    def with_priors(self, cell: Cell, means: Literal["labels", "users"]) -> Cell:
        """A cell whose users have priors from metadata; the words must be at hand."""
        kinds = ", ".join(f"'{kind}'" for kind in self.kinds)
        vectors = f"words = '{self.words}', of = [{kinds}], means = '{means}'"
        return cell.but(
            f"data.metadata_vectors={{{vectors}}}", f"method.priors=[{kinds}]"
        )

    def _vae(self, data: Data | None, *changes: str) -> Cell:
        return self._cell(f"{self.letter}-vae", data, *self.baseline_changes, *changes)

    def _cell(self, file: str, data: Data | None, *changes: str) -> Cell:
        is_constructed = (data or self.usual) == "PD"
        constructed = (self.construction,) if is_constructed else ()
        cell = Cell(EXPERIMENTS / f"{file}.toml", seeds=self.seeds)
        return cell.but(*self.data_changes, *constructed, *changes)


def word_file() -> Path | None:
    """The file of GloVe's vectors with 50 dimensions in $TACIT_DATA, if it is there."""
    folder = os.environ.get("TACIT_DATA")
    places = [Path(folder) / name for name in WORD_FILES] if folder else []
    return next((path.resolve() for path in places if path.is_file()), None)


def as_published(name: str, words: Path | None) -> Bench:
    """A data set with the paper's epochs and five seeds."""
    line, is_small = PUBLISHED["table-3"].values[name], name == "ML-100K"
    files = {
        "ML-100K": ("ml100k", "ml100k"),
        "ML-20M": ("ml1m-as-ml20m", "ml1m"),
        "Netflix": ("ml1m-as-netflix", "ml1m"),
    }
    return Bench(
        name,
        "movielens-100k" if is_small else "movielens-1m",
        *files[name],
        clip=1.5 if is_small else 2.0,  # Section 4.2.2
        batch=line["batch"],
        users={"OL": 943, "PD": 697} if is_small else {"OL": 6040, "PD": 3482},
        noisy_epochs=line["epochs"],
        main_epochs=line["epochs"],
        epochs=line["epochs"],
        words=words,
        seeds=5,  # Section 4.1.5
        latent=line["latent"],
    )


def of_the_paper(name: str) -> Bench:
    """ML-20M or Netflix as in the paper; they say nothing of users: no priors.

    Of Netflix so many users are drawn as Table 2 has; the paper extracts "around 70
    million ratings" at random and does not say how.
    """
    source, original = SOURCES[name], PUBLISHED["table-2-original"].values[name]
    drawn = (f"data.subset={{users = {original['users']}}}",)
    return replace(
        as_published(name, words=None),
        source=source,
        users={
            "OL": original["users"],
            "PD": PUBLISHED["table-2"].values[name]["users"],
        },
        kinds=(),
        data_changes=(
            f"data.source={source}",
            *(drawn if name == "Netflix" else ()),
        ),
        noise_delta=1 / (TRAINED * original["ratings"]),  # Section 4.1.3
    )


def quick(name: str, words: Path | None) -> Bench:
    """One seed, and as many epochs as a quarter of an hour allows for all tables.

    After one epoch of ML-100K the VAE without noise is no better than random lists,
    after three it is: so many has DP-VAE of Table 8. The others with noise are too
    short to tell its effect from that of a short run.
    """
    noisy, main, plain = QUICK_EPOCHS[name]
    return replace(
        as_published(name, words),
        noisy_epochs=noisy,
        main_epochs=main,
        epochs=plain,
        seeds=1,
        neighbors=(1, 5, 10, 20, 30, 40),
    )


_WORLD = (
    "data.source=synthetic",
    "data.world={users = 120, items = 60, events_per_user = 30.0, "
    "activity_spread = 0.2, demographics = 0.5, repeats = 0.0}",
)
_SMALL_NETWORK = ("method.hidden=6", "method.latent=4", "method.examples=3")
_SMALL_BASELINES = (
    "evaluate.baseline_settings.pure_svd.factors=8",
    "evaluate.baseline_settings.mult_vae={hidden = [6], latent = 4, epochs = 2, "
    "batch = 20}",
)


def smoke(name: str) -> Bench:
    """An invented world on which every step takes a moment."""
    return replace(
        as_published(name, HERE / "invented-words.txt"),
        source="synthetic",
        batch=40,
        users={"OL": 120, "PD": 120},
        noisy_epochs=1,
        main_epochs=2,
        epochs=2,
        kinds=("gender", "age_group", "occupation"),
        seeds=1,
        neighbors=(1, 5),
        latent=4,
        construction="data.construction={least = 0.02}",
        data_changes=_WORLD,
        baseline_changes=_SMALL_BASELINES,
        changes=(*_SMALL_NETWORK, "run.sampler.size=40"),
        # Everyone in every round: what is sampled takes seconds to calibrate.
        sound_changes=(
            "method.head=20",
            "method.latent=4",
            "run.rounds=4",
            "run.sampler={name = 'everyone'}",
        ),
        dpmf_changes=(
            "method.head=20",
            "method.factors=3",
            "run.rounds=4",
            "run.sampler={name = 'everyone'}",
        ),
    )
