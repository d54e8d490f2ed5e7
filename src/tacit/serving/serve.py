"""One user's list, ranked at a server from a private query, or else by the client.

    found = serve(recommender, history, k, client=client, ask=server.answer)
    found.ranked_by, found.why       "server", or "client" and the reason

`ask` takes a query and a number of items to the server and brings its answer back: a
`QueryServer` in the same process, or a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tacit import check
from tacit.errors import Refused
from tacit.method import Candidates, ItemSpace, Queryable
from tacit.serving.query import Query
from tacit.serving.recommender import Holding, Recommendation, Recommender
from tacit.serving.serving_client import ServingClient, Unasked, Vector
from tacit.serving.topk import Best

OVERFETCH = 4  # times k items are asked for; the client leaves out what it has

Ask = Callable[[Query, int], Best]


@dataclass(frozen=True)
class Served:
    """A user's list, who ranked it, and why the client did where it had to."""

    items: list[Recommendation]
    ranked_by: Literal["server", "client"]
    why: str = ""


def space_of(recommender: Recommender) -> ItemSpace:
    """The public vectors of a model's items; refuses a method that has none."""
    return queryable(recommender).item_space(
        recommender.broadcast, Candidates.all_of(recommender.catalog)
    )


def vector_of(recommender: Recommender, history: Sequence[str] | Holding) -> Vector:
    """The private user vector of a history; it stays on the client."""
    tastes = recommender.taste(history).tastes
    return queryable(recommender).user_vectors(recommender.broadcast, tastes)[0]


def queryable(recommender: Recommender) -> Queryable:
    """The method of a model, if a server can rank for it."""
    method = recommender.method
    if not isinstance(method, Queryable):
        raise Refused(
            f"{type(method).__name__} does not score by an inner product, so no server "
            "can rank for it; serve it on_device"
        )
    return method


def serve(
    recommender: Recommender,
    history: Sequence[str] | Holding,
    k: int,
    *,
    client: ServingClient,
    ask: Ask,
    overfetch: int = OVERFETCH,
) -> Served:
    """The best `k` items: by the server if a query may leave, else by the client.

    The server is asked for `overfetch` times as many, whatever the history: it cannot
    know what the user has, and a number that followed the history would tell it. A list
    is shorter than `k` if the user has nearly all of what came back.
    """
    check.count(k=k, overfetch=overfetch)
    query = client.query(lambda: vector_of(recommender, history))
    if isinstance(query, Unasked):
        return Served(recommender.recommend(history, k), "client", query.reason)
    best = ask(query, min(k * overfetch, len(recommender.catalog)))
    client.delivered(query)
    return Served(without_held(recommender, history, best)[:k], "server")


def without_held(
    recommender: Recommender, history: Sequence[str] | Holding, best: Best
) -> list[Recommendation]:
    """The server's list without what the user has already."""
    catalog = recommender.catalog
    held = history.ids(catalog) if isinstance(history, Holding) else history
    is_new = ~np.isin(best.items, catalog.indices(list(dict.fromkeys(held))))
    return [
        Recommendation(catalog.ids[item], catalog.titles[item], score)
        for item, score in zip(
            best.items[is_new].tolist(), best.scores[is_new].tolist(), strict=True
        )
    ]
