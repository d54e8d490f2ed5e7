"""Membership by loss: did this user take part in training?

An item-item model is a function of G = sum of x x' / |x|² over the users who trained
it. From G follow weights that reconstruct a history from itself (EASE, Steck 2019):

    P = (G + ridge)⁻¹,   B_ij = -P_ij / P_jj,   B_ii = 0,   loss(x) = |x - x B|² / |x|²

A model with about as many items as users remembers those it has seen, so their loss is
smaller. The attacker holds the model and a user's history, and guesses from the loss.

Everyone trains by a fair coin. x x' / |x|² has norm 1, so a user moves G by at most
1, and noise on G is a Gaussian mechanism whose trade-off between right and wrong
alarms is that of N(0, 1) against N(1/z, 1) (Dong, Roth and Su 2022). No attack passes

    AUC  Phi(1 / (z sqrt 2))        right alarms at a wrong  Phi(1 / z + Phi⁻¹(a))
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from tacit import check
from tacit.attacks.leaks import Histories
from tacit.attacks.leaks.finding import Attempt, Score, stated
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum
from tacit.plans import Plan
from tacit.privacy.guarantees import summed, unprotected
from tacit.release import View
from tacit.results import standard_error
from tacit.statement import Statement

AUC, CAUGHT = "AUC", "found at 1 % false alarms"
FALSE_ALARMS = 0.01  # share of outsiders taken for members

Gram = Float64[np.ndarray, "items items"]
Units = Float64[np.ndarray, "users items"]
Losses = Float64[np.ndarray, "users"]


@dataclass(frozen=True)
class MembershipByLoss:
    """Guess who trained an item-item model from how well it knows their history."""

    epsilons: tuple[float, ...] = (8.0, 1.0)
    delta: float = 1e-6
    items: int = 200  # the most popular ones
    ridge: float = 0.3  # small: a model that remembers is the easiest to attack
    repeats: int = 10  # training sets, each with its own coins and noise
    name: str = "membership_by_loss"
    method: str | None = None
    question: str = (
        "A participant holds the model and somebody's history. Did that user train?"
    )

    def __post_init__(self) -> None:
        check.positive(ridge=self.ridge)
        check.at_least(2, items=self.items, repeats=self.repeats)
        for epsilon in self.epsilons:
            check.positive(epsilon=epsilon)

    def attack(self, histories: Histories, key: Key) -> tuple[Attempt, ...]:
        """An attack on exact sums, then one on noisy sums for each epsilon."""
        check.at_least(20, n_users=len(histories), remedy="one of them must be out")
        units = _units(histories, items=self.items)
        plan = Plan(len(histories), channel="secure_sum", delta=self.delta)
        noises = [None, *map(self._noise, self.epsilons)]
        return tuple(self._attempt(units, noise, plan, key) for noise in noises)

    def _noise(self, epsilon: float) -> GaussianSum:
        return GaussianSum.calibrated(1.0, epsilon=epsilon, delta=self.delta)

    def _attempt(
        self, units: Units, noise: GaussianSum | None, plan: Plan, key: Key
    ) -> Attempt:
        runs = range(self.repeats)
        found = np.array([self._once(units, noise, key.at(run)) for run in runs])
        said = _statement(plan, noise)
        label = "none: exact item-item sums"
        if noise is not None:
            label = f"noisy item-item sums, epsilon {said.epsilon:.2g}"
        return Attempt(label, said, _scores(found, noise))

    def _once(
        self, units: Units, noise: GaussianSum | None, key: Key
    ) -> tuple[float, float]:
        """Train on a random half, then attack everyone."""
        is_member = key.at("coins").generator().random(len(units)) < 0.5
        gram = units[is_member].T @ units[is_member]
        if noise is not None:
            gram = _noisy(gram, noise, key.at("noise"))
        losses = reconstruction_loss(units, gram, ridge=self.ridge)
        return auc(-losses, is_member), caught(-losses, is_member)


def reconstruction_loss(units: Units, gram: Gram, *, ridge: float) -> Losses:
    """How badly the model of `gram` reconstructs each history from itself."""
    sizes, axes = np.linalg.eigh(gram)
    # Noise makes some < 0.
    precision = (axes / (np.maximum(sizes, 0.0) + ridge)) @ axes.T
    weights = -precision / np.diag(precision)
    np.fill_diagonal(weights, 0.0)
    return np.square(units - units @ weights).sum(axis=1)


def auc(scores: Losses, is_member: Bool[np.ndarray, "users"]) -> float:
    """How often a member scores above an outsider; ties count one half."""
    members, outsiders = int(is_member.sum()), int((~is_member).sum())
    # The Mann-Whitney U statistic: pairs in which the member is ahead.
    pairs = rankdata(scores)[is_member].sum() - members * (members + 1) / 2
    return float(pairs / (members * outsiders))


def caught(
    scores: Losses,
    is_member: Bool[np.ndarray, "users"],
    *,
    false_alarms: float = FALSE_ALARMS,
) -> float:
    """The share of members above all but this share of the outsiders."""
    outsiders = np.sort(scores[~is_member])
    threshold = outsiders[
        len(outsiders) - 1 - math.floor(false_alarms * len(outsiders))
    ]
    return float((scores[is_member] > threshold).mean())


def _units(histories: Histories, *, items: int) -> Float64[np.ndarray, "users kept"]:
    """Histories over the most popular items, each of norm 1 or empty."""
    popular = np.argsort(-histories.sum(axis=0), kind="stable")[:items]
    kept = histories[:, np.sort(popular)].astype(np.float64)
    return kept / np.sqrt(np.maximum(kept.sum(axis=1, keepdims=True), 1.0))


def _noisy(gram: Gram, noise: GaussianSum, key: Key) -> Gram:
    """Noise on the upper triangle, mirrored; the lower one tells nothing more."""
    upper = np.triu_indices(len(gram))
    made = np.zeros_like(gram)
    made[upper] = noise.add({"gram": gram[upper]}, key)["gram"]
    return made + np.triu(made, 1).T


def _statement(plan: Plan, noise: GaussianSum | None) -> Statement:
    if noise is None:
        cells = unprotected("exact_sums")
    else:
        reason = "Gaussian mechanism on a sum of matrices of norm at most 1"
        cells = summed(plan, noise.event, reason=reason)
    what, seen_by = "item-item model", "everyone"
    return stated(plan, cells, what=what, seen_by=seen_by, view=View.RELEASE)


def _scores(
    found: Float64[np.ndarray, "repeats 2"], noise: GaussianSum | None
) -> dict[str, Score]:
    """Means over repeats, beside what guessing gets and what no attack can pass."""
    by_chance = {AUC: 0.5, CAUGHT: FALSE_ALARMS}
    most = {} if noise is None else ceilings(noise.noise_multiplier)
    return {
        name: Score(float(v.mean()), standard_error(v), chance, most.get(name))
        for (name, chance), v in zip(by_chance.items(), found.T, strict=True)
    }


def ceilings(noise_multiplier: float) -> dict[str, float]:
    """What no attack on one Gaussian release can pass.

    >>> {name: round(most, 3) for name, most in ceilings(1.0).items()}
    {'AUC': 0.76, 'found at 1 % false alarms': 0.092}
    """
    apart = 1.0 / noise_multiplier
    return {
        AUC: float(ndtr(apart / math.sqrt(2))),
        CAUGHT: float(ndtr(apart + ndtri(FALSE_ALARMS))),
    }
