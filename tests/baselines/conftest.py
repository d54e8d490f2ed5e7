from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tacit.data.interactions import Interactions
from tacit.data.shards import Shards

Rows = Sequence[Sequence[int]] | np.ndarray


@pytest.fixture(scope="session")
def shards() -> Callable[[Rows], Shards]:
    """Histories from a table of zeros and ones, users in rows."""

    def made(table: Rows) -> Shards:
        x = np.asarray(table)
        users, items = np.nonzero(x)
        n_users, n_items = x.shape
        return Shards.of(
            Interactions.of_columns(users, items, n_users=n_users, n_items=n_items)
        )

    return made


@pytest.fixture(scope="session")
def table() -> np.ndarray:
    """A random table of 60 users and 12 items; everybody has something."""
    x = (np.random.default_rng(0).random((60, 12)) < 0.3).astype(float)
    x[np.arange(60), np.arange(60) % 12] = 1
    return x
