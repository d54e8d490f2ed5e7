"""Many draws of the noise itself: repeats, dependence at any lag, tails, their grid.

The object that adds the noise adds it to zeros, far more of them than an update has: of
every leaf 2¹⁷ under each of two keys; of one leaf more than 2²⁰, which several streams
fill; and as whole numbers, the way a release has them. All of it must look like
independent draws of the claimed normal:

    scale, law   chi-square and Kolmogorov-Smirnov
    tails        how many lie beyond 3, 4 and 5 deviations: exact binomial
    lags         the correlation of the draws, and of their sizes, with themselves at
                 every lag that leaves 2¹⁴ pairs; leaves and keys stand in one row, so
                 that what they share shows as well
    grid         double precision hardly ever repeats a draw; single precision does some
                 hundred times, half precision nearly always

All tests together fail an honest mechanism with probability 3e-7: 1e-7 each for the
law, the draws' correlation and that of their sizes. A stream that shares 1 draw in 30
is seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtr
from scipy.stats import binom, chi2, kstest, norm

from tacit.audits.checks import Check
from tacit.audits.lying_reports import EXACT, FLOATING, contexts, is_exact
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT
from tacit.mechanisms.clipping import SLACK
from tacit.mechanisms.sum_mechanism import SumMechanism
from tacit.method import Method
from tacit.plans import Plan
from tacit.transport.channels import RoundContext
from tacit.transport.exact_total import exact_total
from tacit.transport.messages import Layout, Slot

ALARM = 1e-7  # of one kind of test, over all that is looked at
EACH = 2**17  # draws of a leaf under one key: four blocks of 32,768
LONG = 2**20 + 2**19  # of one leaf: two streams, both from the compiled generator
_KEYS, _LEAVES = 2, 2  # two of each: what they share shows at a lag
_PAIRS = 2**14  # of draws at a lag, at the least
_TAILS = (3.0, 4.0, 5.0)
_REPEATS = 2  # of double precision that chance may bring, once in 1e15 audits
_STEPS = 2.0**16  # whole steps of a bound, as in `tacit.exact_sum`

Draws = Float64[np.ndarray, "draws"]


@dataclass(frozen=True, eq=False)
class _Row:
    """Draws in units of the claimed deviation, and where they come from."""

    where: str
    draws: Draws
    path: str


def check_draws(method: Method, plan: Plan, *, key: Key) -> Iterator[Check]:
    """Every check of the draws of the mechanisms of `plan`."""
    rows = [
        row
        for number, context in enumerate(contexts(method, plan, key.at("kinds")))
        for row in _rows(context, key.at("draws", number), is_first=number == 0)
    ]
    yield _check_law(rows)
    yield _check_lags(rows)
    yield _check_repeats([row for row in rows if row.path == FLOATING])


def _rows(context: RoundContext, key: Key, *, is_first: bool) -> Iterator[_Row]:
    mechanism, slots = context.mechanism, [*context.layout.slots]
    assert mechanism is not None
    names = [n for i, n in enumerate(slots) if i < _LEAVES or n == BIT]
    keys = [key.at("key", i) for i in range(_KEYS)]
    drawn = [_drawn(mechanism, names, EACH, one) for one in keys]
    yield _Row("simulation", np.concatenate(drawn), FLOATING)
    if is_first:
        long = _drawn(mechanism, names[:1], LONG, key.at("long"))
        yield _Row("a long leaf", long, FLOATING)
    if is_exact(context):
        whole = [_released(mechanism, names, one.secret_of()) for one in keys]
        yield _Row("release", np.concatenate(whole), EXACT)


def _drawn(mechanism: SumMechanism, names: list[str], n: int, key: Key) -> Draws:
    noise = mechanism.add({name: np.zeros(n) for name in names}, key)
    return np.concatenate([noise[n] / mechanism.scale(n) for n in names])


def _released(mechanism: SumMechanism, names: list[str], secret: bytes) -> Draws:
    """Noise as a release draws it, over the deviation that follows from the bound."""
    layout = Layout({name: Slot("float64", (EACH,)) for name in names})
    total = exact_total([], mechanism, layout, secret)
    parts = mechanism.bounded(names)  # type: ignore[attr-defined]
    found = []
    for part in parts:
        steps = 2.0 ** math.floor(math.log2(_STEPS / part.bound))
        c, d = steps * part.bound, EACH * len(part.leaves)
        limit = math.floor(c * c + d / 4 + c + math.sqrt(d) / 2)
        if part.has_smaller:
            limit = math.floor((c * (1 + SLACK)) ** 2)
        deviation = part.deviation / part.bound * math.sqrt(limit) / steps
        found += [total[name] / deviation for name in part.leaves]
    return np.concatenate(found)


# --- Scale, law and tails -------------------------------------------------------------


def _check_law(rows: list[_Row]) -> Check:
    chances = {
        f"{test}, {row.where}": chance
        for row in rows
        for test, chance in _chances(row.draws).items()
    }
    worst = min(chances, key=lambda name: chances[name])
    each = ALARM / len(chances)
    return Check(
        "p-value of scale, law and tails of many draws, at least",
        each,
        chances[worst],
        chances[worst] > each,
        f"{sum(len(row.draws) for row in rows)} draws, {len(chances)} tests; least: "
        f"{worst}; false alarm {ALARM:g}",
        ALARM,
    )


def _chances(draws: Draws) -> dict[str, float]:
    n, square = len(draws), float((draws**2).sum())
    if not math.isfinite(square):
        return {"not finite": 0.0}
    found = {
        "scale": 2 * float(min(chi2.cdf(square, n), chi2.sf(square, n))),
        "law": float(kstest(draws, "norm", method="asymp").pvalue),
    }
    sizes = np.abs(draws)
    for tail in _TAILS:
        beyond, p = int((sizes > tail).sum()), 2 * float(ndtr(-tail))
        below, above = binom.cdf(beyond, n, p), binom.sf(beyond - 1, n, p)
        found[f"beyond {tail:g} deviations"] = 2 * float(min(below, above))
    return found


# --- Lags -----------------------------------------------------------------------------


def _check_lags(rows: list[_Row]) -> Check:
    alarm = ALARM / len(rows)
    found = {
        (row.where, of): largest_at_a_lag(values, alarm)
        for row in rows
        for of, values in _kinds(row)
    }
    where = max(found, key=lambda name: found[name][0])
    ratio, lag = found[where]
    lags = sum(len(row.draws) - _PAIRS for row in rows)
    return Check.at_most(
        "correlation of draws at any lag, over what chance allows",
        ratio,
        claimed=1.0,
        slack=0.0,
        detail=f"{lags} lags, draws and their sizes; largest: {where[1]} of "
        f"{where[0]} at lag {lag}; false alarm {2 * ALARM:g}",
        alarm=2 * ALARM,
    )


def _kinds(row: _Row) -> Iterator[tuple[str, Draws]]:
    """The draws, and their sizes where there are not too many."""
    yield "draws", row.draws
    if len(row.draws) < LONG:
        yield "sizes", np.abs(row.draws)


def largest_at_a_lag(draws: Draws, alarm: float) -> tuple[float, int]:
    """The largest correlation at a lag, over its bound at this alarm, and the lag."""
    n = len(draws)
    spread = draws - draws.mean()
    deviation = float(spread.std())
    if not deviation or not math.isfinite(deviation):
        return math.inf, 0
    # Twice as long, so that no product wraps around; all lags cost n log n.
    padded = next_fast_len(2 * n, real=True)
    power = np.abs(rfft(spread / deviation, padded)) ** 2
    lags = np.arange(1, n - _PAIRS + 1)
    products = irfft(power, padded)[lags]
    errors = np.abs(products) / np.sqrt(n - lags)
    worst = int(errors.argmax())
    most = float(norm.isf(alarm / (2 * len(lags))))
    return float(errors[worst]) / most, int(lags[worst])


# --- Grid -----------------------------------------------------------------------------


def _check_repeats(rows: list[_Row]) -> Check:
    repeats = [len(row.draws) - len(np.unique(row.draws)) for row in rows]
    return Check.at_most(
        "draws that repeat another one",
        float(max(repeats)),
        claimed=float(_REPEATS),
        slack=0.0,
        detail=f"of {max(len(row.draws) for row in rows)} in double precision; noise "
        "of fewer bits lies on a grid that shows",
        alarm=1e-15,
    )
