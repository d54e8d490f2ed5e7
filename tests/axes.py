"""A run-time checker of array axes and types, and of nothing else.

The rest of an annotation is mypy's business: here it would stop a test that hands over
a bad value on purpose before our own check sees it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from beartype import beartype
from jaxtyping import AbstractArray

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
    *("tacit.sampling", "tacit.plan", "tacit.method", "tacit.methods"),
    *("tacit.phase", "tacit.privacy"),
    *("tacit.baselines", "tacit.runtime", "tacit.results", "tacit.evaluation"),
    *("tacit.ledger", "tacit.audit", "tacit.attacks"),
    *("tacit.serving", "tacit.reporting", "tacit.testing", "tacit.experiment"),
)


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
