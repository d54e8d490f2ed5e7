"""The network of Mult-VAE: its shapes, its first weights and its forward pass.

    x    a history over the items, of norm 1             (users, items)
    z    the latent vector: a mean μ, and a log variance while training
    f    what the decoder makes of z: scores of items    (users, items)

    encoder   items -> hidden … -> latent       tanh between layers
    decoder   latent -> … hidden -> items       the same widths backwards

A layer is one matrix: one row per input and a last row for the bias, so that the
gradient of a layer, its bias included, is one outer product. The first matrix has one
row per item.

Source: Liang, Krishnan, Hoffman and Jebara 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from jaxtyping import Float, Shaped

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.onnx_graph import Formula
from tacit.tree import Array, Arrays

Init = Literal["normal", "xavier"]
"""normal: every number, biases too, from N(0, 1); xavier: N(0, 2 / (inputs + outputs))
and biases of zero (Glorot and Bengio 2010)."""


@dataclass(frozen=True)
class Network:
    """The widths of a Mult-VAE, and whether it samples and ties its outer matrices."""

    n_items: int
    hidden: tuple[int, ...] = (600,)
    latent: int = 200
    is_variational: bool = True  # without it, Mult-DAE: no variance, nothing sampled
    is_tied: bool = False  # the last matrix is the first one, transposed

    def __post_init__(self) -> None:
        check.count(n_items=self.n_items, latent=self.latent)
        for width in self.hidden:
            check.count(hidden=width)
        if self.is_tied and not self.hidden and self.is_variational:
            raise BadValue(
                "is_tied without a hidden layer: the first matrix makes means and "
                "variances, the last reads means; add a hidden layer, or leave the "
                "variances out"
            )

    @property
    def encoder(self) -> tuple[str, ...]:
        """The names of the encoder's layers."""
        return tuple(f"encoder/{i}" for i in range(len(self.hidden) + 1))

    @property
    def decoder(self) -> tuple[str, ...]:
        """The names of the decoder's layers; a tied last layer has only a bias."""
        return tuple(f"decoder/{i}" for i in range(len(self.hidden) + 1))

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """The rows (inputs, then the bias) and columns of every layer."""
        out = self.latent * (2 if self.is_variational else 1)
        down = pairwise((self.n_items, *self.hidden, out))
        up = pairwise((self.latent, *reversed(self.hidden), self.n_items))
        names = (*self.encoder, *self.decoder)
        made = {n: (a + 1, b) for n, (a, b) in zip(names, (*down, *up), strict=True)}
        if self.is_tied:
            made[self.decoder[-1]] = (1, self.n_items)
        return made

    @property
    def ranks(self) -> dict[str, int]:
        """The number of outer products in one example's gradient of each layer."""
        return {
            name: 2 if self.is_tied and name == self.encoder[0] else 1
            for name in self.shapes
        }

    def start(self, key: Key, *, init: Init, dtype: str) -> dict[str, Array]:
        """Random weights by the name of their layer, drawn as `init` says."""
        check.one_of(("normal", "xavier"), init=init)
        made = {}
        for name, shape in self.shapes.items():
            drawn = key.at(name).generator().standard_normal(shape)
            if init == "xavier":
                drawn *= math.sqrt(2 / (shape[0] - 1 + shape[1]))  # less the bias row
                drawn[-1] = 0.0
            made[name] = drawn.astype(dtype)
        return made

    def encode(
        self, weights: Arrays, x: Shaped[np.ndarray, "users items"]
    ) -> Float[np.ndarray, "users latent"]:
        """The means μ of histories of norm 1."""
        out = x
        for name in self.encoder[:-1]:
            out = np.tanh(_through(weights[name], out))
        return _through(weights[self.encoder[-1]][:, : self.latent], out)

    def decode(
        self, weights: Arrays, z: Float[np.ndarray, "users latent"]
    ) -> Float[np.ndarray, "users items"]:
        """A score for every item; their softmax is the predicted distribution."""
        items, offsets = self.last_layer(weights)
        return self.before_last(weights, z) @ items.T + offsets

    def before_last(
        self, weights: Arrays, z: Float[np.ndarray, "users latent"]
    ) -> Float[np.ndarray, "users inputs"]:
        """The inputs of the decoder's last layer."""
        out: Array = z
        for name in self.decoder[:-1]:
            out = np.tanh(_through(weights[name], out))
        return out

    def last_layer(
        self, weights: Arrays
    ) -> tuple[Float[np.ndarray, "items inputs"], Float[np.ndarray, "items"]]:
        """A vector and an offset for every item: the decoder's last layer."""
        last = weights[self.decoder[-1]]
        matrix = weights[self.encoder[0]] if self.is_tied else last.T
        return (matrix[:-1] if self.is_tied else matrix[:, :-1]), last[-1]

    def reach(self, weights: Arrays) -> float:
        """The largest norm that an input of the last layer can have for any history."""
        if self.hidden:
            return math.sqrt(self.hidden[0])  # numbers between -1 and 1
        layer = weights[self.encoder[-1]][:, : self.latent]
        # Histories have norm 1, so means are no longer than the matrix and the bias.
        return float(np.linalg.norm(layer[:-1], 2) + np.linalg.norm(layer[-1]))

    def formula(self, weights: Arrays, x: Formula) -> Formula:
        """`encode`, then `decode`, as a graph that takes histories."""
        layers = {name: weights[name] for name in (*self.encoder, *self.decoder)}
        last = self.encoder[-1]
        layers[last] = layers[last][:, : self.latent]  # the means
        matrices = {n: Formula.constant(layer[:-1]) for n, layer in layers.items()}
        if self.is_tied:
            matrices[self.decoder[-1]] = matrices[self.encoder[0]].transposed()
        linear = (last, self.decoder[-1])
        for name, layer in layers.items():
            x = x @ matrices[name] + layer[-1]
            x = x if name in linear else x.tanh()
        return x


def _through(layer: Array, a: Array) -> Array:
    return a @ layer[:-1] + layer[-1]
