"""What randomised reports of clicks teach: a model that is fitted to their likelihood.

    v_c   public vector of a news             u   expected mean history of a user
    W     projection, at first the identity   g   taste that all users share, at first 0
    e_c   effect of a news, at first 0        a   scale of the scores

    score(c) = a (W u)·(W v_c) + g·v_c + e_c,      p = softmax over the slate

A client names one of the n items of its slate by randomised response, so a report names
c with chance o + (k - o) p_c, where k and o are the known chances of a true report and
of each false one (Patrini et al. 2017: forward correction). If only m items of the
slate were sent, the reported one and m - 1 drawn from the others, the chance that it is
c among them is

    q_c = l + (1 - m l) p_c,      l = o / (m o + (k - o) m / n)

with p over these m; it is exact for m = n. The parameters are those of the largest
posterior under independent normal priors around the start. Where reports are mostly
noise the likelihood is flat, and the model stays at content similarity. Reports are
read as often as one likes: all of this comes after the randomisation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.sparse as sp
from jaxtyping import Float64, Int64

from tacit.data.ragged import Ragged

Items = Float64[np.ndarray, "items axes"]
Rows = Float64[np.ndarray, "slates axes"]
Each = Float64[np.ndarray, "slates"]
Counts = Int64[np.ndarray, "slates"]
Scores = Float64[np.ndarray, "candidates"]

_SLATES_AT_ONCE = 2_000  # gathered vectors of a block stay within a few megabytes
_LEAST = 1e-300  # a chance below, where nothing lies, has no logarithm
_GAINS = (math.log(0.02), math.log(3.0))  # the range that is searched


@dataclass(frozen=True, eq=False)
class ReportedClicks:
    """Slates as they were reported: users, candidates and how often reports lie."""

    users: Rows  # u, known up to a factor; zeros if nothing is known
    candidates: Ragged  # the reported item first, then others of its slate
    lies: Each  # l

    def __len__(self) -> int:
        return len(self.lies)

    def blocks(self) -> Iterator[ReportedClicks]:
        """The same slates, some at a time."""
        for start in range(0, len(self), _SLATES_AT_ONCE):
            rows = np.arange(start, min(start + _SLATES_AT_ONCE, len(self)))
            some = self.candidates.take(rows)
            yield ReportedClicks(self.users[rows], some, self.lies[rows])


@dataclass(frozen=True)
class Prior:
    """How far each number of the model usually is from its start."""

    head: float
    taste: float
    effect: float


@dataclass(frozen=True, eq=False)
class ClickModel:
    """The parameters of the scores."""

    head: Float64[np.ndarray, "axes axes"]  # W
    taste: Float64[np.ndarray, "axes"]  # g
    effects: Float64[np.ndarray, "items"]  # e

    @classmethod
    def start(cls, items: int, axes: int) -> ClickModel:
        """The model that scores by content similarity alone."""
        return cls(np.eye(axes), np.zeros(axes), np.zeros(items))

    def users(self, histories: Rows, *, scale: float) -> Rows:
        """The vector whose product with v gives a (W h)·(W v) + g·v."""
        return scale * (histories @ self.head.T) @ self.head + self.taste


def lies(
    epsilon: float,
    *,
    sizes: Int64[np.ndarray, "slates"],
    sent: Int64[np.ndarray, "slates"],
) -> Each:
    """The chance l of each slate of `sizes` items, of which `sent` were sent."""
    small = math.exp(-epsilon)
    keep = 1.0 / (1.0 + (sizes - 1) * small)
    other = small * keep
    return np.asarray(other / (sent * other + (keep - other) * sent / sizes))


def fit(
    reported: ReportedClicks,
    vectors: Items,
    *,
    scale: float,
    prior: Prior,
    passes: int,
) -> ClickModel:
    """The most likely model, by at most `passes` steps of L-BFGS from the start."""
    start = ClickModel.start(*vectors.shape)
    if not len(reported) or not passes:
        return start
    gain = _gain(reported, vectors, scale=scale)
    known = ReportedClicks(gain * reported.users, reported.candidates, reported.lies)
    posterior = _Posterior([*known.blocks()], vectors, scale, prior)
    found = scipy.optimize.minimize(
        posterior.loss,
        np.zeros(posterior.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": passes},
    )
    return posterior.model(found.x)


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The negative logarithm of the posterior, as a function of z-scores."""

    blocks: list[ReportedClicks]
    vectors: Items
    scale: float
    prior: Prior

    @property
    def size(self) -> int:
        items, axes = self.vectors.shape
        return axes * axes + axes + items

    def model(self, x: Float64[np.ndarray, "size"]) -> ClickModel:
        """The model that is `x` deviations of the prior from the start."""
        axes = self.vectors.shape[1]
        head, taste, effects = np.split(x, [axes * axes, axes * axes + axes])
        return ClickModel(
            np.eye(axes) + self.prior.head * head.reshape(axes, axes),
            self.prior.taste * taste,
            self.prior.effect * effects,
        )

    def loss(
        self, x: Float64[np.ndarray, "size"]
    ) -> tuple[float, Float64[np.ndarray, "size"]]:
        """The loss and its gradient."""
        model, (items, axes) = self.model(x), self.vectors.shape
        total, inner = 0.5 * float(x @ x), np.zeros((axes, axes))
        taste, effects = np.zeros(axes), np.zeros(items)
        for block in self.blocks:
            shown = block.candidates.values
            users = model.users(block.users, scale=self.scale)
            scores = _products(block.candidates, users, self.vectors)
            loss, slopes = _loss(block, scores + model.effects[shown])
            errors = _sums(block.candidates, slopes, self.vectors)
            total += loss
            inner += self.scale * block.users.T @ errors  # by WᵀW, which is u to v
            taste += errors.sum(axis=0)
            effects += np.bincount(shown, slopes, minlength=items)
        head = model.head @ (inner + inner.T)
        parts = (
            self.prior.head * head.ravel(),
            self.prior.taste * taste,
            self.prior.effect * effects,
        )
        return total, x + np.concatenate(parts)


