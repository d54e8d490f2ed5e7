"""The only three things that may be encoded; all else stays where it is.

Cast     server -> everyone    what everyone may see
Reports  devices -> channel    all that a cohort says in a round
Queries  devices -> server     all that a cohort asks when the server ranks
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tacit import arrays, check
from tacit.errors import BadMessage, BadValue
from tacit.tree import (
    Array,
    Arrays,
    Dense,
    Factored,
    Grouped,
    Leaf,
    Symmetric,
    Tree,
    check_names,
)

DIGEST_BYTES = 16
NO_PHASE = 2**16 - 1  # of a Cast after the last round: there is nothing to answer
_SIGNED = ("int8", "int16", "int32", "int64")
_WHOLE = ("bool", *_SIGNED, *(f"u{name}" for name in _SIGNED))
_DTYPES = (*_WHOLE, "float16", "float32", "float64")


@dataclass(frozen=True)
class Cast:
    """What the server tells everyone before a round."""

    round: int
    plan_digest: bytes
    weights: Arrays
    phase: int = 0  # the place of the round's phase among those of the method

    def __post_init__(self) -> None:
        arrays.integer(self.round, "round", below=2**64)
        arrays.integer(self.phase, "phase", below=2**16)
        if len(self.plan_digest) != DIGEST_BYTES:
            raise BadValue(
                f"plan_digest has {len(self.plan_digest)} bytes; "
                f"needed are {DIGEST_BYTES}: use plan.digest"
            )


@dataclass(frozen=True)
class Reports:
    """What the devices of a cohort say in a round; axis 0 is the client."""

    tree: Tree

    @classmethod
    def nobody(cls) -> Reports:
        """The reports of a cohort in which everyone refused."""
        return cls(Tree({}))

    def __len__(self) -> int:
        return len(self.tree)

    def select(self, rows: ArrayLike | slice) -> Reports:
        """The reports of some of the clients."""
        return Reports(self.tree.select(rows))


@dataclass(frozen=True)
class Queries:
    """What devices ask where the server ranks; axis 0 is the client."""

    tree: Tree

    def __len__(self) -> int:
        return len(self.tree)


@dataclass(frozen=True)
class Slot:
    """One leaf of a report: its dtype and shape without the client axis.

    A factored slot has a rank: the leaf travels as rank × (rows + columns) numbers. A
    symmetric one has a side as well, and travels as rank × side numbers. Of a grouped
    one the first axis is the group, and a number a group travels beside the leaf.
    """

    dtype: str
    shape: tuple[int, ...]
    rank: int | None = None
    side: int | None = None
    groups: int | None = None

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES:
            raise BadValue(f"dtype {check.unknown(self.dtype, _DTYPES)}")
        if self.groups is not None:
            check.count(groups=self.groups)
            if self.shape[:1] != (self.groups,):
                raise BadValue(
                    f"shape={self.shape} with groups={self.groups}: use Slot.grouped"
                )
            self._inner()  # refuses what the leaf itself would
        elif self.side is not None:
            if self.rank is None or self.shape != (self.side * (self.side + 1) // 2,):
                raise BadValue(
                    f"shape={self.shape}, rank={self.rank}, side={self.side}: use "
                    "Slot.symmetric"
                )
        elif self.rank is not None and len(self.shape) != 2:
            raise BadValue(
                f"shape={self.shape} with rank={self.rank}: a factored leaf has rows "
                "and columns"
            )

    @classmethod
    def symmetric(cls, dtype: str, side: int, *, rank: int = 1) -> Slot:
        """Half of a sum of `rank` squares of this side."""
        return cls(dtype, (side * (side + 1) // 2,), rank, side)

    def grouped(self, groups: int) -> Slot:
        """The same leaf in one of so many groups."""
        shape = (groups, *self.shape)
        return Slot(self.dtype, shape, self.rank, self.side, groups)

    def _inner(self) -> Slot:
        return Slot(self.dtype, self.shape[1:], self.rank, self.side)

    def parts(self) -> dict[str, tuple[int, ...]]:
        """The shapes that travel, by suffix."""
        if self.groups is not None:
            return {**self._inner().parts(), "#shares": (self.groups,)}
        if self.rank is not None and self.side is not None:
            return {"#root": (self.rank, self.side)}
        if self.rank is None:
            return {"": self.shape}
        rows, columns = self.shape
        return {"#left": (self.rank, rows), "#right": (self.rank, columns)}

    def leaf(self, parts: Mapping[str, Array]) -> Leaf:
        """The leaf of these stacked parts."""
        if self.groups is not None:
            inner = self._inner().leaf(parts)
            assert not isinstance(inner, Grouped)
            return Grouped(inner, parts["#shares"])
        if self.side is not None:
            return Symmetric(parts["#root"])
        if self.rank is None:
            return Dense(parts[""])
        return Factored(parts["#left"], parts["#right"])


@dataclass(frozen=True)
class Layout:
    """What every report of a round looks like, whoever sends it.

    A report's size can therefore say nothing about its sender. `split_axis` is the axis
    of every leaf along which a channel may cut a report into unlinked messages.
    """

    slots: Mapping[str, Slot]
    split_axis: int | None = None

    def __post_init__(self) -> None:
        check_names(self.slots)

    def nobody(self) -> Tree:
        """The reports of no client at all, in the declared types."""
        return Tree(
            {
                name: slot.leaf(
                    {s: np.zeros((0, *shape), slot.dtype) for s, shape in parts.items()}
                )
                for name, slot in self.slots.items()
                for parts in (slot.parts(),)
            }
        )

    def zeros(self) -> dict[str, Array]:
        """The sum of no reports: of the types that any sum of reports has."""
        return self.nobody().zero()

    def check_total(self, total: Arrays) -> None:
        """Refuse a sum of other names or shapes."""
        found = {name: value.shape for name, value in total.items()}
        if found != {name: slot.shape for name, slot in self.slots.items()}:
            raise BadValue(f"totals differ: {[*self.slots]} and {found}")

    def stored(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Name, dtype and shape of every array that travels."""
        return {
            name + suffix: (slot.dtype, shape)
            for name, slot in self.slots.items()
            for suffix, shape in slot.parts().items()
        }

    def check(self, reports: Reports) -> None:
        """Refuse reports that are not as declared."""
        if not len(reports):
            return
        found = {
            name + suffix: (str(part.dtype), part.shape[1:])
            for name, leaf in reports.tree.leaves.items()
            for suffix, part in leaf.parts.items()
        }
        self.check_stored(found)

    def check_stored(self, found: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
        """Refuse arrays whose names, dtypes or shapes are not as declared."""
        declared = self.stored()
        if dict(found) != declared:
            raise BadMessage(
                f"report holds {_listed(found)}; declared is {_listed(declared)}"
            )


def _listed(arrays: Mapping[str, tuple[str, tuple[int, ...]]]) -> str:
    shown = [f"{name}: {dtype}{list(s)}" for name, (dtype, s) in sorted(arrays.items())]
    return "; ".join(shown) or "nothing"
