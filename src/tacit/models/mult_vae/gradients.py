"""Every client's gradient of the Mult-VAE loss, as factors, from one pass for all.

    a, b     a layer's input and the gradient at its output: the layer's own is a bᵀ
    x, t     a user's input (normalised, some dropped) and 0/1 history of n items
    p        softmax of the decoder's scores
    μ, v, e  mean and log variance of z, and a normal draw: z = μ + e exp(v / 2)

    m, s     mean and variance of the prior of z; 0 and 1 where there is none

    loss     -Σ t log p + β KL,  KL = ½ Σ ((μ - m)² / s + exp v / s - 1 - v + ln s)
    scores   b = n p - t
    latent   b_μ = b_z + β (μ - m) / s
             b_v = b_z e exp(v / 2) / 2 + β (exp v / s - 1) / 2

There is one forward and one backward pass for the whole cohort, written out in numpy:
its matrix products are as fast as torch's, and two thread pools in one round get in
each other's way. No gradient of a weight is ever computed, and nothing has the size of
clients × weights. Sparse inputs stay sparse.

Several passes are local steps: with rate r, pass k sees the weights minus r times the
gradients of the passes before. They are low-rank, so they are applied as factors:
a (W - r Σ l mᵀ) = a W - r Σ (a·l) m, and no client has weights of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int64

from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.kernels import dispatch
from tacit.models.mult_vae.inputs import Held, Pass, Prior
from tacit.models.mult_vae.network import Network
from tacit.tree import Array, Arrays, Factored, Leaf, Tree

_BLOCK = 16  # rows of scores that stay in the cache through the passes of a softmax


def gradients(
    network: Network,
    weights: Arrays,
    held: Held,
    passes: Sequence[Pass],
    *,
    beta: float,
    is_mean: bool = False,
    rate: float = 0.0,
    prior: Prior | None = None,
) -> Tree:
    """The mean over the passes of each client's gradient; one factored leaf per layer.

    With `is_mean` a user's loss is divided by the number of their items. A user without
    items has a gradient of zero.
    """
    cohort = _Cohort(network, weights, held, rate, prior)
    for one in passes:
        cohort.play(one, beta=beta, is_mean=is_mean)
    return cohort.tree(1 / len(passes))


def example_gradients(
    network: Network,
    weights: Arrays,
    held: Held,
    one: Pass,
    targets: Int64[np.ndarray, "users examples"],
    *,
    beta: float,
    prior: Prior | None = None,
    most_log_variance: float | None = None,
) -> Tree:
    """The gradients of single items' losses; each product of a leaf is one example's.

    An example reads the whole history and is to foretell one item: its loss is
    -log p of the target, a column, and β KL. A product is an example's gradient over
    the number of examples, so that their sum is the mean. A user without items has
    gradients of zero. For networks that are not tied. Log variances of a latent that
    are further from zero than `most_log_variance` count as that.
    """
    if network.is_tied:
        raise BadValue("a tied matrix has two products per example; use is_tied=False")
    n, times = targets.shape
    users = np.repeat(np.arange(n), times)
    again = held.take(users)
    places = Ragged(held.offsets, held.columns).places(users)
    drawn = Pass(one.values[places], one.noise[users])
    if prior is not None:
        prior = Prior(prior.mean[users], prior.variance[users])
    examples = _Examples(network, weights, again, 0.0, prior, targets.ravel())
    examples.most_log_variance = most_log_variance
    examples.play(drawn, beta=beta, is_mean=False)
    flat = examples.tree(1 / times).leaves
    return Tree({name: _by_user(leaf, n, times) for name, leaf in flat.items()})


@dataclass(eq=False)
class _Layer:
    """A layer's matrix, less `rate` times the outer products noted so far."""

    matrix: Array
    rate: float
    left: list[Array] = field(default_factory=list)
    right: list[Array] = field(default_factory=list)

    def forward(self, a: Array, product: Array | None = None) -> Array:
        """The outputs for inputs whose last column is 1; `product` is a @ matrix."""
        out = a @ self.matrix if product is None else product
        return self._stepped(out, a, self.left, self.right)

    def backward(self, b: Array) -> Array:
        """The gradients at the inputs, the bias last, from those at the outputs."""
        return self._stepped(b @ self.matrix.T, b, self.right, self.left)

    def _stepped(
        self, out: Array, a: Array, one: list[Array], other: list[Array]
    ) -> Array:
        # a (W - r Σ l mᵀ) = a W - r Σ (a·l) m, the local steps of earlier passes.
        if self.rate:
            for near, far in zip(one, other, strict=True):
                out = out - self.rate * (a * near).sum(1, keepdims=True) * far
        return out


