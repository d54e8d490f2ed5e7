"""Noisy sums: the bound, the noise and what can be told, held against the claims.

An honest method fails one of these checks once in about 400: the variance in 1e-3, the
law in 1e-4, the correlation in 1e-5 per pair of rounds, mu in 1e-3. An audit asks again
with fresh draws before it says so, which makes that once in some 100,000.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float64

from tacit.audits.canary_run import Observed, Round, Tick, observe
from tacit.audits.channel_and_server_noise import check_same_sum
from tacit.audits.checks import Check
from tacit.audits.empty_report import check_empty_report
from tacit.audits.lower_bounds import (
    ALARM,
    correlation_errors,
    epsilon_of,
    mu_lower_bound,
    normal_p_value,
    variance_interval,
)
from tacit.audits.small_world import small_data
from tacit.errors import Refused
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT
from tacit.mechanisms.clipping import SLACK
from tacit.method import Method
from tacit.plans import Plan
from tacit.release import EVERYONE

LEAST_P = 1e-4  # of the Kolmogorov-Smirnov test; its chance of a false alarm
LEAST_FREE = 50  # numbers of a kind of round with noise alone
MOST_ERRORS = 4.5  # that a correlation may be away from zero
_FEW = 20  # items, where any number does
_STEPS = np.arange(-4.0, 5.0)  # thresholds, around half of the claimed mu
_SAME = 1e-9  # what rounding may change, relatively


def check_sums(
    method: Method,
    plan: Plan,
    *,
    mu: float,
    delta: float,
    key: Key,
    group: str = EVERYONE,
    tick: Tick = lambda: None,
) -> Iterator[Check]:
    """Every check of the noisy sums of `plan`, which claim `mu` together.

    All of the plan's population are canaries.
    """
    if is_bare(method, plan):
        yield _no_noise(mu)
        return  # there is nothing to look at
    seen = observe(method, plan, key=key, group=group, tick=tick)
    yield check_ledger(seen, mu=mu)
    yield check_contributions(seen)
    yield from check_noise(seen)
    yield from check_canaries(seen, mu=mu, delta=delta)
    yield from check_bits(seen)
    yield check_empty_report(method, plan)
    yield check_same_sum(method, plan)
    tick()


def check_ledger(seen: Observed, *, mu: float) -> Check:
    """The releases promise no more than the objects that add the noise."""
    stated = math.sqrt(sum(round_.multiplier**-2 for round_ in seen.rounds))
    return Check.at_most(
        "mu of the objects that add the noise",
        stated,
        claimed=mu,
        slack=_SAME * mu,
        detail="claimed: the events that the ledger reads; measured: the events of the "
        "objects themselves, all rounds",
    )


def check_contributions(seen: Observed) -> Check:
    """Nobody adds more than the sensitivity, whatever the raw update."""
    probes = sum(round_.probes.shape[0] for round_ in seen.rounds)
    return Check.at_most(
        "largest contribution over the sensitivity",
        max(round_.largest for round_ in seen.rounds),
        claimed=1.0,
        slack=SLACK,
        detail=f"{len(seen.present)} canaries and {probes} probes, all leaves jointly, "
        "in units of the stated noise",
    )


def check_noise(seen: Observed) -> Iterator[Check]:
    """Scale, law and independence of what is left where no canary is.

    Scale and law for every kind of round: few numbers in one must not hide in another.
    """
    kinds: dict[str, list[Round]] = {}
    for round_ in seen.rounds:
        kinds.setdefault(repr(round_.layout), []).append(round_)
    for number, kind in enumerate(kinds.values()):
        noise = _enough(np.concatenate([round_.noise for round_ in kind]))
        of = "" if len(kinds) == 1 else f", rounds of kind {number}"
        yield _check_variance(noise, of)
        yield _check_law(noise, of)
    if len(seen.rounds) > 1:
        yield _check_rounds(seen)


def check_canaries(seen: Observed, *, mu: float, delta: float) -> Iterator[Check]:
    """Whoever sees the totals cannot tell canaries better than the events allow."""
    scores, present = seen.scores, seen.present
    found = mu_lower_bound(scores[present], scores[~present], mu / 2 + _STEPS)
    rounds = len(seen.rounds)
    yield Check.at_most(
        f"mu of {rounds} rounds",
        found,
        claimed=mu,
        slack=0.0,
        detail=f"{len(present)} canaries, a fair coin each; {len(_STEPS)} thresholds, "
        f"Clopper-Pearson, false alarm {ALARM:g}",
        alarm=ALARM,
    )
    yield Check.at_most(
        f"epsilon of {rounds} rounds, delta {delta:g}",
        epsilon_of(found, delta=delta),
        claimed=epsilon_of(mu, delta=delta),
        slack=0.0,
        detail="the same bound as epsilon; claimed: for someone who takes part in all "
        "rounds of the audit, not of a run",
        alarm=ALARM,
    )


def check_bits(seen: Observed) -> Iterator[Check]:
    """A clip bit tells of the norm before the clip: huge canaries are not within.

    A canary for which a small model has no coordinate left says nothing, and is within.
    """
    rounds = [round_ for round_ in seen.rounds if BIT in round_.layout.slots]
    if not rounds:
        return
    within = [_says_within(r) & r.has_update for r in rounds]
    yield Check.at_most(
        "canaries whose bit says within the clip",
        float(sum(one.sum() for one in within)),
        claimed=0.0,
        slack=0.0,
        detail="each is a thousand clips long; a bit computed after the clip is "
        "always 1, and the clip falls whatever happens",
    )


def _says_within(round_: Round) -> Bool[np.ndarray, "canaries"]:
    return round_.contributions[:, round_.leaf(BIT)].toarray()[:, 0] >= 0


def is_bare(method: Method, plan: Plan) -> bool:
    """Whether the channel is given no noise at all."""
    server = method.start(plan, small_data(_FEW).catalog, Key.from_seed(0))
    return method.noise(method.broadcast(server), plan) is None


def _no_noise(mu: float) -> Check:
    claimed = "noise is claimed, and the channel is given none to add"
    return Check("mu of the objects that add the noise", mu, math.inf, False, claimed)


def _enough(noise: Float64[np.ndarray, "free"]) -> Float64[np.ndarray, "free"]:
    if len(noise) < LEAST_FREE:
        raise Refused(
            f"canaries touch all but {len(noise)} numbers of the sums; the audit needs "
            f"{LEAST_FREE} with nothing but noise"
        )
    return noise


def _check_variance(noise: Float64[np.ndarray, "n"], of: str) -> Check:
    low, high = variance_interval(len(noise))
    measured = float((noise**2).mean())
    return Check(
        f"noise variance over the claimed one{of}",
        1.0,
        measured,
        low <= measured <= high,
        f"{len(noise)} draws; chi-square allows {low:.4f} to {high:.4f}, false alarm "
        f"{ALARM:g}",
        ALARM,
    )


def _check_law(noise: Float64[np.ndarray, "n"], of: str) -> Check:
    p = normal_p_value(noise)
    return Check(
        f"p-value of normal noise, at least{of}",
        LEAST_P,
        p,
        p > LEAST_P,
        f"Kolmogorov-Smirnov against the claimed normal, false alarm {LEAST_P:g}",
        LEAST_P,
    )


def _check_rounds(seen: Observed) -> Check:
    pairs = [*combinations(seen.rounds, 2)]
    found = [correlation_errors(*_common_noise(one, other)) for one, other in pairs]
    return Check.at_most(
        "noise correlation between rounds, in standard errors",
        max(found),
        claimed=MOST_ERRORS,
        slack=0.0,
        detail=f"largest of {len(pairs)} pairs of rounds, leaf by leaf",
        alarm=7e-6 * len(pairs),  # two tails of a normal beyond 4.5 deviations
    )


def _common_noise(
    one: Round, other: Round
) -> tuple[Float64[np.ndarray, "n"], Float64[np.ndarray, "n"]]:
    """The noise of two rounds at the coordinates that are free in both."""
    pairs = [np.zeros((2, 0))]
    for name in one.layout.slots.keys() & other.layout.slots.keys():
        here, there = one.leaf(name), other.leaf(name)
        n = min(here.stop - here.start, there.stop - there.start)
        free = (one.hits[here][:n] == 0) & (other.hits[there][:n] == 0)
        pairs.append(np.stack([one.total[here][:n], other.total[there][:n]])[:, free])
    first, second = np.concatenate(pairs, axis=1)
    return first, second
