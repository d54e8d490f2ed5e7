"""The best k items of a user, exactly, without those already seen.

    top_k(scores, seen, k=10)                  from rows of scores
    FactorIndex.of(items).best(user, seen)     from factors, one query at a time
    FactorIndex.of(items).top_k(users, seen)   from factors, many users
    FactorIndex.of(items).of_all(users, k=10)  the same where nothing is known as seen

Lists run from the largest score down; of equal scores the smaller index comes first. A
list is shorter than k where fewer items are unseen.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Float64, Int8, Int32, Int64, Integer
from numpy.typing import ArrayLike

from tacit import check
from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.kernels import dispatch

_THREADS = os.cpu_count() or 1
_TILE, _GROUP = 1024, 8  # as in `kernels/topk.py`
_TILES_PER_THREAD = 4  # 4,096 items; for fewer, waking a thread costs more
_MOST_FACTORS = 8000  # with more, the sums of a coarse score could overflow
_NOTHING = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Best:
    """The list of one user, from the best item down."""

    items: Int32[np.ndarray, "places"]
    scores: Float[np.ndarray, "places"]


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists of several users, end to end."""

    offsets: Int64[np.ndarray, "users_and_one"]
    items: Int32[np.ndarray, "places"]
    scores: Float[np.ndarray, "places"]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, user: int) -> Best:
        place = range(len(self))[user]
        row = slice(self.offsets[place], self.offsets[place + 1])
        return Best(self.items[row], self.scores[row])


@dataclass(frozen=True, eq=False)
class EqualLists:
    """The lists of several users, all of one length: nothing was left out as seen."""

    items: Int32[np.ndarray, "users places"]
    scores: Float64[np.ndarray, "users places"]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, user: int) -> Best:
        return Best(self.items[user], self.scores[user])

    def beginnings(self, users: Integer[np.ndarray, "some"], count: int) -> EqualLists:
        """The first places of the lists of some users."""
        return EqualLists(self.items[users, :count], self.scores[users, :count])


def top_k(scores: Float[np.ndarray, "users items"], seen: Ragged, *, k: int) -> Lists:
    """The best k items of each user, from one row of scores per user."""
    check.count(k=k)
    if np.isnan(scores).any():
        row = int(np.isnan(scores).any(axis=1).argmax())
        raise BadValue(f"user in row {row} has a NaN score")
    sorted_seen = _sorted(seen, *scores.shape)
    if not dispatch.pays("topk.scan_rows", scores.size):
        return top_k_plain(scores, sorted_seen, k=k)
    rows, most = np.ascontiguousarray(scores), min(k, scores.shape[1])
    return _lists(*_kernels().scan_rows(rows, *_flat(sorted_seen), most))


def top_k_plain(
    scores: Float[np.ndarray, "users items"], seen: Ragged, *, k: int
) -> Lists:
    """The same lists in numpy, by a stable sort; the compiled scans must equal it."""
    order = np.argsort(-scores, axis=1, kind="stable")
    is_unseen = np.ones(scores.shape, bool)
    is_unseen[seen.owners, seen.values] = False
    unseen = np.take_along_axis(is_unseen, order, axis=1)
    rows, places = np.nonzero(unseen & (np.cumsum(unseen, axis=1) <= k))
    items = order[rows, places].astype(np.int32)
    lengths = np.bincount(rows, minlength=len(scores))
    return Lists(_offsets(lengths), items, scores[rows, items])