class _Cohort:
    """The layers of a cohort, and the factors that its passes noted so far."""

    def __init__(
        self,
        network: Network,
        weights: Arrays,
        held: Held,
        rate: float,
        prior: Prior | None,
    ) -> None:
        self.network, self.held, self.prior = network, held, prior
        self.layers = {name: _Layer(weights[name], rate) for name in network.shapes}
        self.dtype = self.layers[network.encoder[0]].matrix.dtype
        self.owners = held.owners
        self.lengths = held.lengths[:, None].astype(self.dtype)
        self.ones = np.ones((len(held), 1), self.dtype)
        self.most_log_variance: float | None = None

    def play(self, one: Pass, *, beta: float, is_mean: bool) -> None:
        """Run one forward and backward pass; every layer notes its two factors."""
        noise = one.noise.astype(self.dtype)
        down = self._encode(*self._enter(one))
        means, spread, z = self._latent(down.pop(), noise)
        up = self._decode(z)
        b = self._at_scores(up.pop(), is_mean=is_mean)
        b = self._back_to_latent(b, up)
        if spread is not None:
            each = self.dtype.type(beta) * self._weights(is_mean)
            pull, widening = self._from_prior(means, spread)
            at_variances = b * noise * spread + each * (widening - 1)
            b = np.concatenate([b + each * pull, at_variances / 2], 1)
        self._back_to_items(b, down)

    def _from_prior(self, means: Array, spread: Array) -> tuple[Array, Array]:
        """(μ - m) / s and exp v / s: how far a latent is from its prior."""
        if self.prior is None:
            return means, spread * spread
        mean, variance = (
            p.astype(self.dtype) for p in (self.prior.mean, self.prior.variance)
        )
        return (means - mean) / variance, spread * spread / variance

    def tree(self, share: float) -> Tree:
        """The gradients, each times `share`."""
        return Tree({name: self._leaf(name, share) for name in self.layers})

    def _leaf(self, name: str, share: float) -> Factored:
        layer, network = self.layers[name], self.network
        left, right = (_stacked(f) for f in (layer.left, layer.right))
        if share != 1:
            right = right * self.dtype.type(share)
        # The first layer's inputs are histories, nearly all zeros; where the decoder
        # reads the matrix backwards, its second outer product is not sparse.
        is_sparse = name == network.encoder[0] and not network.is_tied
        return Factored(left, right, is_sparse)

    # forward

    def _enter(self, one: Pass) -> tuple[Array, Array]:
        """The inputs, written out, and the first layer's product."""
        held, matrix = self.held, self.layers[self.network.encoder[0]].matrix
        x = np.zeros((len(held), held.n_items + 1), self.dtype)
        x[self.owners, held.columns] = one.values
        x[:, -1] = 1.0
        # Decided by the public network alone.
        if not dispatch.pays("rows.weighted_rows", matrix.size):
            return x, x @ matrix
        from tacit.kernels.rows import weighted_rows  # loads numba

        values = one.values.astype(self.dtype)
        product = np.tile(matrix[-1], (len(held), 1))
        weighted_rows(matrix, held.offsets, held.columns, values, product)
        return x, product

    def _encode(self, x: Array, entering: Array) -> list[Array]:
        """The input of every encoder layer, and what the last one gives."""
        first, *others = (self.layers[name] for name in self.network.encoder)
        seen, out = [x], first.forward(x, entering)
        for layer in others:
            seen.append(self._with_one(np.tanh(out)))
            out = layer.forward(seen[-1])
        return [*seen, out]

    def _latent(self, out: Array, noise: Array) -> tuple[Array, Array | None, Array]:
        """The means, the deviations (None without sampling), and z."""
        if not self.network.is_variational:
            return out, None, out
        means, log_variances = np.split(out, 2, axis=1)
        if self.most_log_variance is not None:
            most = self.most_log_variance
            log_variances = np.clip(log_variances, -most, most)
        spread = np.exp(log_variances / 2)
        return means, spread, means + noise * spread

    def _decode(self, z: Array) -> list[Array]:
        """The input of every decoder layer, and the scores."""
        seen, out = [self._with_one(z)], z
        for name in self.network.decoder[:-1]:
            out = np.tanh(self.layers[name].forward(seen[-1]))
            seen.append(self._with_one(out))
        last = self.layers[self.network.decoder[-1]]
        if not self.network.is_tied:
            return [*seen, last.forward(seen[-1])]
        first = self.layers[self.network.encoder[0]]
        return [*seen, first.backward(out)[:, :-1] + last.forward(self.ones)]

    # backward

    def _at_scores(self, scores: Array, *, is_mean: bool) -> Array:
        """The gradient n p - t, written over the scores."""
        _to_softmax(scores, self.lengths)
        scores[self.owners, self.held.columns] -= 1.0
        return scores * self._weights(is_mean) if is_mean else scores

    def _back_to_latent(self, b: Array, seen: list[Array]) -> Array:
        *others, last = self.network.decoder
        if self.network.is_tied:
            self._note(last, self.ones, b)
            b = self._back_through_tied(b, seen[-1][:, :-1])
        else:
            b = self._back(last, seen[-1], b)
        for name, a, above in zip(others[::-1], seen[-2::-1], seen[:0:-1], strict=True):
            b = self._back(name, a, _through_tanh(b, above))
        return b

    def _back_through_tied(self, b: Array, a: Array) -> Array:
        """The gradient through the first matrix transposed, whose rows are outputs."""
        name = self.network.encoder[0]
        wide = np.concatenate([b, 0 * self.ones], 1)  # its bias row plays no part here
        back = self.layers[name].forward(wide)
        self._note(name, wide, a)
        return back

    def _back_to_items(self, b: Array, seen: list[Array]) -> None:
        first, *others = self.network.encoder
        for name, a in zip(others[::-1], seen[:0:-1], strict=True):
            b = _through_tanh(self._back(name, a, b), a)
        self._note(first, seen[0], b)

    def _back(self, name: str, a: Array, b: Array) -> Array:
        """The gradient at a layer's inputs; the layer notes its factors."""
        back = self.layers[name].backward(b)[:, :-1]  # before they count as a step
        self._note(name, a, b)
        return back

    def _note(self, name: str, a: Array, b: Array) -> None:
        self.layers[name].left.append(a)
        self.layers[name].right.append(b)

    def _with_one(self, a: Array) -> Array:
        return np.concatenate([a, self.ones], 1)

    def _weights(self, is_mean: bool) -> Array:
        """The factor of each user's loss: 0 without items, else 1 or 1 / n."""
        has_any = (self.lengths > 0).astype(self.dtype)
        return has_any / np.maximum(self.lengths, 1) if is_mean else has_any


