"""Who is near whom: the damped cosine of rows of zeros and ones.

    cosine(a, b) = |a ∩ b| / (√(|a| |b|) + shrinkage)

Shrinkage lowers what rests on little: two rows of one entry each, the same one, have
cosine 1 without it and 1/11 with a shrinkage of 10.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32

from tacit.baselines.matrix import row_blocks


def nearest(
    rows: sp.csr_array,
    among: sp.csr_array,
    *,
    count: int,
    shrinkage: float,
    but_itself: bool = False,
) -> sp.csr_array:
    """For each row its cosine with the `count` nearest of `among`; with others 0.

    Whatever ties with the last of them stays too, so no order of the rows is preferred.
    `but_itself`: both are the same rows, and none is its own neighbor.
    """
    columns, parts = among.T.tocsr(), []
    sizes, others = rows.sum(axis=1), among.sum(axis=1)
    for block in row_blocks(rows.shape[0], width=among.shape[0]):
        cosines = (rows[block] @ columns).toarray()
        norms = np.sqrt(np.outer(sizes[block], others)) + np.float32(shrinkage)
        # Where nothing is shared the norm may be 0, and the cosine stays 0.
        np.divide(cosines, norms, out=cosines, where=cosines > 0)
        if but_itself:
            np.fill_diagonal(cosines[:, block], 0)
        parts.append(sp.csr_array(_largest(cosines, count)))
    return sp.csr_array(sp.vstack(parts, format="csr"))


def _largest(
    cosines: Float32[np.ndarray, "rows others"], count: int
) -> Float32[np.ndarray, "rows others"]:
    """The `count` largest of each row; the others become 0."""
    rank = cosines.shape[1] - count
    if rank <= 0:
        return cosines
    # A partition finds the count-th largest without sorting the row.
    last = np.partition(cosines, rank, axis=1)[:, rank]
    return np.where(cosines >= last[:, None], cosines, np.float32(0))
