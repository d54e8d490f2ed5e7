"""Rows copied end to end, as `Ragged.places` would pick them."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def gather(values, starts, offsets, out):  # type: ignore[no-untyped-def]
    """The rows that begin at `starts` into `out`, as long as `offsets` has room."""
    for row in range(len(starts)):
        n = offsets[row + 1] - offsets[row]
        theirs = values[starts[row] : starts[row] + n]
        mine = out[offsets[row] : offsets[row + 1]]
        for i in range(n):  # from 0 on: copied in blocks
            mine[i] = theirs[i]
