"""`vdp`: the noisy user vector itself, whole or after a public projection.

    whole       s = u cut to norm theta, with noise; the server ranks with s as it is
    printed     the same with the paper's own theta and noise
    projected   s = P (u - m) cut to norm theta, with noise, P the axes along which
                users differ most; the server ranks with the best linear estimate

It is the paper's strawman: noise grows with the number of axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.codes import Code
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms.private_vector import PrivateVector, cut
from tacit.mechanisms.published import PublishedVector
from tacit.release import Unit
from tacit.serving.interests import Users
from tacit.serving.linear_decoder import LinearDecoder
from tacit.serving.query import Mode
from tacit.serving.query_mechanism import FLOAT_NOISE, Said, printed_noise
from tacit.tree import Arrays

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


@dataclass(frozen=True, eq=False)
class NoisyVector:
    """Says the user vector along some axes, with noise.

    Guarantee: that of `PrivateVector`, for the whole user, in every view, per release.
    Assumes: axes, centre and decoder are public or a release of their own.
    Source: Liu et al. 2022, section 3.2.1.
    """

    vector: PrivateVector | PublishedVector
    axes: Float64[np.ndarray, "factors numbers"]
    centre: Float64[np.ndarray, "factors"]
    decoder: LinearDecoder

    @classmethod
    def whole(cls, epsilon: float, users: Users, *, delta: float = 0.0) -> NoisyVector:
        """Every factor as it is, and noise that the server does not remove.

        theta is the median norm of these users, who must be public or released.
        """
        d = users.shape[1]
        theta = float(np.median(np.linalg.norm(users, axis=1)))
        return cls._as_it_is(PrivateVector(epsilon, d, theta=theta, delta=delta))

    @classmethod
    def printed(
        cls, epsilon: float, width: int, *, theta: float, delta: float = 0.0
    ) -> NoisyVector:
        """VDP, the paper's baseline, with the noise that it prints for this epsilon."""
        return cls._as_it_is(PublishedVector(epsilon, width, theta=theta, delta=delta))

    @classmethod
    def _as_it_is(cls, vector: PrivateVector | PublishedVector) -> NoisyVector:
        """Nothing is projected, and the server takes for the user what it is told."""
        nothing, same = np.zeros(vector.width), np.eye(vector.width)
        return cls(vector, same, nothing, LinearDecoder(nothing, same, nothing))

    @classmethod
    def projected(
        cls,
        epsilon: float,
        users: Users,
        *,
        axes: int,
        metric: Float64[np.ndarray, "factors score_axes"],
        delta: float = 0.0,
    ) -> NoisyVector:
        """The first axes along which the scores of these users differ.

        `metric` maps user vectors to where distances are those of scores.
        """
        check.count(axes=axes)
        mean = users.mean(axis=0)
        apart = (users - mean) @ metric
        if axes > apart.shape[1]:
            raise BadValue(f"axes={axes} must be <= {apart.shape[1]}, the factors")
        _, found = np.linalg.eigh(apart.T @ apart)
        kept = metric @ found[:, ::-1][:, :axes]
        numbers = (users - mean) @ kept
        theta = float(np.median(np.linalg.norm(numbers, axis=1)))
        vector = PrivateVector(epsilon, axes, theta=theta, delta=delta)
        decoder = LinearDecoder.fitted(
            cut(numbers, theta=theta), users, variance=vector.variance
        )
        return cls(vector, kept, mean, decoder)

    @property
    def mode(self) -> Mode:
        """The mode is `vdp`."""
        return Mode.VDP

    @property
    def dtype(self) -> str:
        """Numbers of four bytes; rounding them is post-processing."""
        return "<f4"

    @property
    def width(self) -> int:
        """One number is said per axis."""
        return self.axes.shape[1]

    @property
    def choices(self) -> None:
        """Noisy numbers can be anything."""

    @property
    def nobody(self) -> Float64[np.ndarray, "factors"]:
        """The user vector from which all others are measured."""
        return self.centre

    @property
    def reason(self) -> str:
        """Why the guarantee holds, for the account."""
        kind = "Gaussian" if self.vector.delta else "Laplace"
        noise = printed_noise(kind, self.claimed)
        return f"{noise} on {self.width} numbers of the user vector"

    @property
    def padding(self) -> None:
        """Histories are not padded."""

    @property
    def has_trained_basis(self) -> bool:
        """A user vector is said without any basis."""
        return False

    @property
    def claimed(self) -> float | None:
        """What the paper claims for one interaction and query, if it prints the noise.

        It is never called epsilon.
        """
        return self.vector.epsilon if isinstance(self.vector, PublishedVector) else None

    @property
    def assumes(self) -> tuple[Code, ...]:
        """What the guarantee rests on besides the client."""
        return (FLOAT_NOISE,)

    def event(self, unit: Unit) -> DpEvent:
        """What one release costs: the same for an interaction as for a user."""
        return self.vector.event

    def facts(self) -> Mapping[str, object]:
        """The noise and the length to which vectors are cut."""
        return {"vector": repr(self.vector)}

    def arrays(self) -> Arrays:
        """The axes, their centre, and the decoder."""
        shared = {"axes": self.axes, "centre": self.centre}
        return {**shared, **self.decoder.arrays()}

    def release(self, users: Users, keys: Keys) -> Said:
        """The noisy numbers of each client."""
        said = self.vector.noisy((users - self.centre) @ self.axes, keys)
        return said.astype(self.dtype)

    def check(self, said: Said) -> None:
        """Refuses nothing: any number may come out of noise."""

    def decode(self, said: Said) -> Float64[np.ndarray, "clients factors"]:
        """The user vectors: as they came, or their best linear estimate."""
        return self.decoder.decode(said.astype(np.float64))
