"""The weights of some clients, stacked, and one gradient step of all of them.

Derivatives are written out: a step of a layer is one product a client, and the learning
rate is in the slopes, so no gradient is kept.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from tacit.models.feature_mlp.batches import Examples, Step, Touched
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


class Stack:
    """Clients in training, the largest first. Changes as it learns."""

    def __init__(
        self, network: Network, start: Arrays, examples: Examples, schedule: Schedule
    ) -> None:
        self.network, self.start, self.schedule = network, start, schedule
        self.labels = examples.labels.astype(network.dtype)
        self.moved = {
            name: np.repeat(value[None], len(examples), axis=0)
            for name, value in start.items()
            if name != EMBEDDINGS
        }
        self.touched = Touched.by(examples, network)
        self.home = start[EMBEDDINGS][self.touched.rows]
        self.table = self.home.copy()

    def weights(self) -> dict[str, Array]:
        """Every client's weights, the whole table included."""
        n = len(self.touched.ends) - 1
        whole = np.repeat(self.start[EMBEDDINGS][None], n, axis=0)
        whole[self.touched.owners, self.touched.rows] = self.table
        return {EMBEDDINGS: whole, **self.moved}

    def learn(self, step: Step) -> None:
        """One gradient step of every active client."""
        a, net = step.active, self.network
        inputs = self._read(step)
        hidden = self._hidden(inputs, a)
        slopes = [self._slope(hidden[-1], step)]  # where layers begin, the last first
        for layer in range(net.n_layers + 1, 1, -1):
            below = slopes[-1] @ self.moved[weights(layer)][:a].swapaxes(1, 2)
            slopes.append(self._through(below, hidden[layer - 2]))
        table = self._table_slope(slopes[-1], step)
        self._pull(a)
        self._descend(inputs, hidden, slopes[::-1], a)
        self.table[: self.touched.ends[a]] -= table

    def _read(self, step: Step) -> dict[Side, Array]:
        """The inputs of a step: clients × (places or one) × width."""
        held = step.held.items()
        return {side: self._side_inputs(e, step.active) for side, e in held}

    def _side_inputs(self, held: Encoded, active: int) -> Array:
        table = self.table[: self.touched.ends[active]]
        embedded = (held.shares @ table).reshape(len(held), -1)
        if held.numbers.shape[1]:
            embedded = np.concatenate([embedded, held.numbers], axis=1)
        return embedded.reshape(active, len(held) // active, -1)

    def _hidden(self, inputs: dict[Side, Array], a: int) -> list[Array]:
        """What every layer gives, the logit last."""
        net, z = self.network, self.moved[bias(1)][:a, None]
        for side, x in inputs.items():  # a person's part is added once a client
            z = x @ self.moved[block(side)][:a] + z
        given = [net.active(z)]
        for layer in range(2, net.n_layers + 2):
            w, b = self.moved[weights(layer)][:a], self.moved[bias(layer)][:a, None]
            z = given[-1] @ w
            z += b
            given.append(net.active(z) if layer <= net.n_layers else z)
        return given

    def _slope(self, logits: Array, step: Step) -> Array:
        """Learning rate times the slope of the mean loss at the logits."""
        wanted = self.labels[step.examples][..., None]
        said = expit(logits) if self.schedule.head == "sigmoid" else logits
        share = self.schedule.rate / step.is_real.sum(axis=1, keepdims=True)
        each = np.where(step.is_real, share, 0.0)[..., None]
        return (said - wanted) * each.astype(logits.dtype)

    def _through(self, slope: Array, given: Array) -> Array:
        """Back through an activation, in place."""
        if self.network.activation == "relu":
            slope *= given > 0
        else:
            slope *= given * (1 - given)
        return slope

    def _table_slope(self, slope: Array, step: Step) -> Array:
        """The slope at the rows of the table, from that at the first layer."""
        a, d = step.active, self.network.embedding
        found = np.zeros_like(self.table[: self.touched.ends[a]])
        summed = slope.sum(axis=1, keepdims=True)
        for side, held in step.held.items():
            if held.n_fields:
                at = summed if side == "person" else slope
                first = self.moved[block(side)][:a, : held.n_fields * d]
                x = (at @ first.swapaxes(1, 2)).reshape(-1, d)
                found += held.shares.T @ x
        return found

    def _descend(
        self,
        inputs: dict[Side, Array],
        hidden: list[Array],
        slopes: list[Array],
        a: int,
    ) -> None:
        summed = slopes[0].sum(axis=1, keepdims=True)
        for side, x in inputs.items():
            at = summed if side == "person" else slopes[0]
            self.moved[block(side)][:a] -= x.swapaxes(1, 2) @ at
        self.moved[bias(1)][:a] -= summed[:, 0]
        for layer, slope in enumerate(slopes[1:], start=2):
            given = hidden[layer - 2].swapaxes(1, 2)
            self.moved[weights(layer)][:a] -= given @ slope
            self.moved[bias(layer)][:a] -= slope.sum(axis=1)

    def _pull(self, a: int) -> None:
        """One step of the proximal term towards the start, of each active client."""
        if not self.schedule.pull:
            return
        share = self._pull_share(a)
        end = self.touched.ends[a]
        own = share[self.touched.owners[:end], None]
        self.table[:end] += own * (self.home[:end] - self.table[:end])
        for name, value in self.moved.items():
            factor = share.reshape(-1, *(1,) * (value.ndim - 1))
            value[:a] += factor * (self.start[name] - value[:a])

    def _pull_share(self, a: int) -> Float[np.ndarray, "active"]:
        """How much of its way back a client goes: rate · μ, or over its distance."""
        rate, pull = self.schedule.rate, self.schedule.pull
        if self.schedule.is_squared:
            return np.full(a, rate * pull, self.network.dtype)
        distance = np.sqrt(self._squared_distances(a))
        share = np.zeros(a)  # where a client has not moved: a subgradient is zero
        np.divide(rate * pull / 2, distance, out=share, where=distance > 0)
        return share.astype(self.network.dtype)

    def _squared_distances(self, a: int) -> Float[np.ndarray, "active"]:
        end = self.touched.ends[a]
        away = self.table[:end] - self.home[:end]
        each = np.einsum("rd,rd->r", away, away, dtype=np.float64)
        total = np.bincount(self.touched.owners[:end], weights=each, minlength=a)
        for name, value in self.moved.items():
            away = (value[:a] - self.start[name]).reshape(a, -1)
            total += np.einsum("an,an->a", away, away, dtype=np.float64)
        return total
