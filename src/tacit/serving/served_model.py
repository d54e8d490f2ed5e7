"""What client and server of a private query share: items, mechanism, version.

    client   model.release(user_vector, keys)  -> Query
    server   model.decode(query)               -> user vector

All of it is public. The version is a digest of all of it, so that a query for another
model, or for other noise, is told apart before it is read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from tacit.errors import BadMessage, OtherVersion
from tacit.keys import Keys
from tacit.method import ItemSpace
from tacit.serving.interests import Users
from tacit.serving.query import HEADER_BYTES, VERSION_BYTES, Query
from tacit.serving.query_mechanism import QueryMechanism


@dataclass(frozen=True, eq=False)
class ServedModel:
    """Public item vectors, and the mechanism through which clients ask for a list."""

    space: ItemSpace
    mechanism: QueryMechanism

    @cached_property
    def version(self) -> bytes:
        """A digest of the items, the mechanism and its settings."""
        mechanism = self.mechanism
        facts = {"mode": mechanism.mode, **mechanism.facts()}
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        arrays = {
            **mechanism.arrays(),
            "vectors": self.space.vectors,
            "offsets": self.space.offsets,
        }
        for name, array in sorted(arrays.items()):
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()[:VERSION_BYTES]

    @property
    def query_bytes(self) -> int:
        """The length of every query of this model."""
        one = np.dtype(self.mechanism.dtype).itemsize
        return HEADER_BYTES + self.mechanism.width * one

    def release(self, users: Users, keys: Keys) -> list[Query]:
        """One query per client; what it costs is the mechanism's event."""
        said = self.mechanism.release(users, keys).astype(self.mechanism.dtype)
        return [Query(self.version, self.mechanism.mode, row.tobytes()) for row in said]

    def decode(self, query: Query) -> Float64[np.ndarray, "factors"]:
        """The user vector of a query; refuses one of another version, mode or size."""
        if query.version != self.version:
            raise OtherVersion(
                f"a query for model {query.version.hex()}; this is "
                f"{self.version.hex()}: get the model again"
            )
        mechanism, kind = self.mechanism, np.dtype(self.mechanism.dtype)
        if query.mode != mechanism.mode:
            raise BadMessage(
                f"a query of mode {query.mode}; {mechanism.mode} is served"
            )
        if len(query.payload) != mechanism.width * kind.itemsize:
            raise BadMessage(
                f"a payload of {len(query.payload)} bytes; it has "
                f"{mechanism.width * kind.itemsize}"
            )
        said = np.frombuffer(query.payload, kind)[None]
        if kind.kind == "f" and not np.isfinite(said).all():
            raise BadMessage("a payload with a number that is not finite")
        mechanism.check(said)
        return mechanism.decode(said)[0]
