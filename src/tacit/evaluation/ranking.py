"""Ranks by counting: how many candidates stand above each target, how many beside it.

Nothing is sorted. A target's rank needs only two counts over the user's candidates:
`above` (scores strictly greater) and `tied` (scores equal, itself included). From these
every metric follows, ties as their expected value (`metrics.py`).

Users are scored in chunks of at most 2**24 scores (64 MiB of float32), so memory does
not grow with the number of users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy.typing import NDArray

from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.errors import BadValue, Diverged
from tacit.evaluation.heldout_users import chunks, refuse_users
from tacit.kernels import dispatch

Users = Int64[np.ndarray, "users"]  # rows of the data set's profiles
Items = Int64[np.ndarray, "items"]
Scores = Float[np.ndarray, "users items"]
Progress = Callable[[int, int], None]  # users or impressions ranked so far, and in all

_COMPARED_AT_ONCE = 2**22  # by the plain twin: 32 MiB of float64


@dataclass(frozen=True)
class Personal:
    """A scorer that knows whom it ranks for, such as clients that keep a state.

    `among` gives the same scores for some items only, for scorers that can do without
    the others.
    """

    score: Callable[[Users, Shards], Scores]
    among: Callable[[Users, Shards, Items], Scores] | None = None


@dataclass(frozen=True, eq=False)
class Factors:
    """A scorer whose score is an inner product; it is ranked without a score matrix."""

    represent: Callable[[Users, Shards], Float[np.ndarray, "users factors"]]
    items: Float[np.ndarray, "items factors"]

    @cached_property
    def transposed(self) -> Float[np.ndarray, "factors items"]:
        """One row per factor, so that a run of items is a run of memory."""
        return np.ascontiguousarray(self.items.T)


Scorer = Callable[[Shards], Scores] | Personal | Factors


class Candidates(Protocol):
    """A protocol of evaluation: among which items a user's targets are ranked."""

    @property
    def name(self) -> str:
        """The name that stands beside every number made under this protocol."""
        ...

    def excluded(self, heldout: Heldout) -> Ragged:
        """The items that are no candidates, for each user; repeats do not matter."""
        ...


