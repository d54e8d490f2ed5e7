"""What a run must share with an earlier one whose sums it adds to.

A relation z zᵀ means something only under the head, the weights and the direction of
popularity that its z was made with. So a refresh keeps those of the earlier run and
spends its whole budget on relating (`refresh="relations"`); or it counts on and relates
anew, which needs no more than counts of the same kind (`refresh="all"`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tacit.errors import Refused
from tacit.method import Method
from tacit.tree import Arrays

Refresh = Literal["relations", "all"]

_COUNTING = ("privacy", "weighting", "half_life")  # what a count means
_RELATING = (  # and what a relation does
    *("weight_exponent", "content", "content_scale"),
    *("content_smoothing", "reach"),
)
KEPT = ("counts", "head", "weights", "popularity", "rows", "shares", "lean")


def check_same(method: Method, earlier: Method, *, refresh: Refresh) -> None:
    """Refuse settings under which the earlier sums would mean something else."""
    if type(earlier) is not type(method):
        raise Refused(
            f"{type(method).__name__} cannot refresh a run of "
            f"{type(earlier).__name__}: only sums of the same method add up"
        )
    names = _COUNTING if refresh == "all" else (*_COUNTING, *_RELATING)
    found = _different(method, earlier, names)
    if found:
        raise Refused(
            f"the earlier run has {found}: what it summed up means something else; "
            "use the same settings, or train without it"
        )
    if refresh == "relations" and getattr(method, "head", None) is not None:
        _check_head(method, earlier)


def check_content(server: Arrays, earlier: Arrays) -> None:
    """Refuse if the public content of the catalog is no longer what it was."""
    for name in ("labels", "numbers"):
        if not np.array_equal(server[name], earlier[name]):
            raise Refused(
                "the public content of the items has changed since the earlier run, "
                'and its relations rest on it; set refresh = "all" to relate anew'
            )


def _check_head(method: Method, earlier: Method) -> None:
    if found := _different(method, earlier, ("head",)):
        raise Refused(
            f"the earlier run has {found}: its relations are between the items of its "
            'head; leave `head` out, or set refresh = "all" to relate anew'
        )


def _different(method: Method, earlier: Method, names: Sequence[str]) -> str:
    pairs = [(name, getattr(earlier, name), getattr(method, name)) for name in names]
    return ", ".join(f"{n}={was!r}, now {now!r}" for n, was, now in pairs if was != now)
