"""What client and server of a private query share: items, mechanism, version.

    client   model.release(user_vector, keys)  -> Query
    server   model.decode(query)               -> user vector

All of it is public. The version is a digest of all of it, so that a query for another
model, or for other noise, is told apart before it is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Float64

from tacit.errors import BadMessage, OtherVersion
from tacit.keys import Keys
from tacit.method import ItemSpace
from tacit.serving.interests import Users
from tacit.serving.query import HEADER_BYTES, VERSION_BYTES, Query
from tacit.serving.query_mechanism import QueryMechanism, Said


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

    @cached_property
    def query_bytes(self) -> int:
        """The length of every query of this model."""
        return HEADER_BYTES + self.mechanism.width * self._kind.itemsize

    def release(self, users: Users, keys: Keys) -> list[Query]:
        """One query per client; what it costs is the mechanism's event."""
        said = self.mechanism.release(users, keys).astype(self.mechanism.dtype)
        return [Query(self.version, self.mechanism.mode, row.tobytes()) for row in said]

    def decode(self, query: Query | bytes) -> Float64[np.ndarray, "factors"]:
        """The user vector of a query; refuses one of another version, mode or size."""
        return self.mechanism.decode(self.read([query]))[0]

    def read(self, queries: Sequence[Query | bytes]) -> Said:
        """The numbers in each query; refuses all queries if one is refused."""
        said = b"".join(map(self._payload, queries))
        numbers = np.frombuffer(said, self._kind).reshape(len(queries), -1)
        if self._kind.kind == "f" and not np.isfinite(numbers).all():
            raise BadMessage("a payload with a number that is not finite")
        self.mechanism.check(numbers)
        return numbers

    def _payload(self, query: Query | bytes) -> bytes:
        message = query.encode() if isinstance(query, Query) else query
        # At once, because a server does it often; what is wrong is found out later.
        if len(message) == self.query_bytes and message.startswith(self._header):
            return message[HEADER_BYTES:]
        self._refuse(Query.decode(message))

    @cached_property
    def _kind(self) -> np.dtype[Any]:
        return np.dtype(self.mechanism.dtype)

    @cached_property
    def _header(self) -> bytes:
        """The first bytes of every query of this model."""
        return Query(self.version, self.mechanism.mode, b"").encode()

    def _refuse(self, query: Query) -> NoReturn:
        """Say what is wrong with a query that is not of this model."""
        if query.version != self.version:
            raise OtherVersion(
                f"a query for model {query.version.hex()}; this is "
                f"{self.version.hex()}: get the model again"
            )
        mode, size = self.mechanism.mode, self.query_bytes - HEADER_BYTES
        if query.mode != mode:
            raise BadMessage(f"a query of mode {query.mode}; {mode} is served")
        raise BadMessage(f"a payload of {len(query.payload)} bytes; it has {size}")
