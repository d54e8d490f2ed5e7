"""A run on disk: its experiment, its model, and what a simulated user holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int32, Int64

from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.documents import read_document
from tacit.errors import BadExperiment, BadMessage, BadRun, BadValue, Damaged
from tacit.experiment.dataclass_fields import Problems
from tacit.experiment.registry import method_class
from tacit.experiment.serve_settings import ServeSettings
from tacit.experiment.settings import (
    MOVED,
    Experiment,
    check_experiment,
    digest_of,
    read_method,
    read_table,
)
from tacit.method import ListFor, Method
from tacit.results import Evaluation
from tacit.runtime.checkpoint import OF_BEFORE
from tacit.runtime.run import ONLY, RunDirectory, in_its_place
from tacit.serving.model_file import load_model
from tacit.serving.recommender import Holding, Recommender
from tacit.statement import Statement

Items = Int64[np.ndarray, "items"]

_NO_RESULT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


def load(run: str | Path, *, list_for: ListFor | None = None) -> Recommender:
    """The trained model of a run directory, ready to recommend on this device.

    Its lists are for what `serve.list_for` of the run's experiment says, unless another
    `list_for` is given. It reads no data set, and no torch.
    """
    directory = RunDirectory(Path(run))
    model = load_model(directory.model, directory.model_facts)
    cls, problems = method_class(model.method["name"]), Problems()
    fields = {key: v for key, v in model.method.items() if key != "name"}
    if model.privacy is None:
        fields, protection = _from_first_format(cls, fields)
    else:
        protection = {**model.privacy}
    mechanism = str(protection.pop("mechanism", "none"))
    method = read_method(cls, fields, mechanism, protection, problems)
    if method is None:
        raise BadRun(f"{directory.model_facts}: {'; '.join(problems.found)}")
    try:
        # Kernels check no bounds, so a wrong shape must not get as far as ranking.
        method.model_layout(model.catalog).check(model.broadcast.weights)
    except BadMessage as error:
        raise BadRun(
            f"{directory.model} is not the model that {directory.model_facts.name} "
            f"describes: {error}; train it again, or get a whole copy"
        ) from error
    found = Recommender(method, model.broadcast, model.catalog)
    return found.ranking_for(_list_for(directory) if list_for is None else list_for)


def _list_for(directory: RunDirectory) -> ListFor:
    """What lists are for by the run's experiment; any where only the model is here."""
    if not directory.experiment.exists():
        return "any"
    serve = read_table(directory.experiment).get("serve", {})
    problems = Problems()
    settings = problems.read(ServeSettings, serve, "serve")
    if settings is None:
        raise BadRun(f"{directory.experiment}: {'; '.join(problems.found)}")
    return settings.ranked_for


