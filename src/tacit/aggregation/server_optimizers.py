"""How the server moves its weights along an aggregated gradient.

State comes in and goes out as plain arrays, so it can be checkpointed with everything
else, and every step makes new ones. After the noise, any step is post-processing and
costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit import check
from tacit.buffers import empty
from tacit.errors import BadValue
from tacit.kernels import dispatch
from tacit.side_by_side import side_by_side
from tacit.tree import Array, Arrays
from tacit.wire_names import register

Stepped = tuple[dict[str, Array], dict[str, Array]]  # the next weights and memory


class ServerOptimizer(Protocol):
    """Moves weights against an aggregated gradient, with a memory of its own."""

    def start(self, weights: Arrays) -> dict[str, Array]:
        """The memory before the first step."""
        ...

    def step(
        self, weights: Arrays, memory: Arrays, gradient: Arrays, *, epoch: int = 0
    ) -> Stepped:
        """The weights and the memory after one step against the gradient."""
        ...


@register("decaying_boost")
@dataclass(frozen=True)
class DecayingBoost:
    """FedVAE's learning rate: η (1 + γ δᵗ) in epoch t.

    The paper writes it as a second step, ω ← ω + γ δᵗ (ω - ω before), and counts t
    from 1, so that `decay=0` never boosts; epoch 0 gets the whole boost. `decay=1`
    keeps it for good.
    Source: FedVAE, Section IV-B, Equation 4.
    """

    rate: float
    gamma: float
    decay: float = 0.9

    def __post_init__(self) -> None:
        check.positive(rate=self.rate)
        check.not_negative(gamma=self.gamma, decay=self.decay)
        if self.decay > 1:
            raise BadValue(f"decay={self.decay} must be <= 1; a boost does not grow")

    def at(self, epoch: int) -> float:
        """The learning rate in this epoch, counted from 0."""
        return self.rate * (1.0 + self.gamma * self.decay**epoch)


Rate = float | DecayingBoost


@register("sgd")
@dataclass(frozen=True)
class Sgd:
    """Plain steps: weights minus rate times gradient.

    With θ₀ minus the clients' mean as gradient it is Reptile's (Nichol, Achiam and
    Schulman 2018): a share of the way to where clients went.
    """

    rate: Rate = 1.0

    def __post_init__(self) -> None:
        check.positive(rate=_rate(self.rate, 0))

    def start(self, weights: Arrays) -> dict[str, Array]:
        """The memory before the first step, which is empty and stays so."""
        return {}

    def step(
        self, weights: Arrays, memory: Arrays, gradient: Arrays, *, epoch: int = 0
    ) -> Stepped:
        """The weights minus rate times gradient, and the empty memory."""
        _refuse_others(weights, gradient)
        rate = _rate(self.rate, epoch)
        moved = {
            name: np.asarray(value - rate * gradient[name], value.dtype)
            for name, value in weights.items()
        }
        return moved, {}


@register("adam")
@dataclass(frozen=True)
class Adam:
    """Adam with bias correction (Kingma and Ba 2015), as Algorithm 2 of FedVAE."""

    rate: Rate = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        check.positive(rate=_rate(self.rate, 0), epsilon=self.epsilon)
        check.fraction(beta1=self.beta1, beta2=self.beta2)

    @classmethod
    def federated(cls, rate: float) -> Adam:
        """FedAdam, for means of clients' updates: a shorter memory and a higher floor.

        The floor is smaller than the paper's.

        Source: Reddi et al., "Adaptive Federated Optimization", ICLR 2021.
        """
        return cls(rate, beta2=0.99, epsilon=1e-4)

    def start(self, weights: Arrays) -> dict[str, Array]:
        """The memory before the first step: both moments and the count at zero."""
        moments = {
            f"adam/{moment}/{name}": np.zeros_like(value)
            for moment in _MOMENTS
            for name, value in weights.items()
        }
        return {"adam/step": np.zeros((), np.float32), **moments}

    def step(
        self, weights: Arrays, memory: Arrays, gradient: Arrays, *, epoch: int = 0
    ) -> Stepped:
        """The weights moved along the corrected moments, and the next moments."""
        _refuse_others(weights, gradient)
        steps = float(memory["adam/step"]) + 1
        # Both bias corrections as scalars (Kingma and Ba 2015, end of Section 2).
        rate = _rate(self.rate, epoch) / (1 - self.beta1**steps)
        root = math.sqrt(1 - self.beta2**steps)
        shares = (self.beta1, 1 - self.beta1, self.beta2, 1 - self.beta2)
        one = _Step(shares, (rate, root, self.epsilon))
        moved = one.all_moved(weights, memory, gradient)
        kept = {
            f"adam/{moment}/{name}": made[1 + place]
            for place, moment in enumerate(_MOMENTS)
            for name, made in moved.items()
        }
        count = np.array(steps, np.float32)
        return {n: made[0] for n, made in moved.items()}, {"adam/step": count, **kept}


BY_NAME: Mapping[str, Callable[[float], ServerOptimizer]] = {
    "reptile": Sgd,  # of θ₀ minus where clients went
    "sgd": Sgd,
    "adam": Adam.federated,
}

_MOMENTS = ("exp_avg", "exp_avg_sq")  # as PyTorch calls them

Moved = tuple[Array, Array, Array]


@dataclass(frozen=True)
class _Step:
    """The scalars of one step of Adam, which all leaves share: see `kernels.adam`."""

    shares: tuple[float, float, float, float]
    constants: tuple[float, float, float]

    def all_moved(
        self, weights: Arrays, memory: Arrays, gradient: Arrays
    ) -> dict[str, Moved]:
        """The next weights and moments; large ones side by side."""
        given = [
            (w, *(memory[f"adam/{m}/{n}"] for m in _MOMENTS), gradient[n])
            for n, w in weights.items()
        ]
        if not dispatch.pays("adam.adam", sum(w.size for w in weights.values())):
            made = [self.plain(*arrays) for arrays in given]
        else:
            made = side_by_side(lambda arrays: self.compiled(*arrays), given)
        return dict(zip(weights, made, strict=True))

    def plain(self, weights: Array, mean: Array, square: Array, g: Array) -> Moved:
        """The next weights and moments of one leaf, in numpy, as the formulas say."""
        old, new, old_square, new_square = self.shares
        rate, root, floor = self.constants
        g = g.astype(weights.dtype, copy=False)
        m = np.asarray(old * mean + new * g, weights.dtype)
        v = np.asarray(old_square * square + new_square * g * g, weights.dtype)
        moved = weights - rate * m / (np.sqrt(v) / root + floor)
        return np.asarray(moved, weights.dtype), m, v

    def compiled(self, weights: Array, mean: Array, square: Array, g: Array) -> Moved:
        """The same as `plain` in one pass over memory."""
        from tacit.kernels.adam import adam  # loads numba

        kind = weights.dtype.type
        flat = [
            np.ravel(a).astype(kind, copy=False) for a in (weights, mean, square, g)
        ]
        shares, constants = (
            tuple(map(kind, of)) for of in (self.shares, self.constants)
        )
        after = tuple(empty(flat[0].shape, kind) for _ in range(3))
        adam(tuple(flat[:3]), flat[3], shares, constants, after)
        moved, m, v = (a.reshape(weights.shape) for a in after)
        return moved, m, v


def _refuse_others(weights: Arrays, gradient: Arrays) -> None:
    if _shapes(weights) != _shapes(gradient):
        raise BadValue(
            f"gradient is {_shapes(gradient)}; the weights are {_shapes(weights)}"
        )


def _shapes(arrays: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: value.shape for name, value in arrays.items()}


def _rate(rate: Rate, epoch: int) -> float:
    return rate.at(epoch) if isinstance(rate, DecayingBoost) else rate
