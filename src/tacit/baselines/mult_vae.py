"""Mult-VAE: a network that says how likely each item is for a history (Liang 2018).

x          a history of length 1, part of it dropped while training
z          where the encoder puts it: a mean and, while training, a normal draw
loss       -Σ over held ln softmax(decoder(z)) + β KL(z ‖ N(0, 1)), mean over a batch
score      the decoder's output at the mean

Its network and gradients are those that clients of FedVAE use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Int64
from numpy.random import Generator

from tacit import check
from tacit.aggregation.server_optimizers import Adam
from tacit.baselines.ranker import Grid, Scores
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.mult_vae import Held, Network, Pass
from tacit.models.mult_vae.gradients import gradients
from tacit.tree import Arrays


@dataclass(frozen=True)
class MultVae:
    """Trained by Adam for a fixed number of epochs; β may rise over the first ones."""

    hidden: tuple[int, ...] = (600,)
    latent: int = 200
    epochs: int = 45
    batch: int = 100
    rate: float = 1e-3
    beta: float = 0.2
    beta_epochs: int = 0  # over which β rises from 0; 0: it is fixed
    dropout: float = 0.5

    GRID: ClassVar[Grid] = {"epochs": (30, 45, 60), "beta": (0.1, 0.2, 0.5)}

    def __post_init__(self) -> None:
        check.count(epochs=self.epochs, batch=self.batch)
        check.at_least(0, beta_epochs=self.beta_epochs)
        check.positive(rate=self.rate)
        check.not_negative(beta=self.beta)
        if not 0 <= self.dropout < 1:
            raise BadValue(f"dropout={self.dropout} must be in [0, 1)")
        self.network(1)  # refuses impossible widths before there is any data

    def network(self, n_items: int) -> Network:
        """The network of this shape over `n_items` items."""
        return Network(n_items, self.hidden, self.latent)

    def fit(self, train: Shards, *, key: Key) -> FittedMultVae:
        """The model after the last epoch."""
        *_, last = self.course(train, key=key)
        return last

    def course(self, train: Shards, *, key: Key) -> Iterator[FittedMultVae]:
        """The models after each epoch, in order."""
        network, adam = self.network(train.n_items), Adam(self.rate)
        weights = network.start(key.at("weights"), init="xavier", dtype="float32")
        memory = adam.start(weights)
        for epoch in range(self.epochs):
            draw = key.at("epoch", epoch).generator()
            for place, rows in enumerate(self._batches(len(train), draw)):
                beta = self._beta(epoch + place * self.batch / len(train))
                held = Held.of(train.take(rows), np.arange(train.n_items))
                one = self._pass(held, draw)
                tree = gradients(network, weights, held, [one], beta=beta)
                mean = tree.scale(1 / len(held)).sum()
                weights, memory = adam.step(weights, memory, mean)
            yield FittedMultVae(network, weights)

    def _batches(self, n: int, draw: Generator) -> list[Int64[np.ndarray, "batch"]]:
        return np.array_split(draw.permutation(n), range(self.batch, n, self.batch))

    def _pass(self, held: Held, draw: Generator) -> Pass:
        """Dropout and latent noise of one batch.

        No client owns these draws, so all users share one fast stream.
        """
        stays = draw.random(len(held.columns)) >= self.dropout
        # Scaled up while training, so that scoring needs no scale (inverted dropout).
        values = np.where(stays, held.values / (1 - self.dropout), 0.0)
        return Pass(values, draw.standard_normal((len(held), self.latent)))

    def _beta(self, epoch: float) -> float:
        return self.beta * min(1.0, epoch / self.beta_epochs if self.beta_epochs else 1)


@dataclass(frozen=True, eq=False)
class FittedMultVae:
    """A trained network: its shape and its weights."""

    network: Network
    weights: Arrays

    def score(self, history: Shards) -> Scores:
        """The decoder's output at the encoder's mean; no noise is drawn."""
        held = Held.of(history, np.arange(self.network.n_items))
        means = self.network.encode(self.weights, held.dense(held.values, "float32"))
        return self.network.decode(self.weights, means)