def _gain(reported: ReportedClicks, vectors: Items, *, scale: float) -> float:
    """The factor of the users with which content similarity explains reports best.

    Interests are unit vectors, and the mean of a history is shorter by a factor that
    nobody has released.
    """
    blocks = [*reported.blocks()]
    scores = [scale * _products(b.candidates, b.users, vectors) for b in blocks]

    def loss(log_gain: float) -> float:
        gained = (math.exp(log_gain) * one for one in scores)
        return sum(_loss(b, one)[0] for b, one in zip(blocks, gained, strict=True))

    found = scipy.optimize.minimize_scalar(loss, bounds=_GAINS, method="bounded")
    return math.exp(found.x)


def _loss(block: ReportedClicks, scores: Scores) -> tuple[float, Scores]:
    """The negative log likelihood of the reports, and its derivative by each score."""
    owners, first = block.candidates.owners, block.candidates.offsets[:-1]
    apart = np.exp(scores - np.maximum.reduceat(scores, first)[owners])
    softmax = apart / np.add.reduceat(apart, first)[owners]
    truth = (1.0 - block.candidates.lengths * block.lies) * softmax[first]
    chance = block.lies + truth
    weight = truth / np.maximum(chance, _LEAST)  # how much of a report is believed
    slopes = weight[owners] * softmax
    slopes[first] -= weight
    return -float(np.log(np.maximum(chance, _LEAST)).sum()), slopes


def _products(rows: Ragged, users: Rows, vectors: Items) -> Scores:
    """The product of each row's user with the vectors of the row's items."""
    return np.einsum("ij,ij->i", users[rows.owners], vectors[rows.values])


def _sums(rows: Ragged, values: Scores, vectors: Items) -> Rows:
    """The sum of values times the vectors of the items, for each row."""
    cells = (values, rows.values, rows.offsets)
    return np.asarray(sp.csr_array(cells, shape=(len(rows), len(vectors))) @ vectors)
