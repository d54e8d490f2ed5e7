"""What holds of every split.

Also tests `tacit.data.splits.split`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from data.splits.drawn import dataset_of, parts, rows

from tacit.data.splits import Split, adapt_half, leave_one_out, new_users, ratio
from tacit.keys import Key

KEY = Key.from_seed(3)
SPLITS: list[Callable[..., Split]] = [
    partial(leave_one_out, which="random"),
    partial(leave_one_out, which="latest"),
    ratio,
    partial(new_users, n_validation=1, n_test=1),
    partial(new_users, n_validation=1, n_test=1, catalog="training"),
    partial(adapt_half, train_share=0.4, validation_share=0.2),
    partial(adapt_half, train_share=0.4, validation_share=0.2, min_target_value=43),
]
# Eight users with eight items twice each, which all splits can divide.
USERS = [[(item, time - item) for time in (8, 16) for item in range(8)]] * 8


@pytest.mark.parametrize("divide", SPLITS)
def test_values_times_and_contexts_stay_with_their_events(divide):
    dataset = dataset_of(USERS, with_contexts=True)
    times = [time for held in USERS for _, time in held]
    for shards in parts(divide(dataset, key=KEY)):
        numbers = shards.values.astype(int).tolist()
        words = [str(number) for number in numbers]
        assert shards.times.tolist() == [times[number] for number in numbers]
        assert shards.contexts["numeric"].values.tolist() == numbers
        for name in ("category", "text"):
            column = shards.contexts[name]
            assert [column[n] for n in range(len(column))] == words
        several = shards.contexts["categories"]
        assert [several[n] for n in range(len(several))] == [(w,) for w in words]


@pytest.mark.parametrize("divide", SPLITS)
def test_histories_keep_repeats_in_order_of_time(divide):
    split = divide(dataset_of(USERS), key=KEY)
    for shards in (split.train, split.validation.history, split.test.history):
        for begin, end in zip(shards.offsets, shards.offsets[1:], strict=False):
            items = shards.items[begin:end].tolist()
            assert sorted(set(items)) * 2 == sorted(items[: len(items) // 2]) * 2
            assert (np.diff(shards.times[begin:end]) > 0).all()


@pytest.mark.parametrize("divide", SPLITS)
def test_the_key_decides(divide):
    dataset = dataset_of(USERS)
    keys = [Key.from_seed(s) for s in (1, 1, 2)]
    made = [[rows(s) for s in parts(divide(dataset, key=key))] for key in keys]
    assert made[0] == made[1]
    if divide is not SPLITS[1]:  # the latest are the latest, whatever the key
        assert made[0] != made[2]
