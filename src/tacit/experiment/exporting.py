"""A run for devices that have neither Python nor this package: two files.

model.onnx   from histories to scores
model.json   what goes in and comes out, the items, and what was promised to whom
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tacit.errors import BadRun, Refused
from tacit.experiment.privacy_card import current_card
from tacit.experiment.registry import method_class, method_names
from tacit.experiment.saved_run import SavedRun, load
from tacit.files import draft_directory, new_file, sweep, write_json
from tacit.method import Exportable, ListFor
from tacit.models.onnx_graph import Formula
from tacit.runtime.run import RunDirectory
from tacit.serving.model_file import read_facts
from tacit.serving.onnx_file import INPUT, OPSET, OUTPUT, Precision, to_onnx
from tacit.serving.recommender import Recommender
from tacit.version import __version__

FORMAT = 2  # of the exported `model.json`; raised whenever its keys change

Json = dict[str, Any]

_INPUT: Mapping[ListFor, str] = {  # what a history has at every item of the user
    "any": "1 at every item the user has, or its value where the method weighs values",
    "session": "at every item the user has 1 / (1 + the number of items that came "
    "later), by its latest event; items of the same moment weigh the same",
    "visit": "at every item the user has 2^(-days / 30), days between its latest event "
    "and the latest of all; 1 at every item where no times are known",
}


@dataclass(frozen=True)
class Exported:
    """The paths of the two files, and the document in the second."""

    model: Path
    facts: Path
    document: Json


def export(
    run: Path,
    out: Path | None = None,
    *,
    precision: Precision = "float32",
    list_for: ListFor | None = None,
) -> Exported:
    """Write the model of a finished run into `out`, a new directory.

    By default that is `export` in the run's own, and lists are for what the run's
    experiment says. All of it is public already, so nothing is released.
    """
    directory = SavedRun.at(run).directory
    folder = directory.path / "export" if out is None else out
    # Before the model is loaded, which may take longer than the refusal.
    _refuse_what_is_there(folder)
    recommender = load(run, list_for=list_for)
    content = to_onnx(
        _formula(recommender), n_items=len(recommender.catalog), precision=precision
    )
    document = {
        "format": FORMAT,
        "tacit": __version__,
        "list_for": recommender.list_for,
        "onnx": _onnx_facts(content, precision, recommender.list_for),
        **_model_facts(directory),
        "items": _items(recommender),
        **_privacy_facts(directory),
    }
    made = Exported(folder / "model.onnx", folder / "model.json", document)
    with draft_directory(folder) as beside:  # both files are there, or neither
        with new_file(beside / made.model.name) as file:
            file.write(content)
        write_json(beside / made.facts.name, document)
    return made


def exportable() -> list[str]:
    """The installed methods that have a formula."""
    return [n for n in method_names() if issubclass(method_class(n), Exportable)]


def _refuse_what_is_there(folder: Path) -> None:
    """Refuse a folder that is not empty; half-written files are removed first."""
    if folder.is_dir():
        sweep(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadRun(
            f"{folder} is there already, and nothing is overwritten; remove it, or "
            "choose another directory with --out"
        )


def _formula(recommender: Recommender) -> Formula:
    method = recommender.method
    if not isinstance(method, Exportable):
        raise Refused(
            f"{type(method).__name__} has no formula from a history to scores, so a "
            "client needs this package to rank with it. Methods that can be exported: "
            f"{', '.join(exportable())}"
        )
    return method.formula(recommender.broadcast)


def _onnx_facts(content: bytes, precision: Precision, list_for: ListFor) -> Json:
    end = {"type": precision, "axes": ["people", "items"]}  # axis names of format 1
    return {
        "file": "model.onnx",
        "bytes": len(content),
        "sha256": sha256(content).hexdigest(),
        "opset": OPSET,
        "input": {
            "name": INPUT,
            **end,
            "meaning": f"one row per user: {_INPUT[list_for]}; else 0",
        },
        "output": {
            "name": OUTPUT,
            **end,
            "meaning": "larger is better; leave out what the user has, and of equal "
            "scores take the earlier item first",
        },
    }


def _model_facts(directory: RunDirectory) -> Json:
    """What the run's own `model.json` says of the method and of what protected it."""
    facts = read_facts(directory.model_facts)
    names = ("method", "privacy", "round", "plan")  # the first format has no "privacy"
    return {name: facts[name] for name in names if name in facts}


def _items(recommender: Recommender) -> list[Json]:
    """The items in the order of the axis."""
    catalog = recommender.catalog
    pairs = zip(catalog.ids, catalog.titles, strict=True)
    return [{"id": own, "title": title} for own, title in pairs]


def _privacy_facts(directory: RunDirectory) -> Json:
    """The totals of the privacy card, each with its standing."""
    card = current_card(directory)
    return {
        "simulation": card["simulation"],
        "epsilons": card["totals"],
        "epsilons_with_earlier": card["both"],
        "contact": card["contact"],
    }
