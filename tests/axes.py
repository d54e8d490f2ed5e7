"""A run-time checker of array axes and types, and of nothing else.

The rest of an annotation is mypy's business: here it would stop a test that hands over
a bad value on purpose before our own check sees it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args

from beartype import beartype
from jaxtyping import AbstractArray


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
