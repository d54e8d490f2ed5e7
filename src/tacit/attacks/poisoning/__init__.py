"""Clients that lie: what they send, how it gets among honest reports, what it does.

    honest reports -> Infiltrated, where an Attack replaces some -> channel -> server

    channel = Infiltrated(Direct(), Scaled(-10.0), share=0.1)
    Simulation(method, plan, …, channel=channel)

An attacker is a client that ignores `local_update` and sends whatever passes the layout
of its method's reports. Attackers see all honest reports of the round and agree among
themselves; they cannot change what others send, nor break a trusted sum.

What belongs here: attacks on training and the exposure of an item. What does not:
attacks on privacy (`leaks`), defenses (`aggregation`), figures of a method
(`reproduction`).
"""

from tacit.attacks.poisoning.attacks import (
    Attack,
    EveryGroup,
    Gaussian,
    Promote,
    Scaled,
)
from tacit.attacks.poisoning.exposure import exposure
from tacit.attacks.poisoning.infiltrated import Infiltrated

__all__ = [
    "Attack",
    "EveryGroup",
    "Gaussian",
    "Infiltrated",
    "Promote",
    "Scaled",
    "exposure",
]
