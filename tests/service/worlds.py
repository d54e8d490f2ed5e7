"""A small offer, a real server on a free port of this machine, and a small run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from serving.worlds import interests, item_space, population

from tacit import train
from tacit.keys import Key
from tacit.service.application import Limits, application
from tacit.service.http import JSON
from tacit.service.offer import Offer, Ranking, Resource
from tacit.service.server import Address, Server, listen, serve
from tacit.serving.query import Query
from tacit.serving.query_mechanism import InterestResponse
from tacit.serving.query_server import QueryServer
from tacit.serving.served_model import ServedModel

MOST = 15
IDS = tuple(f"item {n}" for n in range(20))


def served_model(epsilon: float = 2.0) -> ServedModel:
    """Twenty items and four interests."""
    return ServedModel(item_space(), InterestResponse(epsilon, interests()))


def query(model: ServedModel | None = None, *, user: int = 0) -> Query:
    """The query of one user of the small population."""
    keys = Key.from_seed(user).each(np.arange(1))
    [found] = (model or served_model()).release(population()[[user]], keys)
    return found


def offer(**changes: object) -> Offer:
    """What a server of that model gives away."""
    model = served_model()
    server = QueryServer(model)
    server.answers([query().encode()], 1)  # kernels are compiled before one listens
    ranking = Ranking(server, model.version, model.query_bytes, most=MOST, ids=IDS)
    found = Offer(
        Resource(b'{"format": 1}', JSON),
        Resource(b"weights and catalog"),
        Resource(b"interests"),
        ranking,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


@contextlib.contextmanager
def running(offer: Offer, *, limits: Limits | None = None) -> Iterator[str]:
    """The URL of a server of this offer; it is stopped, and its thread has ended."""
    listening, begun = listen(Address(port=0)), list[Server]()
    port = listening.getsockname()[1]
    ready = threading.Event()

    def note(server: Server) -> None:
        begun.append(server)
        ready.set()

    app = application(offer, limits=limits)
    thread = threading.Thread(
        target=serve, args=(app, listening), kwargs={"started": note}
    )
    thread.start()
    try:
        assert ready.wait(20)
        yield Address(port=port).url
    finally:
        begun[0].stop()
        thread.join(20)
        assert not thread.is_alive()


def trained(
    place: Path, method: str | dict[str, object], *, rounds: int, **sections: object
) -> Path:
    """A run of a method on the small table."""
    pairs = ((p, (p * 7 + i * i) % 15) for p in range(40) for i in range(9))
    rows = "\n".join(f"user {user},item {item}" for user, item in pairs)
    (place / "table.csv").write_text(f"who,what\n{rows}\n")
    table = {"path": str(place / "table.csv"), "user": "who", "item": "what"}
    data = {"source": "table", "min_interactions": 2, "validation": 8, "test": 8}
    train(
        {
            "data": {**data, "table": table},
            "method": {"name": method} if isinstance(method, str) else method,
            "run": {"rounds": rounds, "sampler": {"name": "everyone"}},
            "evaluate": {"metrics": ["ndcg@10"], "baselines": []},
            **sections,
        },
        out=place / "run",
    )
    return place / "run"
