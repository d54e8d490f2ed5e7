"""The public catalog of items, and the private profiles of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int64
from numpy.typing import ArrayLike

from tacit import check
from tacit.data.features import Feature, Features, take
from tacit.data.strings import Strings
from tacit.errors import BadValue


@dataclass(frozen=True, eq=False)
class Catalog:
    """What is known of every item; an item's index is its row here."""

    ids: Strings
    titles: Strings
    features: Features = field(default_factory=dict)

    def __post_init__(self) -> None:
        # An item is a row number, so all columns must have the same rows.
        _same_length(len(self.ids), {"titles": self.titles, **self.features})

    @classmethod
    def of_ids(cls, ids: Sequence[str]) -> Catalog:
        """A catalog that knows only ids; titles repeat them."""
        strings = Strings.of(ids)
        return cls(strings, strings)

    def __len__(self) -> int:
        return len(self.ids)

    def indices(self, ids: Sequence[str]) -> Int64[np.ndarray, "ids"]:
        """The rows of these ids; an unknown id is an error that names similar ones."""
        positions = self.ids.positions
        missing = [i for i in ids if i not in positions]
        if missing:
            raise BadValue(f"item {check.unknown(missing[0], positions)}")
        return np.array([positions[i] for i in ids], np.int64)

    def take(self, rows: ArrayLike) -> Catalog:
        """Some of the items, in the order given."""
        return Catalog(
            self.ids.take(rows), self.titles.take(rows), take(self.features, rows)
        )


@dataclass(frozen=True, eq=False)
class Profiles:
    """What each user has said about themselves; private to the user's client."""

    ids: Strings
    features: Features = field(default_factory=dict)

    def __post_init__(self) -> None:
        _same_length(len(self.ids), self.features)

    def __len__(self) -> int:
        return len(self.ids)

    def index(self, user: str) -> int:
        """The row of a user id; an unknown id is an error that names similar ones."""
        positions = self.ids.positions
        if user not in positions:
            raise BadValue(f"user {check.unknown(user, positions)}")
        return positions[user]

    def take(self, rows: ArrayLike) -> Profiles:
        """Some of the users, in the order given."""
        return Profiles(self.ids.take(rows), take(self.features, rows))


def _same_length(n: int, columns: Mapping[str, Strings | Feature]) -> None:
    wrong = {name: len(c) for name, c in columns.items() if len(c) != n}
    if wrong:
        raise BadValue(f"{n} ids, but other columns have {wrong} rows")
