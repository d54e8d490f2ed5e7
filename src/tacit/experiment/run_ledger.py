"""The ledger.json of a run: which rounds began, and what they can have told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.documents import read_document
from tacit.errors import BadRun, Damaged
from tacit.statement import Statement


@dataclass(frozen=True)
class RunLedger:
    """What a run has spent, for a client that took part the most often."""

    document: Mapping[str, Any]
    spent: tuple[Statement, ...]
    spent_with_earlier: tuple[Statement, ...]

    @classmethod
    def at(cls, path: Path) -> RunLedger:
        """The ledger in this file; refuses a file that is none."""
        document = read_document(path)
        if "rounds_begun" not in document or "spent" not in document:
            raise BadRun(
                f"{path} is not the ledger of a run: name the ledger.json of a run "
                "directory, or the ledger of a client"
            )
        try:
            spent, both = (
                tuple(map(Statement.from_json, document.get(name, ())))
                for name in ("spent", "spent_with_earlier")
            )
            begun = int(document["rounds_begun"])
            int(document["rounds_planned"])
        except (LookupError, TypeError, ValueError) as error:
            raise Damaged(path, f"it is no ledger: {error!r}") from error
        # As an earlier version wrote where one machine ran both operators.
        if begun and any(line.horizon.startswith("0 participations") for line in spent):
            raise BadRun(
                f"{path} counts 0 participations, and {begun:,} rounds have begun: it "
                "says less than was spent. What the run costs at the most stands in "
                "privacy-card.json beside it"
            )
        return cls(document, spent, both)

    def sentences(self) -> list[str]:
        """How far the run went, and what was released."""
        told = self.document
        return [
            f"A run's ledger: {told['rounds_begun']:,} of {told['rounds_planned']:,} "
            "rounds have begun; no client took part more than "
            f"{told.get('most_participations', 0):,} times.",
            *(f"released: {what}" for what in told.get("releases", ())),
        ]
