"""Steps of a long reproduction, made once: in a process, and in a directory.

    @kept(write, read)         like functools.cache; arguments are small dataclasses
    with keeping(directory):   what was made before is read, what is new is added

A file is named by the function, its arguments and the source of this package: a step
that other code made is made again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from tacit.files import write_atomically
from tacit.results import Evaluation, Json

_LOG = logging.getLogger("tacit.reproduction")
_DIRECTORY: ContextVar[Path | None] = ContextVar("directory", default=None)

Given = ParamSpec("Given")
Made = TypeVar("Made")
Step = Callable[Given, Made]


@contextmanager
def keeping(directory: Path) -> Iterator[None]:
    """Steps made inside are kept in this directory, and read from it."""
    token = _DIRECTORY.set(directory)
    try:
        yield
    finally:
        _DIRECTORY.reset(token)


def kept(
    write: Callable[[Made], Any], read: Callable[[Any], Made]
) -> Callable[[Step[Given, Made]], Step[Given, Made]]:
    """Make a step once; `write` and `read` turn it into plain JSON and back."""

    def wrap(make: Step[Given, Made]) -> Step[Given, Made]:
        known: dict[str, Made] = {}

        @functools.wraps(make)
        def step(*args: Given.args, **kwargs: Given.kwargs) -> Made:
            said = f"{make.__module__}.{make.__name__}{args!r}{sorted(kwargs.items())}"
            if said not in known:
                path = _path(make.__name__, said)
                if path is not None and path.exists():
                    _LOG.info("%s is at hand in %s", make.__name__, path)
                    known[said] = read(json.loads(path.read_text("utf-8")))
                    return known[said]
                known[said] = make(*args, **kwargs)
                if path is not None:
                    text = json.dumps(write(known[said]))  # of each person
                    write_atomically(path, text.encode(), is_private=True)
            return known[said]

        return step

    return wrap


def numbered(found: dict[int, Evaluation]) -> Json:
    """Evaluations by round or epoch, as plain JSON."""
    return {str(number): one.to_json() for number, one in found.items()}


def read_numbered(document: Json) -> dict[int, Evaluation]:
    """What `numbered` wrote."""
    return {int(n): Evaluation.from_json(one) for n, one in document.items()}


def _path(name: str, said: str) -> Path | None:
    """Where a step is kept, if anything is."""
    directory = _DIRECTORY.get()
    if directory is None:
        return None
    digest = hashlib.sha256(f"{said} by {_source()}".encode()).hexdigest()
    return directory / f"{name}-{digest[:16]}.json"


@functools.cache
def _source() -> str:
    """A digest of every module of the package."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()
