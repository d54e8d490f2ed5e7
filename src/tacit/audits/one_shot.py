"""An estimate to watch a run by: how much of a few canaries is in what is learnt.

Each canary is a unit vector. Of one that took no part, the cosine to what a round adds
to the model is about N(0, 1/dimension); how far those of canaries that did lie above it
estimates mu. Its interval follows from how much the canaries differ: the length of the
vector of all rounds' shifts is no further from the true one than their errors are long,
whose square is at most chi-squared times the largest variance. It takes the canaries'
scores for normal, and bounds nothing: monitoring, never a guarantee.

Source: Andrew, Kairouz, Oh, Oprea, McMahan and Suriyakumar 2024.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool
from scipy.stats import chi2

from tacit.audits.canary_run import Round, Tick, observe, squares
from tacit.audits.checks import Estimate
from tacit.audits.lower_bounds import epsilon_of
from tacit.audits.small_world import in_one_group
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.release import EVERYONE

CANARIES = 50  # few: a run that is watched may not be made of canaries
_SURE = 0.95


def one_shot(
    method: Method,
    plan: Plan,
    *,
    mu: float,
    delta: float,
    key: Key,
    group: str = EVERYONE,
    tick: Tick = lambda: None,
) -> Estimate:
    """The epsilon that a few canaries in one run suggest, beside the claimed `mu`'s."""
    few = in_one_group(plan, CANARIES)
    seen = observe(method, few, key=key, group=group, tick=tick)
    found = [_shift(round_, seen.present) for round_ in seen.rounds]
    # A round of which no canary says anything alone is not looked at.
    shifts, errors = np.array([one for one in found if one] or [(0.0, 0.0)]).T
    # mu² adds over rounds; squares keep their sign, so that chance can cancel.
    middle = math.sqrt(max(0.0, float((shifts * np.abs(shifts)).sum())))
    away = float(errors.max()) * math.sqrt(chi2.ppf(_SURE, len(shifts)))
    return Estimate(
        f"one-shot canary estimate of epsilon, delta {delta:g}",
        claimed=epsilon_of(mu, delta=delta),
        estimated=epsilon_of(middle, delta=delta),
        low=epsilon_of(max(0.0, middle - away), delta=delta),
        high=epsilon_of(float(np.linalg.norm(shifts)) + away, delta=delta),
        canaries=int(seen.present.sum()),
    )


def _shift(
    round_: Round, present: Bool[np.ndarray, "canaries"]
) -> tuple[float, float] | None:
    """How far the cosines of those present lie above chance, and the standard error.

    Only what no other canary says is looked at, and counts for the whole.
    """
    whole, own = squares(round_.contributions), squares(round_.own)
    rows = np.flatnonzero(present & (own > 0))
    if len(rows) < 2:
        return None
    along = round_.own[rows] @ round_.total / np.sqrt(own[rows])
    along *= np.sqrt(whole[rows] / own[rows])  # as if no coordinate were shared
    spread = float(np.linalg.norm(round_.total)) / math.sqrt(len(round_.total))
    error = float(along.std(ddof=1)) / math.sqrt(len(rows))
    return float(along.mean()) / spread, error / spread
