"""Splits in which everyone trains and some of each user's items are left out.

Clients hold no impressions here: they would tell which of a user's items is left out.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Int64

from tacit import check
from tacit.data.dataset import Dataset
from tacit.data.splits.pairs import Mask, Pairs, portion, times_of
from tacit.data.splits.split import Split
from tacit.errors import BadValue
from tacit.keys import Key

_FEWEST = 3  # one item to test, one to validate, one to train on
_BEFORE = 5  # distinct items before a visit that is held out
_DAY = 86_400  # seconds
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
    keys = (draws,) if which == "random" else (draws, pairs.last(times_of(dataset)))
    from_end = (pairs.per_user - 1)[pairs.users] - pairs.ranks(*keys)
    is_judged = (pairs.per_user >= _FEWEST)[pairs.users]
    return _left_out(
        dataset,
        pairs,
        test=is_judged & (from_end == 0),
        validate=is_judged & (from_end == 1),
    )


def leave_last_visit_out(dataset: Dataset, *, gap: float = 1.0) -> Split:
    """The last visit of everyone tests, and the visit before it validates.

    A visit begins `gap` days or more after the user's event before. An item belongs to
    the visit of its last event. A visit is held out of those who have five distinct
    items before it; everyone trains on what remains. The history to test with includes
    the visit to validate with. Nothing is random.
    """
    check.positive(gap=gap)
    pairs = Pairs(dataset.interactions)
    of_events = _visits_from_end(dataset, gap)
    # Negative, because a pair belongs to the last visit of its events.
    visits = -pairs.last(-of_events)
    is_test, is_validated = (_with_enough_before(pairs, visits, n) for n in (0, 1))
    return _left_out(dataset, pairs, test=is_test, validate=is_validated)


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
    is_judged = (n >= _FEWEST)[pairs.users]
    from_end = (n - 1)[pairs.users] - ranks
    is_test = is_judged & (from_end < test[pairs.users])
    is_held = is_judged & (from_end < (test + validate)[pairs.users])
    return _left_out(dataset, pairs, test=is_test, validate=is_held & ~is_test)


def _left_out(dataset: Dataset, pairs: Pairs, *, test: Mask, validate: Mask) -> Split:
    """Some of each user's items test, others validate, everyone trains on the rest."""
    judged, chosen_on = (np.flatnonzero(pairs.count(m)) for m in (test, validate))
    if not len(judged) or not len(chosen_on):
        raise BadValue(
            f"{dataset.name}: nobody has {_FEWEST} distinct items, or {_BEFORE} before "
            "a visit that could be held out, so none can be left out"
        )
    is_trained = ~test & ~validate
    clients = np.flatnonzero(pairs.per_user)
    return Split(
        clients,
        pairs.shards(clients, is_trained),
        pairs.heldout(chosen_on, is_trained, validate),
        pairs.heldout(judged, ~test, test),
        dataset.catalog,
        dataset.profiles,
    )


def _check_shares(shares: tuple[float, float, float]) -> None:
    train, validation, test = shares
    check.fraction(train=train, validation=validation, test=test)
    if abs(sum(shares) - 1) > _ROUNDING:
        raise BadValue(f"shares={shares} must sum to 1, not {sum(shares):g}")


def _visits_from_end(dataset: Dataset, gap: float) -> Int64[np.ndarray, "events"]:
    """The visit of each event: 0 for its user's last one, 1 for the one before, …."""
    times, log = times_of(dataset), dataset.interactions
    begins = np.zeros(len(times), np.int64)
    is_later = np.diff(times) >= gap * _DAY
    begins[1:] = is_later & (log.users[1:] == log.users[:-1])
    number = np.cumsum(begins)  # of all users; the last of each is subtracted
    ends = log.offsets[1:][log.per_user > 0] - 1
    last = np.repeat(number[ends], log.per_user[log.per_user > 0])
    return last - number


def _with_enough_before(
    pairs: Pairs, visits: Int64[np.ndarray, "pairs"], visit: int
) -> Mask:
    """The pairs of a visit, of those users who have enough items before it."""
    is_enough = pairs.count(visits > visit) >= _BEFORE
    return (visits == visit) & is_enough[pairs.users]
