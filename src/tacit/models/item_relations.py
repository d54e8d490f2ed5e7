"""The most frequent items of a catalog and how they relate, as everyone may know it.

    c        how many users have each item           (counts)
    head     the items with the largest c            (head)
    w        max(c, 1)^-a on the head                (weights)
    p        c w / |c w|                             (popularity)
    P        rows that items share, if they do       (rows, shares): `item_bucketing`
    V, f     directions of taste, and their weight   (vectors, strengths)
    t, K     the weight of content, and the content  (lean, labels, numbers)

A history x becomes y = x w / |x w|, and r = y - (y·p) p is what is not popularity. The
score of the head is g (Pᵀ V f Vᵀ P r + (y·p) p) + (1 - g) .3 p, P = I where no row is
shared, and g = n / (n + 1) for n items of the head in the history: a norm of 1 makes
the taste of one item as loud as that of a hundred, and it is worth less. The tail
follows, ordered by c or by likeness to the history.

Of two items with nearly the same expected count, p is less for the one with the larger
c, since its w is. In the score p falls with c, so that it never turns that order round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64, Int64

from tacit.data.shards import Shards
from tacit.kernels import dispatch
from tacit.models.content_similarity import Content
from tacit.models.histories import column_of, rows
from tacit.models.item_bucketing import Fold
from tacit.models.noisy_counts import expected_counts
from tacit.models.onnx_graph import Formula
from tacit.tree import Arrays, Factored, SparseFactored, SparseRests

_NEARLY_NOTHING = 1e-5  # norm of what is left of a unit vector; less is rounding
_TIES = 1e-9  # weight of the order by count in a score: it decides ties only
_USUAL_POPULAR = 0.3  # y·p that takes the place of what few items say: a usual one
_BELOW_THE_HEAD = -2.0  # |loads| <= 1, |popular| <= 1, and directions have norm 1
_HAIR_MORE = 1 + 1e-12  # rounding must not leave a norm above 1, the phase's bound
_BLOCK = 128  # rows of a history matrix that stay in the cache between two passes

Rows = Float64[np.ndarray, "users columns"]
Folded = Float64[np.ndarray, "users rows"]  # the same columns where none are shared


def head_of(
    counts: Float64[np.ndarray, "items"],
    *,
    size: int,
    exponent: float,
    deviation: float = 0.0,
) -> dict[str, np.ndarray]:
    """The head of these counts, its weights and the direction of popularity.

    `deviation` is that of the noise on the counts. Of the items that noise lifted into
    the head popularity has what is to be expected of them.
    """
    head = np.argsort(-counts, kind="stable")[:size]
    weights = np.maximum(counts[head], 1.0) ** -exponent
    liked = expected_counts(counts, deviation)[head] * weights
    popularity = liked / max(float(np.linalg.norm(liked)), 1e-300)  # never 0 / 0
    return {"head": head, "weights": weights, "popularity": popularity}


def own_parts(
    vectors: Float64[np.ndarray, "items rank"], lengths: Float64[np.ndarray, "items"]
) -> Float64[np.ndarray, "rank"]:
    """How much of a mean z zᵀ lies along each direction because items are themselves.

    `lengths` is how much of z² each item can be expected to have, up to a factor.
    """
    return np.asarray((vectors**2).T @ lengths / max(float(lengths.sum()), 1e-300))


@dataclass(frozen=True, eq=False)
class Relations:
    """What a broadcast says so far: nothing, then a head, then its directions."""

    head: Int64[np.ndarray, "head"]
    weights: Float64[np.ndarray, "head"]
    popularity: Float64[np.ndarray, "head"]
    fold: Fold | None
    vectors: Float64[np.ndarray, "rows rank"]
    strengths: Float64[np.ndarray, "rank"]
    counts: Float64[np.ndarray, "items"]
    lean: float
    content: Content

    @classmethod
    def from_broadcast(cls, arrays: Arrays) -> Relations:
        """Relations from the arrays of a broadcast; missing ones are not known yet."""
        head = arrays.get("head", np.zeros(0, np.int64))
        n_items = int(arrays["n_items"][0])
        nothing = np.zeros((n_items, 0), np.float32)
        fold = _fold_of(arrays)
        n_rows = len(head) if fold is None else fold.n_rows
        return cls(
            head,
            arrays.get("weights", np.zeros(0)),
            arrays.get("popularity", np.zeros(0)),
            fold,
            arrays.get("vectors", np.zeros((n_rows, 0))),
            arrays.get("strengths", np.zeros(0)),
            arrays.get("counts", np.zeros(n_items)),
            float(arrays.get("lean", np.zeros(1))[0]),
            Content(arrays.get("labels", nothing), arrays.get("numbers", nothing)),
        )

    def first(self, side: int) -> Relations:
        """The same for the first items of the head only, whose directions are sought.

        Where items share rows, all of them are.
        """
        if self.fold is not None or side >= len(self.head):
            return self
        popularity = self.popularity[:side]
        return replace(
            self,
            head=self.head[:side],
            weights=self.weights[:side],
            popularity=popularity / max(float(np.linalg.norm(popularity)), 1e-300),
        )

    def loadings(
        self, x: Rows, directions: Float64[np.ndarray, "first few"]
    ) -> tuple[Rows, Float64[np.ndarray, "users few"]]:
        """The unit vectors q of histories, and their tastes t along the directions.

        Norms are at most 1 whatever the history and whatever was broadcast: both are
        divided by their norms. It overwrites x.
        """
        self._unit_rests(x)
        return x, unit(x[:, : len(directions)] @ directions)

    def loadings_of(
        self, shards: Shards, directions: Float64[np.ndarray, "first few"]
    ) -> Factored | SparseFactored:
        """The products q tᵀ of histories in which an item counts once.

        Which twin makes them follows from the broadcast's layout alone.
        """
        if not dispatch.pays("rows.unit_rests", len(self.head)):
            q, t = self.loadings(rows(shards, items=self.head), directions)
            return Factored(q[:, None], t[:, None])
        rests = self._sparse_rests(shards)
        return SparseFactored(rests, unit(rests.times(directions))[:, None])

    def roots_of(self, shards: Shards, *, smoothing: float) -> Folded:
        """`roots` of histories in which an item counts once."""
        is_plain = self.fold is None and not smoothing
        if is_plain and dispatch.pays("rows.unit_rests", len(self.head)):
            return self._sparse_rests(shards).written()
        return self.roots(rows(shards, items=self.head), smoothing=smoothing)

    def _sparse_rests(self, shards: Shards) -> SparseRests:
        """The unit vectors of histories, by their few items."""
        from tacit.kernels.rows import unit_rests  # loads numba

        columns = column_of(self.head, n_items=shards.n_items)[shards.items]
        p, factors = self._direction, np.empty((len(shards), 2))
        limits = _NEARLY_NOTHING, _HAIR_MORE
        unit_rests((shards.offsets, columns, self.weights), p, limits, factors)
        return SparseRests(shards.offsets, columns, self.weights, p, factors)

    def parted(self, x: Rows) -> tuple[Rows, Float64[np.ndarray, "users"]]:
        """The rest r of each history without popularity, and the load y·p on it.

        It overwrites x.
        """
        x *= self.weights
        y = unit(x)
        popular = y @ self.popularity
        y -= np.multiply.outer(popular, self.popularity)
        return y, popular

    def roots(self, x: Rows, *, smoothing: float) -> Folded:
        """The unit vectors z of histories over the head; content may smooth them.

        Norms are at most 1 whatever the history, the weights and the fold: every branch
        ends in a division by the norm.
        """
        if self.fold is not None:
            r, _ = self.parted(x)
            return unit(self.fold.folded(r))
        if smoothing:
            r, _ = self.parted(x)
            return unit(r @ self.content.smoothing(self.head, smoothing * self.lean))
        self._unit_rests(x)
        return x

    def _unit_rests(self, x: Rows) -> None:
        """The same as unit(parted(x)), in place and some rows at a time."""
        p = self._direction
        for start in range(0, len(x), _BLOCK):
            self._unit_rest(x[start : start + _BLOCK], p)

    @property
    def _direction(self) -> Float64[np.ndarray, "columns"]:
        """Popularity with a norm of 1, or 0; what was broadcast may have any norm."""
        return unit(self.popularity[None].copy())[0]

    def _unit_rest(self, x: Rows, p: Float64[np.ndarray, "columns"]) -> None:
        """The same with fewer passes: |r|² = |y|² - (y·p)² where p has norm 1."""
        x *= self.weights
        norms = np.maximum(np.sqrt(np.einsum("ij,ij->i", x, x)), 1e-300)
        popular = (x @ p) / norms
        left = np.sqrt(np.maximum(1 - popular**2, 0.0)) * _HAIR_MORE
        keeps = (left > _NEARLY_NOTHING) & (norms > _NEARLY_NOTHING)
        scale = np.where(keeps, 1 / np.maximum(left, _NEARLY_NOTHING), 0.0)
        x *= (scale / norms)[:, None]
        x -= np.multiply.outer(popular * scale, p)

    def represent(
        self,
        x: Rows,
        alike: Float64[np.ndarray, "users items_or_none"],
        *,
        popular_factor: float = 1.0,
    ) -> Arrays:
        """What `score` takes: each part times g, and the usual popularity times 1 - g.

        `alike` has no columns where no content is used; of the tail, which nothing else
        orders, it stays as it is. The history's own popularity y·p is taken times
        `popular_factor`. It overwrites x and `alike`.
        """
        g = trust(x)[:, None]
        r, popular = self.parted(x)
        if alike.shape[1]:
            alike[:, self.head] *= g
        usual = (1 - g) * _USUAL_POPULAR
        return {
            "loads": g * self.loads(r),
            "popular": g * (popular_factor * popular[:, None]) + usual,
            "alike": alike,
        }

    def loads(self, r: Rows) -> Float64[np.ndarray, "users rank"]:
        """The coordinate of r along each direction, times its strength."""
        return (self._folded(r) @ self.vectors) * self.strengths

    def _folded(self, r: Rows) -> Folded:
        return r if self.fold is None else self.fold.folded(r)

    def _unfolded(self, y: Folded) -> Rows:
        return y if self.fold is None else self.fold.unfolded(y)

    def alike(self, x: Rows) -> Rows:
        """The likeness of every item to a history, times its count; rows of norm 1."""
        return unit(self.content.spread(x) * np.maximum(self.counts, 0.0))

    def score(
        self,
        loads: Float64[np.ndarray, "users rank"],
        popular: Float64[np.ndarray, "users 1"],
        alike: Float64[np.ndarray, "users items_or_none"],
        *,
        weight: float,
    ) -> Float64[np.ndarray, "users items"]:
        """The scores of all items; `alike` has no columns where no content is used.

        Ties go by count, and so does everything for a user without a history.
        """
        head = self._unfolded(loads @ self.vectors.T)
        # From -1 for the most counted item to -2: below any score of the head.
        after = -1 - self._places() / len(self.counts)
        head += popular * self._falling + _TIES * after[self.head]
        if alike.shape[1]:
            head += weight * self.lean * alike[:, self.head]
            after = -2 + alike + _TIES * after  # by likeness, then by counts
        scores = head.min(axis=1, keepdims=True, initial=0.0) + after
        scores[:, self.head] = head
        return scores

    def item_space(
        self,
    ) -> tuple[Float64[np.ndarray, "items factors"], Float64[np.ndarray, "items"]]:
        """Vectors and offsets that order items as `score` does without content.

        Factors are the directions, then popularity. The offsets of the tail are below
        any score of the head, which is at least -2 for histories of norm 1.
        """
        vectors = np.zeros((len(self.counts), self.vectors.shape[1] + 1))
        vectors[self.head, :-1] = self._unfolded(self.vectors.T).T
        vectors[self.head, -1] = self._falling
        by_count = -1 - self._places() / len(self.counts)
        offsets = _BELOW_THE_HEAD + by_count
        offsets[self.head] = _TIES * by_count[self.head]
        return vectors, offsets

    def formula(
        self,
        x: Formula,
        *,
        content_weight: float | None,
        popular_factor: float = 1.0,
    ) -> Formula:
        """`represent` and `score` as a graph that takes weighted histories.

        `content_weight` is None where no content is used. A fold needs no step of its
        own: V stands here with one row per item.
        """
        of_head = x.columns(self.head)
        n = of_head.held() @ np.ones((len(self.head), 1))
        g = n / (n + 1.0)
        y = (of_head * self.weights).unit(least=_NEARLY_NOTHING)
        popular = y @ self.popularity[:, None]
        vectors = Formula.constant(self._unfolded(self.vectors.T).T)
        r = y - popular * self.popularity
        head = ((r @ vectors) * self.strengths * g) @ vectors.transposed()
        by_count = -1 - self._places() / len(self.counts)
        popular = (popular * popular_factor - _USUAL_POPULAR) * g + _USUAL_POPULAR
        head = head + popular * self._falling + _TIES * by_count[self.head]
        after = Formula.constant(by_count)
        if content_weight is not None:
            alike = self.content.spread_formula(x) * np.maximum(self.counts, 0.0)
            alike = alike.unit(least=_NEARLY_NOTHING)
            head = head + alike.columns(self.head) * g * (content_weight * self.lean)
            after = alike - 2.0 + after * _TIES
        rest = after + head.smallest().minimum(0.0)
        return head.placed(self.head, among=rest, n_items=len(self.counts))

    def reasons(
        self, x: Rows, items: Int64[np.ndarray, "events"], target: int
    ) -> Float64[np.ndarray, "events"]:
        """How much each of a user's items adds to the taste term of a score.

        The taste term is g times a linear function of y. Popularity is the same for
        every user, so it is no reason, and an item of the tail has none.
        """
        column = np.full(len(self.counts), -1)
        column[self.head] = np.arange(len(self.head))
        if column[target] < 0:
            return np.zeros(len(items))
        y = trust(x) * unit(x * self.weights)[0]
        related = self._related(column[target])
        related -= (related @ self.popularity) * self.popularity
        return np.where(column[items] >= 0, (y * related)[column[items]], 0.0)

    def _related(self, column: int) -> Float64[np.ndarray, "head"]:
        """The row of Pᵀ V f Vᵀ P that belongs to one item of the head."""
        row, share = column, 1.0
        if self.fold is not None:
            row, share = self.fold.rows[column], self.fold.shares[column]
        rows = self.vectors @ (self.vectors[row] * self.strengths) * share
        return self._unfolded(rows[None])[0]

    @property
    def _falling(self) -> Float64[np.ndarray, "head"]:
        """Popularity as it ranks: of two items it is no less for the more counted."""
        return np.maximum.accumulate(self.popularity[::-1])[::-1]

    def _places(self) -> Int64[np.ndarray, "items"]:
        return places_by_count(self.counts)


def places_by_count(
    counts: Float64[np.ndarray, "items"],
) -> Int64[np.ndarray, "items"]:
    """The rank of each item by count: 0 for the most counted."""
    places = np.empty(len(counts), np.int64)
    places[np.argsort(-counts, kind="stable")] = np.arange(len(places))
    return places


def _fold_of(arrays: Arrays) -> Fold | None:
    """The fold, where items share rows; every row has at least one item."""
    if "rows" not in arrays:
        return None
    rows = arrays["rows"]
    return Fold(rows, arrays["shares"], int(rows.max(initial=-1)) + 1)


def trust(x: Rows) -> Float64[np.ndarray, "users"]:
    """The share g = n / (n + 1) of a history with n items of the head, of any weights.

    So much of a score is the history's own; the rest is popularity.
    """
    n = np.count_nonzero(x > 0, axis=1)
    return np.asarray(n / (n + 1))


def unit(x: Rows) -> Rows:
    """Each row over its L2 norm, in place; a row that is nearly zero becomes zero.

    Norms end a hair below 1, so that rounding never puts a row beyond its bound.
    """
    norms = np.sqrt(np.einsum("ij,ij->i", x, x)) * _HAIR_MORE
    keeps = norms > _NEARLY_NOTHING
    x *= np.where(keeps, 1 / np.maximum(norms, _NEARLY_NOTHING), 0.0)[:, None]
    return x