@dataclass(frozen=True, eq=False)
class Ranks:
    """For each target of each user, where it stands among the user's candidates."""

    offsets: Int64[np.ndarray, "users_and_one"]
    above: Int64[np.ndarray, "targets"]
    tied: Int64[np.ndarray, "targets"]  # itself included
    n_candidates: Int64[np.ndarray, "users"]

    def __len__(self) -> int:
        return len(self.n_candidates)

    @property
    def n_targets(self) -> Int64[np.ndarray, "users"]:
        """How many targets each user has."""
        return np.diff(self.offsets)

    @classmethod
    def concatenate(cls, parts: Sequence[Ranks]) -> Ranks:
        """The ranks of several chunks of users as one."""
        lengths = np.concatenate([part.n_targets for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.concatenate([part.above for part in parts]),
            np.concatenate([part.tied for part in parts]),
            np.concatenate([part.n_candidates for part in parts]),
        )


def rank(
    score: Scorer,
    heldout: Heldout,
    *,
    candidates: Candidates,
    progress: Progress | None = None,
) -> Ranks:
    """The rank of every target; a `Factors` scorer takes the fused path."""
    parts, done = [], 0
    for chunk in chunks(heldout, width=heldout.history.n_items):
        parts.append(_rank_chunk(score, chunk, candidates=candidates))
        done += len(chunk.users)
        if progress is not None:
            progress(done, len(heldout.users))
    return Ranks.concatenate(parts)


def score_matrix(score: Scorer, heldout: Heldout) -> Scores:
    """Scores as floats in rows, checked for shape and NaN."""
    if isinstance(score, Factors):
        return _inner_products(_user_factors(score, heldout), score.transposed)
    scores = _whole_rows(score, heldout.users, heldout.history)
    wide = scores.dtype if scores.dtype in (np.float32, np.float64) else np.float64
    rows = np.ascontiguousarray(scores, wide)
    is_bad = np.isnan(rows).any(axis=1)
    refuse_users(heldout, is_bad, "has a NaN score", error=Diverged)
    return rows


def score_among(score: Scorer, users: Users, history: Shards, items: Items) -> Scores:
    """A score for each user and each of some items, checked for shape."""
    if isinstance(score, Factors):
        vectors = np.asarray(score.represent(users, history), score.items.dtype)
        scores = vectors @ score.items[items].T
    elif isinstance(score, Personal) and score.among is not None:
        scores = np.asarray(score.among(users, history, items))
    else:
        scores = _whole_rows(score, users, history)[:, items]
        if not np.issubdtype(scores.dtype, np.floating):
            scores = scores.astype(np.float64)
    _refuse_shape("scores", scores, (len(users), len(items)))
    return scores


def _whole_rows(
    score: Callable[[Shards], Scores] | Personal, users: Users, history: Shards
) -> NDArray[Any]:
    """The scores of every item as they come, integers included."""
    if isinstance(score, Personal):
        scores = np.asarray(score.score(users, history))
    else:
        scores = np.asarray(score(history))
    _refuse_shape("scores", scores, (len(users), history.n_items))
    return scores


def _user_factors(
    score: Factors, heldout: Heldout
) -> Float[np.ndarray, "users factors"]:
    """The users' vectors, checked for shape, NaN and overflow."""
    vectors = score.represent(heldout.users, heldout.history)
    users = np.ascontiguousarray(vectors, score.items.dtype)
    _refuse_shape("user factors", users, (len(heldout.users), score.items.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        most = np.abs(users).sum(axis=1) * np.abs(score.items).max()  # of any score
    problem = "has factors whose scores are NaN or overflow"
    refuse_users(heldout, ~np.isfinite(most), problem, error=Diverged)
    return users


def _rank_chunk(score: Scorer, heldout: Heldout, *, candidates: Candidates) -> Ranks:
    targets, excluded = heldout.targets.histories, candidates.excluded(heldout)
    if isinstance(score, Factors):
        users = _user_factors(score, heldout)
        counts = count_factor_ranks(users, score.transposed, excluded, targets)
    else:
        counts = count_ranks(score_matrix(score, heldout), excluded, targets)
    guilty = np.zeros(len(targets), bool)
    guilty[targets.owners[counts.is_excluded]] = True
    refuse_users(heldout, guilty, "has a target that is also in the history")
    n_candidates = heldout.history.n_items - counts.n_excluded
    return Ranks(targets.offsets, counts.above, counts.tied, n_candidates)


class Counts(NamedTuple):
    """What the twins count; a target that is excluded itself has no rank."""

    above: Int64[np.ndarray, "targets"]
    tied: Int64[np.ndarray, "targets"]
    is_excluded: Bool[np.ndarray, "targets"]
    n_excluded: Int64[np.ndarray, "users"]  # distinct items


def count_ranks(scores: Scores, excluded: Ragged, targets: Ragged) -> Counts:
    """Above and tied for each target, by whichever twin is faster."""
    if not dispatch.pays("ranking.count_ranks", len(targets.values) * scores.shape[1]):
        return count_ranks_plain(scores, excluded, targets)
    from tacit.kernels import ranking  # loads numba

    return Counts(*ranking.count_ranks(scores, *_flat(excluded), *_flat(targets)))


def count_factor_ranks(
    users: Float[np.ndarray, "users factors"],
    items: Float[np.ndarray, "factors items"],
    excluded: Ragged,
    targets: Ragged,
) -> Counts:
    """As `count_ranks` on the inner products, which are never written down."""
    if not dispatch.pays("ranking.count_factor_ranks", len(users) * items.size):
        return count_ranks_plain(_inner_products(users, items), excluded, targets)
    from tacit.kernels import ranking  # loads numba

    flat = (*_flat(excluded), *_flat(targets))
    return Counts(*ranking.count_factor_ranks(users, items, *flat))


def count_ranks_plain(scores: Scores, excluded: Ragged, targets: Ragged) -> Counts:
    """The counts by comparison in numpy: the plain twin of both kernels."""
    is_out = np.zeros(scores.shape, bool)
    is_out[excluded.owners, excluded.values] = True
    rows = np.where(is_out, np.nan, scores)  # neither above nor equal
    owners = targets.owners
    marks = scores[owners, targets.values][:, None]
    above = np.empty(len(owners), np.int64)
    tied = np.empty(len(owners), np.int64)
    step = max(1, _COMPARED_AT_ONCE // scores.shape[1])
    for start in range(0, len(owners), step):
        some = slice(start, start + step)
        candidates = rows[owners[some]]
        above[some] = (candidates > marks[some]).sum(axis=1)
        tied[some] = (candidates == marks[some]).sum(axis=1)
    return Counts(above, tied, is_out[owners, targets.values], is_out.sum(axis=1))


def _inner_products(
    users: Float[np.ndarray, "users factors"],
    items: Float[np.ndarray, "factors items"],
) -> Scores:
    # Factor by factor, as the kernel adds: the twins agree to the last bit.
    scores = users[:, :1] * items[0]
    for f in range(1, len(items)):
        scores += users[:, f : f + 1] * items[f]
    return scores


def _flat(rows: Ragged) -> tuple[Any, Any]:
    return rows.offsets, np.ascontiguousarray(rows.values, np.int32)


def _refuse_shape(what: str, found: Any, expected: tuple[int, int]) -> None:
    if found.shape != expected:
        raise BadValue(f"{what} have shape {found.shape}, expected {expected}")
