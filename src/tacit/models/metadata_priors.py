"""Priors of users from word vectors of what they say about themselves.

    w        a kind of metadata, such as gender        o   how many kinds
    v, v̄     the user's word vector of kind w, of norm 1; its mean over a population
    p_j      a public direction of norm 1, for each j of the K numbers of a latent
    m_wj     (1 + v·p_j) / 2, in [0, 1]; a half where nothing is known
    μ_wj     the same of v̄: the map is affine, so it is the mean of m_wj
    μ_j, γ_j²  Σ_w m_wj μ_wj and Σ_w (m_wj - μ_j)², the prior of the user's latent

The papers' means are over all users, who would have to tell them; here they may as well
be over the labels of a kind, which are public. Directions are drawn once for all. The
map to [0, 1] is ours: the paper has none.

Source: Fang et al. 2022, Section 3.3.1 and Equation 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64

from tacit import check
from tacit.data.catalog import Profiles
from tacit.data.features import Vectors
from tacit.data.metadata_vectors import mean_name, vector_name
from tacit.errors import BadValue
from tacit.keys import Key, Keys
from tacit.mechanisms import published
from tacit.models.mult_vae import Prior

_DIRECTIONS = Key.from_seed(0).at("directions of priors")  # public, the same for all
_LEAST_VARIANCE = 1e-4  # noise makes variances negative, and none may be zero

Kinds = Float64[np.ndarray, "users kinds latent"]


@dataclass(frozen=True, eq=False)
class Metadata:
    """What users say about themselves as numbers in [0, 1], and their means."""

    values: Kinds
    means: Kinds  # the same for everyone; each client was told

    def prior(self) -> Prior:
        """Equation 11 without noise; it stays with the client."""
        mean = (self.values * self.means).sum(axis=1)
        variance = ((self.values - mean[:, None]) ** 2).sum(axis=1)
        return _floored(mean, variance)

    def noisy_prior(self, keys: Keys, *, sigma: Float64[np.ndarray, "users"]) -> Prior:
        """Equation 11 as printed, but for a floor under the variances."""
        found = published.noisy_prior(self.values, self.means, keys, sigma=sigma)
        return _floored(*found)


def metadata_of(profiles: Profiles, names: Sequence[str], *, latent: int) -> Metadata:
    """The metadata of these kinds, whose vectors and means the profiles have."""
    vectors = [_vectors(profiles, vector_name(name)) for name in names]
    means = [_vectors(profiles, mean_name(name)) for name in names]
    values, usual = (
        np.stack([in_unit_interval(one, latent) for one in these], axis=1)
        for these in (vectors, means)
    )
    return Metadata(values, usual)


def in_unit_interval(
    vectors: Float[np.ndarray, "rows axes"], latent: int
) -> Float64[np.ndarray, "rows latent"]:
    """Vectors of norm 1 at the most as `latent` numbers in [0, 1] each."""
    drawn = _DIRECTIONS.generator().standard_normal((vectors.shape[1], latent))
    directions = drawn / np.linalg.norm(drawn, axis=0)
    return np.clip((1.0 + vectors.astype(np.float64) @ directions) / 2, 0.0, 1.0)


def _vectors(profiles: Profiles, name: str) -> Float[np.ndarray, "users axes"]:
    known = {n: f for n, f in profiles.features.items() if isinstance(f, Vectors)}
    if name not in known:
        raise BadValue(
            f"priors: profiles have no vectors {check.unknown(name, known)}; name the "
            "metadata in [data.metadata_vectors]"
        )
    return known[name].values


def _floored(
    mean: Float64[np.ndarray, "users latent"],
    variance: Float64[np.ndarray, "users latent"],
) -> Prior:
    return Prior(mean, np.maximum(variance, _LEAST_VARIANCE))
