"""The noise that meets a target, for one Gaussian and for any family of events."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from tacit import check
from tacit.accounting import profiles
from tacit.accounting.decomposition import ZERO_OUT
from tacit.accounting.epsilon import GRID, epsilon
from tacit.errors import BadValue, Refused

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

_PRECISION = 1e-4  # of the noise found, relative to it
_ROUGH = 1e-3  # the grid of the first search: a tenth of the points
_NUDGE = 1.02  # ratio of the two noises between which the slope of epsilon is taken
_MOST_DOUBLINGS = 40  # 2**40 either way from 1: no mechanism has such noise


def gaussian_noise(target: float, *, delta: float) -> float:
    """The least noise multiplier of one Gaussian (Balle and Wang 2018).

    >>> round(gaussian_noise(1.0, delta=1e-5), 4)
    3.7306
    """
    check.positive(target=target, remedy="nothing but silence has epsilon 0")
    check.fraction(delta=delta, remedy="Gaussian noise has no pure epsilon")
    return profiles.gaussian_noise(target, delta=delta)


def gaussian_epsilon(noise_multiplier: float, *, delta: float, count: int = 1) -> float:
    """The exact epsilon of `count` Gaussians with this noise multiplier."""
    check.positive(noise_multiplier=noise_multiplier)
    check.fraction(delta=delta, remedy="Gaussian noise has no pure epsilon")
    check.count(count=count)
    single = noise_multiplier / math.sqrt(count)
    return profiles.gaussian_epsilon(single, delta=delta)


def clipped_noise(noise_multiplier: float, *, bits: float) -> float:
    """The noise on updates when one bit per client, for an adaptive clip, is paid too.

    `bits` is the noise on the sum of bits b - 1/2, so its multiplier is 2 bits. Both
    together cost what `noise_multiplier` says; the accountant sees only that.
    Source: Andrew et al. 2021, Theorem 1.
    """
    check.positive(noise_multiplier=noise_multiplier, bits=bits)
    left = noise_multiplier**-2 - (2.0 * bits) ** -2
    if left <= 0:
        raise BadValue(
            f"bits={bits} must be > {noise_multiplier / 2}, half the noise multiplier; "
            "less noise would spend more than the whole budget on the clip"
        )
    return float(left**-0.5)


def calibrate(
    make_event: Callable[[float], DpEvent],
    *,
    target: float,
    delta: float,
    adjacency: str = ZERO_OUT,
) -> float:
    """The noise for which `make_event(noise)` has epsilon `target`, and not more.

    More noise must mean less epsilon. The result is at most 1e-4 (relative) above the
    least noise that does, and its epsilon was computed and found within the target.

        calibrate(
            lambda z: SelfComposedDpEvent(
                PoissonSampledDpEvent(0.01, GaussianDpEvent(z)), 1000
            ),
            target=2.0,
            delta=1e-6,
        )
    """
    check.positive(target=target, remedy="leave it out to train without a target")

    def excess(noise: float, finest: float) -> float:
        found = epsilon(
            make_event(noise), delta=delta, adjacency=adjacency, finest=finest
        ).value
        # Without any epsilon: e^50 times too much, which no search comes near.
        return 50.0 if found is None else math.log(max(found, 1e-12) / target)

    # The coarse grid overstates epsilon a little. One Newton step in logarithms
    # corrects for that, so that the fine grid, which costs most, is asked only a few
    # times.
    rough = _search(lambda z: excess(z, _ROUGH), start=1.0, factor=2.0)
    slope = (excess(rough * _NUDGE, _ROUGH) - excess(rough, _ROUGH)) / math.log(_NUDGE)
    ahead = -excess(rough, GRID) / slope if slope < 0 else 0.0
    return _search(
        lambda z: excess(z, GRID),
        start=rough * math.exp(ahead + 0.4 * _PRECISION),
        factor=math.exp(0.8 * _PRECISION),
    )


def _search(excess: Callable[[float], float], *, start: float, factor: float) -> float:
    """The least noise with `excess <= 0`, to the precision, from above."""
    low, high, at = _bracket(excess, start, factor)
    while high > low * (1 + _PRECISION):
        middle = _between(low, high, at[low], at[high])
        at[middle] = excess(middle)
        low, high = (middle, high) if at[middle] > 0 else (low, middle)
    return high


def _bracket(
    excess: Callable[[float], float], start: float, factor: float
) -> tuple[float, float, dict[float, float]]:
    """Too little and enough noise, found by ever larger steps from `start`.

    Noise below `LEAST_NOISE` is not considered: it counts as none.
    """
    at = {start: excess(start)}
    low = high = start
    for _ in range(_MOST_DOUBLINGS):
        if at[low] > 0 >= at[high]:
            return low, high, at
        if at[high] > 0:
            low, high = high, high * factor
            at[high] = excess(high)
        else:
            low, high = low / factor, low
            at[low] = excess(low)
        factor **= 2 if factor < 2 else 1  # from a good guess, small steps come first
    raise Refused(
        f"no noise between {low:.3g} and {high:.3g} meets the target; "
        "does more noise lower this event's epsilon?"
    )


def _between(low: float, high: float, too_much: float, too_little: float) -> float:
    """The next noise to try: where a straight line in logarithms crosses the target.

    Aimed past the crossing by half the precision on the side that is further away, so
    that the bracket closes from both sides.
    """
    width = math.log(high / low)
    share = too_much / (too_much - too_little)
    nudge = 0.4 * _PRECISION / width
    share += nudge if share < 0.5 else -nudge
    margin = min(0.5, 0.3 * _PRECISION / width)
    return low * math.exp(width * min(max(share, margin), 1 - margin))
