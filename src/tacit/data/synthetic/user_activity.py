"""What users do in an invented world: how many picks, of what, when, how they rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from tacit.data.interactions import Interactions
from tacit.data.ragged import offsets_of
from tacit.data.synthetic.ground_truth import Oracle
from tacit.data.synthetic.users_and_items import Items, Users
from tacit.data.synthetic.weighted_sampling import pick
from tacit.keys import Keys
from tacit.side_by_side import side_by_side

_START = 1_672_531_200  # 1 January 2023
_YEAR = 365 * 86_400
_USERS = 2048  # users that one thread makes at a time

Numbers = Float64[np.ndarray, "n"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Activity:
    """How much users do, and how often they come back to an item."""

    users: Users
    items: Items
    oracle: Oracle
    mean: float
    spread: float  # of the logarithm of how many events users have
    fewest: int
    repeats: float

    def log(self) -> Interactions:
        """Everybody's events; threads share the users out, which changes nothing."""
        n = self.users.n
        groups = np.split(np.arange(n), range(_USERS, n, _USERS))
        return _joined(side_by_side(self.events, groups))

    def events(self, users: Int64[np.ndarray, "users"]) -> Interactions:
        """The events of some users."""
        keys = self.users.keys[users]
        counts = self.counts(keys)
        items = pick(self.oracle, users, counts=counts, keys=keys.at("picks"))
        draws = [
            keys.at(what).uniform_ragged(counts)
            for what in ("time", "stars", "again", "later", "other stars")
        ]
        rows = np.repeat(np.arange(len(users)), counts)
        start, span = _stays(keys)
        times = start[rows] + span[rows] * draws[0]
        # r of all events are second ones if r / (1 - r) of the first ones are repeated.
        again = draws[2] * (1 - self.repeats) < self.repeats
        later = times[again] + (1 - times[again]) * draws[3][again]
        liking = self._liking(users[rows], items)
        stars, other = _stars(liking, draws[1]), _stars(liking[again], draws[4][again])
        return Interactions.of_columns(
            np.concatenate([rows, rows[again]]),
            np.concatenate([items, items[again]]),
            values=np.concatenate([stars, other]),
            times=_START + (_YEAR * np.concatenate([times, later])).astype(np.int64),
            n_users=len(users),
            n_items=self.items.n,
        )

    def counts(self, keys: Keys) -> Int64[np.ndarray, "users"]:
        """How many items each user picks: log-normal, at most half of all."""
        draw = keys.at("count").normal(1)[:, 0]
        factor = np.exp(self.spread * draw - self.spread**2 / 2)
        counts = np.rint(self.mean * factor).astype(np.int64)
        # At most half of all items: picks without replacement stay cheap.
        return np.clip(counts, self.fewest, self.items.n // 2)

    def _liking(
        self, users: Int64[np.ndarray, "events"], items: Int64[np.ndarray, "events"]
    ) -> Float64[np.ndarray, "events"]:
        """How well taste and item agree, from -1 to 1."""
        tastes, directions = self.users.tastes, self.items.directions
        return np.einsum("ij,ij->i", tastes[users], directions[items])


def _stays(keys: Keys) -> tuple[Numbers, Numbers]:
    """When each user comes and how long they stay, in shares of the year."""
    draw = keys.at("stay").uniform(2)
    start = 0.8 * draw[:, 0]  # nobody comes in the last fifth of the year
    return start, (1 - start) * (0.1 + 0.9 * draw[:, 1])


def _stars(liking: Numbers, noise: Numbers) -> Numbers:
    """One to five: more for what is liked, and some chance."""
    return np.clip(np.rint(3.2 + 2.0 * liking + 2.0 * (noise - 0.5)), 1, 5)


def _joined(logs: Sequence[Interactions]) -> Interactions:
    """The users of several logs, one after another."""
    return Interactions(
        offsets_of(np.concatenate([log.per_user for log in logs])),
        np.concatenate([log.items for log in logs]),
        np.concatenate([log.values for log in logs]),
        np.concatenate([log.times for log in logs if log.times is not None]),
        logs[0].n_items,
    )
