"""Evaluations that a run has made so far, kept until its result is written.

Ranking for many users, or the fit of a large baseline, may be stopped or may fail. What
was ranked by then is found again when the run is resumed, also with other baselines.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from tacit.documents import read_document, write_document
from tacit.experiment.settings import Experiment
from tacit.files import remove_directory
from tacit.results import Evaluation
from tacit.runtime.run import RunDirectory

_FOLDER = "evaluations"


@dataclass(frozen=True, eq=False)
class Ranked:
    """A contender by the experiment's protocol and, if asked for, among all items."""

    own: Evaluation
    among_all: Evaluation | None


@dataclass(frozen=True)
class KeptEvaluations:
    """The evaluations in the folder of one run; they are as private as its users."""

    experiment: Experiment
    folder: Path

    @classmethod
    def of(cls, experiment: Experiment, directory: RunDirectory) -> KeptEvaluations:
        """Those of this experiment in its directory."""
        return cls(experiment, directory.path / _FOLDER)

    def find(self, name: str) -> Ranked | None:
        """What was kept of a contender; None if nothing was."""
        path = self._path(name)
        if not path.exists():
            return None
        kept = read_document(path, needs_checksum=True)
        among_all = kept.get("among_all")
        return Ranked(
            Evaluation.from_json(kept["own"]),
            None if among_all is None else Evaluation.from_json(among_all),
        )

    def keep(self, name: str, ranked: Ranked) -> None:
        """Write down what a contender got."""
        document = {"contender": name, "own": ranked.own.to_json()}
        if ranked.among_all is not None:
            document["among_all"] = ranked.among_all.to_json()
        write_document(self._path(name), document, is_private=True)

    def drop(self) -> None:
        """Remove all of them: the result of the run has them now."""
        if self.folder.exists():
            remove_directory(self.folder)

    def _path(self, name: str) -> Path:
        """A name that changes with the training and with a baseline's settings."""
        settings = self.experiment.evaluate.baseline_settings.get(name, {})
        decided = [self.experiment.digest, name, {**settings}]
        if (list_for := self.experiment.serve.ranked_for) != "any":
            decided.append(list_for)
        text = json.dumps(decided, sort_keys=True).encode()
        digest = hashlib.blake2b(text, digest_size=16).hexdigest()
        return self.folder / f"{digest}.json"
