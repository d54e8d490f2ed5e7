"""What a client agrees to before it answers: one digest of all that must not change.

    plan        population, sampler, rounds, channel, delta, target
    method      its class and every setting
    mechanism   the protection, its noise and the bound of every phase
    layouts     what broadcasts and reports look like, with the range of every value

A broadcast carries the digest of the server's agreement, and a client answers only its
own. So a server that trains with another noise, another clip or another layout than it
declared is not answered. What it does with the reports afterwards no digest can show:
that is what the channel is trusted for.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from tacit.errors import BadMessage, BadValue
from tacit.transport.messages import (
    DIGEST_BYTES,
    NO_PHASE,
    Broadcast,
    BroadcastLayout,
    Layout,
    Slot,
)

FORMAT = 1  # changes with what the digest covers
# Metadata of a field that came later: at its default it is left out, so that whoever
# does not use it has the digest of before.
LATER = {"later": True}


@dataclass(frozen=True, eq=False)
class Agreement:
    """What a client must know of a run to answer a broadcast or to refuse it."""

    digest: bytes
    broadcasts: tuple[BroadcastLayout, ...]  # of each phase, then of the finished model
    updates: tuple[Mapping[str, Slot], ...]  # what clients compute in each phase, raw
    reports: tuple[Layout, ...]  # what leaves them in each phase

    @classmethod
    def of(
        cls,
        terms: Mapping[str, object],
        *,
        broadcasts: Sequence[BroadcastLayout],
        updates: Sequence[Mapping[str, Slot]],
        reports: Sequence[Layout],
    ) -> Agreement:
        """The agreement that covers these terms and layouts, with its digest."""
        covered = {
            "format": FORMAT,
            "terms": terms,
            "broadcasts": [layout.slots for layout in broadcasts],
            "updates": updates,
            "reports": reports,
        }
        parts = tuple(broadcasts), tuple(updates), tuple(reports)
        return cls(digest_of(covered), *parts)

    def check(self, broadcast: Broadcast) -> None:
        """Refuse a broadcast of another agreement, phase or layout."""
        if self.digest in broadcast.admitted:
            return
        if broadcast.agreement != self.digest:
            raise BadMessage(
                f"a broadcast of agreement {broadcast.agreement.hex()}; agreed is "
                f"{self.digest.hex()}: its plan, method, noise or layout is another"
            )
        last = len(self.broadcasts) - 1
        # The finished model belongs to no phase; its layout is the last.
        number = last if broadcast.phase == NO_PHASE else broadcast.phase
        if number > last or (number == last) != (broadcast.phase == NO_PHASE):
            raise BadMessage(f"a broadcast of phase {broadcast.phase} of {last}")
        self.broadcasts[number].check(broadcast.weights)
        broadcast.admitted.add(self.digest)  # in a simulation thousands ask the same

    def admits(self, broadcast: Broadcast) -> bool:
        """Whether `check` has nothing against a broadcast."""
        try:
            self.check(broadcast)
        except BadMessage:
            return False
        return True

    @property
    def most_bytes(self) -> int:
        """A bound on the bytes of any broadcast; longer ones need not be read."""
        return max(layout.most_bytes for layout in self.broadcasts)


def digest_of(value: object) -> bytes:
    """A digest of 16 bytes that changes with anything in `value`."""
    text = json.dumps(described(value), sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()


def described(value: object) -> Any:
    """Plain data that is equal for equal values, and different for different ones.

    A dataclass is its class and the fields that it is compared by. What cannot be
    written down is refused: nobody could agree to it.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return {"number": repr(value)}
        return int(value) if value.is_integer() else value  # 4.0 equals 4
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, type):
        return {"class": _named(value)}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, np.ndarray):
        return {"array": [str(value.dtype), [*value.shape], _bytes_digest(value)]}
    if is_dataclass(value):
        own = {
            f.name: described(getattr(value, f.name))
            for f in fields(value)
            if f.compare and not _is_as_before(f, value)
        }
        return {"class": _named(type(value)), "fields": own}
    if isinstance(value, Mapping):  # its order counts: codes of groups refer to it
        return {"pairs": [[described(k), described(v)] for k, v in value.items()]}
    if isinstance(value, Sequence):
        return [described(one) for one in value]
    raise BadValue(
        f"{value!r} cannot be agreed on: settings are numbers, texts, dataclasses, "
        "tables and lists of these"
    )


def _is_as_before(field: Field[Any], value: object) -> bool:
    later = field.metadata.get("later", False)
    return bool(later and getattr(value, field.name) == field.default)


def _named(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _bytes_digest(value: np.ndarray[Any, Any]) -> str:
    content = np.ascontiguousarray(value).tobytes()
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).hexdigest()
