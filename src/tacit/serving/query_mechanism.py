"""How a user vector becomes what may leave the client, and what a server reads in it.

    client   release   user vectors -> what is said, one row of numbers per client
    server   decode    what was said -> user vectors, as far as they are known
    account  event     what one release costs its user

A mechanism is public and the same on both sides: client and server hold one
`ServedModel`, whose version is a digest of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float64, Shaped

from tacit.codes import Code
from tacit.errors import BadMessage
from tacit.keys import Keys
from tacit.mechanisms.padding import Padding
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.release import Unit
from tacit.serving.interests import Interests, Users
from tacit.serving.query import Mode
from tacit.tree import Arrays

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

FLOAT_NOISE = Code("float_noise")

Said = Shaped[np.ndarray, "clients numbers"]


class QueryMechanism(Protocol):
    """What a client says of its user instead of the user vector."""

    @property
    def mode(self) -> Mode:
        """The mode that queries of this mechanism carry."""

    @property
    def dtype(self) -> str:
        """The type of the numbers that are said, little-endian."""

    @property
    def width(self) -> int:
        """How many numbers are said."""

    @property
    def choices(self) -> int | None:
        """What is said is one number below this; None where it can be anything."""

    @property
    def nobody(self) -> Float64[np.ndarray, "factors"]:
        """The user vector of somebody of whom nothing is known."""

    @property
    def reason(self) -> str:
        """Why the guarantee holds, for the account."""

    @property
    def padding(self) -> Padding | None:
        """How clients pad their histories before they become vectors, if they do."""

    @property
    def has_trained_basis(self) -> bool:
        """Whether clients encode their histories for a basis that training made."""

    @property
    def claimed(self) -> float | None:
        """What a paper claims for one interaction and query, where its noise is used.

        It is never called epsilon.
        """

    @property
    def assumes(self) -> tuple[Code, ...]:
        """What the guarantee rests on besides the client."""

    def event(self, unit: Unit) -> DpEvent:
        """What one release costs: for a whole user, or for one interaction."""

    def facts(self) -> Mapping[str, object]:
        """The settings that client and server must share."""

    def arrays(self) -> Arrays:
        """The public numbers that client and server must share."""

    def release(self, users: Users, keys: Keys) -> Said:
        """What each client says; all that leaves it."""

    def check(self, said: Said) -> None:
        """Refuses numbers that no client of this mechanism says."""

    def decode(self, said: Said) -> Float64[np.ndarray, "clients factors"]:
        """The user vectors that a server ranks with."""


@dataclass(frozen=True, eq=False)
class InterestResponse:
    """Says the strongest interest of a user, or with a known chance another one.

    The server ranks with the mean user vector given what was said:

        sum over b of  P(b | r) u_b,   P(b | r) ~ P(r | b) p_b

    Guarantee: `epsilon` pure local DP for the whole user, in every view, per release.
    Assumes: the interests are public or a release of their own. Decoding is
        post-processing.
    Source: Kairouz, Oh and Viswanath 2014 for the response;
        docs/serving.md for the decoding.
    """

    epsilon: float
    interests: Interests

    def __post_init__(self) -> None:
        # Refuses an epsilon or a number of interests that is none.
        RandomizedResponse(self.epsilon, len(self.interests))

    @property
    def response(self) -> RandomizedResponse:
        """The randomised response over the interests."""
        return RandomizedResponse(self.epsilon, len(self.interests))

    @property
    def mode(self) -> Mode:
        """The mode is `krr`."""
        return Mode.KRR

    @property
    def dtype(self) -> str:
        """An unsigned integer of two bytes: up to 65,536 interests."""
        return "<u2"

    @property
    def width(self) -> int:
        """One number is said: the index of an interest."""
        return 1

    @property
    def choices(self) -> int:
        """The number of interests."""
        return len(self.interests)

    @property
    def nobody(self) -> Float64[np.ndarray, "factors"]:
        """The mean user vector of all."""
        return self.interests.mean

    @property
    def reason(self) -> str:
        """Why the guarantee holds, for the account."""
        return f"k-ary randomised response over {len(self.interests)} interests"

    @property
    def padding(self) -> None:
        """Histories are not padded."""

    @property
    def has_trained_basis(self) -> bool:
        """Interests are those of invented users, or a release."""
        return False

    @property
    def claimed(self) -> None:
        """No paper claims anything for it."""

    @property
    def assumes(self) -> tuple[Code, ...]:
        """Nothing: the response is drawn in whole numbers."""
        return ()

    def event(self, unit: Unit) -> DpEvent:
        """The event of one response: the same for an interaction as for a user."""
        return self.response.event

    def facts(self) -> Mapping[str, object]:
        """The budget of one release."""
        return {"epsilon": self.epsilon}

    def arrays(self) -> Arrays:
        """The interests, with their means and shares."""
        return {**vars(self.interests)}

    def release(self, users: Users, keys: Keys) -> Said:
        """One reported interest per client."""
        said = self.response.privatize(self.interests.nearest(users), keys)
        return said[:, None].astype(self.dtype)

    def check(self, said: Said) -> None:
        """Refuses an index that no interest has."""
        if said.max(initial=0) >= len(self.interests):
            raise BadMessage(
                f"interest {said.max()} is not known; there are {len(self.interests)}"
            )

    def decode(self, said: Said) -> Float64[np.ndarray, "clients factors"]:
        """The posterior mean of the user vector, for each reported interest."""
        return self._posterior_means[said[:, 0]]

    @cached_property
    def _posterior_means(self) -> Float64[np.ndarray, "reports factors"]:
        """The user vector that stands for each report; a server asks for it often."""
        weights = self.response.likelihoods().T * self.interests.shares
        return weights @ self.interests.means / weights.sum(axis=1, keepdims=True)


def printed_noise(kind: str, claimed: float | None) -> str:
    """What the noise of a query is called: as needed, as printed, or none at all."""
    if claimed is None:
        return f"{kind} noise"
    if math.isinf(claimed):
        return "no noise at all (the paper's epsilon of infinity)"
    return (
        f"{kind} noise as the paper prints it for a claimed {claimed:g}, accounted for "
        "as it is (docs/errata/privaterec.md),"
    )
