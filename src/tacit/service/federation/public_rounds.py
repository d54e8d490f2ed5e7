"""The rounds of a run as everybody may read them, and the states that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from tacit.text import nth_round

PLANNED, SIGNED, OPEN = "planned", "signed", "open"
VOIDING, VOID = "voiding", "void"


def moment(seconds: int) -> str:
    """A time of a round's own window, which is public."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


class Named(Protocol):
    """A manifest by its name, its window and the broadcast that it is for."""

    @property
    def round_id(self) -> bytes: ...  # noqa: D102
    @property
    def broadcast(self) -> bytes: ...  # noqa: D102
    @property
    def closes(self) -> int: ...  # noqa: D102


class Round(Protocol):
    """A round whose manifest, once signed and opened, everybody may read."""

    @property
    def number(self) -> int: ...  # noqa: D102
    @property
    def state(self) -> str: ...  # noqa: D102
    @property
    def signed(self) -> bytes | None: ...  # noqa: D102
    @property
    def broadcast(self) -> bytes: ...  # noqa: D102
    @property
    def manifest(self) -> Named: ...  # noqa: D102
    @property
    def why(self) -> str | None: ...  # noqa: D102


@dataclass(frozen=True)
class PublicRounds:
    """The rounds as everybody may read them."""

    open: tuple[str, bytes] | None = None  # id and signed manifest of the open one
    manifests: Mapping[str, bytes] = field(default_factory=dict)  # of all, by id
    broadcasts: Mapping[str, bytes] = field(default_factory=dict)  # by SHA-256
    ended: str = ""  # why no round will ever be open again, if there is no model

    @classmethod
    def of(
        cls,
        rounds: Sequence[Round],
        *,
        is_retired: bool,
        withheld: str = "",
        goes_on: bool = False,
    ) -> PublicRounds:
        """What may be read of these rounds: those that were opened.

        The run `goes_on` without those of them that are void, or it has ended.
        """
        ended = "its operator has retired it" if is_retired else withheld
        is_void = bool(rounds) and rounds[-1].state in (VOIDING, VOID)
        if is_void and not goes_on:
            ended = f"{nth_round(rounds[-1].number)} is void"
        opened = [
            (row, row.manifest.round_id.hex(), row.signed)
            for row in rounds
            if row.signed is not None and row.state not in (PLANNED, SIGNED)
        ]
        still = [(id_, sent) for row, id_, sent in opened if row.state == OPEN]
        return cls(
            still[-1] if still else None,
            {id_: sent for _, id_, sent in opened},
            {row.manifest.broadcast.hex(): row.broadcast for row, _, _ in opened},
            ended,
        )