def _from_first_format(
    cls: type[Method], fields: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tables of a model that an earlier version saved.

    Ranking needs the method's own fields only, so the fields of the noise are dropped;
    the mechanism's name stays, because only sums of the same kind add up.
    """
    known = {f.name for f in dataclass_fields(cls)} - {"privacy"}  # type: ignore[arg-type]
    gone = MOVED["method"].keys() - known
    own = {k: v for k, v in fields.items() if k not in gone}
    was = str(fields.get("privacy", "local" if "local" in cls.mechanisms else "none"))
    # These two settings chose the mechanism before it had a name.
    if own.get("mode") == "paper" and was != "none":
        was = "published"
    elif fields.get("report") == "one_bit":
        was = "local_bits"
    return own, {"mechanism": was if was in cls.mechanisms else "none"}


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
        """The resolved experiment; refuses one of an earlier version."""
        path = self.directory.experiment
        table = read_table(path)
        if not table:
            raise Damaged(path, "it is empty")
        privacy = table.get("privacy")
        # A run writes down every setting, and this one was not there before.
        if not isinstance(privacy, Mapping) or "mechanism" not in privacy:
            raise BadRun(
                f"{self.directory.path}: {OF_BEFORE}. Its {path.name} names no "
                "privacy.mechanism; if that file was cut short, get a whole copy"
            )
        known_as = self._digest(table)
        try:
            found = check_experiment(table, str(path), relative_to=path.parent)
        except BadExperiment as error:
            raise BadRun(
                f"{error}; another version of Tacit made the run at "
                f"{self.directory.path}: read it with that version, or train again "
                "into another directory"
            ) from error
        is_current = known_as in (None, found.digest)
        return found if is_current else replace(found, known_as=known_as)

    def _digest(self, table: Mapping[str, Any]) -> str | None:
        """The digest in the run's ledger; refuses a table that is not the one of it.

        It is that of the table as it was written, whatever settings there are today.
        """
        if not self.directory.ledger.exists():
            if self.directory.model.exists() or self.directory.result.exists():
                raise Damaged(self.directory.ledger, "it is gone, and there is a model")
            return None
        known_as = read_document(self.directory.ledger).get("experiment")
        try:
            written = [digest_of(table, with_baselines=flag) for flag in (False, True)]
        except (LookupError, AttributeError, TypeError, ValueError):
            written = []
        if known_as not in written:
            raise Damaged(
                self.directory.experiment,
                f"it is not the experiment that {self.directory.ledger} belongs to, "
                "or a version of Tacit made them that this one cannot read",
            )
        return str(known_as)

    @property
    def result(self) -> dict[str, Any]:
        """The content of result.json; refuses a run that is not finished."""
        if not self.directory.result.exists():
            raise BadRun(
                f"{self.directory.path} is not finished; continue it with: "
                f"tacit train {self.directory.experiment} --out {self.directory.path} "
                "--resume"
            )
        found = read_document(self.directory.result)
        try:
            placed = in_its_place(found)
            _check_result(placed)
        except _NO_RESULT as error:
            raise Damaged(
                self.directory.result, f"it is no result: {error!r}"
            ) from error
        return placed


def _check_result(result: Mapping[str, Any]) -> None:
    """Raise if this is no result: files of an earlier version have no checksum.

    It reads whatever is shown of a result later.
    """
    for line in (*result["epsilons"], *result.get("epsilons_with_earlier", ())):
        Statement.from_json(line)
    if not isinstance(result["method"], str):
        raise TypeError(f"its method is called {result['method']!r}")
    if result["simulation"]:
        for judged in result[ONLY]["evaluations"].values():
            Evaluation.from_json(judged)


def holding_of(recommender: Recommender, experiment: Experiment, user: str) -> Holding:
    """What the client of a simulated user holds: events, impressions, the profile."""
    # Here: `load` must work without the modules that read data sets.
    from tacit.experiment.assemble import load_dataset, refuse_without_times

    dataset = load_dataset(experiment)
    refuse_without_times(experiment, dataset.interactions.times)
    row = dataset.profiles.index(user)
    log = dataset.interactions.take_users(np.array([row]))
    shown = dataset.impressions
    shown = None if shown is None else shown.take_users(np.array([row]))
    is_named = log.per_item > 0
    if shown is not None:
        is_named = is_named | shown.named_items()
    # From the index in these data to the index in the model's catalog.
    renumbering = _indices(recommender, dataset.catalog, np.flatnonzero(is_named), user)
    n_items = len(recommender.catalog)
    log = replace(log, items=renumbering[log.items], n_items=n_items)
    if shown is not None:
        shown = shown.renumbered(renumbering, n_items=n_items)
    return Holding(Shards.of(log, shown), dataset.profiles.take([row]))


def _indices(
    recommender: Recommender, catalog: Catalog, items: Items, user: str
) -> Int32[np.ndarray, "catalog"]:
    """The index of each of the user's items in the model's catalog, -1 for others."""
    ids = [catalog.ids[item] for item in items.tolist()]
    known = recommender.catalog.ids.positions
    # Left out in silence, the list would be of somebody with another history.
    missing = [i for i in ids if i not in known]
    if missing:
        raise BadValue(
            f"user '{user}' has items the model does not know, such as {missing[0]}; "
            "the data has changed since the run was trained"
        )
    found = np.full(len(catalog), -1, np.int32)
    found[items] = recommender.catalog.indices(ids).astype(np.int32)
    return found
