"""The figures that a paper prints, as data: `published.toml` beside the study.

[figure-4]
where = "Figure 4, page 6"
says = "HR@10; k = 100, 2.5 a report, 20 epochs"

[figure-4.values]
"1000 x 5000" = 0.1010
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit import check
from tacit.errors import BadData, BadValue


@dataclass(frozen=True)
class PublishedTable:
    """One table, figure or section of a paper and the numbers in it."""

    name: str
    where: str  # its number in the paper, and the page
    says: str
    values: Mapping[str, Any]

    def value(self, *path: str) -> float | None:
        """The number under these labels; None where the paper prints none."""
        found: Any = self.values
        for label in path:
            if not isinstance(found, Mapping):
                raise BadValue(f"{self.where} has a number before '{label}'")
            if label not in found:
                return None
            found = found[label]
        if isinstance(found, Mapping):
            raise BadValue(
                f"{self.where}: {' '.join(path)!r} is no number; it has "
                f"{', '.join(found)}"
            )
        return float(found)

    def numbers(self) -> list[float]:
        """Every number of it, in the order of the file."""
        return _numbers(self.values)


class Published:
    """All published tables of a paper."""

    def __init__(self, tables: Mapping[str, PublishedTable]) -> None:
        self.tables = tables

    @classmethod
    def read(cls, path: Path) -> Published:
        """The tables of a TOML file; each says where it stands in the paper."""
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return cls({name: _table(path, name, one) for name, one in document.items()})

    def __getitem__(self, name: str) -> PublishedTable:
        if name not in self.tables:
            raise BadValue(f"published table {check.unknown(name, self.tables)}")
        return self.tables[name]


def _table(path: Path, name: str, document: Any) -> PublishedTable:
    if not isinstance(document, Mapping) or not document.get("where"):
        raise BadData(path, None, f"[{name}] needs where = its number and page")
    return PublishedTable(
        name, document["where"], document.get("says", ""), document.get("values", {})
    )


def _numbers(values: Any) -> list[float]:
    if not isinstance(values, Mapping):
        return [float(values)]
    return [number for one in values.values() for number in _numbers(one)]
