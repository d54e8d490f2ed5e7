"""EASE: one linear map from a history to scores, in closed form (Steck 2019).

X   users × items, 0 or 1         G = XᵀX
P = (G + λI)⁻¹                     λ the ridge, `regularization`
B = I - P / diag(P) by columns     zero on the diagonal: no item explains itself
scores = x B
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float
from scipy.linalg import get_lapack_funcs

from tacit import check
from tacit.baselines.matrix import row_blocks, users_by_items
from tacit.baselines.ranker import Grid, Scores
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key

Square = Float[np.ndarray, "items items"]


@dataclass(frozen=True)
class Ease:
    """A dense item-item model with a ridge.

    Memory is about n_items² numbers, while fitting too; single precision is enough for
    any ridge in use (the ranks on MovieLens agree) and halves it.
    """

    regularization: float = 700.0
    precision: Literal["float32", "float64"] = "float32"

    MOST_BYTES: ClassVar[int] = 8 * 2**30  # 46,000 items in single precision
    GRID: ClassVar[Grid] = {
        "regularization": (
            *(30.0, 50.0, 100.0, 150.0, 200.0, 300.0),
            *(400.0, 500.0, 700.0, 1000.0, 1500.0, 2000.0),
        )
    }

    def __post_init__(self) -> None:
        check.positive(regularization=self.regularization)
        check.one_of(("float32", "float64"), precision=self.precision)

    def memory_bytes(self, *, n_users: int, n_items: int) -> int:
        """One square matrix, which is inverted in place."""
        return n_items**2 * int(np.dtype(self.precision).itemsize)

    def fit(self, train: Shards, *, key: Key) -> FittedEase:
        """Solve for the weights; nothing is random."""
        needed = self.memory_bytes(n_users=len(train), n_items=train.n_items)
        if needed > self.MOST_BYTES:
            raise BadValue(
                f"EASE would need {needed / 2**30:.0f} GiB for {train.n_items:,} items "
                f"squared; at most {self.MOST_BYTES / 2**30:.0f} are allowed: leave "
                "ease out of evaluate.baselines, or use item_knn"
            )
        x = sp.csr_array(users_by_items(train).astype(self.precision))
        gram = _gram(x)
        gram[np.diag_indices_from(gram)] += self.regularization  # G + λI, in place
        p = _inverse_in_place(gram)
        p /= -np.diag(p)[None, :].copy()  # a copy: the division changes the diagonal
        np.fill_diagonal(p, 0.0)
        return FittedEase(p)


@dataclass(frozen=True, eq=False)
class FittedEase:
    """The weights B; row i is what having item i says of the others."""

    weights: Square

    def score(self, history: Shards) -> Scores:
        """The sum of the rows of the items held; costs what the history is long."""
        x = users_by_items(history).astype(self.weights.dtype)
        return np.asarray(x @ self.weights)


def _gram(x: sp.csr_array) -> Square:
    """XᵀX, by blocks of rows: at once, as a sparse matrix, it takes more memory."""
    columns, n = x.T.tocsr(), x.shape[1]
    gram = np.empty((n, n), x.dtype)
    for block in row_blocks(n, width=n):
        gram[block] = (columns[block] @ x).toarray()
    return gram


def _inverse_in_place(matrix: Any) -> Square:
    """The inverse of a positive definite matrix, by Cholesky, written over it."""
    found: Any = get_lapack_funcs(("potrf", "potri"), (matrix,))
    factorize, invert = found
    # LAPACK wants columns in a row; a symmetric matrix is its own transpose.
    half, failed = factorize(matrix.T, lower=True, overwrite_a=True, clean=False)
    if failed:
        raise BadValue("XᵀX + regularization is not positive definite; raise it")
    half, _ = invert(half, lower=True, overwrite_c=True)
    _mirror(half)
    return half.T


def _mirror(matrix: Square) -> None:
    """Copy what stands below the diagonal to above it, in place."""
    for block in row_blocks(len(matrix), width=len(matrix)):
        corner = np.tril(matrix[block, block])
        matrix[block, block] = corner + np.tril(corner, -1).T
        matrix[block, block.stop :] = matrix[block.stop :, block].T
