"""Who trains, who is held out, and which of a held-out person's items are the answer.

An item is held out with all its repeats, so no target occurs in its own history. A
person's draws are addressed by the person's place in the data set and depend on nobody
else's events.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from tacit import check
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key

_FEWEST_LEFT_OUT = 3  # one item to test, one to validate, one to train on


@dataclass(frozen=True, eq=False)
class Heldout:
    """People to rank for: what the ranker may see of each, and what it must find."""

    users: Int64[np.ndarray, "people"]  # places in the data set's profiles
    history: Shards
    targets: Shards


@dataclass(frozen=True, eq=False)
class Split:
    """A data set divided for honest evaluation; no target occurs in its history."""

    users: Int64[np.ndarray, "clients"]  # training clients: places in the profiles
    train: Shards
    validation: Heldout
    test: Heldout
    catalog: Catalog
    profiles: Profiles


def leave_one_out(
    dataset: Dataset, *, which: Literal["random", "latest"], key: Key
) -> Split:
    """One test and one validation item of everyone with three distinct items or more.

    `latest` takes the two items whose last events are the most recent and needs times;
    equal times are ordered by the key. Everyone with an event trains on what remains.
    The history to test with includes the validation item.
    """
    check.one_of(("random", "latest"), which=which)
    log = dataset.interactions
    pairs = _Pairs(log)
    draws = pairs.draws(key.at("leave one out"))
    keys = (draws,) if which == "random" else (draws, _last_times(pairs, dataset.name))
    from_end = pairs.per_user[pairs.users] - 1 - pairs.places(keys)
    is_left_out = (pairs.per_user >= _FEWEST_LEFT_OUT)[pairs.users]
    is_test, is_validation = (is_left_out & (from_end == n) for n in (0, 1))
    people = np.flatnonzero(pairs.per_user >= _FEWEST_LEFT_OUT)
    if not len(people):
        raise BadValue(
            f"{dataset.name}: nobody has {_FEWEST_LEFT_OUT} distinct items, so none "
            "can be left out"
        )
    clients = np.flatnonzero(log.per_user > 0)
    return Split(
        clients,
        _shards(log, clients, pairs.events(~is_test & ~is_validation)),
        pairs.heldout(people, ~is_test & ~is_validation, is_validation),
        pairs.heldout(people, ~is_test, is_test),
        dataset.catalog,
        dataset.profiles,
    )


def new_users(
    dataset: Dataset,
    *,
    n_validation: int,
    n_test: int,
    target_share: float = 0.2,
    key: Key,
) -> Split:
    """People the model never saw: part of each one's items folds in, part is to find.

    Of a held-out person's n distinct items `int(target_share * n)`, at least one, are
    targets. People with a single item cannot be held out; they train. Items that only
    held-out people have stay in the catalog and may be targets.
    """
    check.at_least(1, n_validation=n_validation, n_test=n_test)
    check.fraction(target_share=target_share)
    log = dataset.interactions
    pairs = _Pairs(log)
    order = _shuffled(np.flatnonzero(pairs.per_user >= 2), key.at("new users", "who"))
    test = np.sort(order[:n_test])
    validation = np.sort(order[n_test : n_test + n_validation])
    is_client = log.per_user > 0
    is_client[np.concatenate([test, validation])] = False
    if len(order) < n_validation + n_test or not is_client.any():
        raise BadValue(
            f"n_validation={n_validation} and n_test={n_test} must leave somebody to "
            f"train on; {dataset.name} has {len(order)} people with two distinct items "
            "or more"
        )
    draws = pairs.draws(key.at("new users", "targets"))
    wanted = np.maximum(1, (target_share * pairs.per_user).astype(np.int64))
    is_target = (
        pairs.places((draws,)) < np.minimum(wanted, pairs.per_user - 1)[pairs.users]
    )
    clients = np.flatnonzero(is_client)
    return Split(
        clients,
        Shards.of(log.take_users(clients)),
        pairs.heldout(validation, ~is_target, is_target),
        pairs.heldout(test, ~is_target, is_target),
        dataset.catalog,
        dataset.profiles,
    )


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The distinct (user, item) pairs of a log, by user and then item."""

    log: Interactions

    @cached_property
    def _found(
        self,
    ) -> tuple[
        Int64[np.ndarray, "pairs"],
        Int64[np.ndarray, "pairs"],
        Int64[np.ndarray, "events"],
    ]:
        code = self.log.users.astype(np.int64) * self.log.n_items + self.log.items
        return np.unique(code, return_index=True, return_inverse=True)

    @cached_property
    def users(self) -> Int64[np.ndarray, "pairs"]:
        """The user of each pair."""
        return self._found[0] // self.log.n_items

    @cached_property
    def per_user(self) -> Int64[np.ndarray, "users"]:
        """How many distinct items each user has."""
        return np.bincount(self.users, minlength=self.log.n_users)

    @property
    def of_events(self) -> Int64[np.ndarray, "events"]:
        """The pair of each event."""
        return self._found[2]

    def draws(self, key: Key) -> UInt64[np.ndarray, "pairs"]:
        """A random word a pair, from its user's own stream."""
        keys = key.each(np.arange(self.log.n_users))
        return keys.bits_ragged(self.per_user)

    def places(
        self, keys: tuple[Int64[np.ndarray, "pairs"] | UInt64[np.ndarray, "pairs"], ...]
    ) -> Int64[np.ndarray, "pairs"]:
        """0, 1, … among the user's pairs, ordered by the last of `keys` first."""
        order = np.lexsort((*keys, self.users))
        starts = np.cumsum(self.per_user) - self.per_user
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - starts[self.users]
        return place

    def events(self, mask: Bool[np.ndarray, "pairs"]) -> Bool[np.ndarray, "events"]:
        """Which events belong to the pairs in `mask`, repeats included."""
        return mask[self.of_events]

    def heldout(
        self,
        people: Int64[np.ndarray, "people"],
        seen: Bool[np.ndarray, "pairs"],
        targets: Bool[np.ndarray, "pairs"],
    ) -> Heldout:
        """These people with histories that keep repeats and targets that do not."""
        is_first = np.zeros(len(self.log), bool)
        is_first[self._found[1]] = True
        return Heldout(
            people,
            _shards(self.log, people, self.events(seen)),
            _shards(self.log, people, self.events(targets) & is_first),
        )


def _shards(
    log: Interactions,
    users: Int64[np.ndarray, "people"],
    mask: Bool[np.ndarray, "events"],
) -> Shards:
    return Shards.of(log.keep(mask).take_users(users))


def _last_times(pairs: _Pairs, name: str) -> Int64[np.ndarray, "pairs"]:
    """The time of each pair's last event."""
    if pairs.log.times is None:
        raise BadValue(f"{name} has no times; use which='random'")
    last = np.full(len(pairs.users), np.iinfo(np.int64).min)
    np.maximum.at(last, pairs.of_events, pairs.log.times)
    return last


def _shuffled(
    users: Int64[np.ndarray, "people"], key: Key
) -> Int64[np.ndarray, "people"]:
    """Users in the order of one draw each."""
    return users[np.argsort(key.each(users).bits(1)[:, 0], kind="stable")]
