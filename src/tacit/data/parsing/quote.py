"""A piece of a file as an error shows it: quoted, and never long."""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST = 60  # characters
_MOST = 20  # of a list


def quoted(piece: str | bytes) -> str:
    r"""The piece in quotation marks, cut if it is long; odd characters are escaped.

    >>> quoted(b"caf\xe9")
    "'caf\\\\xe9'"
    >>> len(quoted("x" * 10_000_000))
    60
    """
    short = piece[: _LONGEST + 1]  # before decoding: a field may be a whole file
    text = short if isinstance(short, str) else short.decode(errors="backslashreplace")
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "…")


def listed(pieces: Sequence[str]) -> str:
    """The first pieces, each quoted, and how many there are if not all are shown."""
    shown = ", ".join(map(quoted, pieces[:_MOST]))
    more = len(pieces) - _MOST
    return f"{shown}, … ({len(pieces)} in all)" if more > 0 else shown
