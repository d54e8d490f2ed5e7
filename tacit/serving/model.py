"""A model on disk: safetensors with a small JSON beside it; no pickle, no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from tacit.data.catalog import Catalog
from tacit.data.columns import describe, restore
from tacit.errors import BadRun
from tacit.files import write_atomically, write_json
from tacit.transport.messages import NO_PHASE, Cast
from tacit.tree import Arrays

FORMAT = 2
_READABLE = (1, FORMAT)  # in 1 the protection stood among the method's fields
_WEIGHTS = "weights/"


@dataclass(frozen=True, eq=False)
class Model:
    """What a device needs to rank: method and settings by name, weights, catalog."""

    method: Mapping[str, Any]  # `name` and the method's hyper-parameters
    privacy: Mapping[str, Any] | None  # `mechanism` and its fields; None: format 1
    cast: Cast
    catalog: Catalog


def save_model(model: Model, weights: Path, facts: Path) -> None:
    """Write both files, each in one step; the weights first."""
    described, columns = describe(model.catalog, "catalog")
    arrays = {_WEIGHTS + name: value for name, value in model.cast.weights.items()}
    content = {n: np.asarray(a, order="C") for n, a in (arrays | columns).items()}
    write_atomically(weights, save(content))
    document = {
        "format": FORMAT,
        "method": dict(model.method),
        "privacy": dict(model.privacy or {}),
        "round": model.cast.round,
        "plan": model.cast.agreement.hex(),
        "items": len(model.catalog),
        "catalog": described,
    }
    write_json(facts, document)


def load_model(weights: Path, facts: Path) -> Model:
    """The model in these files."""
    try:
        document = json.loads(facts.read_text(encoding="utf-8"))
        arrays = load_file(weights)
    except (OSError, ValueError, SafetensorError) as error:
        raise BadRun(
            f"{weights.parent} holds no finished model: {error}; train it first, or "
            "continue with --resume"
        ) from error
    if document.get("format") not in _READABLE:
        raise BadRun(
            f"{facts} has format {document.get('format')}; this program reads {FORMAT}"
        )
    try:
        return _model(document, arrays)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadRun(f"{facts} does not describe a model: {error!r}") from error


def _model(document: Mapping[str, Any], arrays: Arrays) -> Model:
    own = {
        name.removeprefix(_WEIGHTS): value
        for name, value in arrays.items()
        if name.startswith(_WEIGHTS)
    }
    cast = Cast(document["round"], bytes.fromhex(document["plan"]), own, NO_PHASE)
    catalog = restore(document["catalog"], arrays)
    if not isinstance(catalog, Catalog):
        raise TypeError("its catalog is something else")
    method, privacy = document["method"], document.get("privacy")
    if not isinstance(method["name"], str):
        raise TypeError(f"its method is called {method['name']!r}")
    if not isinstance(privacy, Mapping | None):
        raise TypeError(f"its privacy is no table: {privacy!r}")
    return Model(method, privacy, cast, catalog)
