"""History from an item gradient: the sign of a raw update is the history.

A model that gives item i the probability q_i, with an item bias or a popularity, has

    g_i = q_i - x_i      the gradient of its logistic loss, x_i = 1 in the history

and 0 < q_i < 1, so g_i is negative exactly where x_i = 1: whoever sees g has x. The
same holds for the output bias of a softmax. Clipping scales g and keeps its signs.

The attacker knows the model, how long the history is, and what everyone else sent, and
ranks items by what a report adds to the model's own odds,

    log(q / (1 - q)) + log(Pr[report | x_i = 1] / Pr[report | x_i = 0])

then guesses as many items as the history has: recall and precision are one number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Bool, Float64

from tacit import check
from tacit.attacks.leaks import Histories
from tacit.attacks.leaks.finding import Attempt, Score, stated
from tacit.keys import Key, Keys
from tacit.mechanisms.clipping import clip_by_norm
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.one_bit import BEST_EPSILON, OneBit
from tacit.mechanisms.priv_unit import PrivUnit
from tacit.plans import Plan
from tacit.privacy.guarantees import local, summed, unprotected
from tacit.release import Cells, View
from tacit.results import standard_error
from tacit.tree import Tree

FOUND = "share of the history found"  # a score's name, as reports print it

Matrix = Float64[np.ndarray, "users items"]
Each = Float64[np.ndarray, "users 1"]


@dataclass(frozen=True)
class ItemGradient:
    """Guess a history from the gradient that its client sends in one round."""

    epsilons: tuple[float, ...] = (8.0, 1.0)
    clip: float = 3.0  # public; about the root of a short history
    delta: float = 1e-6
    name: str = "item_gradient"
    method: str | None = None
    question: str = (
        "The server gets a client's item gradient. Which items are in the history?"
    )

    def __post_init__(self) -> None:
        check.positive(clip=self.clip)
        for epsilon in self.epsilons:
            check.positive(epsilon=epsilon)

    def attack(self, histories: Histories, key: Key) -> tuple[Attempt, ...]:
        """Bare and clipped gradients, then each mechanism at each epsilon."""
        target = _Target.of(histories, clip=self.clip)
        plan = Plan(len(histories), channel="secure_sum", delta=self.delta)
        nothing = np.zeros(histories.shape)
        chance = float(target.found(nothing).mean())
        attempts = []
        for number, defense in enumerate(self._defenses(histories.shape[1])):
            found = target.found(defense.evidence(target, key.at(number)))
            score = Score(float(found.mean()), standard_error(found), chance)
            said = stated(
                plan,
                defense.cells(plan),
                what="item gradient of one round",
                seen_by="server",
                view=View.SERVER,
            )
            attempts.append(Attempt(defense.label, said, {FOUND: score}))
        return tuple(attempts)

    def _defenses(self, items: int) -> tuple[Defense, ...]:
        on = (self._protections(epsilon, items) for epsilon in self.epsilons)
        return (Bare(), Clipped(self.clip), *(d for some in on for d in some))

    def _protections(self, epsilon: float, items: int) -> tuple[Defense, ...]:
        noisy = GaussianSum.calibrated(self.clip, epsilon=epsilon, delta=self.delta)
        return (
            WholeVector(PrivUnit(epsilon, items, self.clip)),
            SomeBits(bits(epsilon, items=items)),
            NoisySum(noisy, f"secure_sum with noise, epsilon {epsilon:g}"),
        )


@dataclass(frozen=True, eq=False)
class _Target:
    """The users, the public model, and what the attacker knows besides."""

    histories: Histories
    shares: Float64[np.ndarray, "items"]  # q: the share of users who have each item
    kept: Each  # by how much clipping scales a gradient of this length

    @classmethod
    def of(cls, histories: Histories, *, clip: float) -> _Target:
        n_users = len(histories)
        # Laplace's rule: never 0 or 1, so that the odds are finite.
        shares = (histories.sum(axis=0) + 1.0) / (n_users + 2.0)
        lengths = histories.sum(axis=1, keepdims=True)
        kept = np.minimum(1.0, clip / np.sqrt(np.maximum(lengths, 1.0)))
        return cls(histories, shares, kept)

    @property
    def gradients(self) -> Matrix:
        return self.shares - self.histories

    def keys(self, key: Key) -> Keys:
        """One stream of random numbers per client."""
        return key.each(np.arange(len(self.histories)))

    def gaussian_evidence(self, reports: Matrix, *, variance: float | Each) -> Matrix:
        """The log-ratio where a report is `kept` times the gradient plus noise."""
        middle = self.kept * (self.shares - 0.5)
        return self.kept * (middle - reports) / variance

    def found(self, evidence: Matrix) -> Float64[np.ndarray, "users"]:
        """The share of each history among as many of the likeliest items."""
        prior = np.log(self.shares) - np.log1p(-self.shares)
        order = np.argsort(-(prior + evidence), axis=1, kind="stable")
        lengths = self.histories.sum(axis=1)
        is_guessed = np.arange(order.shape[1]) < lengths[:, None]
        hits = np.take_along_axis(self.histories, order, axis=1) * is_guessed
        return hits.sum(axis=1) / lengths


class Defense(Protocol):
    """A protection between a client's gradient and the server, or the lack of one."""

    @property
    def label(self) -> str: ...  # noqa: D102

    def evidence(self, target: _Target, key: Key) -> Matrix:
        """What each report tells of each item: the log-ratio of having it or not."""
        ...

    def cells(self, plan: Plan) -> Cells:
        """The guarantees that this defense gives, for each unit and view."""
        ...


