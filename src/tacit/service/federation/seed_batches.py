"""What two aggregators say to each other: batches of sealed seeds, and their sums.

    batch     n × (report_id 16, sealed seed 80)                     leader to helper
    taken     n bytes: 1 if the seed opens, else 0                   helper to leader
    closing   n of four bytes, n batch ids of 16 bytes, d × 4 bytes  leader to all
    sum       d × 4 bytes                                            helper to all

Numbers have their lowest byte first. Ids of batches are sorted, so one set of them has
one form. A report is in one batch once; the helper refuses a set of batches with a
report in two of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

from tacit.errors import BadMessage, BadValue
from tacit.service.federation.sealing import ID_BYTES, SEALED_SEED_BYTES

MOST_REPORTS = 512  # of a batch
_ENTRY_BYTES = ID_BYTES + SEALED_SEED_BYTES
MOST_BATCH_BYTES = MOST_REPORTS * _ENTRY_BYTES
_COUNT_BYTES, _WORD_BYTES = 4, 4


@dataclass(frozen=True)
class SeedBatch:
    """Sealed seeds by the ids of their reports, in the order in which they are sent."""

    seeds: Mapping[bytes, bytes]

    def __post_init__(self) -> None:
        if not 1 <= len(self.seeds) <= MOST_REPORTS:
            raise BadValue(
                f"{len(self.seeds)} reports; a batch has 1 to {MOST_REPORTS}"
            )
        for report_id, sealed in self.seeds.items():
            if (len(report_id), len(sealed)) != (ID_BYTES, SEALED_SEED_BYTES):
                raise BadValue(
                    f"an id of {len(report_id)} bytes and a seed of {len(sealed)}; "
                    f"needed are {ID_BYTES} and {SEALED_SEED_BYTES}"
                )

    def body(self) -> bytes:
        """The bytes of the batch."""
        return b"".join(id_ + sealed for id_, sealed in self.seeds.items())

    @classmethod
    def read(cls, body: bytes) -> SeedBatch:
        """The batch of a body; refuses another length, and an id that comes twice."""
        n, rest = divmod(len(body), _ENTRY_BYTES)
        if rest or not 1 <= n <= MOST_REPORTS:
            raise BadMessage(
                f"a batch of {len(body):,} bytes; needed are {_ENTRY_BYTES} for each "
                f"of 1 to {MOST_REPORTS} reports"
            )
        entries = [
            body[i : i + _ENTRY_BYTES] for i in range(0, len(body), _ENTRY_BYTES)
        ]
        seeds = {one[:ID_BYTES]: one[ID_BYTES:] for one in entries}
        if len(seeds) < n:
            raise BadMessage("a batch has one report twice")
        return cls(seeds)

    def answer(self, opened: Collection[bytes]) -> bytes:
        """One byte per report: whether its seed opened."""
        return bytes(report_id in opened for report_id in self.seeds)

    def taken(self, answer: bytes) -> list[bytes]:
        """The ids of the reports that the helper has taken, by its answer."""
        if len(answer) != len(self.seeds) or not {*answer} <= {0, 1}:
            raise BadMessage(
                f"an answer of {len(answer)} bytes to {len(self.seeds)} reports; "
                "needed is one byte for each, 0 or 1"
            )
        return [id_ for id_, one in zip(self.seeds, answer, strict=True) if one]


@dataclass(frozen=True)
class Closing:
    """What the leader publishes: which batches are in its sum, and the noisy sum."""

    batches: tuple[bytes, ...]  # ids, sorted
    published: bytes  # as it is sent

    def __post_init__(self) -> None:
        if any(len(one) != ID_BYTES for one in self.batches):
            raise BadValue(f"an id of a batch has {ID_BYTES} bytes")
        if not all(one < other for one, other in pairwise(self.batches)):
            raise BadValue("ids of batches must be sorted, and each there once")

    def body(self) -> bytes:
        """The bytes of the closing."""
        count = len(self.batches).to_bytes(_COUNT_BYTES, "little")
        return count + b"".join(self.batches) + self.published

    @classmethod
    def read(cls, body: bytes, *, numbers: int) -> Closing:
        """The closing of a body; refuses another length, order or repeated batches."""
        n = int.from_bytes(body[:_COUNT_BYTES], "little")
        start = _COUNT_BYTES + n * ID_BYTES
        if len(body) != start + numbers * _WORD_BYTES:
            raise BadMessage(
                f"a closing of {len(body):,} bytes; {n:,} batches and {numbers:,} "
                f"numbers have {start + numbers * _WORD_BYTES:,}"
            )
        ids = [body[i : i + ID_BYTES] for i in range(_COUNT_BYTES, start, ID_BYTES)]
        try:
            return cls(tuple(ids), body[start:])
        except BadValue as error:
            raise BadMessage(f"a closing cannot be read: {error}") from error


def reports_in(batches: Collection[SeedBatch]) -> dict[bytes, bytes]:
    """The sealed seeds of all these batches; refuses a report that is in two."""
    seeds = {id_: one for batch in batches for id_, one in batch.seeds.items()}
    if len(seeds) < sum(len(batch.seeds) for batch in batches):
        raise BadMessage("a report is in two of the batches: it would count twice")
    return seeds
