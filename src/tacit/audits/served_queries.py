"""Queries for a list: what two users' queries tell apart, and whether each is entered.

Extreme users are those whose queries lie farthest apart: for interests, users who have
one interest and no other; for a vector, two that point opposite ways. They are far out,
so that every cut is at work.

Where histories are padded, what one interaction costs is less than what a user does.
`check_one_interaction` measures it on users of one interaction, whose vectors are the
extreme ones; the padding item has the vector of one of them, which is the worst case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from tacit.audits.checks import Check
from tacit.audits.likelihood_ratios import (
    DRAWS,
    Said,
    Say,
    check_epsilon,
    check_mu,
)
from tacit.errors import BadValue
from tacit.keys import Key, Keys
from tacit.release import Unit
from tacit.serving.query import Query
from tacit.serving.query_mechanism import QueryMechanism
from tacit.serving.served_model import ServedModel
from tacit.serving.serving_client import ServingClient

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

Vector = Float64[np.ndarray, "factors"]
OpenClient = Callable[[Path, ServedModel, Callable[[], float]], ServingClient]

_FAR = 1e6
_UNSEEN = 1e-9
_DAY = timedelta(days=1)
_DAYS, _ASKS = 3, 5  # each day asked several times: one release per day


def check_queries(mechanism: QueryMechanism, *, key: Key, draws: int = DRAWS) -> Check:
    """No two extreme users are easier to tell apart than the event says."""

    def say(user: Vector, keys: Keys) -> Said:
        users = np.broadcast_to(user, (len(keys), len(user)))
        return mechanism.release(users, keys).astype(np.float64)

    event, users = mechanism.event(Unit.USER), extreme_users(mechanism)
    return _check(say, users, event=event, key=key, draws=draws)


def check_one_interaction(
    mechanism: QueryMechanism, *, key: Key, draws: int = DRAWS
) -> Check:
    """One interaction that padding may replace is no easier to tell than is said."""
    padding, users = mechanism.padding, extreme_users(mechanism)
    if padding is None:
        raise BadValue(f"{mechanism.mode} pads no history; use check_queries")
    anonymous = next(iter(users.values()))

    def say(user: Vector, keys: Keys) -> Said:
        one_each = np.ones(len(keys), np.int64)
        is_padded = padding.pad(one_each, keys.at("coins"))[:, None]
        read = np.where(is_padded, anonymous, user)
        return mechanism.release(read, keys.at("query")).astype(np.float64)

    return _check(say, users, event=mechanism.event(Unit.ITEM), key=key, draws=draws)


def _check(
    say: Say, users: Mapping[str, Vector], *, event: DpEvent, key: Key, draws: int
) -> Check:
    """By the distance of normals for Gaussian noise, else by a pure epsilon.

    A guarantee with a delta is taken at one far below the chance of all that is seen.
    """
    from tacit.accounting.dp_events import GaussianDpEvent
    from tacit.accounting.epsilon import epsilon
    from tacit.accounting.events import PureDpEvent

    if isinstance(event, GaussianDpEvent):
        mu = 2.0 / event.noise_multiplier  # replace_one: twice the sensitivity
        return check_mu(say, users, mu=mu, key=key, draws=draws)
    delta = 0.0 if isinstance(event, PureDpEvent) else _UNSEEN
    found = epsilon(event, delta=delta, adjacency="replace_one").value
    if found is None:
        raise BadValue(f"{event} promises nothing that could be checked")
    return check_epsilon(say, users, epsilon=found, key=key, draws=draws)


def extreme_users(mechanism: QueryMechanism) -> dict[str, Vector]:
    """Users far out along the first two interests, or both ways along all factors."""
    interests = getattr(mechanism, "interests", None)
    if interests is None:
        one = _FAR * np.ones(len(mechanism.nobody))
        return {"all factors": one, "the opposite": -one}
    if mechanism.has_trained_basis:
        # A vector between others is nobody's strongest; the ends of a line are.
        line = _FAR * (interests.means[0] - interests.means[1])
        return {"one end of a line": line, "the other end": -line}
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
