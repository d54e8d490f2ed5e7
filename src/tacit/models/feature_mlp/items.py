"""The catalog as a network reads it: public, and in every broadcast.

Items with the same features are one kind: nothing tells them apart, so they are sent,
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

_PREFIX = "catalog."  # of these arrays' names in a broadcast, beside the weights


@dataclass(frozen=True, eq=False)
class Items:
    """The kinds of items, and the kind of each item."""

    fields: Fields
    kinds: Encoded
    kind_of: Int32[np.ndarray, "items"]

    @classmethod
    def of(
        cls, features: Features, fields: Fields, *, n: int, rows: int, scaled: bool
    ) -> Items:
        """The kinds of `n` items; `scaled` numbers have mean 0 and deviation 1."""
        read = _scaled(features) if scaled else features
        every = fields.encode(read, n, rows=rows, dtype=np.float32)
        kind_of, first = kinds(every)
        return cls(fields, every.take(first), kind_of)

    def arrays(self) -> dict[str, Array]:
        """The items as named arrays for a broadcast; `from_broadcast` reads them."""
        held = self.kinds.shares
        named = {
            "labels": np.array([*self.fields.labels.values()], np.int64),
            "kinds": self.kind_of,
            "offsets": held.indptr.astype(np.int64),
            "rows": held.indices.astype(np.int32),
            "shares": held.data,
            "numbers": self.kinds.numbers,
        }
        return {_PREFIX + name: value for name, value in named.items()}

    def public_shape(self, *, rows: int) -> dict[str, PublicSlot]:
        """The layout of `arrays`, however the items fall into kinds later on.

        `rows` is how many rows the table of embeddings has.
        """
        n, fields = len(self.kind_of), self.kinds.n_fields
        labels = [*self.fields.labels.values()]
        held = np.diff(self.kinds.shares.indptr).reshape(len(self.kinds), fields)
        most = int(held.sum(axis=1)[self.kind_of].sum())  # if each item is its own kind
        shape = (range(n + 1), self.kinds.numbers.shape[1])
        named = {
            "labels": PublicSlot("int64", (len(labels),), 0, max(labels, default=0)),
            "kinds": PublicSlot("int32", (n,), 0, max(0, n - 1)),
            "offsets": PublicSlot("int64", (range(1, n * fields + 2),), 0, most),
            "rows": PublicSlot("int32", (range(most + 1),), 0, rows - 1),
            "shares": PublicSlot("float32", (range(most + 1),), 0.0, 1.0),
            "numbers": PublicSlot("float32", shape),
        }
        return {_PREFIX + name: slot for name, slot in named.items()}

    @classmethod
    def from_broadcast(cls, weights: Arrays, *, first: int, dtype: DTypeLike) -> Items:
        """The items of a broadcast; their fields are named "0", "1" and so on."""
        named = {
            name.removeprefix(_PREFIX): value
            for name, value in weights.items()
            if name.startswith(_PREFIX)
        }
        counts = enumerate(named["labels"].tolist())
        fields = Fields({str(index): n for index, n in counts}, first)
        _check_fits(named, fields)
        shape = (len(named["offsets"]) - 1, first + fields.n_rows)
        held = named["shares"].astype(dtype), named["rows"], named["offsets"]
        shares = sp.csr_array(held, shape=shape)
        numbers = named["numbers"].astype(dtype)
        read = Encoded(shares, numbers, len(fields.categories))
        return cls(fields, read, named["kinds"])


def _check_fits(named: Arrays, fields: Fields) -> None:
    """Refuse arrays that do not fit each other; a kernel reads them unchecked."""
    offsets, rows, n = named["offsets"], named["rows"], len(named["numbers"])
    ends = (offsets[0], offsets[-1], len(offsets) - 1)
    fits = (
        ends == (0, len(rows), n * len(fields.categories))
        and len(named["shares"]) == len(rows)
        and named["numbers"].shape[1] == len(fields.numbers)
        and bool((offsets[1:] >= offsets[:-1]).all())
        and bool((named["kinds"] < n).all())
        and bool((rows < fields.first + fields.n_rows).all())
    )
    if not fits:
        raise BadMessage("what a broadcast tells of the items does not fit together")


def without_catalog(weights: Arrays) -> dict[str, Array]:
    """The network's weights alone, without the arrays of the catalog beside them."""
    return {n: value for n, value in weights.items() if not n.startswith(_PREFIX)}


def _scaled(features: Features) -> Features:
    """Numbers over the catalog's mean and deviation; an unknown one is the mean."""

    def scaled(column: Numeric) -> Numeric:
        known = column.values[~np.isnan(column.values)].astype(np.float64)
        if not len(known):
            return column
        spread = known.std() or 1.0  # a number that all items share says nothing
        return Numeric(((column.values - known.mean()) / spread).astype(np.float32))

    return {
        name: scaled(column) if isinstance(column, Numeric) else column
        for name, column in features.items()
    }
