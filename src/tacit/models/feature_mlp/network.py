"""The network: shapes, starting weights, and scores in numpy.

    x₀ = [user; situation; item]    h₁ = a(x₀ W₁ + b₁) … h_N    logit = h_N W_o + b_o

W₁ is stored in three blocks of rows, one per side: what a user adds is computed once
for all of that user's examples, what an item adds once for everybody (`fold`).

Weights are named arrays. With a leading axis they are those of several clients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.feature_mlp.inputs import Encoded, Fields
from tacit.tree import Array, Arrays

Activation = Literal["relu", "sigmoid"]
Side = Literal["person", "situation", "item"]

EMBEDDINGS = "embeddings"
_AT_ONCE = 2**22  # numbers of a block of hidden units: 16 MiB of float32


@dataclass(frozen=True)
class Network:
    """A feed-forward network with one output."""

    person: Fields
    situation: Fields
    item: Fields
    embedding: int = 64
    widths: tuple[int, ...] = (64, 32, 16, 8)
    activation: Activation = "relu"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check.count(embedding=self.embedding)
        check.one_of(("relu", "sigmoid"), activation=self.activation)
        check.one_of(("float32", "float64"), dtype=self.dtype)
        if not self.widths:
            raise BadValue("widths=() must have at least one hidden layer")
        for width in self.widths:
            check.count(width=width)
        if not self.item.labels:
            raise BadValue(
                "no feature of items: all items would be alike; name some of the "
                "catalog's"
            )

    @property
    def sides(self) -> dict[Side, Fields]:
        """The sides that have fields."""
        every: dict[Side, Fields] = {
            "person": self.person,
            "situation": self.situation,
            "item": self.item,
        }
        return {side: fields for side, fields in every.items() if fields.labels}

    @property
    def n_rows(self) -> int:
        """The number of rows of the embedding table."""
        return sum(fields.n_rows for fields in self.sides.values())

    @property
    def n_layers(self) -> int:
        """The number of hidden layers; the output layer is not one of them."""
        return len(self.widths)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The name and shape of every weight."""
        first = {
            block(side): (fields.width(self.embedding), self.widths[0])
            for side, fields in self.sides.items()
        }
        found: dict[str, tuple[int, ...]] = {EMBEDDINGS: (self.n_rows, self.embedding)}
        found |= first | {bias(1): (self.widths[0],)}
        for layer, (rows, columns) in enumerate(self._later, start=2):
            found |= {weights(layer): (rows, columns), bias(layer): (columns,)}
        return found

    @cached_property
    def offsets(self) -> dict[str, int]:
        """The index at which every weight begins when all stand in one flat row."""
        ends = np.cumsum([0, *map(math.prod, self.shapes.values())])
        return dict(zip(self.shapes, ends.tolist(), strict=False))

    def flat(self, named: Arrays) -> Float[np.ndarray, "weights"]:
        """All weights in one flat row, in the order of `shapes`."""
        return np.concatenate([named[name].ravel() for name in self.shapes])

    def named(self, flat: Float[np.ndarray, "*clients weights"]) -> dict[str, Array]:
        """The weights of flat rows by name, as views."""
        return {
            name: flat[..., first : first + math.prod(shape)].reshape(
                *flat.shape[:-1], *shape
            )
            for (name, shape), first in zip(
                self.shapes.items(), self.offsets.values(), strict=True
            )
        }

    @property
    def _later(self) -> Iterator[tuple[int, int]]:
        return zip(self.widths, (*self.widths[1:], 1), strict=True)

    def start(self, key: Key) -> dict[str, Array]:
        """Random weights that keep the scale of what passes through; biases zero.

        Embeddings are standard normal. He et al. 2015 for ReLU, Glorot and Bengio 2010
        for sigmoid, whose slope of 1/4 asks for four times as much.
        """
        draws, found = key.generator(), {}
        inputs = sum(f.width(self.embedding) for f in self.sides.values())
        for name, shape in self.shapes.items():
            # The blocks of the first layer are one matrix with the inputs of all sides.
            fan = inputs if name.startswith("first.") else shape[0]
            scale = self._scale(name, fan, shape[-1])
            found[name] = (scale * draws.standard_normal(shape)).astype(self.dtype)
        return found

    def _scale(self, name: str, fan_in: int, fan_out: int) -> float:
        if name == EMBEDDINGS:
            return 1.0
        if name.startswith("bias."):
            return 0.0
        if self.activation == "relu":
            return float(np.sqrt(2.0 / fan_in))
        return float(4.0 * np.sqrt(2.0 / (fan_in + fan_out)))

    # forward, in numpy

    def active(self, z: Array) -> Array:
        """The activation of every number, in place."""
        if self.activation == "relu":
            return np.maximum(z, 0.0, out=z)
        np.negative(z, out=z)
        np.exp(np.minimum(z, 80.0, out=z), out=z)  # larger ones overflow float32
        return np.reciprocal(np.add(z, 1.0, out=z), out=z)

    def fold(
        self, stacked: Arrays, person: Encoded, situation: Encoded
    ) -> dict[str, Array]:
        """The weights that ranking needs, with the first layer as a table.

        `table` has what every label of items adds to the first layer, then what every
        number adds; `start` has what the user and the situation add.
        """
        start = stacked[bias(1)].copy()
        for side, inputs in (("person", person), ("situation", situation)):
            if side in self.sides:
                x = self.inputs(stacked[EMBEDDINGS], inputs)
                start += (x[:, None] @ stacked[block(side)])[:, 0]
        later = {
            name: stacked[name]
            for layer in range(2, self.n_layers + 2)
            for name in (weights(layer), bias(layer))
        }
        return {"start": start, "table": self._table(stacked), **later}

    def inputs(
        self, embeddings: Float[np.ndarray, "clients rows size"], of: Encoded
    ) -> Float[np.ndarray, "clients width"]:
        """The inputs of one thing per client, with that client's embeddings."""
        clients, rows, size = embeddings.shape
        held = of.shares
        owners = np.repeat(np.arange(clients), of.n_fields)
        own = held.indices + rows * np.repeat(owners, np.diff(held.indptr))
        shape = (held.shape[0], clients * rows)  # each client has a table of its own
        read = sp.csr_array((held.data, own, held.indptr), shape=shape)
        embedded = (read @ embeddings.reshape(-1, size)).reshape(clients, -1)
        return np.concatenate([embedded, of.numbers], axis=1)

    def _table(self, stacked: Arrays) -> Float[np.ndarray, "clients held hidden"]:
        """What each label of items adds to the first layer, then each number."""
        first, d = stacked[block("item")], self.embedding
        added = []
        for index, (name, row) in enumerate(self.item.categories.items()):
            labels = slice(row, row + self.item.labels[name])
            own = first[:, index * d : (index + 1) * d]  # the rows of this field
            added.append(stacked[EMBEDDINGS][:, labels] @ own)
        added.append(first[:, len(self.item.categories) * d :])
        return np.concatenate(added, axis=1)

    def lookup(self, items: Encoded) -> sp.csr_array:
        """Items as rows over the labels of items, then their numbers."""
        n, fields = len(items), max(1, items.n_fields)
        held = items.shares.tocoo()
        shape = (n, self.item.n_rows)
        places = (held.row // fields, held.col - self.item.first)
        labels = sp.csr_array((held.data, places), shape=shape)
        return sp.csr_array(sp.hstack([labels, sp.csr_array(items.numbers)]))

    def logits(
        self, folded: Mapping[str, Array], items: sp.csr_array
    ) -> Float[np.ndarray, "clients items"]:
        """A logit for each client and item, from `fold` and `lookup`; larger is better.

        It is computed in blocks of clients, so that hidden units need a few megabytes.
        """
        n, hidden = len(folded["start"]), self.widths[0]
        out = np.empty((n, items.shape[0]), self.dtype)
        step = max(1, _AT_ONCE // max(1, items.shape[0] * hidden))
        for first in range(0, n, step):
            some = slice(first, first + step)
            out[some] = self._logits({k: v[some] for k, v in folded.items()}, items)
        return out

    def _logits(
        self, folded: Mapping[str, Array], items: sp.csr_array
    ) -> Float[np.ndarray, "clients items"]:
        clients, held, hidden = folded["table"].shape
        # All clients' tables side by side: one sparse product looks up every item.
        side_by_side = folded["table"].transpose(1, 0, 2).reshape(held, -1)
        z = (items @ side_by_side).reshape(-1, clients, hidden).transpose(1, 0, 2)
        h = self.active(z + folded["start"][:, None])
        for layer in range(2, self.n_layers + 1):
            h = self.active(h @ folded[weights(layer)] + folded[bias(layer)][:, None])
        last = self.n_layers + 1
        return (h @ folded[weights(last)] + folded[bias(last)][:, None])[..., 0]


def block(side: str) -> str:
    """The name of a side's rows of the first layer."""
    return f"first.{side}"


def weights(layer: int) -> str:
    """The name of a later layer's weights; layers count from 1."""
    return f"weights.{layer}"


def bias(layer: int) -> str:
    """The name of a layer's biases."""
    return f"bias.{layer}"
