"""Invented users, from a public model alone: whom a server expects to be asked by.

A server that decodes a query needs to know what users are like. Real users would be a
release; these are not. A history is grown from the model itself:

    1  an item, drawn by popularity: the order in which the model ranks for somebody
       without a history, weighted 1 / (place + 20)
    2  four times, ten more (fewer if the catalog has not 400 items): each drawn by
       popularity, or among the 100 items (at most a quarter of all) that the model
       ranks highest for the history so far

How much of a history popularity explains is drawn for each user, between a fifth and
all of it: some users have one taste, and some take what comes.

Everything is computed from the broadcast and the catalog, which are public, so that it
costs no budget beyond what the broadcast has cost those who trained it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64

from tacit import check
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.keys import Key
from tacit.method import Candidates
from tacit.serving.interests import Users
from tacit.serving.queryable import space_of, vectors_of
from tacit.serving.recommender import Recommender

USERS = 2000
_STEPS, _MOST_PER_STEP = 4, 10
_SHARE_PER_STEP = 40  # of the catalog, one item in so many: a taste leaves most out
_POPULAR_SHARES = (0.2, 1.0)
_NEAREST = 100  # items among which the next one is drawn
_POOL = 5000  # items that invented users know: enough for a hundred interests
_PLACES = 20.0  # places over which popularity is nearly even
_AT_ONCE = 256  # users scored together

Histories = Int64[np.ndarray, "users items"]


def invented_users(recommender: Recommender, key: Key, *, users: int = USERS) -> Users:
    """The user vectors of invented users; all of them are public."""
    return vectors_of(recommender, invented_histories(recommender, key, users=users))


def invented_histories(
    recommender: Recommender, key: Key, *, users: int = USERS
) -> Shards:
    """Histories that the model would expect, one per invented user."""
    check.count(users=users)
    weights = popularity(recommender)
    draw = key.generator()
    n_items = len(recommender.catalog)
    pool = np.sort(_drawn(weights, min(_POOL, n_items), draw))
    own = weights[pool] / weights[pool].sum()
    held = draw.choice(len(pool), size=(users, 1), p=own)
    shares = draw.uniform(*_POPULAR_SHARES, size=(users, 1))
    blocks = np.array_split(np.arange(users), max(1, users // _AT_ONCE))
    for _ in range(_STEPS):
        liked = [_liked(recommender, pool, held[rows], draw) for rows in blocks]
        popular = draw.choice(len(pool), size=(users, _per_step(pool)), p=own)
        is_popular = draw.random(popular.shape) < shares
        more = np.where(is_popular, popular, np.concatenate(liked))
        held = np.concatenate([held, more], axis=1)
    return _shards(recommender, pool[held])


def popularity(recommender: Recommender) -> Float64[np.ndarray, "items"]:
    """How often an invented user has each item; equally ranked items equally often."""
    n_items = len(recommender.catalog)
    nothing = Shards.of_history(np.zeros(0, np.int64), n_items=n_items)
    scores = space_of(recommender).scores(vectors_of(recommender, nothing))[0]
    _, which, sizes = np.unique(-scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(sizes) - (sizes + 1) / 2  # the mean place of those that tie
    weights = 1.0 / (middle[which] + _PLACES)
    return weights / weights.sum()


def _liked(
    recommender: Recommender,
    pool: Int64[np.ndarray, "pool"],
    held: Histories,
    draw: np.random.Generator,
) -> Int64[np.ndarray, "users more_items"]:
    """More items for each history, of those ranked highest, as places in the pool."""
    users = vectors_of(recommender, _shards(recommender, pool[held]))
    scores = space_of(recommender, Candidates(pool, recommender.catalog)).scores(users)
    np.put_along_axis(scores, held, -np.inf, axis=1)
    near = min(_NEAREST, max(1, len(pool) // 4))  # a small catalog has tastes as well
    best = np.argpartition(-scores, near - 1, axis=1)[:, :near]
    chosen = draw.integers(near, size=(len(held), _per_step(pool)))
    return np.take_along_axis(best, chosen, axis=1)


def _per_step(pool: Int64[np.ndarray, "pool"]) -> int:
    return min(_MOST_PER_STEP, max(1, len(pool) // _SHARE_PER_STEP))


def _drawn(
    weights: Float64[np.ndarray, "items"], count: int, draw: np.random.Generator
) -> Int64[np.ndarray, "count"]:
    """Distinct items, drawn one after the other by their weights."""
    # The largest of log weight + Gumbel noise are such a draw (Efraimidis 2006).
    noisy = np.log(weights) + draw.gumbel(size=len(weights))
    return np.argsort(-noisy, kind="stable")[:count]


def _shards(recommender: Recommender, held: Histories) -> Shards:
    items = held.astype(np.int32)
    rows = Ragged.of_lengths(np.full(len(items), items.shape[1]), items.ravel())
    values = np.full(items.size, recommender.method.liked, np.float32)
    n_items = len(recommender.catalog)
    return Shards(rows.offsets, rows.values, values, None, n_items)
