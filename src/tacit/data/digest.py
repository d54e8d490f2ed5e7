"""What a run was begun with, in 32 digits: nothing else may continue it.

The noise of a round follows from its key. Played again over other data, the difference
of the two noisy sums is the difference of the data, without noise. So a run pins its
inputs, and a resume compares. The digest follows from private data: whoever knows all
but a little of them could find the rest by trying. It stays with the data.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.columns import describe
from tacit.data.dataset import Dataset
from tacit.data.splits import Split


def input_digest(dataset: Dataset, split: Split) -> str:
    """32 digits that change with any event, user or item, and with who trains."""
    train = split.train
    parts = {"dataset": dataset, "users": split.users, "train": train.log}
    if train.impressions is not None:  # without them as ever: runs can be resumed
        parts["impressions"] = train.impressions
    return content_digest(parts)


def content_digest(value: object) -> str:
    """32 digits of a data set or a part of it; equal content has equal ones."""
    described, columns = describe(value, "input")
    digest = hashlib.blake2b(digest_size=16)  # 128 bits: no two inputs meet by chance
    digest.update(json.dumps(described, sort_keys=True).encode())
    for name in sorted(columns):
        little = _little_endian(columns[name])
        # Shapes too: otherwise bytes could move from one column to the next.
        shape = json.dumps([name, little.dtype.str, *little.shape])
        digest.update(shape.encode())
        digest.update(little.data.cast("B") if little.size else b"")
    return digest.hexdigest()


def _little_endian(column: NDArray[Any]) -> NDArray[Any]:
    """The same numbers with the bytes that they have on nearly every machine."""
    ordered = column.astype(column.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(ordered)
