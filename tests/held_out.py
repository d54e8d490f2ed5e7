"""Invented held-out users, as fixtures for tests of rankings and attacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tacit.data.shards import Shards
from tacit.data.splits import Heldout

Rows = Sequence[Sequence[int]]


def _shards(rows: Rows, n_items: int) -> Shards:
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    items = np.array([item for row in rows for item in row], np.int32)
    ones = np.ones(len(items), np.float32)
    return Shards(offsets.astype(np.int64), items, ones, None, n_items)


@pytest.fixture(scope="session")
def heldout_of() -> Callable[..., Heldout]:
    """Held-out users from lists: histories, targets, the number of items, disliked."""

    def made(
        histories: Rows, targets: Rows, n_items: int, disliked: Rows | None = None
    ) -> Heldout:
        return Heldout(
            100 + np.arange(len(histories)),
            _shards(histories, n_items),
            _shards(targets, n_items),
            None if disliked is None else _shards(disliked, n_items),
        )

    return made


@pytest.fixture(scope="session")
def crowd(heldout_of) -> Callable[[int, int, int], Heldout]:
    """Random users: some history, one to six targets each."""

    def made(n_users: int, n_items: int, seed: int) -> Heldout:
        rng = np.random.default_rng(seed)
        rows = [rng.permutation(n_items) for _ in range(n_users)]
        cuts = [(rng.integers(0, 8), rng.integers(1, 7)) for _ in rows]
        return heldout_of(
            [row[:held] for row, (held, _) in zip(rows, cuts, strict=True)],
            [row[held : held + n] for row, (held, n) in zip(rows, cuts, strict=True)],
            n_items,
        )

    return made
