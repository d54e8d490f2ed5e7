"""A finished run ranked again for its held-out users, beside its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tacit import check
from tacit.errors import Refused
from tacit.experiment.assemble import assemble
from tacit.experiment.pairs import pairs_with
from tacit.experiment.saved_run import SavedRun
from tacit.experiment.training import Nobody, Watch, evaluate_all, last_state, reading
from tacit.method import ListFor
from tacit.reporting.pairs import Paired
from tacit.results import Evaluation
from tacit.runtime.run import ONLY

Users = Literal["test", "validation"]

_COUNTED = ("clients_per_second", "bytes_up", "bytes_down")


@dataclass(frozen=True, eq=False)
class EvaluatedRun:
    """The metrics of a run and its baselines, and the paired differences of both.

    `differences` has the method and each baseline for every metric, the better first.
    """

    method: str
    users: Users
    list_for: ListFor
    evaluations: Mapping[str, Evaluation]
    differences: tuple[Paired, ...]
    result: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """Everything as plain data, as `tacit evaluate --json` prints it."""
        documents = {name: e.to_json() for name, e in self.evaluations.items()}
        own, simulated = documents[self.method], self.result[ONLY]
        return {
            "users": self.users,
            "list_for": self.list_for,
            "metrics": own["metrics"],
            "groups": own["groups"],
            "methods": {name: d["metrics"] for name, d in documents.items()},
            "differences": [asdict(pair) for pair in self.differences],
            "epsilons": self.result["epsilons"],
            "seconds": self.result["seconds"],
            "simulation_only": {key: simulated[key] for key in _COUNTED},
        }


def evaluate_run(
    path: Path,
    *,
    users: Users = "test",
    list_for: ListFor | None = None,
    watch: Watch | None = None,
) -> EvaluatedRun:
    """Rank for the held-out users of the run in this directory.

    The method and its baselines rank for the same users, so their differences are
    those of pairs. The same model may rank for something else than the run's own
    experiment says (`list_for`). Refuses a release, which holds nobody out.
    """
    check.one_of(("test", "validation"), users=users)
    saved = SavedRun.at(path)
    result, experiment = saved.result, saved.experiment.ranking_for(list_for)
    if experiment.is_release:
        raise Refused(
            f"a release holds nobody out, so there is nobody to rank for at {path}; "
            "simulate the same experiment with `tacit train`"
        )
    # The split follows from the seed: the same users are held out as in the run.
    watch = watch or Nobody()
    assembled = assemble(experiment, progress=watch.texts, reading=reading(watch))
    state, split = last_state(assembled, saved.directory), assembled.split
    heldout = split.test if users == "test" else split.validation
    found = evaluate_all(assembled, state, heldout, watch=watch)
    name = experiment.method_name
    others = [other for other in found if other != name]
    pairs = pairs_with(name, found, others)
    return EvaluatedRun(name, users, experiment.serve.ranked_for, found, pairs, result)
