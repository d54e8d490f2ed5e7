"""The bytes of one client over a whole run, from what clients agree to beforehand.

A run may take several ways, and the lengths of some public arrays follow from what was
released. The figures here are the most over all of that: no simulated run counts more
(`rounds.Tally`), and where there is one way and every length is fixed, it counts the
same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tacit.data.catalog import Catalog
from tacit.method import Method, Way
from tacit.plans import Plan
from tacit.transport.channels import count_bytes
from tacit.transport.codec import broadcast_size

Sizes = Sequence[int]  # in bytes, of each phase


@dataclass(frozen=True)
class Bytes:
    """Bytes in one direction: the most in a round, the most of a client, the mean.

    `of_a_client` is for a client that is asked as often as the plan allows, and
    `expected` is a mean over the draws of cohorts.
    """

    a_round: int
    of_a_client: int
    expected: float

    @classmethod
    def of(cls, sizes: Sizes, ways: Sequence[Way], plan: Plan) -> Self:
        """The most over all ways, each of which may have any phase of each round."""
        runs = [[max(sizes[phase] for phase in some) for some in way] for way in ways]
        asked = plan.sampler.most_participations(plan)
        return cls(
            max(max(run) for run in runs),
            max(sum(sorted(run)[-asked:]) for run in runs),
            max(sum(run) for run in runs) * plan.cohort_size / plan.population,
        )


@dataclass(frozen=True)
class Traffic:
    """The most rounds of a run, and the bytes of one client in both directions."""

    rounds: int
    up: Bytes
    down: Bytes
    model: int  # bytes of the broadcast after the last round

    @classmethod
    def of(cls, method: Method, plan: Plan, catalog: Catalog) -> Self:
        """The traffic of a run of this plan, before anything is trained."""
        ways = method.ways(plan)
        reports = method.report_layouts(plan, catalog)
        broadcasts = method.broadcast_layouts(plan, catalog)
        sizes = [
            count_bytes(
                plan.channel,
                report,
                broadcast.largest(),
                clients=plan.population,
                survivors=plan.min_contributors,
                colluders=plan.assumed_sybils,
            )
            for report, broadcast in zip(reports, broadcasts, strict=True)
        ]
        up, down = zip(*sizes, strict=True)
        return cls(
            max(map(len, ways)),
            Bytes.of(up, ways, plan),
            Bytes.of(down, ways, plan),
            broadcast_size(method.model_layout(catalog).largest()),
        )