@dataclass(frozen=True, eq=False)
class FactorIndex:
    """Item factors and a coarse copy of them that rules most items out.

    The copy has one byte per factor, so a scan reads a quarter of the memory. The error
    of a coarse score is bounded (Cauchy-Schwarz), and whatever might still belong in
    the list is scored exactly: lists are the same as from a full scan. Scores are
    summed in double precision in one fixed order: every client gets the same bits.
    """

    factors: Float32[np.ndarray, "items factors"]
    codes: Int8[np.ndarray, "tiles rows 1024"]  # one row per factor, then zero rows
    # The next three are in units of the largest item's step.
    sizes: Float32[np.ndarray, "items"]  # one step of each item's codes
    errors: Float32[np.ndarray, "items"]  # the norm of what the codes leave out
    norms: Float32[np.ndarray, "items"]  # the norm of the whole vector

    @classmethod
    def of(cls, factors: Float[np.ndarray, "items factors"]) -> FactorIndex:
        """An index of these items; the factors are stored in single precision."""
        if not np.isfinite(factors).all() or factors.size == 0:
            raise BadValue("item factors must be finite, at least one item and factor")
        if factors.shape[1] > _MOST_FACTORS:
            raise BadValue(f"{factors.shape[1]} factors must be <= {_MOST_FACTORS}")
        exact = np.ascontiguousarray(factors, np.float32)
        largest = np.abs(exact).max(axis=1).astype(np.float64)
        unit = float(largest.max()) / 127 or 1.0
        sizes = np.maximum(largest / 127 / unit, 1e-30).astype(np.float32)
        scaled = exact.astype(np.float64) / unit
        codes = np.rint(scaled / sizes[:, None])
        errors = _lengths(scaled - codes * sizes[:, None])
        tiles = _tiles(codes.astype(np.int8))
        return cls(exact, tiles, sizes, errors, _lengths(scaled))

    def best(
        self, user: Float32[np.ndarray, "factors"], seen: ArrayLike, *, k: int = 10
    ) -> Best:
        """The best k items of one user, as a client asks for them."""
        if k < 1 or user.shape != self.factors.shape[1:]:
            self._check(np.atleast_2d(user), k)  # says what is wrong
        held = np.array(seen, np.int32)
        held.sort()
        query = np.asarray(user, np.float32)
        found = self._scan(query, self._index, held, min(k, len(self.factors)))
        if not len(found[0]):  # everything is seen, or
            self._check(np.atleast_2d(user), k)  # the query is not finite
        return Best(*found)

    def top_k(
        self,
        users: Float32[np.ndarray, "users factors"],
        seen: Ragged,
        *,
        k: int = 10,
    ) -> Lists:
        """The best k items of each user."""
        self._check(users, k)
        held = _sorted(seen, len(users), len(self.factors))
        rows, most = np.ascontiguousarray(users, np.float32), min(k, len(self.factors))
        return _lists(
            *_kernels().scan_codes_each(rows, self._index, *_flat(held), most)
        )

    def of_all(
        self, users: Float32[np.ndarray, "users factors"], *, k: int = 10
    ) -> EqualLists:
        """The best k of all items for each user, on one core, as a server needs them.

        A server is not alone on its machine: on all cores, its requests would wait for
        whichever core comes last. It knows nothing of what is seen, and asked that way
        `top_k` takes three times as long as one scan before it scans.
        """
        self._check(users, k)
        nobodys = np.zeros(len(users) + 1, np.int64)
        rows, most = np.ascontiguousarray(users, np.float32), min(k, len(self.factors))
        items, scores, _ = _kernels().scan_codes_each.on_one(
            rows, self._index, nobodys, _NOTHING, most
        )
        return EqualLists(items, scores)

    def scores(
        self, users: Float32[np.ndarray, "users factors"]
    ) -> Float64[np.ndarray, "users items"]:
        """Every score; `top_k_plain` of these gives the same lists as the scans."""
        # Four sums, as the kernel's four lanes add them: the same bits.
        sums = np.zeros((4, len(users), len(self.factors)))
        n = self.factors.shape[1]
        whole = n // 4 * 4
        for f in range(n):
            product = users[:, f : f + 1].astype(np.float64) * self.factors[:, f]
            sums[f % 4 if f < whole else 0] += product
        return (sums[0] + sums[1]) + (sums[2] + sums[3])

    @cached_property
    def _index(self) -> tuple[Any, ...]:
        return self.factors, self.codes, self.sizes, self.errors, self.norms

    @cached_property
    def _scan(self) -> Callable[[Any, tuple[Any, ...], Any, int], tuple[Any, Any]]:
        """One user's scan, on as many threads as it can use."""
        runs = min(_THREADS, len(self.codes) // _TILES_PER_THREAD)
        if runs < 2:
            return _kernels().scan_codes
        return partial(_kernels().scan_codes_in_runs, runs)

    def _check(self, users: Float32[np.ndarray, "users factors"], k: int) -> None:
        check.count(k=k)
        if users.shape[1] != self.factors.shape[1]:
            raise BadValue(
                f"user vectors have {users.shape[1]} factors, the items "
                f"{self.factors.shape[1]}"
            )
        if not np.isfinite(users).all():
            row = int((~np.isfinite(users).all(axis=1)).argmax())
            raise BadValue(f"user in row {row} has a factor that is not finite")


def _tiles(
    codes: Int8[np.ndarray, "items factors"],
) -> Int8[np.ndarray, "tiles rows 1024"]:
    """Codes by tile and factor, so that a scan reads memory from end to end."""
    n_items, n_factors = codes.shape
    padded = np.pad(codes, ((0, -n_items % _TILE), (0, -n_factors % _GROUP)))
    return np.ascontiguousarray(
        padded.reshape(-1, _TILE, padded.shape[1]).transpose(0, 2, 1)
    )


def _lengths(
    rows: Float64[np.ndarray, "items factors"],
) -> Float32[np.ndarray, "items"]:
    return np.linalg.norm(rows, axis=1).astype(np.float32)


def _sorted(seen: Ragged, n_users: int, n_items: int) -> Ragged:
    """The same rows in ascending order, checked."""
    if len(seen) != n_users:
        raise BadValue(f"seen items of {len(seen)} users, scores of {n_users}")
    items = seen.values
    if len(items) and not 0 <= items.min() <= items.max() < n_items:
        raise BadValue(f"seen items must be in [0, {n_items})")
    order = np.lexsort((items, seen.owners))
    return Ragged(seen.offsets, np.asarray(items[order], np.int32))


@cache
def _kernels() -> Any:
    from tacit.kernels import topk  # loads numba

    return topk


def _flat(rows: Ragged) -> tuple[Any, Any]:
    return rows.offsets, rows.values


def _lists(items: Any, scores: Any, filled: Any) -> Lists:
    is_filled = np.arange(items.shape[1]) < filled[:, None]
    return Lists(_offsets(filled), items[is_filled], scores[is_filled])


def _offsets(lengths: Int64[np.ndarray, "users"]) -> Int64[np.ndarray, "users_and_1"]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
