"""What a client holds of its user: items in their order, and slates that were shown.

    items    what the user has read, watched or bought, the oldest first
    slates   what a server has put before the user, and which of it was clicked

Only methods that learn from impressions ask for slates (`Method.needs_impressions`).
The user had read by a slate what stands in `items`, but for what was clicked in this
slate or in a later one.

Whatever a catalog does not have is left out and counted: who has an old item is no
worse off than who never met it. A history without any known item is one of nobody: what
a coordinator sees does not depend on it. It is probably the wrong file all the same,
and `said_of_unknown` says so to its owner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.data.catalog import Catalog
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.method import Method

MOST_SLATES = 1_000  # the newest are kept: memory grows with slates times items
_NAMED = 3  # unknown items that a message names
_EMPTY = (
    "this client takes part with an empty history, which nobody else can see. If it is "
    "the wrong file or column, leave before the first round and join in another folder"
)


@dataclass(frozen=True)
class Slate:
    """Items that were shown together, each once, and those of them that were clicked.

    Items are public, since somebody has shown them; clicks are not.
    """

    shown: tuple[str, ...]
    clicked: tuple[str, ...] = ()


@dataclass(frozen=True)
class History:
    """The items that a catalog has, in their order, and the others, each once.

    Without slates nothing is known of what was shown.
    """

    items: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    slates: tuple[Slate, ...] | None = None

    def said_of_unknown(self) -> str:
        """How many items were left out, and the first of them; empty if none was."""
        if not self.unknown:
            return "" if self.items else f"the file has no item: {_EMPTY}"
        first = ", ".join(self.unknown[:_NAMED])
        more = ", …" if len(self.unknown) > _NAMED else ""
        noun = "item is" if len(self.unknown) == 1 else "items are"
        said = (
            f"{len(self.unknown):,} {noun} not in the catalog and left out: "
            f"{first}{more}"
        )
        return said if self.items else f"{said}. None is left: {_EMPTY}"

    def shards(self, catalog: Catalog, *, value: float) -> Shards:
        """One client that holds these items, all of this value, and these slates."""
        found = Shards.of_history(
            catalog.indices(self.items), n_items=len(catalog), value=value
        )
        if self.slates is None:
            return found
        return replace(found, impressions=_impressions(self, self.slates, catalog))

    # files

    def to_json(self) -> dict[str, Any]:
        """Items and slates as plain values."""
        slates = None
        if self.slates is not None:
            slates = [{"shown": s.shown, "clicked": s.clicked} for s in self.slates]
        return {"items": self.items, "slates": slates}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> History:
        """The history in plain values; earlier versions wrote no slates."""
        slates = told.get("slates")
        if slates is not None:
            slates = tuple(
                Slate(tuple(s["shown"]), tuple(s["clicked"])) for s in slates
            )
        return cls(tuple(told["items"]), slates=slates)


def history_of(
    ids: Sequence[str], catalog: Catalog, slates: Sequence[Slate] | None = None
) -> History:
    """The history of these ids and slates, over the items of a catalog.

    What was clicked and is not among the ids comes after them.
    """
    kept = None if slates is None else [*slates][-MOST_SLATES:]
    held = set(ids)
    clicks = (one for slate in kept or () for one in slate.clicked if one not in held)
    every = (*ids, *dict.fromkeys(clicks))
    known = catalog.ids.positions
    named = (*every, *(one for slate in kept or () for one in slate.shown))
    return History(
        tuple(one for one in every if one in known),
        tuple(dict.fromkeys(one for one in named if one not in known)),
        None if kept is None else _within(kept, known),
    )


def refuse_without_slates(method: Method, slates: Sequence[Slate] | None) -> None:
    """Refuse slates that nobody asks for, and a method that lacks them."""
    name = type(method).__name__
    if method.needs_impressions and slates is None:
        raise BadValue(
            f"{name} learns from what users were shown; name the file with "
            "--impressions, an empty table if you were shown nothing"
        )
    if slates is not None and not method.needs_impressions:
        raise BadValue(
            f"{name} learns from histories alone; leave --impressions out: what you "
            "were shown is not needed"
        )


def _within(slates: Sequence[Slate], known: Mapping[str, int]) -> tuple[Slate, ...]:
    """The slates without unknown items; those that have no other are left out."""
    found = (
        Slate(
            *(tuple(one for one in ids if one in known) for ids in (s.shown, s.clicked))
        )
        for s in slates
    )
    return tuple(slate for slate in found if slate.shown)


def _impressions(
    history: History, slates: Sequence[Slate], catalog: Catalog
) -> Impressions:
    shown = [catalog.indices(slate.shown) for slate in slates]
    clicked = [np.isin(slate.shown, slate.clicked) for slate in slates]
    read: list[np.ndarray] = []
    not_yet: set[str] = set()  # clicked in this slate or in a later one
    for slate in reversed(slates):
        not_yet |= {*slate.clicked}
        by_then = [one for one in history.items if one not in not_yet]
        read.insert(0, catalog.indices(by_then))
    return Impressions.of_columns(
        np.zeros(len(slates), np.int64),
        _ragged(shown),
        clicked=np.concatenate([np.zeros(0, bool), *clicked]),
        histories=_ragged(read),
        history_of=np.arange(len(slates)),
        n_users=1,
        n_items=len(catalog),
    )


def _ragged(rows: Sequence[np.ndarray]) -> Ragged:
    values = np.concatenate([np.zeros(0, np.int32), *rows])
    return Ragged.of_lengths([len(row) for row in rows], values.astype(np.int32))
