"""Tables as plain columns and a small JSON description, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Categories, Category, Numeric, Text, Vectors
from tacit.data.impressions import Impressions, Slates
from tacit.data.interactions import Interactions
from tacit.data.left_out import LeftOut
from tacit.data.ragged import Ragged
from tacit.data.strings import Strings
from tacit.errors import BadValue

Columns = dict[str, NDArray[Any]]

# Only these can be restored: a damaged description cannot name any other class.
_PARTS = {
    part.__name__: part
    for part in (
        *(Dataset, Interactions, Impressions, Slates, Catalog, Profiles),
        LeftOut,
        *(Ragged, Strings),
        *(Category, Categories, Numeric, Vectors, Text),
    )
}


def describe(value: object, path: str) -> tuple[Any, Columns]:
    """JSON for a data set or a part of it, and its arrays, named by their path."""
    columns: Columns = {}
    return _describe(value, path, columns), columns


def restore(described: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]) -> Any:
    """The inverse of `describe`; BadValue if it is not one, whatever it is."""
    try:
        return _restore(described, columns)
    except BadValue:
        raise
    except Exception as error:  # of whatever kind: both may come from outside
        raise BadValue(f"is not a data set or a part of one: {error!r}") from error


def _restore(described: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]) -> Any:
    if "column" in described:
        return columns[described["column"]]
    if "map" in described:
        return {k: _restore(v, columns) for k, v in described["map"].items()}
    if "part" in described:
        fields = {k: _restore(v, columns) for k, v in described["fields"].items()}
        part = _PARTS[described["part"]](**fields)
        if isinstance(part, Strings):  # the only part that its constructor trusts
            part.check()
        return part
    return described["value"]


def _describe(value: object, path: str, columns: Columns) -> object:
    if isinstance(value, np.ndarray):
        columns[path] = value
        return {"column": path}
    if isinstance(value, Mapping):
        items = value.items()
        return {"map": {k: _describe(v, f"{path}/{k}", columns) for k, v in items}}
    if (part := _PARTS.get(type(value).__name__)) is not None:
        names = [field.name for field in dataclasses.fields(part)]
        parts = {n: _describe(getattr(value, n), f"{path}.{n}", columns) for n in names}
        return {"part": part.__name__, "fields": parts}
    if value is None or isinstance(value, str | int):  # what JSON gives back as it was
        return {"value": value}
    raise BadValue(f"{path} is a {type(value).__name__}, which cannot be kept")
