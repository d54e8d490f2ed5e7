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
            lines = _counted(self.bad_lines, "bad line was", "bad lines were")
            told.append(f"{lines} left out, the first: {self.first[0]}")
        if self.unlisted:
            events = "events with items that are not listed were"
            one = "event with an item that is not listed was"
            told.append(f"{_counted(self.unlisted, one, events)} left out")
        return told

    def bad_ones(self) -> list[str]:
        """The bad lines, each with its number; of many, the first and how many more."""
        more = self.bad_lines - len(self.first)
        return [*self.first, *([f"… and {more:,} more"] if more else [])]


def _counted(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
