"""One user's list, ranked at a server from a private query, or else by the client.

    found = serve(recommender, history, k, client=client, ask=server.answer)
    found.ranked_by, found.why       "server", or "client" and the reason

`ask` takes a query and a number of items to the server and brings its answer back: a
`QueryServer` in the same process, or a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Bool

from tacit import check
from tacit.data.shards import Shards
from tacit.errors import Refused
from tacit.keys import Key
from tacit.mechanisms.padding import Padding
from tacit.release import Unit
from tacit.serving.query import Query
from tacit.serving.query_mechanism import QueryMechanism
from tacit.serving.queryable import queryable
from tacit.serving.recommender import Holding, Recommendation, Recommender
from tacit.serving.sensitive import Marks, Protection
from tacit.serving.served_model import ServedModel
from tacit.serving.serving_client import ServingClient, Unasked, Vector
from tacit.serving.topk import Best
from tacit.serving.trained_basis import encodings_of

OVERFETCH = 4  # times k items are asked for; the client leaves out what it has

Ask = Callable[[Query, int], Best]


@dataclass(frozen=True)
class Served:
    """A user's list, who ranked it, and why the client did where it had to."""

    items: list[Recommendation]
    ranked_by: Literal["server", "client"]
    why: str = ""


def vector_of(
    recommender: Recommender,
    history: Sequence[str] | Holding,
    *,
    mechanism: QueryMechanism | None = None,
    marks: Marks | None = None,
) -> Vector:
    """The private user vector of a history; it stays on the client.

    It is the one that queries of this mechanism are made of. If it pads, some
    interactions of the history are public ones: the padding item, for a basis that
    training made, or else random items. What enters the vector, and what may be padded,
    follows from the user's marks.
    """
    held, catalog = recommender.holding(history), recommender.catalog
    shard = held.shard if marks is None else marks.encoded(catalog, held.shard)
    padding = None if mechanism is None else mechanism.padding
    only = None if marks is None else marks.may_be_padded(catalog)
    if mechanism is not None and mechanism.has_trained_basis:
        return encodings_of(recommender, shard, padding=padding, only=only)[0]
    if padding is not None:
        recommender = recommender.ranking_for("any")  # order and times are padded away
        liked = recommender.method.liked
        shard = padded(shard, padding, Key.from_os(), value=liked, only=only)
    tastes = recommender.taste(replace(held, shard=shard)).tastes
    return queryable(recommender).user_vectors(recommender.broadcast, tastes)[0]


def padded(
    shards: Shards,
    padding: Padding,
    key: Key,
    *,
    value: float,
    only: Bool[np.ndarray, "items"] | None = None,
) -> Shards:
    """Histories in which each interaction is, with a probability, a random item's.

    The replacement is drawn from the public catalog and has a public value, whatever
    was replaced. Times and contexts are left out: they would tell of what was there.
    `only` these items of the catalog are replaced; by default any.
    """
    keys = key.each(np.arange(len(shards)))
    falls = padding.pad(shards.lengths, keys.at("coins"))
    if only is not None:
        falls = falls & only[shards.items]
    draw = key.at("items").generator()
    drawn = draw.integers(shards.n_items, size=len(shards.items))
    items = np.where(falls, drawn, shards.items).astype(np.int32)
    values = np.where(falls, value, shards.values).astype(np.float32)
    return Shards(shards.offsets, items, values, None, shards.n_items)


def serve(
    recommender: Recommender,
    history: Sequence[str] | Holding,
    k: int,
    *,
    client: ServingClient,
    ask: Ask,
    overfetch: int = OVERFETCH,
    marks: Marks | None = None,
) -> Served:
    """The best `k` items: by the server if a query may leave, else by the client.

    The server is asked for `overfetch` times as many, whatever the history: it cannot
    know what the user has, and a number that followed the history would tell it. A list
    is shorter than `k` if the user has nearly all of what came back.
    """
    check.count(k=k, overfetch=overfetch)
    _refuse_unstated(marks, client.model)
    mechanism = client.model.mechanism
    query = client.query(
        lambda: vector_of(recommender, history, mechanism=mechanism, marks=marks)
    )
    if isinstance(query, Unasked):
        return Served(recommender.recommend(history, k), "client", query.reason)
    best = ask(query, min(k * overfetch, len(recommender.catalog)))
    client.delivered(query)
    return Served(without_held(recommender, history, best)[:k], "server")


def trial(
    recommender: Recommender,
    history: Sequence[str] | Holding,
    k: int,
    *,
    model: ServedModel,
    ask: Ask,
    overfetch: int = OVERFETCH,
    marks: Marks | None = None,
) -> list[Recommendation]:
    """The list that a server would rank, from a query that is entered nowhere.

    For a look at what a budget buys, with a server in the same process: sent to anybody
    else, the query would be a release that no ledger has.
    """
    check.count(k=k, overfetch=overfetch)
    _refuse_unstated(marks, model)
    user = vector_of(recommender, history, mechanism=model.mechanism, marks=marks)
    [query] = model.release(user[None], Key.from_os().alone())
    best = ask(query, min(k * overfetch, len(recommender.catalog)))
    return without_held(recommender, history, best)[:k]


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


def _refuse_unstated(marks: Marks | None, model: ServedModel) -> None:
    """Refuse to pad sensitive items only where an account promises it for all."""
    if marks is None or marks.protection is not Protection.PAD_SENSITIVE:
        return
    mechanism = model.mechanism
    if mechanism.event(Unit.ITEM) != mechanism.event(Unit.USER):
        raise Refused(
            "the account of this model has every interaction padded, and the user "
            "wants that for sensitive ones only; serve a model with pads='sensitive', "
            "which promises less for one interaction"
        )
