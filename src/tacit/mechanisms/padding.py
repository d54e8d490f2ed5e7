"""Random padding: each interaction is replaced by a public one with probability p.

Whoever looks for one interaction finds it with probability 1 - p only, which amplifies
the *item-level* guarantee of whatever is computed from the padded history:

    eps = log(1 + (1 - p) (e^eps0 - 1)),  delta = (1 - p) delta0

A whole history cannot hide behind the coins of its interactions: at the user level the
guarantee stays (eps0, delta0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool
from numpy.typing import ArrayLike

from tacit import check
from tacit.errors import Refused
from tacit.keys import Keys

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


@dataclass(frozen=True)
class Padding:
    """Replaces each interaction by a public one with this probability.

    Guarantee: amplifies the item-level guarantee of one release, under replace_one;
        the user level keeps the release's own.
    Assumes: coins are fresh for every release, the replacement is public, and the
        release protects any exchange of histories (so also that of an interaction by
        the replacement).
    Source: Balle, Barthe and Gaboardi 2018, Theorem 10; Liu et al. 2022, 3.2.3.
    """

    probability: float

    def __post_init__(self) -> None:
        check.fraction(probability=self.probability, remedy="for none, do not pad")

    def pad(self, lengths: ArrayLike, keys: Keys) -> Bool[np.ndarray, "total"]:
        """Which interactions to replace, for histories of these lengths, end to end."""
        # The coins are the client's own; which of them fell is never told.
        return keys.uniform_ragged(lengths) < self.probability

    def inner_epsilon(self, epsilon: float) -> float:
        """The eps0 that gives `epsilon` at the item level."""
        check.positive(epsilon=epsilon)
        p = self.probability
        return epsilon + math.log1p(-p * math.exp(-epsilon)) - math.log1p(-p)

    def inner_delta(self, delta: float) -> float:
        """The delta0 that gives `delta` at the item level."""
        check.not_negative(delta=delta)
        inner = delta / (1.0 - self.probability)
        if inner:
            check.fraction(delta0=inner, remedy="lower delta or pad less")
        return inner

    def item_epsilon(self, epsilon: float) -> float:
        """The item-level epsilon of a release that has `epsilon` for the whole user."""
        check.positive(epsilon=epsilon)
        # log(1 + (1 - p)(e^eps - 1)), written so that a large epsilon does not overflow
        p = self.probability
        return epsilon + math.log1p(-p * -math.expm1(-epsilon))

    def item_event(self, event: DpEvent) -> DpEvent:
        """The event for one interaction, of a release with this event."""
        from tacit.accounting.dp_events import GaussianDpEvent
        from tacit.accounting.events import PaddedDpEvent, PureDpEvent, pure_local

        if isinstance(event, GaussianDpEvent):
            return PaddedDpEvent(self.probability, event)
        if isinstance(event, PureDpEvent):
            return pure_local(self.item_epsilon(event.epsilon))
        raise Refused(
            f"padding amplifies Gaussian and pure events, not {type(event).__name__}; "
            "keep the event of the release itself"
        )

    def user_event(self, event: DpEvent) -> DpEvent:
        """The event for a whole history: the release's own, padding or not."""
        return event
