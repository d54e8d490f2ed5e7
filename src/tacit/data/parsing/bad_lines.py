"""Lines of a table that cannot be used: counted, and the first of them shown."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_SHOWN = 20


@dataclass
class BadLines:
    """How many lines were left out of a table, and what was wrong with the first."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def note(self, line: int, problem: str) -> None:
        """Counts one line, and keeps its number and problem while there are few."""
        self.count += 1
        if len(self.first) < MOST_SHOWN:
            self.first.append(f"line {line}: {problem}")
