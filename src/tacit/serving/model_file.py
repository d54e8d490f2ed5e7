"""A model on disk: safetensors with a small JSON beside it; no pickle, no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from tacit.data.catalog import Catalog
from tacit.data.columns import describe, restore
from tacit.documents import (
    CHECKSUM,
    digest_of,
    opened,
    parsed,
    read_bytes,
    say_unverified,
    write_document,
)
from tacit.errors import BadRun, Damaged
from tacit.files import write_atomically
from tacit.tensors import Layout, layout_of, read_tensors
from tacit.transport.messages import NO_PHASE, Broadcast
from tacit.tree import Arrays

FORMAT = 3  # raised whenever the keys of `model.json` change
_FIRST = ("format", "method", "round", "plan", "items", "catalog")
_KEYS = {  # of each format that is read
    1: {*_FIRST},  # the protection stood among the method's fields
    2: {*_FIRST, "privacy"},
    FORMAT: {*_FIRST, "privacy", "arrays", "digest"},
}
_NO_MODEL = (
    *(LookupError, TypeError, AttributeError, ValueError),
    *(RecursionError, ArithmeticError),
)
_WEIGHTS, _CATALOG = "weights/", "catalog"


@dataclass(frozen=True, eq=False)
class Model:
    """What a client needs to rank: method and settings by name, weights, catalog."""

    method: Mapping[str, Any]  # `name` and the method's hyper-parameters
    privacy: Mapping[str, Any] | None  # `mechanism` and its fields; None: format 1
    broadcast: Broadcast
    catalog: Catalog


def save_model(model: Model, weights: Path, facts: Path) -> None:
    """Write both files, each in one step.

    The weights come first: `facts` carry their digest, and without facts there is no
    model.
    """
    described, columns = describe(model.catalog, _CATALOG)
    arrays = {_WEIGHTS + name: value for name, value in model.broadcast.weights.items()}
    content = {n: np.asarray(a, order="C") for n, a in (arrays | columns).items()}
    written = save(content)
    write_atomically(weights, written)
    layout = layout_of(content)
    document = {
        "format": FORMAT,
        "method": dict(model.method),
        "privacy": dict(model.privacy or {}),
        "round": model.broadcast.round,
        "plan": model.broadcast.agreement.hex(),
        "items": len(model.catalog),
        "catalog": described,
        "arrays": {name: [kind, [*shape]] for name, (kind, shape) in layout.items()},
        "digest": digest_of(written),
    }
    write_document(facts, document)


def load_model(weights: Path, facts: Path) -> Model:
    """The model in these files.

    Nothing is allocated for arrays that `facts` does not declare, and weights must be
    finite numbers. Files of an earlier version declare nothing and are read unverified.
    """
    for file in (weights, facts):
        if not file.exists():
            raise BadRun(
                f"{weights.parent} holds no finished model: there is no {file.name}; "
                "train it first, or continue with --resume"
            )
    document = read_facts(facts)
    layout, digest = None, None
    if document["format"] == FORMAT:
        layout, digest = _declared(document, facts)
    arrays = read_tensors(weights, layout=layout, digest=digest).arrays
    try:
        model = _model(document, arrays)
    except _NO_MODEL as error:
        raise BadRun(f"{facts} does not describe a model: {error!r}") from error
    _refuse_what_is_not_finite(model.broadcast.weights, weights)
    return model


def read_facts(file: Path) -> dict[str, Any]:
    """What `model.json` says; an unknown format or key is refused."""
    document = parsed(file, read_bytes(file))
    form = document.get("format")
    if form in (1, 2) and CHECKSUM not in document:
        say_unverified(file)
    else:
        document = opened(file, document)
    known = _KEYS.get(form) if type(form) is int else None
    if known is None:
        raise BadRun(f"{file} has format {form}; this program reads {FORMAT}")
    if document.keys() != known:
        unknown, missing = document.keys() - known, known - document.keys()
        found = f"has unknown keys {sorted(unknown)}" if unknown else "lacks keys"
        lacks = f" and lacks {sorted(missing)}" if missing else ""
        raise BadRun(
            f"{file} {found}{lacks}; of format {form} the keys are "
            f"{', '.join(sorted(known))}"
        )
    return document


def _declared(document: Mapping[str, Any], facts: Path) -> tuple[Layout, str]:
    """The layout and the digest of the arrays that belong to the document."""
    try:
        listed = document["arrays"].items()
        layout = {name: (kind, (*shape,)) for name, (kind, shape) in listed}
    except (TypeError, ValueError, AttributeError) as error:
        raise Damaged(facts, f"it declares no arrays: {error}") from error
    return layout, document["digest"]


def _refuse_what_is_not_finite(weights: Arrays, file: Path) -> None:
    for name, value in weights.items():
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise BadRun(
                f"{file}: weight '{name}' has numbers that are not finite, so nothing "
                "can be ranked by it; look why training diverged"
            )


def _model(document: Mapping[str, Any], arrays: Arrays) -> Model:
    for name in arrays:
        if not name.startswith((_WEIGHTS, _CATALOG)):
            raise ValueError(f"{name!r} is neither a weight nor of the catalog")
    own = {
        name.removeprefix(_WEIGHTS): value
        for name, value in arrays.items()
        if name.startswith(_WEIGHTS)
    }
    if type(document["round"]) is not int or document["round"] < 0:
        raise TypeError(f"its round is {document['round']!r}")
    broadcast = Broadcast(
        document["round"], bytes.fromhex(document["plan"]), own, NO_PHASE
    )
    catalog = restore(document["catalog"], arrays)
    if not isinstance(catalog, Catalog):
        raise TypeError("its catalog is something else")
    if len(catalog) != document["items"]:
        raise ValueError(f"it has {len(catalog)} items, not {document['items']!r}")
    method, privacy = document["method"], document.get("privacy")
    if not isinstance(method["name"], str):
        raise TypeError(f"its method is called {method['name']!r}")
    if not isinstance(privacy, Mapping) and document["format"] != 1:
        raise TypeError(f"its privacy is no table: {privacy!r}")
    return Model(method, privacy, broadcast, catalog)
