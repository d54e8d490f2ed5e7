"""The catalog as a network reads it; public, a part of every broadcast.

Items with the same features are one kind: nothing tells them apart, so they are told,
learnt and scored once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from jaxtyping import Int32
from numpy.typing import DTypeLike

from tacit.data.features import Features, Numeric
from tacit.errors import BadMessage
from tacit.models.feature_mlp.inputs import Encoded, Fields, kinds
from tacit.transport.messages import PublicSlot
from tacit.tree import Array, Arrays

_PREFIX = "catalog."


@dataclass(frozen=True, eq=False)
class Items:
    """The kinds of items, and of which kind each is."""

    fields: Fields
    kinds: Encoded
    kind_of: Int32[np.ndarray, "items"]

    @classmethod
    def of(
        cls, features: Features, fields: Fields, *, n: int, rows: int, scaled: bool
    ) -> Items:
        """The kinds of `n` items; `scaled` numbers have mean 0 and deviation 1."""
        told = _scaled(features) if scaled else features
        every = fields.encode(told, n, rows=rows, dtype=np.float32)
        kind_of, first = kinds(every)
        return cls(fields, every.take(first), kind_of)

    def told(self) -> dict[str, Array]:
        """What everyone is told."""
        held = self.kinds.shares
        parts = {
            "labels": np.array([*self.fields.labels.values()], np.int64),
            "kinds": self.kind_of,
            "offsets": held.indptr.astype(np.int64),
            "rows": held.indices.astype(np.int32),
            "shares": held.data,
            "numbers": self.kinds.numbers,
        }
        return {_PREFIX + name: value for name, value in parts.items()}

    def public_shape(self, *, rows: int) -> dict[str, PublicSlot]:
        """What `told` looks like, however the items fall into kinds later on.

        `rows` is how many rows the table of embeddings has.
        """
        n, fields = len(self.kind_of), self.kinds.n_fields
        labels = [*self.fields.labels.values()]
        held = np.diff(self.kinds.shares.indptr).reshape(len(self.kinds), fields)
        most = int(held.sum(axis=1)[self.kind_of].sum())  # each item a kind of its own
        shape = (range(n + 1), self.kinds.numbers.shape[1])
        parts = {
            "labels": PublicSlot("int64", (len(labels),), 0, max(labels, default=0)),
            "kinds": PublicSlot("int32", (n,), 0, max(0, n - 1)),
            "offsets": PublicSlot("int64", (range(1, n * fields + 2),), 0, most),
            "rows": PublicSlot("int32", (range(most + 1),), 0, rows - 1),
            "shares": PublicSlot("float32", (range(most + 1),), 0.0, 1.0),
            "numbers": PublicSlot("float32", shape),
        }
        return {_PREFIX + name: slot for name, slot in parts.items()}

    @classmethod
    def heard(cls, weights: Arrays, *, first: int, dtype: DTypeLike) -> Items:
        """The same on a device; fields have numbers for names."""
        part = {
            name.removeprefix(_PREFIX): value
            for name, value in weights.items()
            if name.startswith(_PREFIX)
        }
        counts = enumerate(part["labels"].tolist())
        fields = Fields({str(place): n for place, n in counts}, first)
        _check_heard(part, fields)
        shape = (len(part["offsets"]) - 1, first + fields.n_rows)
        held = part["shares"].astype(dtype), part["rows"], part["offsets"]
        shares = sp.csr_array(held, shape=shape)
        numbers = part["numbers"].astype(dtype)
        read = Encoded(shares, numbers, len(fields.categories))
        return cls(fields, read, part["kinds"])


def _check_heard(part: Arrays, fields: Fields) -> None:
    """Refuse parts that do not fit each other; a kernel reads them without looking."""
    offsets, rows, n = part["offsets"], part["rows"], len(part["numbers"])
    ends = (offsets[0], offsets[-1], len(offsets) - 1)
    fits = (
        ends == (0, len(rows), n * len(fields.categories))
        and len(part["shares"]) == len(rows)
        and part["numbers"].shape[1] == len(fields.numbers)
        and bool((offsets[1:] >= offsets[:-1]).all())
        and bool((part["kinds"] < n).all())
        and bool((rows < fields.first + fields.n_rows).all())
    )
    if not fits:
        raise BadMessage("what a broadcast tells of the items does not fit together")


def without_catalog(weights: Arrays) -> dict[str, Array]:
    """The weights alone, without what is told of items beside them."""
    return {n: value for n, value in weights.items() if not n.startswith(_PREFIX)}


def _scaled(features: Features) -> Features:
    """Numbers over the catalog's mean and deviation; an unknown one is the mean."""

    def scaled(column: Numeric) -> Numeric:
        known = column.values[~np.isnan(column.values)].astype(np.float64)
        if not len(known):
            return column
        spread = known.std() or 1.0
        return Numeric(((column.values - known.mean()) / spread).astype(np.float32))

    return {
        name: scaled(column) if isinstance(column, Numeric) else column
        for name, column in features.items()
    }
