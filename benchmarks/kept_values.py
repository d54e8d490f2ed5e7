"""What finished runs of a study found, one line per run: a study that ends can go on.

A line has the run's description and the metric of every held-out user, by part. The
description is all that tells runs apart: delete the file when the code has changed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Values = dict[str, np.ndarray]  # by part: validation, test


@dataclass
class KeptValues:
    """Runs by their description; without a path they are computed every time."""

    path: Path | None

    def __post_init__(self) -> None:
        """Read what earlier runs left."""
        path = self.path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self._found = {
            _named(one["run"]): one["values"] for one in map(json.loads, lines)
        }

    def of(self, run: Mapping[str, object], compute: Callable[[], Values]) -> Values:
        """The values of this run, computed and written down if they are not there."""
        name = _named(run)
        if name not in self._found:
            print(name, file=sys.stderr, flush=True)
            values = {part: found.tolist() for part, found in compute().items()}
            self._found[name] = values
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps({"run": run, "values": values}) + "\n")
        return {part: np.array(found) for part, found in self._found[name].items()}


def _named(run: Mapping[str, object]) -> str:
    return json.dumps(run, sort_keys=True)
