"""The only three things that may be encoded here; all else stays where it is.

    Broadcast   server -> everyone   what everyone may see
    Reports     clients -> channel   all that a cohort says in a round
    PartialSum  node -> channel      the sum of the reports on one machine, bare

Layouts say beforehand what each of them looks like. What a client says to be served has
bytes of its own: `serving.query`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from tacit import arrays, check
from tacit.errors import BadMessage, BadValue, Diverged
from tacit.tree import (
    Array,
    Arrays,
    Dense,
    Factored,
    Grouped,
    Leaf,
    Symmetric,
    TouchedRows,
    Tree,
    check_names,
)
from tacit.tree.touched_rows import ROW_DTYPE, ROWS
from tacit.wire_names import DIGEST_BYTES, register

NO_PHASE = 2**16 - 1  # of a broadcast after the last round: there is nothing to answer
MOST_PUBLIC = 1e15  # the size of a number in a broadcast, where nothing else is said
_MOST_HEADER, _MOST_ENTRY = 256, 256  # bytes of a message beside its arrays
_SIGNED = ("int8", "int16", "int32", "int64")
_WHOLE = ("bool", *_SIGNED, *(f"u{name}" for name in _SIGNED))
_FLOATS = ("float16", "float32", "float64")
_DTYPES = (*_WHOLE, *_FLOATS)


@dataclass(frozen=True)
class Broadcast:
    """What the server tells everyone before a round."""

    round: int
    agreement: bytes  # the digest of what clients agreed to: `tacit.agreement`
    weights: Arrays
    phase: int = 0  # the index of the round's phase among those of the method
    # The agreements that this broadcast was checked against: once, not by every chunk.
    admitted: set[bytes] = field(
        default_factory=set, init=False, repr=False, compare=False
    )

    def stored(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The dtype and shape of every array that is sent, by name."""
        return {name: (str(a.dtype), a.shape) for name, a in self.weights.items()}

    def __post_init__(self) -> None:
        arrays.integer(self.round, "round", below=2**64)
        arrays.integer(self.phase, "phase", below=2**16)
        if len(self.agreement) != DIGEST_BYTES:
            raise BadValue(
                f"agreement has {len(self.agreement)} bytes; "
                f"needed are {DIGEST_BYTES}: use method.agreement(plan, catalog).digest"
            )


@dataclass(frozen=True)
class Reports:
    """What the clients of a cohort say in a round; axis 0 is the client."""

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

    def check_finite(self) -> None:
        """Refuse reports with NaN or infinity, which would give their sender away."""
        for name, leaf in self.tree.leaves.items():
            for part in leaf.parts.values():
                if part.dtype.kind == "f" and not np.isfinite(part).all():
                    raise Diverged(f"'{name}' of a report is not finite")


@dataclass(frozen=True)
class PartialSum:
    """The sum of what clients on one machine say in a round, before any noise.

    Whoever sees it sees no less than whoever sees every report: of one client it is the
    report.
    """

    total: Arrays


