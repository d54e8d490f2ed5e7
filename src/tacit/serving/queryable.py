"""The vectors of a model that scores by an inner product: of its items, of its users.

space_of(recommender)            public: vectors and offsets of the items
vectors_of(recommender, shards)  private: one vector per user; stays on the client
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from tacit.data.shards import Shards
from tacit.errors import Refused
from tacit.keys import Key
from tacit.method import Candidates, Clients, ItemSpace, Queryable
from tacit.serving.recommender import Recommender, stranger


def space_of(
    recommender: Recommender, candidates: Candidates | None = None
) -> ItemSpace:
    """The public vectors of items, by default of all; refuses a method without any."""
    if candidates is None:
        candidates = Candidates.all_of(recommender.catalog)
    return queryable(recommender).item_space(recommender.broadcast, candidates)


def vectors_of(
    recommender: Recommender, shards: Shards, clients: Clients | None = None
) -> Float64[np.ndarray, "users factors"]:
    """The user vectors of histories; by default of users who never took part."""
    method, broadcast = recommender.method, recommender.broadcast
    who = stranger(method, len(shards)) if clients is None else clients
    keys = Key.from_os().each(np.arange(len(shards)))
    tastes = method.represent(broadcast, who, shards, keys)
    found = queryable(recommender).user_vectors(broadcast, tastes)
    return found.astype(np.float64)


def queryable(recommender: Recommender) -> Queryable:
    """The method of a model, if a server can rank for it."""
    method = recommender.method
    if not isinstance(method, Queryable):
        raise Refused(
            f"{type(method).__name__} does not score by an inner product, so no server "
            "can rank for it; serve it on_device"
        )
    return method
