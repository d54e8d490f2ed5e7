"""Splits in which everyone trains and some of each user's items are left out.

Clients hold no impressions here: they would tell which of a user's items is left out.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tacit import check
from tacit.data.dataset import Dataset
from tacit.data.splits.pairs import Numbers, Pairs, PerUser, portion
from tacit.data.splits.split import Split
from tacit.errors import BadValue
from tacit.keys import Key

_FEWEST = 3  # one item to test, one to validate, one to train on
_ROUNDING = 1e-9  # by which shares may miss 1: 0.7 + 0.2 + 0.1 does


def leave_one_out(
    dataset: Dataset, *, which: Literal["random", "latest"], key: Key
) -> Split:
    """One test and one validation item of everyone with three distinct items or more.

    `latest` takes the two items whose last events are the most recent and needs times;
    equal times are ordered by the key. Everyone with an event trains on what remains.
    The history to test with includes the validation item.
    """
    check.one_of(("random", "latest"), which=which)
    pairs = Pairs(dataset.interactions)
    draws = pairs.draws(key.at("leave one out"))
    # `lexsort` takes its last key first: times, and draws where they are equal.
    keys = (draws,) if which == "random" else (draws, _last_times(pairs, dataset.name))
    one = (pairs.per_user >= _FEWEST).astype(np.int64)
    return _left_out(dataset, pairs, ranks=pairs.ranks(*keys), test=one, validate=one)


def ratio(
    dataset: Dataset,
    *,
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1),
    key: Key,
) -> Split:
    """Each user's items divided at random: to train, to validate, to test.

    Of n distinct items `int(share * n)`, at least one, are left out for each; users
    with fewer than three only train. The history to test with includes the items to
    validate. Source: 8:1:1 is DP-VAE's (Section 4.1.1), which does not say whether it
    divides each user's ratings or all at once, nor how.
    """
    _check_shares(shares)
    pairs = Pairs(dataset.interactions)
    ranks = pairs.ranks(pairs.draws(key.at("ratio")))
    n = pairs.per_user
    # At least one item stays to train on, and one to validate with.
    test = np.minimum(portion(shares[2], n), n - 2)
    validate = np.minimum(portion(shares[1], n), n - 1 - test)
    is_judged = n >= _FEWEST
    return _left_out(
        dataset,
        pairs,
        ranks=ranks,
        test=test * is_judged,
        validate=validate * is_judged,
    )


def _left_out(
    dataset: Dataset, pairs: Pairs, *, ranks: Numbers, test: PerUser, validate: PerUser
) -> Split:
    """Each user's last items test, those before them validate, everyone trains."""
    users = np.flatnonzero(test)
    if not len(users):
        raise BadValue(
            f"{dataset.name}: nobody has {_FEWEST} distinct items, so none "
            "can be left out"
        )
    from_end = pairs.per_user[pairs.users] - 1 - ranks
    is_test = from_end < test[pairs.users]
    is_trained = from_end >= (test + validate)[pairs.users]
    clients = np.flatnonzero(pairs.per_user)
    return Split(
        clients,
        pairs.shards(clients, is_trained),
        pairs.heldout(users, is_trained, ~is_trained & ~is_test),
        pairs.heldout(users, ~is_test, is_test),
        dataset.catalog,
        dataset.profiles,
    )


def _check_shares(shares: tuple[float, float, float]) -> None:
    train, validation, test = shares
    check.fraction(train=train, validation=validation, test=test)
    if abs(sum(shares) - 1) > _ROUNDING:
        raise BadValue(f"shares={shares} must sum to 1, not {sum(shares):g}")


def _last_times(pairs: Pairs, name: str) -> Numbers:
    """The time of each pair's last event."""
    if pairs.log.times is None:
        raise BadValue(f"{name} has no times; use which='random'")
    last = np.full(len(pairs.users), np.iinfo(np.int64).min)
    np.maximum.at(last, pairs.of_events, pairs.log.times)  # repeats: the latest
    return last
