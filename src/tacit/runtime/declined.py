"""Refusals of a node that its server may hear: no user's history has a part in them.

Whatever else goes wrong on a node stays there, because its words, or a digest in them,
may tell of users.
"""

from __future__ import annotations

from typing import ClassVar

from tacit.errors import Refused


class Declined(Refused):
    """A refusal by the operator's own decision; `told` is all that leaves the node."""

    told: ClassVar[str]


class NotAgreed(Declined):
    """The operator has prepared the node for no run with this head."""

    told = (
        "the node has not agreed to this run: its experiment differs in method, plan, "
        "items, split or purpose; its operator prepares it with the same experiment"
    )


class NoMoreRuns(Declined):
    """The users have been trained on as often as the operator allows."""

    told = "the node's operator allows no more runs on its users; --runs allows another"
