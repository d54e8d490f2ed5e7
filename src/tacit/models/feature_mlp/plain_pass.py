"""One client in training, in numpy.

Derivatives are written out, and the learning rate is in the slopes. Good for a few
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
    """Its weights, which change as it learns, and where they began."""

    network: Network
    theta: Arrays
    home: Arrays
    schedule: Schedule

    def learn(
        self, sides: Mapping[Side, Encoded], labels: Float[np.ndarray, "examples"]
    ) -> None:
        """One pass, from what is known of the user and of the examples, in order."""
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
        rows = self._table_slope(held, slopes[0])
        self._pull()
        self._descend(inputs, hidden, slopes)
        self.theta[EMBEDDINGS][...] -= rows

    def _inputs(self, of: Encoded) -> Float[np.ndarray, "things width"]:
        embedded = (of.shares @ self.theta[EMBEDDINGS]).reshape(len(of), -1)
        return np.concatenate([embedded, of.numbers], axis=1)

    def _hidden(self, inputs: Mapping[Side, Array]) -> list[Array]:
        """What every layer gives, the logit last."""
        net, z = self.network, self.theta[bias(1)]
        for side, x in inputs.items():  # a user's part is one row, for all examples
            z = x @ self.theta[block(side)] + z
        given = [net.active(z)]
        for layer in range(2, net.n_layers + 2):
            z = given[-1] @ self.theta[weights(layer)] + self.theta[bias(layer)]
            given.append(net.active(z) if layer <= net.n_layers else z)
        return given

    def _slopes(self, hidden: list[Array], wanted: Array) -> list[Array]:
        """Rate times the slope of the mean loss where each layer's sums are."""
        said = hidden[-1]
        if self.schedule.head == "sigmoid":
            said = expit(said)
        found = [(said - wanted) * said.dtype.type(self.schedule.rate / len(said))]
        for layer in range(self.network.n_layers + 1, 1, -1):
            below, given = found[-1] @ self.theta[weights(layer)].T, hidden[layer - 2]
            is_relu = self.network.activation == "relu"
            found.append(below * (given > 0 if is_relu else given * (1 - given)))
        return found[::-1]

    def _table_slope(
        self, held: Mapping[Side, Encoded], slope: Array
    ) -> Float[np.ndarray, "rows size"]:
        """The slope at the table of embeddings, from that at the first sums."""
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
            # Where nothing has moved, a subgradient is zero.
            share = share / (2 * distance) if distance else 0.0
        for name, value in self.theta.items():
            value[...] += value.dtype.type(share) * (self.home[name] - value)

    def _distance(self) -> float:
        away = ((value - self.home[name]).ravel() for name, value in self.theta.items())
        return math.sqrt(sum(float(np.vdot(a, a)) for a in away))


def _at(side: Side, slope: Float[np.ndarray, "batch hidden"]) -> Array:
    """Where a side's inputs are: all examples share those of the user."""
    return slope.sum(axis=0, keepdims=True) if side == "person" else slope
