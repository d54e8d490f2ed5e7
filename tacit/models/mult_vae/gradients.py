"""Every client's gradient of the Mult-VAE loss, as factors, from one pass for all.

    a, b     a layer's input and the gradient at its output: the layer's own is a bᵀ
    x, t     a person's input (normalised, some dropped) and 0/1 history of n items
    p        softmax of the decoder's scores
    μ, v, e  mean and log variance of z, and a normal draw: z = μ + e exp(v / 2)

    loss     -Σ t log p + β KL,  KL = ½ Σ (μ² + exp v - 1 - v)
    scores   b = n p - t
    latent   b_μ = b_z + β μ;  b_v = b_z e exp(v / 2) / 2 + β (exp v - 1) / 2

One forward and one backward for the whole cohort, in torch; no gradient of a weight is
ever computed, and nothing has the size of clients × weights. Sparse inputs stay sparse.

Several passes are local steps: with rate r, pass k sees the weights minus r times the
gradients of the passes before. They are low-rank, so they are applied as factors:
a (W - r Σ l mᵀ) = a W - r Σ (a·l) m, and no client has weights of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from tacit.errors import MissingExtra
from tacit.models.mult_vae.inputs import Held, Pass
from tacit.models.mult_vae.network import Network
from tacit.tree import Array, Arrays, Factored, Tree

Tensor = Any  # of torch, which is imported where it is used


def gradients(
    network: Network,
    weights: Arrays,
    held: Held,
    passes: Sequence[Pass],
    *,
    beta: float,
    is_mean: bool = False,
    rate: float = 0.0,
) -> Tree:
    """The mean over the passes of each client's gradient; a factored leaf a layer.

    With `is_mean` a person's loss is divided by the number of their items. Whoever
    holds nothing has a gradient of zero.
    """
    torch = _torch()
    with torch.no_grad():
        cohort = _Cohort(torch, network, weights, held, rate)
        for one in passes:
            cohort.play(one, beta=beta, is_mean=is_mean)
        return cohort.tree(1 / len(passes))


@dataclass(eq=False)
class _Layer:
    """A layer's matrix, less `rate` times the outer products noted so far."""

    matrix: Tensor
    rate: float
    left: list[Tensor] = field(default_factory=list)
    right: list[Tensor] = field(default_factory=list)

    def forward(self, a: Tensor, product: Tensor | None = None) -> Tensor:
        """Inputs, their last column 1, to outputs; `product` if it is known."""
        out = a @ self.matrix if product is None else product
        return self._stepped(out, a, self.left, self.right)

    def backward(self, b: Tensor) -> Tensor:
        """Gradients at the outputs to gradients at the inputs, the bias last."""
        return self._stepped(b @ self.matrix.T, b, self.right, self.left)

    def _stepped(
        self, out: Tensor, a: Tensor, one: list[Tensor], other: list[Tensor]
    ) -> Tensor:
        if self.rate:
            for near, far in zip(one, other, strict=True):
                out = out - self.rate * (a * near).sum(1, keepdim=True) * far
        return out


