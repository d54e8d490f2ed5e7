"""From a client's protected report to the bytes that it sends to two operators.

report     what `participate` returned: bounded, of one client
row        in whole steps, of which the sum of squares is within the limit
cut        a seed from the operating system, and the report without its stream
sealed     the seed to the helper, the rest to the leader, for this round alone

`delivery` is the other direction: the sum of what both operators have published.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Int64

from tacit.errors import BadMessage, Refused
from tacit.method import Method, SumMethod
from tacit.plans import Plan
from tacit.sampling import Everyone
from tacit.service.federation.sealing import (
    SEED_BYTES,
    SumFields,
    SumManifest,
    sealed_report,
)
from tacit.service.manifest import Fields
from tacit.transport.channels import Sum
from tacit.transport.messages import Layout
from tacit.transport.shared_sum import (
    SharedSum,
    explicit,
    from_bytes,
    signed,
    to_bytes,
)
from tacit.tree import Tree
from tacit.tree.symmetric import diagonal

_TAILS = 12  # deviations that no honest number of a sum ever passes
_TRACE_TAILS = 6  # and those of one sum of numbers


@dataclass(frozen=True)
class TwoHalves:
    """The form of reports over two servers: a seed, and the rest of the report."""

    shared: SharedSum
    layout: Layout

    kind: ClassVar[type[Fields]] = SumFields
    path: ClassVar[str] = "/v1/rounds/{}/reports"
    content_type: ClassVar[str] = "application/octet-stream"
    taken: ClassVar[str] = "the report was sent and is counted"
    one_machine: ClassVar[str] = "one_machine"

    def __post_init__(self) -> None:
        if self.shared.steps < 1:
            raise Refused(
                f"a bound of {self.shared.bound:g} has {self.shared.steps:g} steps per "
                "unit, and a manifest has whole ones; scale the reports down"
            )

    @classmethod
    def of(cls, method: Method, plan: Plan, layout: Layout, *, phase: int) -> TwoHalves:
        """The whole numbers of a phase."""
        if not isinstance(method, SumMethod):
            raise Refused(
                f"{type(method).__name__} does not learn from sums, which is all that "
                "two servers can add up"
            )
        part, privacy = method.phases(plan)[phase], method.privacy
        mechanism = privacy.mechanism(part, privacy.told(part, {}))
        most = plan.population
        return cls(SharedSum.of(mechanism, layout, most_reports=most), layout)

    @staticmethod
    def check_plan(plan: Plan) -> None:
        """Refuse a plan that does not ask everyone in every round."""
        if not isinstance(plan.sampler, Everyone) or plan.before:
            raise Refused(
                "over two servers everyone is asked in every round, and nothing is "
                "released before the first; use run.sampler.name = 'everyone' and no "
                "selection of items"
            )

    @property
    def fields(self) -> SumFields:
        """The numbers of the sum."""
        shared = self.shared
        return SumFields(
            shared.leaf, shared.size, int(shared.steps), shared.limit, shared.sigma
        )

    @property
    def row_size(self) -> int:
        """The number of numbers of a report."""
        return self.shared.size

    def rows(self, tree: Tree) -> Int64[np.ndarray, "clients numbers"]:
        """Reports in whole steps, one row per client."""
        return self.shared.encoded(tree)

    def seal(self, row: Int64[np.ndarray, "numbers"], manifest: SumManifest) -> bytes:
        """A report in whole steps, cut and sealed with fresh randomness."""
        seed = os.urandom(SEED_BYTES)
        report = sealed_report(
            seed,
            to_bytes(explicit(row, seed)),
            round_id=manifest.round_id,
            leader=manifest.keys["leader"],
            helper=manifest.keys["helper"],
        )
        return report.body()

    def nothing(self) -> Sum:
        """A sum of zeros."""
        zeros = np.zeros(self.shared.size, np.uint32)
        return Sum(self.shared.decoded([zeros]))

    def delivery(self, parts: Sequence[bytes], *, reports: int) -> Sum:
        """The sum of what both operators have published; refuses garbage."""
        arrays = [from_bytes(one, self.shared.size) for one in parts]
        total = np.zeros(self.shared.size, np.uint32)
        for array in arrays:
            total += array
        check_total(signed(total), self.shared, self.layout, reports)
        return Sum(self.shared.decoded(arrays), reports)


def check_total(
    total: Int64[np.ndarray, "numbers"],
    shared: SharedSum,
    layout: Layout,
    reports: int,
) -> None:
    """Refuse a sum that so many honest reports and the noise do not make.

    A client that lies can spoil a sum, and nobody can look into a report. These checks
    cost no privacy, because they read what is released. They find garbage, which is
    anywhere modulo 2³², and large lies of one sign; they do not find a modest lie.
    """
    noise = math.sqrt(2.0) * shared.sigma
    longest = math.sqrt(shared.limit)
    most = reports * longest + _TAILS * noise
    far = int((np.abs(total) > most).sum())
    if far:
        raise BadMessage(
            f"{far:,} of {shared.size:,} numbers of the sum of '{shared.leaf}' are "
            f"larger than {reports:,} honest reports and the noise make: a client has "
            "lied, or an aggregator"
        )
    norm = float(np.linalg.norm(total.astype(np.float64)))
    if norm > reports * longest + noise * (math.sqrt(shared.size) + _TAILS):
        raise BadMessage(
            f"the sum of '{shared.leaf}' is longer than {reports:,} honest reports and "
            "the noise make: a client has lied, or an aggregator"
        )
    side = layout.slots[shared.leaf].side
    if side is not None:
        trace = float(total[diagonal(side)].sum())
        spread = _TRACE_TAILS * noise * math.sqrt(side)
        # The half of z zᵀ has |z|² / √2 on its diagonal, the bound of a report; each
        # number of it is rounded by half a step at the most.
        off = reports * side / 2
        if not -spread - off <= trace <= reports * longest + off + spread:
            raise BadMessage(
                f"the trace of '{shared.leaf}' is not between 0 and that of "
                f"{reports:,} honest reports: a client has lied, or an aggregator"
            )
