"""What the bars of FedVAE share: users, a network of the paper's size, plain code."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tacit.data.catalog import Catalog, Profiles
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.keys import Key
from tacit.method import CentralGaussian
from tacit.methods.fedvae import FedVae
from tacit.models.mult_vae import Held, Network, Pass
from tacit.models.mult_vae.gradients import gradients
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.sampling import FixedSize
from tacit.tree import Tree

USERS, ITEMS, COHORT, EVENTS = 5_634, 3_520, 250, 95
CLIP, BETA = 0.5, 0.2


def users(n: int = USERS) -> Shards:
    """Histories as long as those of MovieLens 1M, a few items much liked."""
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, ITEMS + 1) ** 0.7
    lengths = np.maximum(5, rng.exponential(EVENTS, n).astype(int))
    events = rng.choice(ITEMS, lengths.sum(), p=chance / chance.sum())
    owners = np.repeat(np.arange(n), lengths)
    cells = np.unique(owners * ITEMS + events)
    owners, events = np.divmod(cells, ITEMS)
    return Shards.of(Interactions.of_columns(owners, events, n_users=n, n_items=ITEMS))


@dataclass(frozen=True, eq=False)
class Cohort:
    """A cohort, a network, and the draws of one pass."""

    shards: Shards

    @classmethod
    def usual(cls) -> Cohort:
        return cls(users(COHORT))

    @cached_property
    def network(self) -> Network:
        return Network(ITEMS)

    @cached_property
    def weights(self) -> dict[str, np.ndarray]:
        return self.network.start(Key.from_seed(0), init="xavier", dtype="float32")

    @cached_property
    def held(self) -> Held:
        return Held.of(self.shards, np.arange(ITEMS))

    @cached_property
    def draws(self) -> Pass:
        keys = Key.from_seed(1).each(np.arange(len(self.shards)))
        return Pass.drawn(self.held, keys, dropout=0.5, latent=self.network.latent)

    @cached_property
    def inputs(self) -> torch.Tensor:
        return torch.from_numpy(self.held.dense(self.draws.values, "float32"))

    @cached_property
    def targets(self) -> torch.Tensor:
        ones = np.ones(len(self.held.columns))
        return torch.from_numpy(self.held.dense(ones, "float32"))

    @cached_property
    def noise(self) -> torch.Tensor:
        return torch.from_numpy(self.draws.noise.astype(np.float32))

    def factored(self) -> Tree:
        """Every gradient, as factors: ours."""
        return gradients(self.network, self.weights, self.held, [self.draws], beta=BETA)

    def module(self) -> MultVae:
        """The same network as a torch module."""
        return MultVae(self.weights)


class MultVae(torch.nn.Module):
    """Mult-VAE as anybody would write it in torch."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        super().__init__()
        names = ("encoder/0", "encoder/1", "decoder/0", "decoder/1")
        self.first, self.second, self.third, self.last = (
            _linear(weights[name]) for name in names
        )

    def forward(
        self, x: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        out = self.second(torch.tanh(self.first(x)))
        mean, log_variance = out.chunk(2, dim=-1)
        z = mean + noise * torch.exp(log_variance / 2)
        kl = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(-1)
        return self.last(torch.tanh(self.third(z))), kl

    def losses(
        self, x: torch.Tensor, targets: torch.Tensor, noise: torch.Tensor
    ) -> torch.Tensor:
        scores, kl = self(x, noise)
        return -(targets * torch.log_softmax(scores, -1)).sum(-1) + BETA * kl

    def gradient(self) -> dict[str, np.ndarray]:
        """As ours has it: a row an input, the bias last."""
        layers = {
            "encoder/0": self.first,
            "encoder/1": self.second,
            "decoder/0": self.third,
            "decoder/1": self.last,
        }
        return {
            name: np.concatenate([layer.weight.grad.T, layer.bias.grad[None]])
            for name, layer in layers.items()
        }


def clipped_sum_by_loop(cohort: Cohort, module: MultVae) -> list[torch.Tensor]:
    """The literal algorithm: one user after the other."""
    parameters = [*module.parameters()]
    total = [torch.zeros_like(p) for p in parameters]
    for u in range(len(cohort.inputs)):
        module.zero_grad()
        one = slice(u, u + 1)
        loss = module.losses(
            cohort.inputs[one], cohort.targets[one], cohort.noise[one]
        ).sum()
        loss.backward()
        slopes = [p.grad for p in parameters if p.grad is not None]
        squares = torch.stack([(slope**2).sum() for slope in slopes])
        factor = min(1.0, CLIP / float(torch.sqrt(squares.sum())))
        for whole, slope in zip(total, slopes, strict=True):
            whole += factor * slope
    return total


def simulation(n: int = USERS, *, rounds: int = 1000) -> Simulation:
    """A federation under noise, at the paper's size."""
    shards = users(n)
    method = FedVae(privacy=CentralGaussian(1.0, clip=CLIP))
    return Simulation(
        method,
        Plan(n, rounds, FixedSize(COHORT), channel="secure_sum"),
        Catalog.of_ids([str(i) for i in range(ITEMS)]),
        Profiles(Strings.of(str(i) for i in range(n))),
        shards,
        Key.from_seed(0),
    )


def peak_of(code: str) -> float:
    """The extra memory, in MB, that a statement needs at its peak, in its own process.

    It may use the names of bar 2, and `cohort`, which is ready and has run once.
    """
    script = (
        "from benchmarks.bar02_fedvae_gradient import *\n"
        f"cohort = ready()\nmodule = cohort.module()\nprint(extra(lambda: {code}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def extra(run: Callable[[], object]) -> float:
    """How far resident memory rises above what it was before, in MB."""
    most, stop = 0.0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not stop.wait(0.001):
            most = max(most, _resident())

    before = most = _resident()
    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(5):
        run()
    stop.set()
    watcher.join()
    return most - before


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _linear(matrix: np.ndarray) -> Any:
    rows, columns = matrix.shape
    layer = torch.nn.Linear(rows - 1, columns)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(matrix[:-1].T))
        layer.bias.copy_(torch.from_numpy(matrix[-1]))
    return layer
