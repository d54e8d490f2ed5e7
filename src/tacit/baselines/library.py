"""The library `implicit` (Ben Frederickson, MIT), imported when a model is fitted.

It comes with the extra `baselines`. It warns unless BLAS runs on one thread, since its
own threads call BLAS, so that is arranged for as long as it is in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import scipy.sparse as sp

from tacit.baselines.matrix import users_by_items
from tacit.data.shards import Shards
from tacit.errors import MissingExtra


@contextmanager
def implicit_on_cpu() -> Iterator[ModuleType]:
    """Gives the library's CPU models, with BLAS on one thread while they are in use."""
    try:
        import implicit.cpu.als
        import implicit.cpu.bpr
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtra("implicit", "baselines") from error
    with threadpool_limits(1, "blas"):
        yield implicit.cpu


def confidences(train: Shards) -> sp.csr_matrix:
    """Histories, users × items, as the type of matrix that `implicit` expects."""
    # Not `csr_array`, which the library takes with a warning.
    return sp.csr_matrix(users_by_items(train))
