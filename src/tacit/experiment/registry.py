"""Methods and baselines by name. Nothing is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tacit import check
from tacit.baselines import BASELINES
from tacit.baselines.ranker import Ranker
from tacit.errors import BadValue
from tacit.experiment.dataclass_fields import Problems
from tacit.method import Method
from tacit.methods import METHODS

_OWN = {"tacit.methods": METHODS, "tacit.baselines": BASELINES}


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


def baseline_class(name: str) -> type[Ranker]:
    """The baseline of this name."""
    loaded: type[Ranker] = _load("tacit.baselines", "baseline", name)
    return loaded


def baseline(name: str, settings: Mapping[str, Any] | None = None) -> Ranker:
    """The baseline of this name, with its defaults where a setting is left out.

    Settings must fit the fields of the baseline; a list is read as a tuple.
    """
    cls, problems = baseline_class(name), Problems()
    made = problems.read(cls, settings or {}, name)
    if made is None:
        raise BadValue("; ".join(problems.found))
    return made


def _load(group: str, kind: str, name: str) -> Any:
    found = _found(group)
    if name not in found:
        raise BadValue(f"{kind} {check.unknown(name, found)}")
    return found[name].load()


def _found(group: str) -> dict[str, EntryPoint]:
    """The entry points of other packages, and our own classes, which come first."""
    own = _OWN[group]
    listed = {n: EntryPoint(n, value, group) for n, value in own.items()}
    return {entry.name: entry for entry in _declared(group)} | listed  # ours win


@cache
def _declared(group: str) -> tuple[EntryPoint, ...]:
    """Read once: it opens a file of every installed package, and none comes or goes."""
    return tuple(entry_points(group=group))
