"""What a data set does not have of the table it was read from."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.data.parsing.bad_lines import BadLines
from tacit.data.strings import Strings


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Lines that could not be used, and events with items that are not listed."""

    bad_lines: int
    first: Strings  # the first bad lines: their numbers, and what is wrong
    unlisted: int

    @classmethod
    def of(cls, bad: BadLines | None, *, unlisted: int) -> LeftOut | None:
        """What was left out; None if nothing was."""
        bad = bad or BadLines()
        if not bad.count and not unlisted:
            return None
        return cls(bad.count, Strings.of(bad.first), unlisted)

    def sentences(self) -> list[str]:
        """What a user should know of it."""
        told = []
        if self.bad_lines:
            first = self.first[0]
            told.append(
                f"{self.bad_lines:,} bad lines were left out, the first: {first}"
            )
        if self.unlisted:
            told.append(
                f"{self.unlisted:,} events with items that are not listed were left out"
            )
        return told
