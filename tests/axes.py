"""A run-time checker of array axes and types, and of nothing else.

The rest of an annotation is mypy's business: here it would stop a test that hands over
a bad value on purpose before our own check sees it.

jaxtyping's hook wraps every function, and those inside of functions at every call. Most
of them speak of no array, so nothing of theirs is checked: they are left as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jaxtyping
from beartype import beartype
from jaxtyping import AbstractArray, jaxtyped

# Not the command line (Typer reads its signatures), not
# the kernels (numba compiles them), and not the readers of files: they have a call a
# row and hardly an array, and a check of every call takes ten times as long as reading.
ROOM = Path(__file__).parents[1] / "src" / "tacit" / "data"
WORLDS = (
    *("ground_truth", "news_articles", "news_world", "ragged_draws", "user_activity"),
    *("users_and_items", "weighted_sampling", "world"),
)
CHECKED = (
    *("tacit.arrays", "tacit.cipher", "tacit.exact_sum", "tacit.keys"),
    *("tacit.tree", "tacit.accounting", "tacit.data.splits"),
    *(f"tacit.data.{path.stem}" for path in ROOM.glob("[a-z]*.py")),
    *(f"tacit.data.synthetic.{name}" for name in WORLDS),
    *("tacit.models", "tacit.mechanisms", "tacit.aggregation", "tacit.transport"),
    *("tacit.sampling", "tacit.plans", "tacit.method", "tacit.methods"),
    *("tacit.phase", "tacit.privacy"),
    *("tacit.proofs.circuits", "tacit.proofs.proof"),
    *("tacit.baselines", "tacit.runtime", "tacit.results", "tacit.evaluation"),
    *("tacit.ledger", "tacit.audits", "tacit.attacks"),
    *("tacit.serving", "tacit.reporting", "tacit.testing", "tacit.experiment"),
)


_without_arrays: set[tuple[str, str, int]] = set()  # module, name and line


def install() -> None:
    """Check the arrays of whatever of ours is imported from now on."""
    jaxtyping.jaxtyped = where_arrays_are  # the hook's lines look it up there
    jaxtyping.install_import_hook(CHECKED, "axes.checked")


def where_arrays_are(*, typechecker: Callable[..., Any]) -> Callable[..., Any]:
    """As `jaxtyped`, for functions and dataclasses that speak of arrays alone."""

    def wrapped(thing: Any) -> Any:
        if inspect.isclass(thing):
            speaks = is_dataclass(thing) and _has_arrays(thing.__init__)
        else:
            speaks = _has_arrays(thing)
        return jaxtyped(thing, typechecker=typechecker) if speaks else thing

    return wrapped


def _has_arrays(function: Any) -> bool:
    """Whether an annotation speaks of arrays, as far as its names are known by now."""
    place = (function.__module__, function.__qualname__, _first_line(function))
    if place in _without_arrays:
        return False
    hints = [_resolved(hint, function) for hint in function.__annotations__.values()]
    if any(map(_speaks_of_arrays, hints)):
        return True
    if not any(isinstance(hint, str) for hint in hints):
        _without_arrays.add(place)  # inside of a function, it is made at every call
    return False


def _first_line(function: Any) -> int:
    return int(function.__code__.co_firstlineno)


def _resolved(hint: object, function: Any) -> object:
    """The annotation itself for its text; the text where a name is not known."""
    if not isinstance(hint, str):
        return hint

    def one(value: Any) -> None: ...

    one.__annotations__["value"] = hint
    try:
        return get_type_hints(one, function.__globals__, include_extras=True)["value"]
    except Exception:  # as jaxtyping itself: whatever a name or an expression raises
        return hint


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its array annotations enforced; jaxtyping's hook calls this."""
    for name, hint in function.__annotations__.items():
        if not _speaks_of_arrays(hint):
            function.__annotations__[name] = Any
    return beartype(function)


def _speaks_of_arrays(hint: object) -> bool:
    if isinstance(hint, list):  # the parameters of a Callable
        return any(map(_speaks_of_arrays, hint))
    is_array = inspect.isclass(hint) and issubclass(hint, AbstractArray)
    return is_array or any(map(_speaks_of_arrays, get_args(hint)))
