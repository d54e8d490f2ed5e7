"""Large arrays in memory that an earlier one no longer needs.

The system hands out large pieces of memory page by page, each filled with zeros first,
and takes them back at once. A round of FedVAE asks for six times the size of its model,
and a seventh of its time went into zeros that nobody reads. Here memory is handed out
again as soon as nothing refers to it: no array, no view of one, no tensor made from
one. So whoever holds an array, a checkpoint for instance, can go on holding it.
"""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_SMALLEST = 2**20  # bytes; the memory of smaller arrays is reused by the system
_MOST = 2**28  # bytes that are kept although nothing refers to them

_lock = threading.Lock()
_kept: list[NDArray[np.uint8]] = []


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array like `np.empty` gives, with whatever was in its memory before."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < _SMALLEST:
        return np.empty(shape, kind)
    with _lock:
        owner = _free(size)
        if owner is None:
            owner = np.empty(size, np.uint8)
            _kept.append(owner)
            _forget()
    # A view refers to the array that owns its memory, however often it is viewed again.
    return owner.view(kind).reshape(shape)


def _free(size: int) -> NDArray[np.uint8] | None:
    """Memory of exactly this size that nothing refers to."""
    for number in range(len(_kept)):
        if _kept[number].nbytes == size and _is_free(number):
            return _kept[number]
    return None


def _is_free(number: int) -> bool:
    # One reference is that of the list, the other that of the call itself.
    return sys.getrefcount(_kept[number]) == 2


def _forget() -> None:
    """Let go of the oldest free memory beyond what may be kept."""
    free = [number for number in range(len(_kept)) if _is_free(number)]
    beyond = sum(_kept[number].nbytes for number in free) - _MOST
    gone = set[int]()
    for number in free:
        if beyond <= 0:
            break
        beyond -= _kept[number].nbytes
        gone.add(number)
    _kept[:] = [owner for number, owner in enumerate(_kept) if number not in gone]
