"""The one place that imports torch, and lets it add in a fixed order only.

torch adds the slopes of rows that were looked up several times from several threads at
once, in the order in which these come. Training amplifies the last bits: one seed gave
models that rank differently, or none at all. With `deterministic` the same seed gives
the same bytes, as long as the number of threads stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from tacit.errors import MissingExtra


def load_torch() -> ModuleType:
    """torch, which the extra `train` brings."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("torch", "train") from error
    return torch


@contextmanager
def deterministic() -> Iterator[None]:
    """Compute with deterministic algorithms inside; also a decorator.

    The setting is the process's: a program that uses torch beside us has its own back
    afterwards.
    """
    torch = load_torch()
    before = torch.get_deterministic_debug_mode()
    # As `use_deterministic_algorithms`, which imports torch's compiler: seconds.
    torch.set_deterministic_debug_mode("error")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)
