"""Ids of a table as numbers, in the order in which they are first seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int64

from tacit.data.parsing.csv_rows import Batch
from tacit.data.parsing.quote import quoted


class _Numbers(dict[str, int]):
    """A number for each text, given when it is first asked for."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


@dataclass
class Ids:
    """Numbers for ids, in the order in which they are first seen."""

    numbers: _Numbers = field(default_factory=_Numbers)
    codes: list[Int64[np.ndarray, "batch"]] = field(default_factory=list)

    def add(self, texts: Sequence[str]) -> None:
        """Number one batch of ids."""
        codes = map(self.numbers.__getitem__, texts)  # in C: no Python loop per line
        self.codes.append(np.fromiter(codes, np.int64, len(texts)))

    def add_once(self, batch: Batch, column: str) -> Batch:
        """Number ids that must not be blank or repeated; the batch of all others."""
        problems = blanks(batch, column)
        seen: set[str] = set()
        for row, text in enumerate(batch.columns[column]):
            if text and (text in self.numbers or text in seen):
                problems[row] = f"{column}={quoted(text)} occurs twice; list it once"
            seen.add(text)
        batch = batch.without(problems) if problems else batch
        self.add(batch.columns[column])
        return batch


def blanks(batch: Batch, column: str) -> dict[int, str]:
    """The rows whose cell in this column is blank, and what to say of them."""
    texts = batch.columns[column]
    return {
        r: f"column {column!r} is blank"
        for r, text in enumerate(texts)
        if not text.strip()
    }
