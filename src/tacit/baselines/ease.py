"""EASE: one linear map from a history to scores, in closed form (Steck 2019).

X   users × items, 0 or 1         G = XᵀX
P = (G + λI)⁻¹                     λ the ridge, `regularization`
B = I - P / diag(P) by columns     zero on the diagonal: no item explains itself
scores = x B
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float
from scipy.linalg import get_lapack_funcs

from tacit import check
from tacit.baselines.matrix import row_blocks, users_by_items, weighted_by_items
from tacit.baselines.ranker import Grid, Scores
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.histories import ListFor

Square = Float[np.ndarray, "items items"]


@dataclass(frozen=True)
class Ease:
    """A dense item-item model with a ridge.

    Memory is about twice n_items² numbers, for XᵀX and what it becomes; single
    precision is enough for any ridge in use (the ranks on MovieLens agree) and halves
    it.
    """

    regularization: float = 700.0
    precision: Literal["float32", "float64"] = "float32"
    list_for: ListFor = "any"  # in ranking only: what is fitted does not change

    MOST_BYTES: ClassVar[int] = 16 * 2**30  # 46,000 items in single precision
    # The best ridge falls with the number of users: about 5 for a thousand of them
    # with few items each, 500 to 700 for the 5,034 of MovieLens 1M.
    GRID: ClassVar[Grid] = {
        "regularization": (1.0, 5.0, 25.0, 100.0, 250.0, 700.0, 2000.0)
    }

    def __post_init__(self) -> None:
        check.positive(regularization=self.regularization)
        check.one_of(("float32", "float64"), precision=self.precision)
        check.one_of(get_args(ListFor), list_for=self.list_for)

    def memory_bytes(self, *, n_users: int, n_items: int) -> int:
        """Two square matrices: XᵀX, and a copy that is inverted in place."""
        return 2 * n_items**2 * int(np.dtype(self.precision).itemsize)

    def fit(self, train: Shards, *, key: Key) -> FittedEase:
        """Solve for the weights; nothing is random."""
        (fitted,) = self.fit_each(train, [{}], key=key)
        return fitted

    def fit_each(
        self, train: Shards, settings: Sequence[Mapping[str, float]], *, key: Key
    ) -> Iterator[FittedEase]:
        """Solve for each ridge; XᵀX is summed once for all of them.

        Each costs one inversion by Cholesky. The eigenvectors of XᵀX would serve every
        ridge, and cost as much as seven inversions (1,700 items, one thread).
        """
        self._refuse_too_large(train)
        gram = _gram(sp.csr_array(users_by_items(train).astype(self.precision)))
        for one in settings:
            changes: dict[str, Any] = {**one}
            yield replace(self, **changes)._solve(gram.copy())

    def _solve(self, gram: Square) -> FittedEase:
        """The weights of this ridge, written over XᵀX."""
        gram[np.diag_indices_from(gram)] += self.regularization  # G + λI, in place
        p = _inverse_in_place(gram)
        p /= -np.diag(p)[None, :].copy()  # a copy: the division changes the diagonal
        np.fill_diagonal(p, 0.0)
        return FittedEase(p, self.list_for)

    def _refuse_too_large(self, train: Shards) -> None:
        needed = self.memory_bytes(n_users=len(train), n_items=train.n_items)
        if needed > self.MOST_BYTES:
            raise BadValue(
                f"EASE would need {needed / 2**30:.0f} GiB for {train.n_items:,} items "
                f"squared; at most {self.MOST_BYTES / 2**30:.0f} are allowed: leave "
                "ease out of evaluate.baselines, or use item_knn"
            )


@dataclass(frozen=True, eq=False)
class FittedEase:
    """The weights B; row i is what having item i says of the others."""

    weights: Square
    list_for: ListFor = "any"

    def score(self, history: Shards) -> Scores:
        """The sum of the rows of the items held; costs what the history is long."""
        x = weighted_by_items(history, self.list_for).astype(self.weights.dtype)
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
