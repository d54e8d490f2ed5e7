"""`dpa`: noisy attention over public interests, and two ways to read it.

Interests are a basis that training made (`trained_basis`), where the method has one, or
else groups of invented users (`interests`).

a       attention of a user: softmax of closeness to the interests over a
        temperature, all of it public but the user vector
s       what is said: a cut to norm theta, with noise (`private_attention`)

softplus     w = softplus(s) / sum,  user vector  sum of w_b u_b      (Liu et al.)
regression   user vector  m + C (A + v I)^-1 (s - E a),  the best linear estimate:
             m mean vector, C covariance of vector and attention, A that of
             attention, over invented users; v the variance of the noise
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.codes import Code
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms.padding import Padding
from tacit.mechanisms.private_attention import (
    GaussianAttention,
    LaplaceAttention,
    clip_attention,
    normalized,
    to_weights,
)
from tacit.mechanisms.published import PublishedAttention
from tacit.release import Unit
from tacit.serving.interests import Interests, Users
from tacit.serving.linear_decoder import LinearDecoder
from tacit.serving.query import Mode
from tacit.serving.query_mechanism import FLOAT_NOISE, Said, printed_noise
from tacit.serving.trained_basis import TrainedBasis
from tacit.tree import Arrays

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

Reading = Literal["softplus", "regression"]
Pads = Literal["all", "sensitive"]
Attention = GaussianAttention | LaplaceAttention | PublishedAttention


@dataclass(frozen=True, eq=False)
class NoisyAttention:
    """Says how close a user is to each interest, with noise.

    Guarantee: that of the attention's noise, for the whole user, in every view, per
        release. With padding, better for one interaction; never for a user.
    Assumes: the interests and the decoder are public or a release of their own;
        histories are padded with fresh coins before they become vectors.
    Source: Liu et al. 2022, Algorithm 2, with the sensitivity of `private_attention`.
    """

    attention: Attention
    interests: Interests | TrainedBasis
    temperature: float
    decoder: LinearDecoder
    reading: Reading = "regression"
    padding: Padding | None = None
    pads: Pads = "all"  # the interactions that padding may replace

    def __post_init__(self) -> None:
        check.positive(temperature=self.temperature)
        check.one_of(("softplus", "regression"), reading=self.reading)
        check.one_of(("all", "sensitive"), pads=self.pads)
        if self.attention.interests != len(self.interests):
            raise BadValue(
                f"noise for {self.attention.interests} interests, and there are "
                f"{len(self.interests)}; they must agree"
            )

    @classmethod
    def fitted(
        cls,
        epsilon: float,
        interests: Interests | TrainedBasis,
        users: Users,
        *,
        delta: float = 0.0,
        reading: Reading = "regression",
        padding: Padding | None = None,
        pads: Pads = "all",
    ) -> NoisyAttention:
        """The mechanism for users like these, who must be public or released.

        theta is the median norm of their attention, so that half of them lose nothing.
        """
        temperature = interests.temperature(users)
        own = attention_of(interests, users, temperature=temperature)
        theta = float(np.median(np.linalg.norm(own, axis=1)))
        attention: Attention
        if delta:
            attention = GaussianAttention(
                epsilon, len(interests), theta=theta, delta=delta
            )
        else:
            attention = LaplaceAttention(epsilon, len(interests), theta=theta)
        cut = clip_attention(own, theta=theta)
        decoder = LinearDecoder.fitted(cut, users, variance=attention.variance)
        return cls(attention, interests, temperature, decoder, reading, padding, pads)

    @classmethod
    def printed(
        cls,
        epsilon: float,
        basis: TrainedBasis,
        *,
        theta: float,
        delta: float = 0.0,
        padding: Padding | None = None,
        pads: Pads = "all",
    ) -> NoisyAttention:
        """Algorithm 2 with the noise that it prints for this epsilon and padding.

        The server applies SoftPlus, where line 10 has the client do it: the ranking is
        the same, and so is whatever is proven.
        """
        p = 0.0 if padding is None else padding.probability
        attention = PublishedAttention(
            epsilon, len(basis), theta=theta, delta=delta, padding=p
        )
        nothing = np.zeros(len(basis))
        unread = LinearDecoder(nothing, np.zeros_like(basis.basis), basis.mean)
        return cls(attention, basis, 1.0, unread, "softplus", padding, pads)

    @property
    def mode(self) -> Mode:
        """The mode is `dpa`."""
        return Mode.DPA

    @property
    def dtype(self) -> str:
        """Numbers of four bytes; rounding them is post-processing."""
        return "<f4"

    @property
    def width(self) -> int:
        """One number is said per interest."""
        return len(self.interests)

    @property
    def choices(self) -> None:
        """Noisy numbers can be anything."""

    @property
    def nobody(self) -> Float64[np.ndarray, "factors"]:
        """The mean user vector of all, or that of the padding item alone."""
        return self.interests.mean

    @property
    def has_trained_basis(self) -> bool:
        """Whether clients encode their histories for a basis that training made."""
        return isinstance(self.interests, TrainedBasis)

    @property
    def claimed(self) -> float | None:
        """What the paper claims for one interaction and query, if it prints the noise.

        It is never called epsilon.
        """
        published = isinstance(self.attention, PublishedAttention)
        return self.attention.epsilon if published else None

    @property
    def reason(self) -> str:
        """Why the guarantee holds, for the account."""
        return attention_reason(
            len(self.interests),
            is_gaussian=isinstance(self.attention, GaussianAttention)
            or bool(getattr(self.attention, "delta", 0.0)),
            has_trained_basis=self.has_trained_basis,
            claimed=self.claimed,
        )

    @property
    def assumes(self) -> tuple[Code, ...]:
        """What the guarantee rests on besides the client."""
        return (FLOAT_NOISE,)

    def event(self, unit: Unit) -> DpEvent:
        """What one release costs; padding helps one interaction, if it covers all.

        Where only sensitive interactions are padded, it is not known of which kind the
        one is that somebody looks for.
        """
        event = self.attention.event
        if self.claimed is not None and math.isinf(self.claimed):
            return event
        if self.padding is None or unit is Unit.USER or self.pads == "sensitive":
            return event
        return self.padding.item_event(event)

    def facts(self) -> Mapping[str, object]:
        """The noise, the temperature, and how the server reads."""
        return {
            "attention": repr(self.attention),
            "temperature": self.temperature,
            "reading": self.reading,
            "padding": repr(self.padding),
            "pads": self.pads,
        }

    def arrays(self) -> Arrays:
        """The interests and the decoder."""
        return {**vars(self.interests), **self.decoder.arrays()}

    def release(self, users: Users, keys: Keys) -> Said:
        """The noisy attention of each client."""
        own = attention_of(self.interests, users, temperature=self.temperature)
        return self.attention.noisy(own, keys).astype(self.dtype)

    def check(self, said: Said) -> None:
        """Refuses nothing: any number may come out of noise."""

    def decode(self, said: Said) -> Float64[np.ndarray, "clients factors"]:
        """The user vectors, read as `reading` says."""
        noisy = said.astype(np.float64)
        if self.reading == "softplus":
            return to_weights(noisy) @ self.interests.means
        return self.decoder.decode(noisy)


def attention_of(
    interests: Interests | TrainedBasis, users: Users, *, temperature: float
) -> Float64[np.ndarray, "users interests"]:
    """The softmax of closeness over the temperature: weights that sum to one."""
    close = interests.closeness(users) / temperature
    return normalized(np.exp(close - close.max(axis=1, keepdims=True)))


def attention_reason(
    interests: int,
    *,
    is_gaussian: bool,
    has_trained_basis: bool,
    claimed: float | None,
) -> str:
    """Why the guarantee of noisy attention holds, or what there is instead of one."""
    kind = "Gaussian" if is_gaussian else "Laplace"
    over = "basis vectors that training made" if has_trained_basis else "interests"
    return f"{printed_noise(kind, claimed)} on attention over {interests} {over}"
