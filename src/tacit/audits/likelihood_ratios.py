"""Reports that clients protect themselves: likelihood ratios of extreme inputs.

Many clients hold the same input and report; as many hold another one. Whatever event
one looks for, it may be at most e^epsilon times as frequent for one as for the other.
Events are chosen on a pilot and counted on the rest, so looking for the loudest one
does not make it louder: every report that turned up if there are few, else regions of
the two directions in which reports lean.

A comparison exactly at its claim fails once in 30,000 audits (four standard errors).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from tacit.audits.checks import Check
from tacit.audits.lower_bounds import (
    ALARM,
    ERRORS,
    Counts,
    correlation_errors,
    log_ratio,
    mu_lower_bound,
)
from tacit.keys import Key, Keys

DRAWS = 200_000  # per input: an event of 1 % has its log ratio to 3 %
PILOT = 20_000  # more draws, to choose events on
_GLANCE = 2_000  # reports of an input, to see of how many kinds they are
_MOST_KINDS = 100  # beyond, reports count as continuous
_QUANTILES = np.linspace(0.02, 0.98, 25)  # of the pilot: edges of regions
_STEPS = np.arange(-4.0, 5.0)  # thresholds, around half of the claimed mu
_MOST_ERRORS = 4.5  # that a correlation may be away from zero

Said = Float64[np.ndarray, "clients numbers"]  # one report per row
Say = Callable[[Any, Keys], Said]  # what clients say that all hold this input
Inputs = Mapping[str, Any]
Along = Float64[np.ndarray, "n"]
Pair = tuple[tuple[str, str], Counts, Counts]  # two inputs; how often events happened


def check_epsilon(
    say: Say, inputs: Inputs, *, epsilon: float, key: Key, draws: int = DRAWS
) -> Check:
    """No event is louder than `epsilon` for any pair of the inputs."""
    said = _drawn(say, inputs, key, draws)
    pairs = _kinds(said) or _regions(said)
    louder = {
        names: float((ratio - ERRORS * error).max())
        for names, one, other in pairs
        for ratio, error in [log_ratio(one, other, draws=draws)]
    }
    where = max(louder, key=lambda names: louder[names])
    return Check.at_most(
        "epsilon of one report",
        max(0.0, louder[where]),
        claimed=epsilon,
        slack=0.0,
        detail=f"largest log ratio less {ERRORS:g} standard errors: {where[0]} against "
        f"{where[1]}; {draws} draws per input",
        alarm=3e-5,
    )


def check_mu(
    say: Say, inputs: Inputs, *, mu: float, key: Key, draws: int = DRAWS
) -> Check:
    """No pair of the inputs is easier to tell than two normals `mu` apart."""
    said = _drawn(say, inputs, key, draws)
    pairs = _pairs(said)
    found = [
        _mu_of(said[one], said[other], mu, alarm=ALARM / len(pairs))
        for one, other in pairs
    ]
    return Check.at_most(
        "mu of one report",
        max(found),
        claimed=mu,
        slack=0.0,
        detail=f"{len(_STEPS)} thresholds, Clopper-Pearson, false alarm {ALARM:g}; "
        f"{draws} draws per input",
        alarm=ALARM,
    )


def check_fresh(
    first: Float64[np.ndarray, "clients some"],
    second: Float64[np.ndarray, "clients others"],
) -> Check:
    """Two reports of the same clients and inputs have nothing else in common.

    Of reports that differ in length, what both have is compared.
    """
    common = min(first.shape[1], second.shape[1])
    first, second = first[:, :common], second[:, :common]
    varied = np.flatnonzero((first.std(axis=0) > 0) & (second.std(axis=0) > 0))
    found = [correlation_errors(first[:, c], second[:, c]) for c in varied]
    return Check.at_most(
        "correlation of a client's reports in two rounds, in standard errors",
        max(found, default=0.0),
        claimed=_MOST_ERRORS,
        slack=0.0,
        detail=f"largest of {len(found)} numbers of a report, {len(first)} clients; a "
        "key used in two rounds repeats its noise",
        alarm=7e-6 * max(len(found), 1),
    )


def _drawn(say: Say, inputs: Inputs, key: Key, draws: int) -> dict[str, Said]:
    """The pilot first, then the draws that count; a key of its own for each."""
    numbers = np.arange(PILOT + draws)
    return {
        name: say(value, key.at(number).each(numbers))
        for number, (name, value) in enumerate(inputs.items())
    }


def _kinds(said: Mapping[str, Said]) -> list[Pair]:
    """How often each report was given, if there are few kinds of them."""
    seen = np.concatenate([reports[:_GLANCE] for reports in said.values()])
    kinds = np.unique(seen, axis=0)
    if len(kinds) > _MOST_KINDS:
        return []
    counts = {
        name: np.array([(reports[PILOT:] == k).all(axis=1).sum() for k in kinds])
        for name, reports in said.items()
    }
    return [(names, counts[names[0]], counts[names[1]]) for names in _pairs(said)]


def _regions(said: Mapping[str, Said]) -> list[Pair]:
    """How often reports lie far along one input's mean and not along the other's."""
    means = {name: reports[:PILOT].mean(axis=0) for name, reports in said.items()}
    along = {(n, m): said[n] @ means[m] for n in said for m in said}

    def edges(one: str, other: str, mean: str) -> Along:
        pilot = [along[name, mean][:PILOT] for name in (one, other)]
        return np.quantile(pilot, _QUANTILES)

    def hits(name: str, one: str, other: str) -> Counts:
        reached = np.searchsorted(edges(one, other, one), along[name, one][PILOT:])
        passed = np.searchsorted(edges(one, other, other), along[name, other][PILOT:])
        return _corners(reached, passed)

    return [
        ((one, other), hits(one, one, other), hits(other, one, other))
        for one, other in _pairs(said)
    ]


def _corners(reached: Int64[np.ndarray, "n"], passed: Int64[np.ndarray, "n"]) -> Counts:
    """For every two edges: how often one was reached and the other not passed."""
    n = len(_QUANTILES) + 1
    table = np.bincount(reached * n + passed, minlength=n * n).reshape(n, n)
    return table[::-1].cumsum(axis=0)[::-1].cumsum(axis=1).ravel()


def _pairs(said: Mapping[str, Said]) -> list[tuple[str, str]]:
    return [*permutations(said, 2)]


def _mu_of(one: Said, other: Said, mu: float, *, alarm: float) -> float:
    """How well the direction between the pilots' means tells the two inputs apart."""
    direction = one[:PILOT].mean(axis=0) - other[:PILOT].mean(axis=0)
    scores = [said @ direction for said in (one, other)]
    middle, spread = scores[1][:PILOT].mean(), scores[1][:PILOT].std()
    present, absent = ((s[PILOT:] - middle) / max(spread, 1e-300) for s in scores)
    return mu_lower_bound(present, absent, mu / 2 + _STEPS, alarm=alarm)
