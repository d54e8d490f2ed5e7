"""What somebody sees who knows the cohorts: participations are counted, not sampled.

Amplification by sampling holds for those who see models only (the `release` view). The
server sees who took part, so a user who did n times has released n Gaussians.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit import check
from tacit.accounting.calibration import gaussian_noise
from tacit.accounting.decomposition import REPLACE_ONE, ZERO_OUT, distance
from tacit.accounting.profiles import gaussian_delta

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


def server_view(noise_multiplier: float, participations: int) -> DpEvent:
    """The event of a user who takes part `participations` times, as the server sees it.

    Assumes: secure aggregation, and noise the server cannot subtract (distributed, or
    added in an enclave). Otherwise the server view has no guarantee.
    """
    from tacit.accounting.dp_events import GaussianDpEvent, SelfComposedDpEvent

    check.positive(noise_multiplier=noise_multiplier)
    check.count(participations=participations)
    return SelfComposedDpEvent(GaussianDpEvent(noise_multiplier), participations)


def allowed_participations(
    noise_multiplier: float,
    *,
    target: float,
    delta: float,
    adjacency: str = ZERO_OUT,
) -> int:
    """How often a user may take part before `target` is passed; a client's filter.

    >>> allowed_participations(5.0, target=4.0, delta=1e-6)
    17
    """
    check.positive(noise_multiplier=noise_multiplier)
    check.one_of((ZERO_OUT, REPLACE_ONE), adjacency=adjacency)
    single = noise_multiplier / distance(adjacency)
    n = math.floor((single / gaussian_noise(target, delta=delta)) ** 2)
    while n > 0 and not _holds(single / math.sqrt(n), target=target, delta=delta):
        n -= 1  # the root was rounded the wrong way
    return n


def _holds(noise_multiplier: float, *, target: float, delta: float) -> bool:
    reached = gaussian_delta(np.array([target]), noise_multiplier=noise_multiplier)
    return bool(reached[0] <= delta)
