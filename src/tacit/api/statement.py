"""What a run or a plan promises, as text, as rows and as a table in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.records import Records
from tacit.release import Standing, Unit, View
from tacit.reporting import elements, guarantees, plain_words
from tacit.reporting.terminal import wrapped
from tacit.statement import Statement


@dataclass(frozen=True)
class PrivacyStatement:
    """Who sees what of a user, under which guarantee; print it to read it.

    `lines` are the totals of the account. A figure stands with its standing: only what
    is `PROVEN` or `ASSUMED` has an epsilon, and where nothing is promised the line says
    why.
    """

    lines: tuple[Statement, ...]
    is_release: bool = False
    could_be_released: bool = True

    @property
    def epsilon(self) -> float | None:
        """The epsilon of a whole history through the published model; None without.

        Where public groups have budgets of their own, it is the largest of them.
        """
        mine = [
            line
            for line in self.lines
            if (line.unit, line.view) == (Unit.USER, View.RELEASE)
        ]
        if any(not line.standing.has_epsilon for line in mine):
            return None
        return max(
            (e for line in mine if (e := line.epsilon) is not None), default=None
        )

    @property
    def words(self) -> list[str]:
        """One plain sentence for each observer: how far a belief can grow."""
        return plain_words.in_words(self.lines)

    def rows(self) -> Records[dict[str, Any]]:
        """Every line with all of its fields, one row per line."""
        return Records(
            {name: _plain(value) for name, value in vars(line).items()}
            for line in self.lines
        )

    def __str__(self) -> str:
        head = wrapped(self._purpose, guarantees.WIDTH)
        return "\n".join([*head, *guarantees.in_short(self.lines)])

    def _repr_html_(self) -> str:
        table = elements.table(guarantees.as_table(self.lines), heads=1)
        return elements.paragraph(self._purpose) + table

    @property
    def _purpose(self) -> str:
        return plain_words.purpose(
            is_release=self.is_release, could_be_released=self.could_be_released
        )


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Unit | View | Standing) else value
