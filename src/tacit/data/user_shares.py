"""Users divided among machines by a hash of their id, without a list of all of them.

    share_of("ann", parts=4)     the share that this user belongs to, 0 to 3
    key_numbers(["ann", "bob"])  the numbers by which their keys are addressed

Both follow from the id alone: every machine finds the same share for the same user, and
a user's draws do not depend on which machine that is or who else is on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from jaxtyping import Int64

from tacit import check

_SHARE, _NUMBER = b"tacit share", b"tacit number"  # two hashes: one tells not the other


def share_of(user: str, *, parts: int) -> int:
    """The share of a user among so many.

    >>> [share_of(user, parts=3) for user in ("ann", "bob", "cy")]
    [2, 0, 1]
    """
    check.count(parts=parts)
    return _hash(user, _SHARE) % parts


def key_numbers(users: Iterable[str]) -> Int64[np.ndarray, "users"]:
    """One number per user, below 2⁶³; two users share one with a chance of 2⁻⁶³."""
    return np.array([_hash(user, _NUMBER) >> 1 for user in users], np.int64)


def _hash(user: str, purpose: bytes) -> int:
    text = user.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8, person=purpose).digest()
    return int.from_bytes(digest, "little")
