"""Scores of news by the mean of what a user has read, and what a click teaches.

    v_c   public vector of a news, length 1        h   mean of v over the history
    p     softmax of the scores of a slate         y   clicked, over the slate's clicks
    w     sum over the slate of (p_c - y_c) v_c    a   scale of the scores

    projection   r_c = W v_c, u = W h,     score = a u · r_c,   W starts at the identity
                 dW = a (W w hᵀ + u wᵀ)                         rank 2
    bilinear     u = Aᵀ (h, b),            score = a u · v_c,   A starts at (I, 0)
                 dA = a (h, b) wᵀ                               rank 1

The loss of a slate is the cross-entropy of y and p. Before any training both score by
content similarity. The last row of A is what all users like; b is its constant input.
Gradients are kept as factors: a client's update is never written out. User vectors are
linear in h up to a constant, so every news that was read has a share in a score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float64, Int, Int64

from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.keys import Keys
from tacit.models.onnx_graph import HISTORIES, Formula
from tacit.tree import Factored

Items = Float64[np.ndarray, "items axes"]
Rows = Float64[np.ndarray, "some axes"]
Matrix = Float64[np.ndarray, "inputs axes"]
Factors = tuple[
    Float64[np.ndarray, "some rank inputs"], Float64[np.ndarray, "some rank axes"]
]


class Head(Protocol):
    """What is learnt between the public vectors and the scores."""

    @property
    def rank(self) -> int:
        """How many outer products the gradient of one slate has."""

    def start(self, axes: int) -> Matrix:
        """The weights that score by content similarity."""

    def users(self, weights: Matrix, histories: Rows) -> Rows:
        """The user vector u of each mean history h."""

    def news(self, weights: Matrix, vectors: Items) -> Items:
        """The news vector r of each public vector v."""

    def factors(self, weights: Matrix, histories: Rows, errors: Rows) -> Factors:
        """Factors of the gradient of each slate, from h and w, for a = 1."""


@dataclass(frozen=True)
class Projection:
    """One matrix W for what was read and for candidates."""

    rank: int = 2

    def start(self, axes: int) -> Matrix:
        """The identity matrix, which leaves every vector as it is."""
        return np.eye(axes)

    def users(self, weights: Matrix, histories: Rows) -> Rows:
        """The product W h."""
        return histories @ weights.T

    def news(self, weights: Matrix, vectors: Items) -> Items:
        """The product W v."""
        return vectors @ weights.T

    def factors(self, weights: Matrix, histories: Rows, errors: Rows) -> Factors:
        """The outer products (W w) hᵀ and u wᵀ."""
        left = np.stack([errors @ weights.T, histories @ weights.T], axis=1)
        return left, np.stack([histories, errors], axis=1)


@dataclass(frozen=True)
class Bilinear:
    """A matrix A between what was read and candidates; its last row is for everyone."""

    constant: float = 0.3  # b: about as long as the mean of a usual history
    rank: int = 1

    def start(self, axes: int) -> Matrix:
        """The identity matrix with one more row, of zeros."""
        return np.eye(axes + 1, axes)

    def users(self, weights: Matrix, histories: Rows) -> Rows:
        """The product Aᵀ (h, b)."""
        return self._with_constant(histories) @ weights

    def news(self, weights: Matrix, vectors: Items) -> Items:
        """The vectors as they are."""
        return vectors

    def factors(self, weights: Matrix, histories: Rows, errors: Rows) -> Factors:
        """The outer product (h, b) wᵀ."""
        return self._with_constant(histories)[:, None], errors[:, None]

    def _with_constant(self, histories: Rows) -> Float64[np.ndarray, "some inputs"]:
        constant = np.full((len(histories), 1), self.constant)
        return np.concatenate([histories, constant], axis=1)


@dataclass(frozen=True, eq=False)
class Slated:
    """Slates with a click and something left unclicked, so many per client.

    `places` numbers the slates of a client from 0.
    """

    clients: Int64[np.ndarray, "slates"]
    places: Int64[np.ndarray, "slates"]
    histories: Rows  # h
    shown: Ragged
    wanted: Float64[np.ndarray, "candidates"]  # y

    @classmethod
    def of(
        cls, impressions: Impressions, vectors: Items, *, most: int, keys: Keys
    ) -> Slated:
        """At most `most` slates of each client, all of them equally likely to stay."""
        kept, places = chosen_slates(impressions, most, keys)
        slates = impressions.slates
        shown = slates.shown.take(kept)
        clicked = impressions.clicked[slates.shown.places(kept)]
        wanted = clicked / impressions.n_clicked[kept][shown.owners]
        read = slates.histories.take(slates.history_of[kept])
        clients = slates.users[kept].astype(np.int64)
        return cls(clients, places, mean_rows(read, vectors), shown, wanted)

    def errors(self, scores: Float64[np.ndarray, "candidates"], vectors: Items) -> Rows:
        """The sum w of each slate."""
        if not len(self.clients):
            return np.zeros((0, vectors.shape[1]))
        first, owners = self.shown.offsets[:-1], self.shown.owners
        apart = np.exp(scores - np.maximum.reduceat(scores, first)[owners])
        softmax = apart / np.add.reduceat(apart, first)[owners]
        return _sums(self.shown, softmax - self.wanted, vectors)


def gradient(
    head: Head,
    weights: Matrix,
    slated: Slated,
    vectors: Items,
    *,
    scale: float,
    effects: Float64[np.ndarray, "items"],
    n_clients: int,
    most: int,
) -> Factored:
    """The gradient of each client's summed loss, `most * head.rank` outer products.

    `effects` are added to the scores of the items. A client without a slate has zeros.
    """
    shown, owners = slated.shown.values, slated.shown.owners
    users = scale * head.users(weights, slated.histories)
    news = head.news(weights, vectors)  # each item once, however often it was shown
    scores = np.einsum("ij,ij->i", users[owners], news[shown]) + effects[shown]
    errors = slated.errors(scores, vectors)
    left, right = head.factors(weights, slated.histories, errors)
    rank, (rows, columns) = head.rank, weights.shape
    lefts = np.zeros((n_clients, most, rank, rows))
    rights = np.zeros((n_clients, most, rank, columns))
    lefts[slated.clients, slated.places] = scale * left
    rights[slated.clients, slated.places] = right
    return Factored(
        lefts.reshape(n_clients, most * rank, rows),
        rights.reshape(n_clients, most * rank, columns),
    )


def ranking_formula(
    head: Head,
    weights: Matrix,
    vectors: Items,
    *,
    scale: float,
    effects: Float64[np.ndarray, "items"],
) -> Formula:
    """Scores of all items as a graph that takes histories; a repeat counts once."""
    per_item, for_all = _spoken(head, weights, vectors, scale=scale)
    held = HISTORIES.held()
    n_read = (held @ np.ones((len(vectors), 1))).maximum(1.0)
    users = (held @ per_item) / n_read + for_all
    return users @ head.news(weights, vectors).T + effects


def reasons(
    head: Head,
    weights: Matrix,
    vectors: Items,
    *,
    read: Int[np.ndarray, "events"],
    item: int,
    scale: float,
) -> Float64[np.ndarray, "events"]:
    """How much each event of one history adds to the score of an item."""
    per_item, _ = _spoken(head, weights, vectors[read], scale=scale)
    news = head.news(weights, vectors[[item]])[0]
    return np.asarray(per_item @ news / max(len(read), 1))


def _spoken(
    head: Head, weights: Matrix, vectors: Items, *, scale: float
) -> tuple[Items, Float64[np.ndarray, "axes"]]:
    """What each item would make of a user vector by itself, and what all users have.

    A user vector is the mean of the first over the history, plus the second.
    """
    nothing = np.zeros((1, vectors.shape[1]))
    for_all = scale * head.users(weights, nothing)[0]
    return scale * head.users(weights, vectors) - for_all, for_all


def mean_rows(histories: Ragged, vectors: Items) -> Rows:
    """The mean h of the vectors of each history, repeats included; zeros for none."""
    total = _sums(histories, np.ones(len(histories.values)), vectors)
    return total / np.maximum(histories.lengths, 1)[:, None]


def _sums(rows: Ragged, values: Float64[np.ndarray, "total"], vectors: Items) -> Rows:
    """The sum of values times the vectors of the items, for each row."""
    cells = (values, rows.values, rows.offsets)
    return np.asarray(sp.csr_array(cells, shape=(len(rows), len(vectors))) @ vectors)


def chosen_slates(
    impressions: Impressions, most: int, keys: Keys
) -> tuple[Int64[np.ndarray, "slates"], Int64[np.ndarray, "slates"]]:
    """The slates to learn from, and the place of each among its client's."""
    n_clicked, n_shown = impressions.n_clicked, impressions.slates.shown.lengths
    usable = np.flatnonzero((n_clicked > 0) & (n_clicked < n_shown))
    users = impressions.users[usable].astype(np.int64)
    counts = np.bincount(users, minlength=len(keys))
    # One stream per client: whose slates stay depends on nobody else.
    order = np.lexsort((keys.uniform_ragged(counts), users))
    place = np.arange(len(users)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_kept = place < most
    return usable[order[is_kept]], place[is_kept]
