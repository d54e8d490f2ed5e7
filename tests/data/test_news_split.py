from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.features import Category
from tacit.data.impressions import clicks
from tacit.data.news_split import by_part, by_time
from tacit.data.synthetic.news_world import NewsWorld
from tacit.data.synthetic.world import checkerboard
from tacit.errors import BadValue

DATA = NewsWorld(users=60, news=200, shown=6, history=4, topics=3).dataset()
FRIDAY, SUNDAY = "2023-02-03", "2023-02-05T00:00:00Z"


def seconds(text: str) -> int:
    return int(np.datetime64(text.removesuffix("Z"), "s").astype(int))


@pytest.fixture(scope="module")
def split():
    return by_time(DATA, validation_from=FRIDAY, test_from=SUNDAY)


def test_every_impression_is_in_one_part_by_its_time(split):
    times = DATA.impressions.slates.times
    cuts = [0, seconds(FRIDAY), seconds(SUNDAY), 2**40]
    for part, low, high in zip(
        (split.train.impressions, split.validation, split.test),
        cuts,
        cuts[1:],
        strict=False,
    ):
        inside = (times >= low) & (times < high)
        assert inside.any()
        np.testing.assert_array_equal(part.slates.times, times[inside])


def test_a_client_is_who_has_a_training_impression(split):
    users = DATA.impressions.users[DATA.impressions.slates.times < seconds(FRIDAY)]
    np.testing.assert_array_equal(split.users, np.unique(users))
    np.testing.assert_array_equal(split.users[split.train.impressions.users], users)
    assert (
        len(split.train) == len(split.users) == split.train.impressions.slates.n_users
    )
    assert len(split.users) < DATA.interactions.n_users


def test_a_client_trains_on_its_history_and_its_early_clicks(split):
    log = clicks(split.train.impressions)
    np.testing.assert_array_equal(split.train.items, log.items)
    np.testing.assert_array_equal(split.train.offsets, log.offsets)
    assert split.train.times.max() < seconds(FRIDAY)


def test_later_impressions_keep_users_and_histories(split):
    for part in (split.validation, split.test):
        assert part.slates.n_users == DATA.interactions.n_users
        whole = DATA.impressions.slates
        for place in range(0, len(part), 7):
            user = int(part.users[place])
            first = int(np.searchsorted(whole.users, user))
            np.testing.assert_array_equal(
                part.slates.histories[int(part.slates.history_of[place])],
                whole.histories[int(whole.history_of[first])],
            )


def test_what_happens_later_does_not_change_training():
    """The clicks, candidates and histories of later impressions are all replaced."""
    impressions = DATA.impressions
    slates = impressions.slates
    is_late = slates.times >= seconds(FRIDAY)
    late = is_late[slates.shown.owners]
    shown = replace(slates.shown, values=np.where(late, 0, slates.shown.values))
    other = replace(
        impressions,
        slates=replace(slates, shown=shown),
        clicked=impressions.clicked ^ late,
    )
    changed = replace(DATA, impressions=other, interactions=clicks(other))
    a, b = (
        by_time(d, validation_from=FRIDAY, test_from=SUNDAY) for d in (DATA, changed)
    )
    np.testing.assert_array_equal(a.train.items, b.train.items)
    np.testing.assert_array_equal(
        a.train.impressions.clicked, b.train.impressions.clicked
    )
    assert not np.array_equal(a.test.clicked, b.test.clicked)


def test_published_parts():
    names = ["train", "valid", "test"]
    n = len(DATA.impressions)
    parts = Category.of([names[i % 3] for i in range(n)])
    data = replace(DATA, impressions=replace(DATA.impressions, parts=parts))
    split = by_part(data, validation="valid", test="test")
    sizes = [len(p) for p in (split.train.impressions, split.validation, split.test)]
    assert sizes == [len(range(start, n, 3)) for start in range(3)]
    whole = DATA.impressions.slates.shown.take(np.arange(2, n, 3))
    np.testing.assert_array_equal(split.test.slates.shown.values, whole.values)
    with pytest.raises(BadValue, match="test='tset' is not known; did you mean 'test'"):
        by_part(data, validation="valid", test="tset")
    with pytest.raises(BadValue, match="must not be the test part"):
        by_part(data, validation="test", test="test")


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        (SUNDAY, FRIDAY, "must be before"),
        (FRIDAY, FRIDAY, "must be before"),
        ("Friday", SUNDAY, "validation_from='Friday' must be unix seconds"),
        ("2022-01-01", SUNDAY, "left to train on; they are from 2023-01-30T"),
        (FRIDAY, "2023-02-03T00:00:01", "left to validate on"),
        (FRIDAY, 2_000_000_000, "left to test on"),
    ],
)
def test_moments_that_make_no_split_are_refused(first, second, problem):
    with pytest.raises(BadValue, match=problem):
        by_time(DATA, validation_from=first, test_from=second)


def test_sets_that_cannot_be_split_this_way_are_refused():
    with pytest.raises(BadValue, match="checkerboard has no impressions"):
        by_time(checkerboard(4, 4, 2), validation_from=1, test_from=2)
    with pytest.raises(BadValue, match="has a single part; use by_time"):
        by_part(DATA, validation="valid", test="test")
    slates = replace(DATA.impressions.slates, times=None)
    untimed = replace(DATA, impressions=replace(DATA.impressions, slates=slates))
    with pytest.raises(BadValue, match="have no times; use by_part"):
        by_time(untimed, validation_from=1, test_from=2)
