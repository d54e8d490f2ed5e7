"""Methods and baselines by name. Nothing is imported before it is asked for."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tacit import check
from tacit.baselines.ranker import Ranker
from tacit.errors import BadValue
from tacit.method import Method
from tacit.methods import METHODS


def method_names() -> list[str]:
    """The methods that are installed."""
    return sorted(_found("tacit.methods"))


def method_class(name: str) -> type[Method]:
    """The method of this name."""
    loaded: type[Method] = _load("tacit.methods", "method", name)
    return loaded


def baseline_names() -> list[str]:
    """The baselines that are installed."""
    return sorted(_found("tacit.baselines"))


def baseline(name: str) -> Ranker:
    """The baseline of this name with its default settings."""
    made: Ranker = _load("tacit.baselines", "baseline", name)()
    return made


def _load(group: str, kind: str, name: str) -> Any:
    found = _found(group)
    if name not in found:
        raise BadValue(f"{kind} {check.unknown(name, found)}")
    return found[name].load()


def _found(group: str) -> dict[str, EntryPoint]:
    """The entry points of other packages, and our own methods, which come first."""
    own = METHODS if group == "tacit.methods" else {}
    listed = {n: EntryPoint(n, value, group) for n, value in own.items()}
    return {entry.name: entry for entry in entry_points(group=group)} | listed