class _Cohort:
    """The layers of a cohort and what the passes so far made of them."""

    def __init__(
        self,
        torch: ModuleType,
        network: Network,
        weights: Arrays,
        held: Held,
        rate: float,
    ) -> None:
        self.torch, self.network, self.held = torch, network, held
        self.layers = {
            name: _Layer(
                torch.from_numpy(np.require(weights[name], None, ["C", "W"])), rate
            )
            for name in network.shapes
        }
        self.dtype = self.layers[network.encoder[0]].matrix.dtype
        self.columns = torch.from_numpy(held.columns)
        self.starts = torch.from_numpy(held.offsets[:-1])
        self.owners = torch.from_numpy(held.owners)
        self.lengths = torch.from_numpy(held.lengths)[:, None].to(self.dtype)

    def play(self, one: Pass, *, beta: float, is_mean: bool) -> None:
        """A forward and a backward; every layer notes its two factors."""
        noise = self.torch.from_numpy(one.noise).to(self.dtype)
        down = self._encode(*self._enter(one))
        means, spread, z = self._latent(down.pop(), noise)
        up = self._decode(z)
        b = self._at_scores(up.pop(), is_mean=is_mean)
        b = self._back_to_latent(b, up)
        if spread is not None:
            each = beta * self._weights(is_mean)
            at_variances = b * noise * spread + each * (spread * spread - 1)
            b = self.torch.cat([b + each * means, at_variances / 2], 1)
        self._back_to_items(b, down)

    def tree(self, share: float) -> Tree:
        """The gradients, each times `share`."""
        return Tree({n: self._leaf(layer, share) for n, layer in self.layers.items()})

    def _leaf(self, layer: _Layer, share: float) -> Factored:
        left, right = (self._stacked(f) for f in (layer.left, layer.right))
        return Factored(left, right if share == 1 else right * right.dtype.type(share))

    def _stacked(self, noted: list[Tensor]) -> Array:
        if len(noted) == 1:  # nothing to copy
            return np.asarray(noted[0].numpy()[:, None])
        return np.asarray(self.torch.stack(noted, 1).numpy())

    # forward

    def _enter(self, one: Pass) -> tuple[Tensor, Tensor]:
        """The inputs, written out, and the first layer's product, which need not be."""
        values = self.torch.from_numpy(one.values).to(self.dtype)
        shape = len(self.held), self.held.n_items + 1
        x = self.torch.zeros(shape, dtype=self.dtype)
        x[self.owners, self.columns] = values
        x[:, -1] = 1.0
        matrix = self.layers[self.network.encoder[0]].matrix
        product = self.torch.nn.functional.embedding_bag(
            self.columns, matrix, self.starts, mode="sum", per_sample_weights=values
        )
        return x, product + matrix[-1]

    def _encode(self, x: Tensor, entering: Tensor) -> list[Tensor]:
        """The input of every encoder layer, and what the last one gives."""
        first, *others = (self.layers[name] for name in self.network.encoder)
        seen, out = [x], first.forward(x, entering)
        for layer in others:
            seen.append(self._with_one(out.tanh()))
            out = layer.forward(seen[-1])
        return [*seen, out]

    def _latent(
        self, out: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Means, deviations if there are any, and z."""
        if not self.network.is_variational:
            return out, None, out
        means, log_variances = out.chunk(2, dim=1)
        spread = (log_variances / 2).exp()
        return means, spread, means + noise * spread

    def _decode(self, z: Tensor) -> list[Tensor]:
        """The input of every decoder layer, and the scores."""
        seen, out = [self._with_one(z)], z
        for name in self.network.decoder[:-1]:
            out = self.layers[name].forward(seen[-1]).tanh()
            seen.append(self._with_one(out))
        last = self.layers[self.network.decoder[-1]]
        if not self.network.is_tied:
            return [*seen, last.forward(seen[-1])]
        first = self.layers[self.network.encoder[0]]
        one = self.torch.ones((len(out), 1), dtype=self.dtype)
        return [*seen, first.backward(out)[:, :-1] + last.forward(one)]

    # backward

    def _at_scores(self, scores: Tensor, *, is_mean: bool) -> Tensor:
        b = self.torch.softmax(scores, 1) * self.lengths
        b[self.owners, self.columns] -= 1.0
        return b * self._weights(is_mean) if is_mean else b

    def _back_to_latent(self, b: Tensor, seen: list[Tensor]) -> Tensor:
        *others, last = self.network.decoder
        if self.network.is_tied:
            self._note(last, self.torch.ones((len(b), 1), dtype=self.dtype), b)
            b = self._back_through_tied(b, seen[-1][:, :-1])
        else:
            b = self._back(last, seen[-1], b)
        for name, a, above in zip(others[::-1], seen[-2::-1], seen[:0:-1], strict=True):
            b = self._back(name, a, self._through_tanh(b, above))
        return b

    def _back_through_tied(self, b: Tensor, a: Tensor) -> Tensor:
        """The first matrix read the other way: outputs are its rows."""
        name = self.network.encoder[0]
        zero = self.torch.zeros((len(b), 1), dtype=self.dtype)  # no bias on this way
        wide = self.torch.cat([b, zero], 1)
        back = self.layers[name].forward(wide)
        self._note(name, wide, a)
        return back

    def _back_to_items(self, b: Tensor, seen: list[Tensor]) -> None:
        first, *others = self.network.encoder
        for name, a in zip(others[::-1], seen[:0:-1], strict=True):
            b = self._through_tanh(self._back(name, a, b), a)
        self._note(first, seen[0], b)

    def _back(self, name: str, a: Tensor, b: Tensor) -> Tensor:
        """Past a layer: note its factors, and give the gradient at its inputs."""
        back = self.layers[name].backward(b)[:, :-1]
        self._note(name, a, b)
        return back

    def _note(self, name: str, a: Tensor, b: Tensor) -> None:
        self.layers[name].left.append(a)
        self.layers[name].right.append(b)

    def _through_tanh(self, b: Tensor, after: Tensor) -> Tensor:
        out = after[:, :-1]
        return b * (1 - out * out)

    def _with_one(self, a: Tensor) -> Tensor:
        return self.torch.nn.functional.pad(a, (0, 1), value=1.0)

    def _weights(self, is_mean: bool) -> Tensor:
        """What a person's loss is multiplied with."""
        has_any = (self.lengths > 0).to(self.dtype)
        return has_any / self.lengths.clamp(min=1) if is_mean else has_any


def _torch() -> ModuleType:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("torch", "train") from error
    return torch
