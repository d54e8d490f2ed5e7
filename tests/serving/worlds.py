"""A small world with item vectors, for tests of private queries."""

from __future__ import annotations

import numpy as np

from tacit.keys import Key
from tacit.method import ItemSpace
from tacit.serving.interests import Interests, find_interests

FACTORS, ITEMS, USERS = 3, 20, 60


def item_space() -> ItemSpace:
    """Twenty items with vectors of three factors, and an offset each."""
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(ITEMS, FACTORS))
    return ItemSpace(vectors, 0.1 * draw.normal(size=ITEMS))


def population() -> np.ndarray:
    """Sixty users around four corners."""
    draw = np.random.default_rng(1)
    corners = np.array([[3, 0, 0], [0, 3, 0], [0, 0, 3], [-3, -3, 0]], np.float64)
    return corners[np.arange(USERS) % 4] + 0.2 * draw.normal(size=(USERS, FACTORS))


def interests(count: int = 4) -> Interests:
    """The interests of that population."""
    key = Key.from_seed(0)
    return find_interests(item_space(), population(), count=count, key=key)
