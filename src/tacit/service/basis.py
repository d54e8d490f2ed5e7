"""The mechanism of queries as bytes: safetensors whose metadata say what it is.

A server makes it once from its public model, and clients use exactly that one: made
again on another processor, its numbers would differ in their last bits. Clients do not
have to trust it. What a query costs follows from the mechanism's own settings, whatever
its numbers are, and the client reckons it by itself.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from tacit.errors import BadMessage, TacitError
from tacit.keys import Key
from tacit.mechanisms.padding import Padding
from tacit.mechanisms.private_attention import GaussianAttention, LaplaceAttention
from tacit.mechanisms.private_vector import PrivateVector
from tacit.mechanisms.published import PublishedAttention, PublishedVector
from tacit.serving.interests import Interests
from tacit.serving.linear_decoder import LinearDecoder
from tacit.serving.noisy_attention import NoisyAttention
from tacit.serving.noisy_vector import NoisyVector
from tacit.serving.query_mechanism import InterestResponse, QueryMechanism
from tacit.serving.trained_basis import TrainedBasis
from tacit.tensors import read_tensors
from tacit.tree import Array

_MECHANISMS = (InterestResponse, NoisyAttention, NoisyVector)
# Only these are made from what a server sends.
_PARTS: dict[str, Any] = {
    part.__name__: part
    for part in (
        *_MECHANISMS,
        *(Interests, TrainedBasis, LinearDecoder, Padding),
        *(GaussianAttention, LaplaceAttention, PrivateVector),
        *(PublishedAttention, PublishedVector),
    )
}
_FACTS = "mechanism"  # the key of the only metadata


def write_basis(mechanism: QueryMechanism) -> bytes:
    """The bytes of a mechanism."""
    arrays: dict[str, Array] = {}
    described = _described(mechanism, "", arrays)
    return bytes(save(arrays, metadata={_FACTS: json.dumps(described)}))


def read_basis(path: Path) -> QueryMechanism:
    """The mechanism in a file that a server sent; refuses what is none."""
    try:
        found = read_tensors(path)
        for name, array in found.arrays.items():
            if array.dtype.kind != "f" or not np.isfinite(array).all():
                raise BadMessage(f"'{name}' has numbers that are not finite")
        made = _restored(json.loads(found.metadata[_FACTS]), found.arrays)
    except BadMessage:
        raise
    except (TacitError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise BadMessage(f"a basis that is none: {error}") from error
    except RecursionError as error:
        raise BadMessage("a basis that is none: it has too many levels") from error
    if not isinstance(made, _MECHANISMS):
        raise BadMessage("a basis that is no mechanism of queries")
    _try(made)
    return made


def _try(mechanism: QueryMechanism) -> None:
    """Refuse a mechanism whose numbers do not fit each other."""
    try:
        nobody = mechanism.nobody[None]
        said = mechanism.release(nobody, Key.from_os().alone())
        fits = said.shape == (1, mechanism.width)
        fits = fits and mechanism.decode(said).shape == nobody.shape
    except Exception as error:  # of whatever kind: the numbers came from outside
        raise BadMessage(f"a basis that makes no query: {error}") from error
    if not fits:
        raise BadMessage("a basis that makes queries of another length than it says")


def _described(value: object, path: str, arrays: dict[str, Array]) -> object:
    if isinstance(value, np.ndarray):
        arrays[path] = np.ascontiguousarray(value)
        return {"array": path}
    if type(value).__name__ in _PARTS and dataclasses.is_dataclass(value):
        fields = {
            field.name: _described(
                getattr(value, field.name), f"{path}/{field.name}", arrays
            )
            for field in dataclasses.fields(value)
        }
        return {"part": type(value).__name__, "fields": fields}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(f"{path} is a {type(value).__name__}, which no basis has")


def _restored(described: dict[str, Any], arrays: dict[str, Array]) -> Any:
    if "array" in described:
        return arrays[described["array"]]
    if "part" in described:
        fields = described["fields"].items()
        parts = {name: _restored(value, arrays) for name, value in fields}
        return _PARTS[described["part"]](**parts)
    value = described["value"]
    if not (value is None or isinstance(value, bool | int | float | str)):
        raise TypeError(f"{value!r:.40} is no setting")
    return value
