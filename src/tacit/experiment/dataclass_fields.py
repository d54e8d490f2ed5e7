"""From a table of values to a frozen dataclass, with every problem noted.

The dataclass is the schema: its fields are the known keys, their types say what is
allowed, its constructor may refuse. Nothing is guessed: an unknown key is a problem
that names the known ones, an integer where a string belongs is a problem.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tacit import check
from tacit.errors import BadValue

T = TypeVar("T")


@dataclass
class Problems:
    """The problems found so far; reading goes on to find the rest."""

    found: list[str] = field(default_factory=list)

    def read(
        self,
        cls: type[T],
        table: object,
        where: str,
        *,
        also: Collection[str] = (),
        given: Mapping[str, Any] | None = None,
    ) -> T | None:
        """The dataclass of a table; None if it has a problem.

        `also` are keys that this table may have elsewhere, to be named among the known
        ones. `given` are fields that do not come from the table.
        """
        if not isinstance(table, Mapping):
            self.found.append(f"{where} must be a table, not {_shown(table)}")
            return None
        given = given or {}
        own = (f for f in fields(cls) if f.init and f.name not in given)  # type: ignore[arg-type]
        known = {f.name: f for f in own}
        for key in table:
            if key not in known:
                legal = [*known, *also]
                self.found.append(f"{where}: key {check.unknown(str(key), legal)}")
        before = len(self.found)
        # Annotations are strings here (`from __future__`), so they are resolved first.
        hints = get_type_hints(cls)
        values = {
            name: self._value(table[name], hints[name], f"{where}.{name}")
            for name in known
            if name in table
        }
        self._missing(known, table, where)
        if len(self.found) > before:
            return None
        return self._made(cls, values, given, where)

    def _missing(
        self, known: Mapping[str, Field[Any]], table: Mapping[str, object], where: str
    ) -> None:
        for name, f in known.items():
            if _is_required(f) and name not in table:
                self.found.append(f"{where}.{name} is missing")

    def _made(
        self, cls: type[T], values: dict[str, Any], given: Mapping[str, Any], where: str
    ) -> T | None:
        """The dataclass; what its constructor refuses is said for every value."""
        try:
            return cls(**values, **given)
        except BadValue as error:
            # The given fields may not fit the defaults; that is no value's fault.
            anyway = _refusal(cls, values, given) if given else None
            # Constructors stop at the first problem; each value alone shows all of
            # them.
            alone = [_refusal(cls, values, given, name) for name in values]
            own = [r for r in alone if r not in (None, anyway)]
            reasons = dict.fromkeys(own or [str(error)])
            self.found += [f"{where}: {reason}" for reason in reasons]
            return None

    def _value(self, value: object, hint: Any, where: str) -> Any:
        try:
            return convert(value, hint)
        except BadValue as error:
            self.found.append(f"{where} {error}")
            return None


def convert(value: object, hint: Any) -> Any:
    """A TOML value as the type a field declares, or an error that says what it takes.

    >>> convert(3, float)
    3.0
    >>> convert("3", int)
    Traceback (most recent call last):
    tacit.errors.BadValue: must be an integer, not '3'
    """
    origin = get_origin(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _first_that_fits(value, get_args(hint))
    if origin is Literal:
        if value in get_args(hint):
            return value
        raise BadValue(f"must be one of {', '.join(map(repr, get_args(hint)))}")
    if origin is tuple:
        return tuple(convert(v, get_args(hint)[0]) for v in _listed(value))
    if origin is not None and issubclass(origin, Mapping):
        return {str(k): convert(v, get_args(hint)[1]) for k, v in _table(value).items()}
    return _plain(value, hint)


def _refusal(
    cls: type[Any], values: Mapping[str, Any], given: Mapping[str, Any], *names: str
) -> str | None:
    """What the constructor says to these values, the others at their defaults."""
    required = {f.name for f in fields(cls) if _is_required(f)} & values.keys()
    try:
        cls(**{key: values[key] for key in {*required, *names}}, **given)
    except BadValue as error:
        return str(error)
    return None


def _is_required(f: Field[Any]) -> bool:
    return f.init and f.default is MISSING and f.default_factory is MISSING


_NAMES = {int: "an integer", float: "a number", str: "a string", bool: "true or false"}


def _plain(value: object, hint: Any) -> Any:
    if hint is Path and isinstance(value, str):
        return Path(value)
    # TOML writes 3 and 3.0 differently; for a number both are meant.
    if hint is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise BadValue(f"{_shown(value)} is too large for a number") from None
    if hint in _NAMES:
        # Not isinstance: True would pass as an integer.
        if type(value) is hint:
            return value
        raise BadValue(f"must be {_NAMES[hint]}, not {_shown(value)}")
    raise BadValue("cannot be set from a file; build the experiment in Python")


def _first_that_fits(value: object, hints: tuple[Any, ...]) -> Any:
    problems = []
    for hint in hints:
        # TOML has no null: None is what a key that is left out means.
        if hint is type(None):
            continue
        try:
            return convert(value, hint)
        except BadValue as error:
            problems.append(str(error))
    raise BadValue(" or ".join(problems))


def _listed(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return list(value)
    raise BadValue(f"must be a list, not {_shown(value)}")


def _table(value: object) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise BadValue(f"must be a table, not {_shown(value)}")


def _shown(value: object) -> str:
    return repr(value) if len(repr(value)) < 60 else f"{repr(value)[:57]}…"
