"""What happened before a moment is trained on, and nothing that came later."""

from __future__ import annotations

import pytest
from data.splits.drawn import dataset_of, found, histories, rows
from hypothesis import given

from tacit.data.splits import global_cut
from tacit.errors import BadValue

# By hand: the first is there throughout, the second comes late, the third left early,
# the fourth takes again what it had.
USERS = [
    [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)],
    [(5, 2), (6, 4)],
    [(7, 0), (6, 1)],
    [(0, 0), (0, 2), (0, 4), (1, 3)],
]


def test_by_hand():
    split = global_cut(dataset_of(USERS), validation_from=2, test_from=4)
    assert split.users.tolist() == [0, 2, 3]
    assert rows(split.train) == [[0, 1], [7, 6], [0]]
    assert found(split.validation) == {0: [2, 3], 3: [1]}
    assert rows(split.validation.history) == [[0, 1], [0]]
    assert found(split.test) == {0: [4], 1: [6]}
    assert rows(split.test.history) == [[0, 1, 2, 3], [5]]


@given(histories)
def test_no_history_has_what_came_later_and_no_target_what_was_there(users):
    dataset = dataset_of([*users, *USERS])
    split = global_cut(dataset, validation_from=2, test_from=4)
    assert (split.train.times < 2).all()
    for held, start, end in ((split.validation, 2, 4), (split.test, 4, 5)):
        assert (held.history.times < start).all()
        assert ((held.targets.times >= start) & (held.targets.times < end)).all()
        for seen, wanted in zip(rows(held.history), rows(held.targets), strict=True):
            assert wanted
            assert not {*seen} & {*wanted}
            assert len(wanted) == len({*wanted})


def test_moments_at_which_nobody_is_left_are_refused():
    dataset = dataset_of(USERS)
    with pytest.raises(BadValue, match="nobody in drawn has an event before"):
        global_cut(dataset, validation_from=0, test_from=4)
    with pytest.raises(BadValue, match="new items after a moment"):
        global_cut(dataset, validation_from=2, test_from=5)
    with pytest.raises(BadValue, match="must be before test_from"):
        global_cut(dataset, validation_from=4, test_from=2)
