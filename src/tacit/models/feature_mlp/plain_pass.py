"""One client in training, in numpy.

Derivatives are written out, and the slopes include the learning rate. This is for a few
clients; for many there is a compiled twin, `kernels/feature_mlp.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from tacit.models.feature_mlp.inputs import Encoded
from tacit.models.feature_mlp.network import (
    EMBEDDINGS,
    Network,
    Side,
    bias,
    block,
    weights,
)
from tacit.models.feature_mlp.schedule import Schedule
from tacit.tree import Array, Arrays


@dataclass(frozen=True, eq=False)
class Client:
    """A client in training: its weights, which change in place, and their start."""

    network: Network
    theta: Arrays
    home: Arrays
    schedule: Schedule

    def learn(
        self, sides: Mapping[Side, Encoded], labels: Float[np.ndarray, "examples"]
    ) -> None:
        """One pass over the examples in order, in mini-batches."""
        wanted = labels[:, None].astype(self.network.dtype)
        for first in range(0, len(labels), self.schedule.batch):
            some = slice(first, first + self.schedule.batch)
            held = {
                side: sides[side] if side == "person" else sides[side].cut(some)
                for side in self.network.sides
            }
            self._step(held, wanted[some])

    def _step(self, held: Mapping[Side, Encoded], wanted: Array) -> None:
        inputs = {side: self._inputs(of) for side, of in held.items()}
        hidden = self._hidden(inputs)
        slopes = self._slopes(hidden, wanted)
        # All slopes are taken at the weights from before the step.
        rows = self._table_slope(held, slopes[0])
        self._pull()
        self._descend(inputs, hidden, slopes)
        self.theta[EMBEDDINGS][...] -= rows

    def _inputs(self, of: Encoded) -> Float[np.ndarray, "things width"]:
        embedded = (of.shares @ self.theta[EMBEDDINGS]).reshape(len(of), -1)
        return np.concatenate([embedded, of.numbers], axis=1)

    def _hidden(self, inputs: Mapping[Side, Array]) -> list[Array]:
        """The output of every layer, the logit last."""
        net, z = self.network, self.theta[bias(1)]
        for side, x in inputs.items():  # a user's side is one row, for all examples
            z = x @ self.theta[block(side)] + z
        given = [net.active(z)]
        for layer in range(2, net.n_layers + 2):
            z = given[-1] @ self.theta[weights(layer)] + self.theta[bias(layer)]
            given.append(net.active(z) if layer <= net.n_layers else z)
        return given

    def _slopes(self, hidden: list[Array], wanted: Array) -> list[Array]:
        """The learning rate times the slope of the mean loss at each layer's sums."""
        said = hidden[-1]
        if self.schedule.head == "sigmoid":
            said = expit(said)
        # Cross-entropy of a sigmoid and half the squared error have the same slope.
        found = [(said - wanted) * said.dtype.type(self.schedule.rate / len(said))]
        for layer in range(self.network.n_layers + 1, 1, -1):
            below, given = found[-1] @ self.theta[weights(layer)].T, hidden[layer - 2]
            is_relu = self.network.activation == "relu"
            found.append(below * (given > 0 if is_relu else given * (1 - given)))
        return found[::-1]

    def _table_slope(
        self, held: Mapping[Side, Encoded], slope: Array
    ) -> Float[np.ndarray, "rows size"]:
        """The slope at the embedding table, from that at the first layer's sums."""
        found, size = np.zeros_like(self.theta[EMBEDDINGS]), self.network.embedding
        for side, of in held.items():
            first = self.theta[block(side)][: of.n_fields * size]
            found += of.shares.T @ (_at(side, slope) @ first.T).reshape(-1, size)
        return found

    def _descend(
        self, inputs: Mapping[Side, Array], hidden: list[Array], slopes: list[Array]
    ) -> None:
        for side, x in inputs.items():
            self.theta[block(side)][...] -= x.T @ _at(side, slopes[0])
        for layer, slope in enumerate(slopes, start=1):
            self.theta[bias(layer)][...] -= slope.sum(axis=0)
            if layer > 1:
                self.theta[weights(layer)][...] -= hidden[layer - 2].T @ slope

    def _pull(self) -> None:
        """One step of the proximal term, towards the start."""
        share = self.schedule.rate * self.schedule.pull
        if not share:
            return
        if not self.schedule.is_squared:
            distance = self._distance()
            # d/dθ of μ/2 |θ - θ₀|; where nothing has moved, zero is a subgradient.
            share = share / (2 * distance) if distance else 0.0
        for name, value in self.theta.items():
            value[...] += value.dtype.type(share) * (self.home[name] - value)

    def _distance(self) -> float:
        away = ((value - self.home[name]).ravel() for name, value in self.theta.items())
        return math.sqrt(sum(float(np.vdot(a, a)) for a in away))


def _at(side: Side, slope: Float[np.ndarray, "batch hidden"]) -> Array:
    """The slope at a side's inputs; those of the user are shared by all examples."""
    return slope.sum(axis=0, keepdims=True) if side == "person" else slope
