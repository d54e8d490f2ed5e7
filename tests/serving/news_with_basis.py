"""A small PrivateRec that trained a basis, with numbers that are easy to see.

Twenty news of two kinds, vectors (4, 0) and (0, 4); the padding news is (2, 2). The
user encoder takes the mean of what was read. The basis is (3, 0) and (0, 3).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.data.catalog import Catalog
from tacit.data.features import Category
from tacit.method import Broadcast
from tacit.methods.privaterec import PrivateRec
from tacit.privacy import PublishedAttentionNoise
from tacit.serving.recommender import Recommender

BASIS = 3.0 * np.eye(2)
KINDS = 4.0 * np.repeat(np.eye(2), 10, axis=0)
PADDING = np.array([2.0, 2.0])
LABELS = Category.of(["health"] * 10 + ["sport"] * 10)
CATALOG = replace(
    Catalog.of_ids([f"n{n}" for n in range(20)]), features={"kind": LABELS}
)
METHOD = PrivateRec(
    mode="paper",
    model="plm-nr",
    content=("title",),
    interests=2,
    privacy=PublishedAttentionNoise(),
)
WEIGHTS = {
    "user.attention": np.zeros((2, 3)),
    "user.offset": np.zeros(3),
    "user.query": np.zeros(3),
    "basis": BASIS,
    "news": np.vstack([KINDS, PADDING]).astype(np.float32),
}


def model(method: PrivateRec = METHOD) -> Recommender:
    """The model as clients hold it."""
    return Recommender(method, Broadcast(1, bytes(16), dict(WEIGHTS)), CATALOG)
