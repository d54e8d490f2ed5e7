"""Names by which agreements know classes, and the digest of what is agreed.

    @register("gram", revision=1)
    @dataclass(frozen=True)
    class Gram(SumMethod): ...

A client and a server agree on one digest. It covers the registered name of every class
in it, the revision, and the fields. Raise the revision whenever what a client computes
under the class changes, or what the account says of it: whoever joined before then
refuses, and finishes with the version that began. A name is never given to another
class.

Fields may say how they count (`dataclasses.field(metadata=...)`):

    LATER   came after runs were agreed on: at its default it is left out
    PROSE   a sentence for readers: always left out

So a class may move and be renamed, and a sentence may be put better, without a change
of any digest.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from tacit import check
from tacit.errors import BadValue

LATER = {"later": True}
PROSE = {"prose": True}

DIGEST_BYTES = 16  # of an agreement: BLAKE2b of 128 bits

_T = TypeVar("_T", bound=type)
_OURS = "tacit"
_classes: dict[str, type] = {}  # by name
_names: dict[type, tuple[str, int]] = {}  # name and revision of each class


def register(name: str, *, revision: int = 1) -> Callable[[_T], _T]:
    """Registers a class for agreements; refuses a name that another class has.

    The name of another package's class carries the package: `package.name`.
    """
    check.at_least(1, revision=revision)

    def add(cls: _T) -> _T:
        package = _package(cls)
        if package != _OURS and not name.startswith(f"{package}."):
            raise BadValue(
                f"'{name}', the name of {_path(cls)} in agreements, must carry its "
                f"package: use '{package}.{name}'"
            )
        if cls in _names:
            raise BadValue(f"{_path(cls)} has the name '{_names[cls][0]}' already")
        # A cell of a notebook that is run again makes the same class once more.
        if _path(_classes.get(name, cls)) != _path(cls):
            raise BadValue(
                f"'{name}' is the name of {_path(_classes[name])} in agreements; give "
                f"{_path(cls)} another one"
            )
        _classes[name], _names[cls] = cls, (name, revision)
        return cls

    return add


def wire_name(cls: type) -> list[str | int]:
    """The registered name and the revision of a class; refuses one of ours without.

    A class of another package has, until it is registered, the name of the place where
    it stands, so that a method can be tried without ceremony.
    """
    if cls in _names:
        return [*_names[cls]]
    if _package(cls) == _OURS:
        raise BadValue(
            f"{_path(cls)} cannot be agreed on: it has no registered name; put "
            f"@register('name') of {__name__} above it"
        )
    return [_path(cls), 1]


def digest_of(value: object) -> bytes:
    """A digest of 16 bytes that changes with anything in `value`."""
    text = json.dumps(describe(value), sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()


def describe(value: object) -> Any:
    """Plain data that is equal for equal values, and different for different ones.

    A dataclass is the registered name of its class and the fields that it is compared
    by, without prose. What cannot be written down is refused: nobody could agree to it.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return {"number": repr(value)}
        return int(value) if value.is_integer() else value  # 4.0 equals 4
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, type):
        return {"class": wire_name(value)}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, np.ndarray):
        return {"array": [str(value.dtype), [*value.shape], _bytes_digest(value)]}
    if is_dataclass(value):
        own = {
            f.name: describe(getattr(value, f.name))
            for f in fields(value)
            if _is_agreed(f, value)
        }
        return {"class": wire_name(type(value)), "fields": own}
    if isinstance(value, Mapping):  # its order counts: codes of groups refer to it
        return {"pairs": [[describe(k), describe(v)] for k, v in value.items()]}
    if isinstance(value, Sequence):
        return [describe(item) for item in value]
    raise BadValue(
        f"{value!r} cannot be agreed on: settings are numbers, texts, dataclasses, "
        "tables and lists of these"
    )


def _bytes_digest(value: np.ndarray[Any, Any]) -> str:
    content = np.ascontiguousarray(value).tobytes()
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).hexdigest()


def _is_agreed(field: Field[Any], value: object) -> bool:
    """Whether a field of a dataclass is part of what is agreed."""
    if not field.compare or field.metadata.get("prose", False):
        return False
    if not field.metadata.get("later", False):
        return True
    factory = field.default_factory
    default = field.default if factory is MISSING else factory()
    return bool(getattr(value, field.name) != default)


def _package(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
