"""Reports that no honest client would send, through the channel: the sum stays bounded.

A total with a lie and one without it have the same noise, so their difference is what
the liar moved. That is looked at on the floating path of a simulation and on the exact
path of a release. On the exact path the order of reports must not matter either, bit
for bit.

Nothing is left to chance: an honest method never fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tacit.audits.canaries import probes
from tacit.audits.checks import Check
from tacit.audits.empty_report import ones
from tacit.audits.noise_units import stated_noise
from tacit.audits.small_world import small_data
from tacit.errors import Refused
from tacit.keys import Key
from tacit.mechanisms.sum_mechanism import SumMechanism
from tacit.method import Method, Server
from tacit.plans import Plan
from tacit.transport.channels import RoundContext, SecureSum, Sum
from tacit.transport.exact_total import check_exact
from tacit.transport.messages import Reports
from tacit.tree import Arrays

FLOATING, EXACT = "floating", "exact"
_FEW = 20  # items, where any number does
_SLACK = {  # float32 totals are rounded; whole numbers have a limit up to 1 % larger
    FLOATING: 1e-4,
    EXACT: 0.01,
}
_KINDS = 2  # that are looked at: a clip that moves makes a kind of every round
_CROWD = 3_000  # honest reports, enough to leave the whole numbers of float32
_CROWD_NUMBERS = 2**21  # in all of them, at the most


def check_liars(method: Method, plan: Plan, *, key: Key) -> Iterator[Check]:
    """Nobody moves a sum by more than the bound, whatever is sent."""
    paths: dict[str, list[_Path]] = {FLOATING: [], EXACT: []}
    for context in contexts(method, plan, key):
        for name in paths:
            if name == FLOATING or is_exact(context):
                paths[name].append(_Path(context, name))
    for name, rounds in paths.items():
        if rounds:
            yield _check_moved(name, max(one.moved() for one in rounds))
    if paths[EXACT]:
        yield _check_order(paths[EXACT][0].reordered())


def contexts(
    method: Method, plan: Plan, key: Key, *, most: int = _KINDS
) -> list[RoundContext]:
    """The context of each kind of round, `most` of them, with a small catalog."""
    plan = replace(plan, channel="secure_sum")
    server = method.start(plan, small_data(_FEW).catalog, key.at("start"))
    kinds: dict[str, RoundContext] = {}
    while not method.is_over(server):
        context = _context(method, server, key)
        kinds.setdefault(repr((context.layout, context.mechanism)), context)
        delivery = SecureSum().carry([], context)
        server = method.aggregate(server, delivery, context)
    return [*kinds.values()][:most]


def _context(method: Method, server: Server, key: Key) -> RoundContext:
    broadcast = method.broadcast(server)
    stated_noise(
        method, broadcast, server.plan
    )  # refuses what states nothing of itself
    return method.context(server, broadcast, key.at("round", server.round))


def is_exact(context: RoundContext) -> bool:
    """Whether a release could sum the round in whole numbers."""
    assert context.mechanism is not None
    try:
        check_exact(context.mechanism, context.layout)
    except Refused:
        return False
    return True


@dataclass(frozen=True, eq=False)
class _Path:
    context: RoundContext
    name: str

    @cached_property
    def mechanism(self) -> SumMechanism:
        assert self.context.mechanism is not None
        return self.context.mechanism

    def moved(self) -> float:
        """The most that one report moves the total, in sensitivities."""
        nobody, template = self.total([]), ones(self.context.layout).tree
        limits = dict.fromkeys(template.leaves, self.mechanism.sensitivity)
        lies = probes(template, limits, self.context.key.at("lies"))
        found = [
            self.distance(self.total([Reports(lies.select([i]))]), nobody)
            for i in range(len(lies))
        ]
        return max(found)

    def reordered(self) -> float:
        """How far the same reports add up differently in another order."""
        template = ones(self.context.layout).tree
        leaves = template.leaves.values()
        one = sum(part.size for leaf in leaves for part in leaf.parts.values())
        n = min(_CROWD, max(7, _CROWD_NUMBERS // one))
        sizes = 0.5 + self.context.key.at("crowd").generator().random(n) / 2
        sizes *= self.mechanism.sensitivity / float(template.norms()[0])
        crowd = template.select(np.zeros(n, np.int64)).scale(sizes)
        parts = np.array_split(np.arange(n)[::-1], 7)
        whole = self.total([Reports(crowd)])
        again = self.total([Reports(crowd.select(rows)) for rows in parts])
        return self.distance(whole, again)

    def total(self, reports: list[Reports]) -> Arrays:
        secret = self.context.key.at("secret").secret_of()
        context = self.context
        if self.name == EXACT:
            context = replace(context, secret=secret)
        with np.errstate(all="ignore"):  # lies need not be finite
            delivery = SecureSum().carry(reports, context)
        assert isinstance(delivery, Sum)
        return delivery.total

    def distance(self, one: Arrays, other: Arrays) -> float:
        """The L2 distance of two totals in sensitivities: noise over its multiplier."""
        squares = 0.0
        for name in one:
            gap = np.subtract(one[name], other[name], dtype=np.float64)
            squares += float(((gap / self.mechanism.scale(name)) ** 2).sum())
        moved = math.sqrt(squares) * self._multiplier
        return moved if math.isfinite(moved) else math.inf

    @property
    def _multiplier(self) -> float:
        return float(getattr(self.mechanism.event, "noise_multiplier"))  # noqa: B009


def _check_moved(path: str, moved: float) -> Check:
    return Check.at_most(
        f"what a lying report moves, over the sensitivity, {path} sum",
        moved,
        claimed=1.0,
        slack=_SLACK[path],
        detail="reports from small to not finite, in all leaves and in one alone; the "
        "same noise with and without them",
    )


def _check_order(apart: float) -> Check:
    return Check.at_most(
        "change of an exact sum by the order of its reports",
        apart,
        claimed=0.0,
        slack=0.0,
        detail="the same reports in one chunk, and backwards in seven",
    )
