"""Splits of impressions: train on what was shown first, rank what was shown later.

A training client holds its impressions of the training part, and its clicks and the
histories in these as its events: nothing of a later part is trained on. Users with no
such impression are only ranked for.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from tacit import check
from tacit.data.dataset import Dataset
from tacit.data.impressions import Impressions, clicks
from tacit.data.shards import Shards
from tacit.data.splits import Split
from tacit.data.splits.by_moment import Moment, cuts
from tacit.errors import BadValue


def by_time(dataset: Dataset, *, validation_from: Moment, test_from: Moment) -> Split:
    """Train on impressions before `validation_from`, test on those from `test_from` on.

    What lies between is for validation.
    """
    impressions = _impressions(dataset)
    times = impressions.slates.times
    if times is None:
        raise BadValue(f"the impressions of {dataset.name} have no times; use by_part")
    first, second_cut = cuts(validation_from, test_from)
    later = times >= second_cut  # the moment itself belongs to the test
    return _split(
        dataset, train=times < first, validation=(times >= first) & ~later, test=later
    )


def by_part(dataset: Dataset, *, validation: str, test: str) -> Split:
    """Validate and test on published parts, such as `valid` and `test`.

    All other parts train. Histories are as published: those of Adressa's `valid` and
    `test` have what was clicked in `train`.
    """
    parts = _impressions(dataset).parts
    if parts is None:
        raise BadValue(f"{dataset.name} has a single part; use by_time")
    check.one_of(parts.labels, validation=validation, test=test)
    if validation == test:
        raise BadValue(f"validation={validation!r} must not be the test part")
    is_validation, is_test = (
        parts.codes == parts.labels.positions[label] for label in (validation, test)
    )
    return _split(
        dataset,
        train=~is_validation & ~is_test,
        validation=is_validation,
        test=is_test,
    )


def _split(
    dataset: Dataset,
    *,
    train: Bool[np.ndarray, "impressions"],
    validation: Bool[np.ndarray, "impressions"],
    test: Bool[np.ndarray, "impressions"],
) -> Split:
    impressions = _impressions(dataset)
    for name, mask in {"train": train, "validate": validation, "test": test}.items():
        if not mask.any():
            raise BadValue(
                f"no impression of {dataset.name} is left to {name} on; "
                f"{_span(impressions)}"
            )
    trained = impressions.keep(train)
    # Clients are users with a training impression; the others are only evaluated.
    users = np.flatnonzero(trained.per_user > 0)
    held = trained.take_users(users)
    return Split(
        users,
        Shards.of(clicks(held), held),
        impressions.keep(validation),
        impressions.keep(test),
        dataset.catalog,
        dataset.profiles,
    )


def _impressions(dataset: Dataset) -> Impressions:
    if dataset.impressions is None:
        raise BadValue(
            f"{dataset.name} has no impressions; use the splits in tacit.data.splits"
        )
    return dataset.impressions


def _span(impressions: Impressions) -> str:
    """The first and last time, for an error about badly chosen moments."""
    times = impressions.slates.times
    if times is None or not len(times):
        return "there are no times"
    first, last = (np.datetime64(int(t), "s") for t in (times.min(), times.max()))
    return f"they are from {first} to {last}"
