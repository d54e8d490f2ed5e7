"""Splits by user: held-out users never train, or nobody is held out at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int64

from tacit import check
from tacit.data.dataset import Dataset
from tacit.data.shards import Shards
from tacit.data.splits.pairs import Mask, Pairs, portion, times_of
from tacit.data.splits.split import Split
from tacit.errors import BadValue
from tacit.keys import Key

Users = Int64[np.ndarray, "users"]


def new_users(
    dataset: Dataset,
    *,
    n_validation: int,
    n_test: int,
    target_share: float = 0.2,
    targets: Literal["random", "latest"] = "random",
    catalog: Literal["all", "training"] = "all",
    key: Key,
) -> Split:
    """Users the model never saw: part of each one's items folds in, part is to find.

    Of a held-out user's n distinct items `int(target_share * n)`, at least one, are
    targets: random ones, or those whose last events are the latest, which needs times;
    equal times are ordered by the key. Users with a single item cannot be held out;
    they train. Items that only held-out users have stay in the catalog and may be
    targets, unless it is `"training"`: then they are dropped, the others are numbered
    anew, targets are drawn from what is left, and held-out users left with a single
    item are dropped too.
    """
    check.count(n_validation=n_validation, n_test=n_test)
    check.fraction(target_share=target_share)
    check.one_of(("random", "latest"), targets=targets)
    check.one_of(("all", "training"), catalog=catalog)
    pairs = Pairs(dataset.interactions)
    users = _drawn(
        pairs,
        pairs.per_user >= 2,
        n_validation=n_validation,
        n_test=n_test,
        key=key.at("new users", "who"),
    )
    if catalog == "training":
        dataset = _with_items_of(dataset, users.clients)
        pairs = Pairs(dataset.interactions)
        users = users.only(pairs.per_user >= 2)  # one to fold in, one to find
    keys = [pairs.draws(key.at("new users", "targets"))]
    if targets == "latest":
        keys.append(-pairs.last(times_of(dataset)))  # the latest first
    wanted = np.minimum(portion(target_share, pairs.per_user), pairs.per_user - 1)
    is_target = pairs.ranks(*keys) < wanted[pairs.users]
    return _split(dataset, pairs, users, targets=is_target)


def adapt_half(
    dataset: Dataset,
    *,
    train_share: float = 0.8,
    validation_share: float = 0.05,
    min_target_value: float | None = None,
    key: Key,
) -> Split:
    """Users the model never saw: half of each one's items adapts it, half is hidden.

    Shares are of all users with an event; who neither trains nor validates tests. Of n
    distinct items `n // 2`, drawn at random, are hidden; they are targets if one of
    their events has at least `min_target_value`, else `disliked`. Users who would have
    nothing to find cannot be held out; they train.
    Source: PrivRec, Section 3.3, which holds out a fifth, has no validation users and
    says of the halves only that they are even.
    """
    check.fraction(train_share=train_share, validation_share=validation_share)
    pairs = Pairs(dataset.interactions)
    ranks = pairs.ranks(pairs.draws(key.at("adapt half", "halves")))
    is_hidden = ranks < (pairs.per_user // 2)[pairs.users]  # rounded down
    is_liked = pairs.reach(-np.inf if min_target_value is None else min_target_value)
    is_target, is_disliked = is_hidden & is_liked, is_hidden & ~is_liked
    n = int(np.count_nonzero(pairs.per_user))
    # At least one user, so that hyper-parameters can be chosen without test users.
    n_validation = max(1, round(validation_share * n))
    n_test = n - round(train_share * n) - n_validation
    if n_test < 1:
        raise BadValue(
            f"train_share={train_share} and validation_share={validation_share} leave "
            f"none of {n} users to test; lower them"
        )
    users = _drawn(
        pairs,
        pairs.count(is_target) > 0,
        n_validation=n_validation,
        n_test=n_test,
        key=key.at("adapt half", "who"),
    )
    return _split(dataset, pairs, users, targets=is_target, disliked=is_disliked)


def everyone_trains(dataset: Dataset) -> Split:
    """Nobody is held out: all with an event train on all they have.

    For models that are released. Whom another split holds out, or what it hides, is
    learnt from nobody, and who is held out depends on who else is there.
    """
    pairs = Pairs(dataset.interactions)
    nobody = np.zeros(0, np.int64)
    users = _Users(np.flatnonzero(pairs.per_user), nobody, nobody)
    return _split(dataset, pairs, users, targets=np.zeros(len(pairs.users), bool))


@dataclass(frozen=True, eq=False)
class _Users:
    """Who trains, who validates, who tests; each in ascending order."""

    clients: Int64[np.ndarray, "clients"]
    validation: Int64[np.ndarray, "validation"]
    test: Int64[np.ndarray, "test"]

    def only(self, fit: Bool[np.ndarray, "users"]) -> _Users:
        """The same without the held-out users who are not fit."""
        validation, test = (who[fit[who]] for who in (self.validation, self.test))
        if not len(validation) or not len(test):
            raise BadValue(
                "nobody to validate or nobody to test has two items that training "
                "users have; hold out others or use catalog='all'"
            )
        return _Users(self.clients, validation, test)


def _drawn(
    pairs: Pairs,
    fit: Bool[np.ndarray, "users"],
    *,
    n_validation: int,
    n_test: int,
    key: Key,
) -> _Users:
    """Held-out users from those who are fit; everyone else with an event trains."""
    order = _shuffled(np.flatnonzero(fit), key)
    n_held = n_validation + n_test
    is_client = pairs.per_user > 0  # whoever has no event cannot train
    is_client[order[:n_held]] = False
    if len(order) < n_held or not is_client.any():
        raise BadValue(
            f"n_validation={n_validation} and n_test={n_test} must leave somebody to "
            f"train on; {len(order)} of {np.count_nonzero(pairs.per_user)} users can "
            "be held out"
        )
    # Test users first: a larger validation set does not change who tests.
    test, validation = np.sort(order[:n_test]), np.sort(order[n_test:n_held])
    return _Users(np.flatnonzero(is_client), validation, test)


def _shuffled(users: Users, key: Key) -> Users:
    """Users in a random order, in which each one's draw is their own."""
    return users[np.argsort(key.each(users).bits(1)[:, 0], kind="stable")]


def _with_items_of(dataset: Dataset, users: Users) -> Dataset:
    """Only the items that these users have, numbered anew; everyone stays."""
    log = dataset.interactions
    items = np.flatnonzero(log.take_users(users).per_item)
    renumbering = np.full(log.n_items, -1, np.int32)
    renumbering[items] = np.arange(len(items), dtype=np.int32)
    kept = log.keep(renumbering[log.items] >= 0)
    log = replace(kept, items=renumbering[kept.items], n_items=len(items))
    return replace(dataset, interactions=log, catalog=dataset.catalog.take(items))


def _split(
    dataset: Dataset,
    pairs: Pairs,
    users: _Users,
    *,
    targets: Mask,
    disliked: Mask | None = None,
) -> Split:
    """Training users with all they have, held-out users without what is hidden."""
    seen = ~targets if disliked is None else ~targets & ~disliked
    log, shown = dataset.interactions.take_users(users.clients), dataset.impressions
    return Split(
        users.clients,
        Shards.of(log, None if shown is None else shown.take_users(users.clients)),
        pairs.heldout(users.validation, seen, targets, disliked),
        pairs.heldout(users.test, seen, targets, disliked),
        dataset.catalog,
        dataset.profiles,
    )
