"""A user's vector from the mean of the vectors of held items, by ridge regression.

For factors that are learnt with no rule for users who were not there: the map from
means to vectors is the one that fits the training users best.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Float64

_RIDGE = 1e-3  # of the map, relative to what it divides by


def held_means(
    x: sp.csr_array, items: Float[np.ndarray, "items factors"]
) -> Float64[np.ndarray, "users factors"]:
    """The mean of each user's held items; zeros without a history."""
    lengths = np.maximum(np.diff(x.indptr), 1)
    return np.asarray((x @ items) / lengths[:, None])


def fold_in_map(
    means: Float64[np.ndarray, "users factors"],
    users: Float[np.ndarray, "users factors"],
) -> Float64[np.ndarray, "factors factors"]:
    """The matrix that takes the training users' means nearest to their vectors."""
    gram = means.T @ means
    # Relative to the mean eigenvalue; 1e-12 where all means are zero.
    ridge = max(_RIDGE * float(np.trace(gram)) / len(gram), 1e-12)
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), means.T @ users)
