"""A run that is there: its experiment, its model, what a simulated person holds."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.shards import Shards
from tacit.errors import BadRun, BadValue
from tacit.experiment.fields import Problems
from tacit.experiment.registry import method_class
from tacit.experiment.settings import Experiment, read_experiment
from tacit.runtime.run import RunDirectory
from tacit.serving.device import Holding, Recommender
from tacit.serving.model import load_model


def load(run: str | Path) -> Recommender:
    """The trained model of a run directory, ready to recommend on this device.

    Needs `model.safetensors` and `model.json` only: no data set, no torch.
    """
    directory = RunDirectory(Path(run))
    model = load_model(directory.model, directory.model_facts)
    fields = {key: v for key, v in model.method.items() if key != "name"}
    problems = Problems()
    method = problems.read(method_class(model.method["name"]), fields, "method")
    if method is None:
        raise BadRun(f"{directory.model_facts}: {'; '.join(problems.found)}")
    return Recommender(method, model.cast, model.catalog)


@dataclass(frozen=True)
class SavedRun:
    """A run directory with a run in it."""

    directory: RunDirectory

    @classmethod
    def at(cls, path: Path) -> SavedRun:
        """The run in this directory; refuses one that holds none."""
        directory = RunDirectory(path)
        if not directory.experiment.exists():
            raise BadRun(
                f"{path} holds no run; make one with: "
                f"tacit train EXPERIMENT --out {path}"
            )
        return cls(directory)

    @property
    def experiment(self) -> Experiment:
        """The resolved experiment."""
        return read_experiment(self.directory.experiment)

    @property
    def result(self) -> dict[str, Any]:
        """What the run yielded; refuses one that is not finished."""
        if not self.directory.result.exists():
            raise BadRun(
                f"{self.directory.path} is not finished; continue it with: "
                f"tacit train {self.directory.experiment} --out {self.directory.path} "
                "--resume"
            )
        document: dict[str, Any] = json.loads(self.directory.result.read_text("utf-8"))
        return document


def holding_of(recommender: Recommender, experiment: Experiment, user: str) -> Holding:
    """What the device of a simulated person holds: events, values, the profile."""
    from tacit.experiment.assemble import load_dataset

    dataset = load_dataset(experiment)
    row = dataset.profiles.index(user)
    log = dataset.interactions.take_users(np.array([row]))
    ids = [dataset.catalog.ids[item] for item in log.items.tolist()]
    known = recommender.catalog.ids.positions
    missing = [i for i in ids if i not in known]
    if missing:
        raise BadValue(
            f"user '{user}' has items the model does not know, such as {missing[0]}; "
            "the data has changed since the run was trained"
        )
    items = recommender.catalog.indices(ids).astype(np.int32)
    log = replace(log, items=items, n_items=len(recommender.catalog))
    return Holding(Shards.of(log), dataset.profiles.take([row]))
