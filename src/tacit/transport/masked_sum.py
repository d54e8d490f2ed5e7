"""The whole numbers of a masked sum, and the noise that its clients add in shares.

    q   a report in whole steps, Σ q² <= L     z   noise on the sum over the bound
    V   z² L: the variance on a sum to which   n   how many clients were planned
        all n clients add                      h   honest survivors, at the least

    client   sends q + share under masks, the share Skellam noise of variance V / n
    server   sees the sum of the survivors' q and shares, and divides it by the steps

Fewer survivors add less noise, and a round of fewer than planned as survivors is not
unmasked. What hides one of them is the noise of h others and its own: V h / n at the
least, which is what the account has. With all n the sum has V, and what methods are
told of its noise.

The sum of Skellam draws is a Skellam draw, so that a simulated round draws one for all
shares: the same law, and the masks, which cancel, are not drawn. `pairwise_masks` is
the protocol that a simulated round stands for, and its sums are the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Int64

from tacit.errors import Refused
from tacit.exact_sum import limit
from tacit.keys import Key
from tacit.mechanisms.skellam import LEAST_STEPS, skellam
from tacit.mechanisms.sum_mechanism import Bounded, GaussianMechanism, SumMechanism
from tacit.transport.messages import Layout
from tacit.transport.shared_sum import (
    MOST_NUMBERS,
    Numbers,
    SharedSum,
    modulo,
    signed,
    step_size,
)
from tacit.tree import Array, Dense, Tree

_AT_ONCE = 2**20  # numbers of reports that are written out at a time
_JOINED = "joined"  # the leaves of a part, side by side


@dataclass(frozen=True)
class MaskedReports:
    """One round's reports in whole numbers: parts with a bound each, end to end."""

    shapes: Mapping[str, tuple[int, ...]]  # of the leaves
    parts: tuple[tuple[tuple[str, ...], SharedSum], ...]  # leaves that share a bound
    planned: float  # clients, whose shares make up the noise of the whole sum

    @classmethod
    def of(
        cls,
        mechanism: SumMechanism | None,
        layout: Layout,
        *,
        planned: float,
        most_reports: int,
    ) -> Self:
        """The reports of a round with this mechanism; refuses what has no such form."""
        if mechanism is None or not isinstance(mechanism, GaussianMechanism):
            raise Refused(
                "clients of a masked sum add noise to bounded reports, and these have "
                "none in whole numbers; use privacy.mechanism = 'central', or another "
                "channel"
            )
        shapes = {name: slot.shape for name, slot in layout.slots.items()}
        numbers = sum(map(math.prod, shapes.values()))
        if numbers > MOST_NUMBERS:
            raise Refused(
                f"a report has {numbers:,} numbers, and over 'masked_sum' it has "
                f"{MOST_NUMBERS:,} at most, each of which is sent; use a smaller "
                "model, or channel = 'secure_sum'"
            )
        parts = tuple(
            (part.leaves, _whole(part, shapes, most_reports))
            for part in mechanism.bounded([*shapes])
        )
        return cls(shapes, parts, planned)

    @property
    def size(self) -> int:
        """How many numbers a client sends."""
        return sum(part.size for _, part in self.parts)

    def encoded(self, tree: Tree) -> Int64[np.ndarray, "clients numbers"]:
        """The whole steps of each client's report."""
        rows = [part.encoded(joined) for part, joined in self._divided(tree)]
        return np.concatenate(rows, axis=1)

    def total(self, trees: Iterable[Tree]) -> tuple[Numbers, int]:
        """The sum of all reports modulo 2³², and how many there were."""
        total, n = np.zeros(self.size, np.uint32), 0
        step = max(1, _AT_ONCE // self.size)
        for tree in trees:
            for start in range(0, len(tree), step):
                block = tree.select(slice(start, start + step))
                total += modulo(self.encoded(block).sum(axis=0))
            n += len(tree)
        most = min(part.most_reports for _, part in self.parts)
        if n > most:
            raise Refused(
                f"{n:,} reports, and the steps were chosen for {most:,} at most: the "
                "sum could wrap around"
            )
        return total, n

    def noise(self, key: Key, shares: int) -> Int64[np.ndarray, "numbers"]:
        """The sum of this many clients' shares of the noise; drawn at once."""
        draws = [
            skellam(key.at(number), part.sigma**2 * shares / self.planned, (part.size,))
            for number, (_, part) in enumerate(self.parts)
        ]
        return np.concatenate(draws)

    def decoded(self, total: Numbers) -> dict[str, Array]:
        """A sum of reports and shares in units, leaf by leaf."""
        values, start = {}, 0
        whole = signed(total)
        for leaves, part in self.parts:
            for name in leaves:
                stop = start + math.prod(self.shapes[name])
                values[name] = (whole[start:stop] / part.steps).reshape(
                    self.shapes[name]
                )
                start = stop
        return {name: values[name] for name in self.shapes}

    def _divided(self, tree: Tree) -> Iterator[tuple[SharedSum, Tree]]:
        """The leaves that share a bound, side by side as a single one."""
        for leaves, part in self.parts:
            rows = [tree.leaves[name].dense().values for name in leaves]
            flat = [r.reshape(len(r), -1).astype(np.float64, copy=False) for r in rows]
            joined = flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1)
            yield part, Tree({_JOINED: Dense(joined)})


def _whole(
    part: Bounded, shapes: Mapping[str, tuple[int, ...]], most_reports: int
) -> SharedSum:
    if part.has_smaller:
        raise Refused(
            "groups with bounds of their own have no account over 'masked_sum'; use "
            "one target_epsilon for all, or channel = 'secure_sum'"
        )
    size = sum(math.prod(shapes[name]) for name in part.leaves)
    steps = step_size(part.bound, part.deviation, most_reports=most_reports)
    if steps * part.bound < LEAST_STEPS:
        raise Refused(
            f"{most_reports:,} reports below 2³¹ leave {steps * part.bound:,.0f} steps "
            f"to a report, and the account of Skellam noise needs {LEAST_STEPS:,}; use "
            "a smaller population, or another channel"
        )
    most = limit(part.bound, size, steps=steps)
    # Up, beyond what double precision may have lost on the way.
    sigma = math.ceil(part.deviation / part.bound * math.sqrt(most) * (1 + 1e-12))
    return SharedSum(*(_JOINED, (size,), part.bound, steps, most, sigma, most_reports))