class _Examples(_Cohort):
    """A cohort of single examples, each with one item that it is to foretell."""

    def __init__(
        self,
        network: Network,
        weights: Arrays,
        held: Held,
        rate: float,
        prior: Prior | None,
        targets: Int64[np.ndarray, "examples"],
    ) -> None:
        super().__init__(network, weights, held, rate, prior)
        # The loss has one item, whatever the input has; none without a history.
        self.lengths = (self.lengths > 0).astype(self.dtype)
        self.targets = targets

    def _at_scores(self, scores: Array, *, is_mean: bool) -> Array:
        """The gradient p - t of one target, written over the scores."""
        _to_softmax(scores, self.lengths)
        scores[np.arange(len(scores)), self.targets] -= self.lengths[:, 0]
        return scores


def _to_softmax(scores: Array, totals: Array) -> None:
    """Write a softmax times `totals` over the scores, some rows at a time."""
    for start in range(0, len(scores), _BLOCK):
        some = slice(start, start + _BLOCK)
        b = scores[some]
        b -= b.max(1, keepdims=True)  # a softmax that cannot overflow
        np.exp(b, out=b)
        b *= totals[some] / b.sum(1, keepdims=True)


def _by_user(leaf: Leaf, n: int, times: int) -> Factored:
    """The leaf of n · times examples as that of n users with so many products."""
    assert isinstance(leaf, Factored)
    left, right = (f.reshape(n, times, f.shape[-1]) for f in (leaf.left, leaf.right))
    return Factored(left, right, leaf.is_sparse)


def _stacked(noted: list[Array]) -> Array:
    return noted[0][:, None] if len(noted) == 1 else np.stack(noted, 1)


def _through_tanh(b: Array, after: Array) -> Array:
    out = after[:, :-1]
    return b * (1 - out * out)
