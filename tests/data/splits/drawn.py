"""Small data sets to divide, and what must hold of every held-out user."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Categories, Category, Features, Numeric, Text
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.splits import Heldout, Split
from tacit.data.strings import Strings

# Histories as lists of (item, time); items repeat, times tie.
Histories = list[list[tuple[int, int]]]
histories = st.lists(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4)), max_size=12),
    min_size=1,
    max_size=8,
)


def dataset_of(
    drawn_users: Histories, *, with_times: bool = True, with_contexts: bool = False
) -> Dataset:
    """An event's value is its number in the file, and so is each of its contexts."""
    events = [(u, i, t) for u, held in enumerate(drawn_users) for i, t in held]
    users, items, times = np.array(events, np.int64).reshape(-1, 3).T
    numbers = np.arange(len(users))
    log = Interactions.of_columns(
        users,
        items,
        values=numbers,
        times=times if with_times else None,
        contexts=numbered(len(users)) if with_contexts else None,
        n_users=len(drawn_users),
        n_items=8,
    )
    ids = Strings.of(f"u{n}" for n in range(len(drawn_users)))
    return Dataset("drawn", log, Catalog.of_ids("abcdefgh"), Profiles(ids))


def numbered(n: int) -> Features:
    """A column of each kind that counts."""
    words = [str(number) for number in range(n)]
    return {
        "category": Category.of(words),
        "categories": Categories.of([[word] for word in words]),
        "numeric": Numeric(np.arange(n, dtype=np.float32)),
        "text": Text(Strings.of(words)),
    }


def rows(shards: Shards) -> list[list[int]]:
    return [row.tolist() for row in shards.histories]


def parts(split: Split) -> list[Shards]:
    """All shards of a split."""
    held = [split.validation, split.test]
    hidden = [h.disliked for h in held if h.disliked is not None]
    return [split.train, *(s for h in held for s in (h.history, h.targets)), *hidden]


def found(held: Heldout) -> dict[int, list[int]]:
    """The targets of each user."""
    return dict(zip(held.users.tolist(), rows(held.targets), strict=True))


def check_heldout(dataset: Dataset, held: Heldout, *, hidden: list[set[int]]) -> None:
    """History and targets share nothing and together are what the user has."""
    log = dataset.interactions
    own = rows(Shards.of(log))
    assert len(held.users) == len(held.history) == len(held.targets)
    for place, user in enumerate(held.users):
        history = held.history.histories[place].tolist()
        targets = held.targets.histories[place].tolist()
        assert targets
        assert len(targets) == len(set(targets))
        assert not set(history) & set(targets)
        away = set(targets) | hidden[place]
        assert history == [item for item in own[user] if item not in away]
        ends = {item: number for number, item in enumerate(own[user])}
        last = [ends[item] + log.offsets[user] for item in targets]
        begin, end = held.targets.offsets[place : place + 2]
        assert held.targets.values[begin:end].tolist() == log.values[last].tolist()


def check_users(dataset: Dataset, split: Split) -> None:
    """Everyone with an event trains, validates or tests; who trains does so wholly."""
    groups = [split.users, split.validation.users, split.test.users]
    joined = np.concatenate(groups).tolist()
    assert sorted(joined) == np.flatnonzero(dataset.interactions.per_user).tolist()
    assert all((np.diff(group) > 0).all() for group in groups)
    own = rows(Shards.of(dataset.interactions))
    assert rows(split.train) == [own[u] for u in split.users]


def without_some_events_of_others(dataset: Dataset, *, until: int) -> Dataset:
    """Users 3 to `until` lose every second event."""
    log = dataset.interactions
    thinner = np.ones(len(log), bool)
    thinner[log.offsets[3] : log.offsets[until] : 2] = False
    return Dataset("thinner", log.keep(thinner), dataset.catalog, dataset.profiles)
