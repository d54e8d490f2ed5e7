"""DP-VAE's own protection, as printed; reachable from `mode = "paper"` alone.

    g_kj  the gradients of J examples of user k, one product of a leaf each
    S     Optimal_Clip of the user's own gradients, or a constant (`clip`)
    σ_k   sqrt(2 ln(1.25 / δ)) S / ε_k

    client  1  clip each g_kj to S, all layers together
            2  send their mean plus N(0, σ_k²) on every number

With S from the user's gradients nothing can be proven: the size of the noise tells
them (docs/errata/dpvae.md). With a constant S the mean has norm S at the most, and a
report is a Gaussian release; its cost is that of whoever chose the largest epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Float64

from tacit import check
from tacit.aggregation.mean import Aggregator, Mean
from tacit.codes import Code
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms.gaussian import gaussian_event
from tacit.mechanisms.published import (
    bisected,
    classic_sigma,
    noise_decides,
    optimal_clip,
)
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy.guarantees import local, unprotected
from tacit.privacy.privacy import Codes, Privacy, Slots, release
from tacit.release import Adjacency, Cells, Release
from tacit.transport.channels import Each, Sum, Unlinked
from tacit.transport.messages import Layout, Slot
from tacit.tree import Array, Arrays, Factored, Tree
from tacit.wire_names import register

EPSILON = "epsilon"  # the leaf with each user's own, which the client keeps
_NONE = (
    "the clip is computed from the user's own gradients, so the size of the noise "
    "reveals them (docs/errata/dpvae.md)"
)
_CONSTANT = (
    "Gaussian noise on means of gradients that are clipped to a constant, for the "
    "user with the largest epsilon (docs/errata/dpvae.md)"
)

Bounds = Float64[np.ndarray, "clients"]
Norms = Float64[np.ndarray, "clients examples"]


@register("published_personal_noise")
@dataclass(frozen=True)
class PublishedPersonalNoise(Privacy):
    """Noise by each client for an epsilon of its own, over a clip from its gradients.

    A method hands over leaves whose products are examples, and a leaf `epsilon`.

    Source: Fang et al. 2022, Algorithm 3, lines 9 to 15; Section 4.1.3.
    """

    most_epsilon: float = 1.0  # users choose theirs in (0, this]
    noise_delta: float = 1 / 80_000  # δ_k: one over the ratings that train on ML-100K
    clip: float | None = None  # a constant S; None: Algorithm 2

    def __post_init__(self) -> None:
        check.positive(most_epsilon=self.most_epsilon)
        check.fraction(noise_delta=self.noise_delta)
        if self.clip is not None:
            check.positive(clip=self.clip)

    def drawn(self, keys: Keys) -> Float64[np.ndarray, "clients"]:
        """The epsilon that each user chooses: uniform in (0, most]."""
        return self.most_epsilon * (1.0 - keys.uniform(1)[:, 0])

    def sigma(self, epsilons: Bounds) -> Bounds:
        """The noise for a sensitivity of 1, for each user's own epsilon."""
        return np.array([self._over_clip(epsilon) for epsilon in epsilons])

    # account

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """Nothing, or what a constant clip is worth; beside it the paper's figure."""
        [phase] = phases
        cells = (
            unprotected("clip_from_data", _NONE)
            if self.clip is None
            else self._constant(plan)
        )
        cells = {
            name: replace(cell, published_epsilon=self.most_epsilon)
            for name, cell in cells.items()
        }
        return (release(plan, f"noisy {phase.what}, one of each client", cells),)

    def _constant(self, plan: Plan) -> Cells:
        """Cells of a local Gaussian release; an empty report is zero and noise."""
        event = gaussian_event(self._over_clip(self.most_epsilon))
        cells, noise = local(plan, event, reason=_CONSTANT), Code("float_noise")
        return {
            name: replace(cell.assuming(noise), adjacency=Adjacency.ZERO_OUT)
            for name, cell in cells.items()
        }

    # client

    def layout(self, phase: Phase, slots: Slots) -> Layout:
        """Every layer written out: noise is on all its numbers."""
        layers = {name: slot for name, slot in slots.items() if name != EPSILON}
        return Layout({n: Slot(slot.dtype, slot.shape) for n, slot in layers.items()})

    def report(
        self, tree: Tree, phase: Phase, told: Arrays, *, codes: Codes, keys: Keys
    ) -> Tree:
        """Lines 1 and 2 of all clients."""
        chosen = tree[EPSILON]
        # An empty contribution has chosen nothing.
        epsilons = np.where(chosen > 0, chosen, self.most_epsilon)
        layers = {n: leaf for n, leaf in tree.leaves.items() if n != EPSILON}
        examples = {n: _factored(leaf) for n, leaf in layers.items()}
        norms = _norms(examples)
        if self.clip is None:
            bounds = self._bounds(examples, norms, epsilons)
        else:
            bounds = np.full(len(norms), self.clip)
        kept = np.minimum(1.0, bounds[:, None] / np.maximum(norms, 1e-300))
        sigma = bounds * self.sigma(epsilons)
        return Tree.dense(
            **{
                name: _noisy(leaf, kept, sigma, keys.at("noise", name))
                for name, leaf in examples.items()
            }
        )

    def _bounds(
        self, examples: Mapping[str, Factored], norms: Norms, epsilons: Bounds
    ) -> Bounds:
        """Algorithm 2, user by user: each has a list and an epsilon of its own."""
        size = sum(math.prod(leaf.shape) for leaf in examples.values())
        found = []
        for user, epsilon in enumerate(epsilons):
            if noise_decides(size, epsilon=epsilon, delta=self.noise_delta):
                found.append(bisected(norms[user]))  # H has the order of the norms
            else:
                own = _written_out(examples, user)
                found.append(optimal_clip(own, epsilon=epsilon, delta=self.noise_delta))
        return np.array(found)

    # server

    def aggregator(self, wanted: Aggregator) -> Aggregator:
        """A sum, over whichever channel it is delivered."""
        return Mean((Each, Unlinked, Sum)) if wanted == Mean() else wanted

    # details

    def _over_clip(self, epsilon: float) -> float:
        """σ_k over S."""
        return classic_sigma(float(epsilon), delta=self.noise_delta)


