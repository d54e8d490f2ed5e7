"""One shape of message for bad values: the value, what is allowed, what to do.

>>> positive(epsilon=0.0, remedy="use mechanism = 'none' to train without protection")
Traceback (most recent call last):
tacit.errors.BadValue: epsilon=0.0 must be > 0; use mechanism = 'none' to train ...
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Collection, Mapping
from numbers import Integral

from tacit.errors import BadValue

Number = int | float

_MOST_NAMED = 40  # all data sets; of the ids of items or users only some


def finite(*, remedy: str = "", **values: Number) -> None:
    """Refuse values that are not finite numbers."""
    _each(values, lambda _: True, "", remedy)


def positive(*, remedy: str = "", **values: Number) -> None:
    """Refuse values that are not finite and above zero."""
    _each(values, lambda v: v > 0, "must be > 0", remedy)


def not_negative(*, remedy: str = "", **values: Number) -> None:
    """Refuse values that are not finite and at least zero."""
    _each(values, lambda v: v >= 0, "must be >= 0", remedy)


def at_least(least: Number, *, remedy: str = "", **values: Number) -> None:
    """Refuse values that are not finite and at least `least`."""
    _each(values, lambda v: v >= least, f"must be >= {least}", remedy)


def count(*, remedy: str = "", **values: int) -> None:
    """Refuse values that are not whole numbers of at least one."""
    _each(values, lambda v: v >= 1, "must be >= 1", remedy)
    _each(values, _is_whole, "must be a whole number", remedy)


def rate(*, remedy: str = "", **values: Number) -> None:
    """Refuse values outside (0, 1]."""
    _each(values, lambda v: 0 < v <= 1, "must be in (0, 1]", remedy)


def fraction(*, remedy: str = "", **values: Number) -> None:
    """Refuse values outside the open interval (0, 1)."""
    _each(values, lambda v: 0 < v < 1, "must be in (0, 1)", remedy)


def one_of(allowed: Collection[str], *, remedy: str = "", **values: str) -> None:
    """Refuse names that are not in `allowed`, and suggest the nearest one."""
    for name, value in values.items():
        if value not in tuple(allowed):  # a list or table from a file cannot be hashed
            raise BadValue(f"{name}={unknown(value, allowed)}{_tail(remedy)}")


def nearest(name: str, known: Collection[str]) -> str | None:
    """The name that was probably meant, if there is one; case and blanks do not count.

    >>> nearest("User ID", ["user_id", "item_id"])
    'user_id'
    """
    plain = {_plain(one): one for one in known}
    found = difflib.get_close_matches(_plain(name), plain, n=1)
    return plain[found[0]] if found else None


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum()) or name


def unknown(name: str, known: Collection[str]) -> str:
    """Say that `name` is not known, what is, and which one was probably meant.

    >>> unknown("movilens", ["movielens", "table"])
    "'movilens' is not known; did you mean 'movielens'? known: movielens, table"
    """
    near = nearest(str(name), known)
    hint = f"did you mean '{near}'? " if near else ""
    shown = sorted(known)
    if len(shown) > _MOST_NAMED:
        shown = [*shown[:_MOST_NAMED], f"… ({len(known)} in all)"]
    return f"{name!r} is not known; {hint}known: {', '.join(shown) or 'none'}"


def _each(
    values: Mapping[str, Number],
    allowed: Callable[[Number], bool],
    rule: str,
    remedy: str,
) -> None:
    for name, value in values.items():
        if not _is_finite(value):
            raise BadValue(f"{name}={value!r} must be a finite number{_tail(remedy)}")
        if not allowed(value):
            raise BadValue(f"{name}={value} {rule}{_tail(remedy)}")


def _is_finite(value: Number) -> bool:
    """Whether this is a number, not true or false, and neither NaN nor infinite."""
    try:
        return not isinstance(value, bool) and math.isfinite(value)
    except (TypeError, OverflowError):  # no number at all, or beyond any float
        return False


def _is_whole(value: Number) -> bool:
    return isinstance(value, Integral)  # numpy's integers too


def _tail(remedy: str) -> str:
    return f"; {remedy}" if remedy else ""
