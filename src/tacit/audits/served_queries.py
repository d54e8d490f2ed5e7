"""Queries for a list: what two users' queries tell apart, and whether each is entered.

Extreme users are those whose queries lie farthest apart: for interests, users who have
one interest and no other; for a vector, two that point opposite ways. They are far out,
so that every cut is at work.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from jaxtyping import Float64

from tacit.audits.checks import Check
from tacit.audits.likelihood_ratios import DRAWS, Said, check_epsilon, check_mu
from tacit.keys import Key, Keys
from tacit.release import Unit
from tacit.serving.query import Query
from tacit.serving.query_mechanism import QueryMechanism
from tacit.serving.served_model import ServedModel
from tacit.serving.serving_client import ServingClient

Vector = Float64[np.ndarray, "factors"]
OpenClient = Callable[[Path, ServedModel, Callable[[], float]], ServingClient]

_FAR = 1e6
_DAY = timedelta(days=1)
_DAYS, _ASKS = 3, 5  # each day asked several times: one release per day


def check_queries(mechanism: QueryMechanism, *, key: Key, draws: int = DRAWS) -> Check:
    """No two extreme users are easier to tell apart than the event says."""
    from tacit.accounting.dp_events import GaussianDpEvent

    def say(user: Vector, keys: Keys) -> Said:
        users = np.broadcast_to(user, (len(keys), len(user)))
        return mechanism.release(users, keys).astype(np.float64)

    event, users = mechanism.event(Unit.USER), extreme_users(mechanism)
    if isinstance(event, GaussianDpEvent):
        mu = 2.0 / event.noise_multiplier  # replace_one: twice the sensitivity
        return check_mu(say, users, mu=mu, key=key, draws=draws)
    return check_epsilon(say, users, epsilon=event.epsilon, key=key, draws=draws)


def extreme_users(mechanism: QueryMechanism) -> dict[str, Vector]:
    """Users far out along the first two interests, or both ways along all factors."""
    interests = getattr(mechanism, "interests", None)
    if interests is None:
        one = _FAR * np.ones(len(mechanism.nobody))
        return {"all factors": one, "the opposite": -one}
    mean = interests.mean
    return {
        f"interest {b}": mean + _FAR * (interests.means[b] - mean) for b in range(2)
    }


def check_entries(
    model: ServedModel, *, open_client: OpenClient | None = None
) -> Check:
    """As many queries leave a client as its ledger has, however often it is asked."""
    clock, left = [1000 * _DAY.total_seconds()], set[bytes]()
    user = model.mechanism.nobody
    opened = _honest if open_client is None else open_client
    with (
        TemporaryDirectory() as folder,
        opened(Path(folder) / "ledger", model, lambda: clock[0]) as client,
    ):
        for _ in range(_DAYS):
            for _ in range(_ASKS):
                said = client.query(lambda: user)
                if isinstance(said, Query):
                    left.add(said.encode())
            clock[0] += _DAY.total_seconds()
        entered = len(client.ledger.entries())
    return Check.at_most(
        "distinct queries that left, against entries of the ledger",
        len(left),
        claimed=entered,
        slack=0.0,
        detail=f"{_DAYS} days of {_ASKS} requests each",
    )


def _honest(path: Path, model: ServedModel, now: Callable[[], float]) -> ServingClient:
    return ServingClient(path, model, refresh=_DAY, now=now)
