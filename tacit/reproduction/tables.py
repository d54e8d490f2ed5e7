"""What a reproduction yields, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One cell of a published table: theirs, ours as published, ours as proven."""

    label: str
    published: float
    paper: float | None
    sound: float | None
    ok: bool  # whether `paper` is the published figure to its digits
    note: str = ""


@dataclass(frozen=True)
class ReproducedTable:
    """A table of a paper."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Claim:
    """Something the paper says, and whether we find it so."""

    text: str
    ok: bool
    evidence: str


@dataclass(frozen=True)
class Reproduction:
    """Tables and claims."""

    tables: tuple[ReproducedTable, ...]
    claims: tuple[Claim, ...]

    @classmethod
    def joined(cls, parts: Sequence[Reproduction]) -> Reproduction:
        """Several as one."""
        return cls(
            tuple(table for part in parts for table in part.tables),
            tuple(claim for part in parts for claim in part.claims),
        )