@register("slot")
@dataclass(frozen=True)
class Slot:
    """One leaf of a report: its dtype and shape without the client axis.

    A factored slot has a rank: the leaf is sent as rank × (rows + columns) numbers. A
    symmetric one has a side as well, and is sent as rank × side numbers. A slot of
    touched rows says how many of its rows are sent, each with its number. The first
    axis of a grouped one is the group, and one number per group is sent beside the
    leaf.
    """

    dtype: str
    shape: tuple[int, ...]
    rank: int | None = None
    side: int | None = None
    groups: int | None = None
    touched: int | None = None

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
        elif self.touched is not None:
            self._check_touched(self.touched)
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

    def _check_touched(self, most: int) -> None:
        is_matrix = len(self.shape) == 2 and self.rank is None and self.side is None
        if not is_matrix or self.dtype not in _FLOATS:
            raise BadValue(
                f"dtype={self.dtype}, shape={self.shape}, rank={self.rank}, side="
                f"{self.side} with touched={most}: touched rows are those of "
                "a matrix of floats"
            )
        check.count(touched=most)
        if most > self.shape[0]:
            raise BadValue(f"touched={most} rows of {self.shape[0]}; there are no more")

    @classmethod
    def touched_rows(cls, dtype: str, shape: tuple[int, int], *, most: int) -> Slot:
        """At most `most` rows of a matrix of this shape."""
        return cls(dtype, shape, touched=most)

    @classmethod
    def symmetric(cls, dtype: str, side: int, *, rank: int = 1) -> Slot:
        """Half of a sum of `rank` squares of this side."""
        return cls(dtype, (side * (side + 1) // 2,), rank, side)

    def grouped(self, groups: int) -> Slot:
        """The slot of the same leaf, placed into one of so many groups."""
        shape = (groups, *self.shape)
        return Slot(self.dtype, shape, self.rank, self.side, groups, self.touched)

    def _inner(self) -> Slot:
        shape = self.shape[1:]
        return Slot(self.dtype, shape, self.rank, self.side, touched=self.touched)

    def parts(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays that are sent, by the suffix of their names."""
        if self.groups is not None:
            return {**self._inner().parts(), "#shares": (self.groups,)}
        if self.touched is not None:
            return {ROWS: (self.touched,), "#values": (self.touched, self.shape[1])}
        if self.rank is not None and self.side is not None:
            return {"#root": (self.rank, self.side)}
        if self.rank is None:
            return {"": self.shape}
        rows, columns = self.shape
        return {"#left": (self.rank, rows), "#right": (self.rank, columns)}

    def stored(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The dtype and shape of the arrays that are sent, by suffix."""
        return {
            suffix: (ROW_DTYPE if suffix == ROWS else self.dtype, shape)
            for suffix, shape in self.parts().items()
        }

    def leaf(self, parts: Mapping[str, Array]) -> Leaf:
        """The leaf whose stored arrays these are, stacked on the client axis."""
        if self.groups is not None:
            inner = self._inner().leaf(parts)
            assert not isinstance(inner, Grouped)
            return Grouped(inner, parts["#shares"])
        if self.touched is not None:
            return TouchedRows(parts[ROWS], parts["#values"], self.shape[0])
        if self.side is not None:
            return Symmetric(parts["#root"])
        if self.rank is None:
            return Dense(parts[""])
        return Factored(parts["#left"], parts["#right"])


def zeros(slots: Mapping[str, Slot], n: int) -> Tree:
    """Leaves of zeros for `n` clients."""
    return Tree(
        {
            name: slot.leaf(
                {s: np.zeros((n, *shape), d) for s, (d, shape) in slot.stored().items()}
            )
            for name, slot in slots.items()
        }
    )


@register("layout")
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
        return zeros(self.slots, 0)

    def zeros(self) -> dict[str, Array]:
        """The sum of no reports: of the types that any sum of reports has."""
        return self.nobody().zero()

    def check_total(self, total: Arrays) -> None:
        """Refuse a sum of other names or shapes."""
        found = {name: value.shape for name, value in total.items()}
        if found != {name: slot.shape for name, slot in self.slots.items()}:
            raise BadValue(f"totals differ: {[*self.slots]} and {found}")

    def stored(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The dtype and shape of every array that is sent, by name."""
        return {
            name + suffix: stored
            for name, slot in self.slots.items()
            for suffix, stored in slot.stored().items()
        }

    @property
    def stored_bytes(self) -> int:
        """The bytes of one client's stored arrays."""
        return sum(
            np.dtype(dtype).itemsize * math.prod(shape)
            for dtype, shape in self.stored().values()
        )

    def check(self, reports: Reports) -> None:
        """Refuse reports that are not as declared."""
        if not len(reports):
            return
        self.check_stored(reports.tree.stored())

    def check_stored(self, found: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
        """Refuse arrays whose names, dtypes or shapes are not as declared."""
        declared = self.stored()
        if dict(found) != declared:
            raise BadMessage(
                f"report holds {_listed(found)}; declared is {_listed(declared)}"
            )


Axis = int | range  # a length, or the lengths that are allowed


@register("public_slot")
@dataclass(frozen=True)
class PublicSlot:
    """One array of a broadcast: its dtype, its shape and the range of its values.

    An axis is a length or, where the length follows from what was released, a range of
    lengths. Whole numbers are indices into something, so they need their own range.
    """

    dtype: str
    shape: tuple[Axis, ...]
    least: float = -MOST_PUBLIC
    most: float = MOST_PUBLIC

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES:
            raise BadValue(f"dtype {check.unknown(self.dtype, _DTYPES)}")
        if self.dtype in _WHOLE and self.most == MOST_PUBLIC:
            raise BadValue(
                f"a public array of {self.dtype} needs the range of its values: say "
                "`least` and `most`, such as the first and the last place of an item"
            )

    @property
    def longest(self) -> tuple[int, ...]:
        """The shape of the largest array that fits."""
        return tuple(n if isinstance(n, int) else n[-1] for n in self.shape)

    @property
    def most_bytes(self) -> int:
        """The size of the largest array that fits."""
        return np.dtype(self.dtype).itemsize * math.prod(self.longest)

    def problem(self, value: Array) -> str | None:
        """Why an array does not fit; None if it does."""
        if str(value.dtype) != self.dtype or not self._has_shape(value.shape):
            return f"is {value.dtype}{list(value.shape)}, agreed is {self}"
        if not value.size:
            return None
        low, high = float(value.min()), float(value.max())
        if self.least <= low and high <= self.most:  # false for what is not a number
            return None
        return f"has values from {low:g} to {high:g}, agreed is {self}"

    def _has_shape(self, found: tuple[int, ...]) -> bool:
        if len(found) != len(self.shape):
            return False
        return all(
            n == agreed if isinstance(agreed, int) else n in agreed
            for n, agreed in zip(found, self.shape, strict=True)
        )

    def __str__(self) -> str:
        axes = [
            str(n) if isinstance(n, int) else f"{n[0]}..{n[-1]}" for n in self.shape
        ]
        return f"{self.dtype}[{', '.join(axes)}] in [{self.least:g}, {self.most:g}]"


@dataclass(frozen=True)
class BroadcastLayout:
    """What every broadcast of a phase holds, agreed before the first round.

    A client checks it before it touches anything private, so whether it refuses a
    broadcast cannot depend on its history, and how much memory a broadcast takes is
    known beforehand.
    """

    slots: Mapping[str, PublicSlot]

    @property
    def most_bytes(self) -> int:
        """A bound on the bytes of an encoded broadcast, header and names included."""
        return _MOST_HEADER + sum(
            slot.most_bytes + len(name.encode()) + _MOST_ENTRY
            for name, slot in self.slots.items()
        )

    def largest(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The dtype and the longest shape of every array, by name."""
        return {name: (slot.dtype, slot.longest) for name, slot in self.slots.items()}

    def check(self, weights: Arrays) -> None:
        """Refuse a broadcast that is not as agreed."""
        if weights.keys() != self.slots.keys():
            raise BadMessage(
                f"a broadcast holds {sorted(weights)}; agreed is {sorted(self.slots)}"
            )
        for name, slot in self.slots.items():
            problem = slot.problem(weights[name])
            if problem is not None:
                raise BadMessage(f"'{name}' of a broadcast {problem}")


def _listed(arrays: Mapping[str, tuple[str, tuple[int, ...]]]) -> str:
    shown = [f"{name}: {dtype}{list(s)}" for name, (dtype, s) in sorted(arrays.items())]
    return "; ".join(shown) or "nothing"