def _factored(leaf: object) -> Factored:
    if not isinstance(leaf, Factored):
        raise BadValue(
            f"a {type(leaf).__name__} leaf has no examples; each product of a factored "
            "one is an example's gradient"
        )
    return leaf


def _norms(examples: Mapping[str, Factored]) -> Norms:
    """The norm of each example's gradient, all layers together."""
    total = 0.0
    for leaf in examples.values():
        left, right = (f.astype(np.float64) for f in (leaf.left, leaf.right))
        total = total + (left**2).sum(2) * (right**2).sum(2)
    # A product is an example's gradient over their number.
    n_examples = next(iter(examples.values())).left.shape[1]
    return n_examples * np.sqrt(np.asarray(total))


def _written_out(
    examples: Mapping[str, Factored], user: int
) -> Float[np.ndarray, "examples size"]:
    """The gradients of one user's examples, each as one row."""
    rows = [
        np.einsum("jr,jc->jrc", leaf.left[user], leaf.right[user]).reshape(
            leaf.left.shape[1], -1
        )
        for leaf in examples.values()
    ]
    return np.concatenate(rows, axis=1).astype(np.float64) * len(rows[0])


def _noisy(leaf: Factored, kept: Norms, sigma: Bounds, keys: Keys) -> Array:
    """The mean of the clipped gradients of a layer, with noise on all of it."""
    right = leaf.right * kept[..., None]
    mean = np.asarray(leaf.left.swapaxes(1, 2) @ right)
    noise = keys.normal(math.prod(leaf.shape)).reshape(mean.shape)
    noisy = mean + sigma[:, None, None] * noise
    return np.asarray(noisy, leaf.left.dtype)
