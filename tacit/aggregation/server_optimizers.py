"""How the server moves its weights along an aggregated gradient.

State comes in and goes out as plain arrays, so it can be checkpointed with everything
else; `torch.optim` does the arithmetic underneath (extra `train`). After the noise, any
step is post-processing and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from tacit import check
from tacit.errors import BadValue, MissingExtra
from tacit.tree import Array, Arrays

Stepped = tuple[dict[str, Array], dict[str, Array]]


class ServerOptimizer(Protocol):
    """Descends: the gradient is subtracted."""

    def start(self, weights: Arrays) -> dict[str, Array]:
        """The memory before the first step."""
        ...

    def step(
        self, weights: Arrays, memory: Arrays, gradient: Arrays, *, epoch: int = 0
    ) -> Stepped:
        """The next weights and memory."""
        ...


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
        """The rate in this epoch."""
        return self.rate * (1.0 + self.gamma * self.decay**epoch)


Rate = float | DecayingBoost


@dataclass(frozen=True)
class Sgd:
    """Plain steps: weights minus rate times gradient."""

    rate: Rate = 1.0

    def __post_init__(self) -> None:
        check.positive(rate=_rate(self.rate, 0))

    def start(self, weights: Arrays) -> dict[str, Array]:
        """Nothing to remember."""
        return {}

    def step(
        self, weights: Arrays, memory: Arrays, gradient: Arrays, *, epoch: int = 0
    ) -> Stepped:
        """One step."""
        torch = _torch()
        parameters = _parameters(torch, weights, gradient)
        rate = _rate(self.rate, epoch)
        torch.optim.SGD(parameters.values(), lr=rate).step()
        return _arrays(parameters), {}


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

    def start(self, weights: Arrays) -> dict[str, Array]:
        """Both moments at zero."""
        moments = {
            f"adam/{moment}/{name}": np.zeros_like(value)
            for moment in ("exp_avg", "exp_avg_sq")
            for name, value in weights.items()
        }
        return {"adam/step": np.zeros((), np.float32), **moments}

    def step(
        self, weights: Arrays, memory: Arrays, gradient: Arrays, *, epoch: int = 0
    ) -> Stepped:
        """One step."""
        torch = _torch()
        parameters = _parameters(torch, weights, gradient)
        adam = torch.optim.Adam(
            parameters.values(),
            lr=_rate(self.rate, epoch),
            betas=(self.beta1, self.beta2),
            eps=self.epsilon,
            fused=True,
        )
        for name, parameter in parameters.items():
            adam.state[parameter] = _state(torch, memory, name)
        adam.step()
        return _arrays(parameters), _memory(adam, parameters)


def _state(torch: ModuleType, memory: Arrays, name: str) -> dict[str, Any]:
    return {
        "step": torch.tensor(float(memory["adam/step"])),
        "exp_avg": torch.from_numpy(memory[f"adam/exp_avg/{name}"].copy()),
        "exp_avg_sq": torch.from_numpy(memory[f"adam/exp_avg_sq/{name}"].copy()),
    }


def _memory(adam: Any, parameters: Mapping[str, Any]) -> dict[str, Array]:
    out = {
        f"adam/{moment}/{name}": adam.state[parameter][moment].numpy()
        for moment in ("exp_avg", "exp_avg_sq")
        for name, parameter in parameters.items()
    }
    steps = [float(adam.state[parameter]["step"]) for parameter in parameters.values()]
    return {"adam/step": np.array(steps[0], np.float32), **out}


def _parameters(torch: ModuleType, weights: Arrays, gradient: Arrays) -> dict[str, Any]:
    """Copies of the weights as torch parameters that carry their gradients."""
    if _shapes(weights) != _shapes(gradient):
        raise BadValue(
            f"gradient is {_shapes(gradient)}; the weights are {_shapes(weights)}"
        )
    parameters = {}
    for name, value in weights.items():
        parameter = torch.nn.Parameter(torch.from_numpy(np.array(value)))
        # np.array: gradients arrive in float64, whatever the weights are.
        parameter.grad = torch.from_numpy(np.array(gradient[name], value.dtype))
        parameters[name] = parameter
    return parameters


def _shapes(arrays: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: value.shape for name, value in arrays.items()}


def _arrays(parameters: Mapping[str, Any]) -> dict[str, Array]:
    return {name: p.detach().numpy() for name, p in parameters.items()}


def _rate(rate: Rate, epoch: int) -> float:
    return rate.at(epoch) if isinstance(rate, DecayingBoost) else rate


def _torch() -> ModuleType:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("torch", "train") from error
    return torch
