"""The best linear estimate of a user vector from numbers with noise.

    u = m + C (A + v I)^-1 (s - E a)

a are the numbers without noise and s with it, m and E a the means over a population of
users, A the covariance of a, C that of u and a, and v the variance of the noise. What a
number says is trusted as far as it stands out of the noise: without any budget, u is
the mean user. The population must be public or a release of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.serving.interests import Users
from tacit.tree import Arrays

_RIDGE = 1e-9  # of the largest variance; numbers that sum to one have a singular A

Numbers = Float64[np.ndarray, "users numbers"]


@dataclass(frozen=True, eq=False)
class LinearDecoder:
    """Turns noisy numbers into user vectors by one matrix."""

    expected: Float64[np.ndarray, "numbers"]
    matrix: Float64[np.ndarray, "numbers factors"]
    mean: Float64[np.ndarray, "factors"]

    @classmethod
    def fitted(
        cls, numbers: Numbers, users: Users, *, variance: float
    ) -> LinearDecoder:
        """The decoder for users like these, under noise of this variance."""
        check.not_negative(variance=variance)
        expected, mean = numbers.mean(axis=0), users.mean(axis=0)
        apart = numbers - expected
        own = apart.T @ apart / len(numbers)
        ridge = variance + _RIDGE * max(float(own.diagonal().max(initial=0.0)), 1e-300)
        joint = apart.T @ (users - mean) / len(numbers)
        matrix = np.linalg.solve(own + ridge * np.eye(len(own)), joint)
        return cls(expected, matrix, np.asarray(mean, np.float64))

    def arrays(self) -> Arrays:
        """The numbers that client and server must share."""
        return {f"decoder {name}": value for name, value in vars(self).items()}

    def decode(self, said: Numbers) -> Float64[np.ndarray, "users factors"]:
        """The estimated user vectors."""
        return self.mean + (said - self.expected) @ self.matrix