@dataclass(frozen=True)
class Bare:
    """The raw gradient, without any protection."""

    label: str = "none: the raw gradient"

    def evidence(self, target: _Target, key: Key) -> Matrix:
        """Infinite log-ratios: the sign of the gradient is the history."""
        return np.where(target.gradients < 0, np.inf, -np.inf)

    def cells(self, plan: Plan) -> Cells:
        """No guarantee in any cell."""
        return unprotected("signs_remain", "the signs of the gradient are the history")


@dataclass(frozen=True)
class Clipped:
    """The gradient scaled to a public norm."""

    clip: float
    label: str = "clipping alone"

    def evidence(self, target: _Target, key: Key) -> Matrix:
        """Infinite log-ratios: scaling keeps the sign."""
        clipped = clip_by_norm(Tree.dense(gradient=target.gradients), self.clip)
        return np.where(clipped["gradient"] < 0, np.inf, -np.inf)

    def cells(self, plan: Plan) -> Cells:
        """No guarantee in any cell."""
        return unprotected(
            "signs_remain", "clipping bounds a contribution and keeps its signs"
        )


@dataclass(frozen=True)
class WholeVector:
    """A PrivUnitG report of the whole clipped gradient."""

    mechanism: PrivUnit

    @property
    def label(self) -> str:  # noqa: D102
        return f"PrivUnitG on the device, epsilon {self.mechanism.epsilon:g}"

    def evidence(self, target: _Target, key: Key) -> Matrix:
        """Log-ratios of a report that is the clipped gradient on average."""
        keys = target.keys(key)
        reports = self.mechanism.privatize(target.gradients, keys).astype(np.float64)
        # Treated as normal: exact odds would need every coordinate at once.
        variance = self.mechanism.variance(self.mechanism.radius)
        return target.gaussian_evidence(reports, variance=variance)

    def cells(self, plan: Plan) -> Cells:
        """Pure local privacy of one report, for the whole history."""
        return local(plan, self.mechanism.event, reason="PrivUnitG, one report")


@dataclass(frozen=True)
class SomeBits:
    """One-bit reports of a few coordinates, drawn by the client."""

    mechanism: OneBit

    @property
    def label(self) -> str:  # noqa: D102
        total, count = self.mechanism.total_epsilon, self.mechanism.count
        return f"one-bit reports ({count}) on the device, epsilon {total:g}"

    def evidence(self, target: _Target, key: Key) -> Matrix:
        """Exact log-ratios at the coordinates that are reported, zero at the others."""
        reports = self.mechanism.privatize(target.gradients, target.keys(key))
        at = reports.coordinates
        shares = target.shares[at]
        said = reports.bits == 1
        ratio = self._log_chance(said, shares - 1.0) - self._log_chance(said, shares)
        evidence = np.zeros(target.histories.shape)
        np.put_along_axis(evidence, at, ratio, axis=1)
        return evidence

    def cells(self, plan: Plan) -> Cells:
        """Pure local privacy of all bits together, for the whole history."""
        return local(plan, self.mechanism.event, reason="one-bit reports, composed")

    def _log_chance(
        self,
        said: Bool[np.ndarray, "users count"],
        values: Float64[np.ndarray, "users count"],
    ) -> Float64[np.ndarray, "users count"]:
        # Pr[1] = (1 + x (e^ε - 1) / (e^ε + 1)) / 2, and the fraction is tanh(ε / 2).
        lean = math.tanh(self.mechanism.epsilon / 2) * values
        return np.log(np.where(said, 1.0 + lean, 1.0 - lean) / 2)


@dataclass(frozen=True)
class NoisySum:
    """Noise on a trusted sum; the attacker knows every other contribution to it."""

    mechanism: GaussianSum
    label: str

    def evidence(self, target: _Target, key: Key) -> Matrix:
        """Log-ratios of the noisy sum less everyone else: the gradient plus noise."""
        bounded = self.mechanism.bound(Tree.dense(rest=target.gradients))
        # a row is a sum of its own, and its noise too
        reports = self.mechanism.add({"rest": bounded["rest"]}, key)["rest"]
        variance = self.mechanism.scale("rest") ** 2
        return target.gaussian_evidence(reports, variance=variance)

    def cells(self, plan: Plan) -> Cells:
        """Central privacy of one noisy sum, assuming a trusted aggregator."""
        reason = "Gaussian mechanism on a sum of clipped gradients"
        return summed(plan, self.mechanism.event, reason=reason)


def bits(epsilon: float, *, items: int) -> OneBit:
    """The number of one-bit reports that is best for this total epsilon."""
    count = min(max(1, round(epsilon / BEST_EPSILON)), items)
    return OneBit(epsilon / count, items, count)
