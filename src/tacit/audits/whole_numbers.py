"""The whole numbers of a release and of two aggregators, compared one by one.

    limit    the largest sum of squares of a report: the formula's, to the last step
    report   honest reports at their bound, number by number; and none passes the limit
    noise    every draw of a round is round(σ g) for the σ that the limit asks for

The formulas stand here once more, in fractions, and what is compared is what clients,
channel and aggregators compute. Draws are decided anew from the blocks of the cipher,
counted over all sums of a round (`tacit.audits.stream_draws`). Some reports are made so
that rounding to nearest takes them past the limit: flat ones, each of whose numbers
lies a little above a half step.

    c = r S    L = ⌊c² + d/4 + c + √d/2⌋    q = rint(r v), or trunc(r v) if Σ q² > L
    σ          the least whole number, or the next, with σ² >= z² L

Nothing is left to chance: an honest method never fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from tacit.audits.canaries import probes
from tacit.audits.checks import Check
from tacit.audits.empty_report import ones
from tacit.audits.lying_reports import contexts, is_exact
from tacit.audits.stream_draws import Segment, foreign_draws
from tacit.exact_sum import steps_per_unit
from tacit.keys import Key
from tacit.mechanisms.clipping import SLACK
from tacit.mechanisms.sum_mechanism import Bounded
from tacit.method import Method
from tacit.plans import Plan
from tacit.transport.channels import RoundContext
from tacit.transport.exact_total import exact_noise, exact_sum, longest_sums
from tacit.transport.messages import Layout, Slot
from tacit.transport.shared_sum import HELPER, LEADER, SharedSum, play, signed
from tacit.tree import Arrays, Dense, Factored, Grouped, Leaf, Symmetric, Tree
from tacit.tree.symmetric import diagonal

_KINDS = 4  # of rounds that are looked at: every phase of our own methods
_FLAT, _RANDOM = 4, 4  # reports at their bound, of either kind
_INSIDE = 1 - 2.0**-30  # of the bound, so that no rounding takes a report past it
_HALF = 0.5 + 2.0**-10  # steps: what rounds up, and moves a sum of squares the most
_FACTOR_STEPS = 2**12  # per unit of a factor, at the most
_ROOM = Fraction(1, 256)  # of a product of factors beyond c²
_ROUNDING = Fraction(1, 2**50)  # relative: what double precision loses in a formula

Whole = Int64[np.ndarray, "numbers"]
Rows = Int64[np.ndarray, "reports numbers"]
Vectors = Float64[np.ndarray, "reports numbers"]


def check_whole(method: Method, plan: Plan, *, key: Key) -> Iterator[Check]:
    """Every check of whole numbers; none where no sum has a form in them."""
    found = _Found()
    kinds = contexts(method, plan, key.at("kinds"), most=_KINDS)
    for number, context in enumerate(kinds):
        if is_exact(context):
            _look_at_release(context, key.at("release", number), found)
        if plan.noise_shares > 1:
            most_reports = plan.population
            _look_at_two(context, most_reports, key.at("two", number), found)
    if found.limits:
        yield from found.checks()


@dataclass
class _Found:
    """How far limits, reports and draws are from their formulas, as was measured."""

    limits: list[int] = field(default_factory=list)  # steps between, each
    numbers: list[int] = field(default_factory=list)  # of honest reports that differ
    beyond: list[int] = field(default_factory=list)  # the limit, in squared steps
    draws: list[int] = field(default_factory=list)  # that differ

    def checks(self) -> Iterator[Check]:
        yield _none(
            "steps between a report's limit and the formula's",
            self.limits,
            f"{len(self.limits)} limits on a sum of squares, in whole numbers",
        )
        if self.numbers:
            yield _none(
                "whole numbers of honest reports that are not the formula's",
                self.numbers,
                f"{len(self.numbers)} sets of reports at their bound, flat ones among "
                "them that rounding to nearest takes the furthest",
            )
        yield _none(
            "squared steps by which a report passes its limit",
            self.beyond,
            f"{len(self.beyond)} reports, from honest to not finite",
        )
        yield _none(
            "draws of noise that are not the formula's",
            self.draws,
            f"{len(self.draws)} sums of nobody, every number of each",
        )


def _none(name: str, found: list[int], detail: str) -> Check:
    measured = float(max(found))
    return Check.at_most(name, measured, claimed=0.0, slack=0.0, detail=detail)


# --- The formulas ---------------------------------------------------------------------


def limits(steps: float, bound: float, n: int) -> tuple[int, int]:
    """L of `n` numbers. Two values where double precision may round to either."""
    c = Fraction(steps) * Fraction(bound)
    return _floors(c * c + Fraction(n, 4) + c + Fraction(math.sqrt(n)) / 2)


def truncated_limits(steps: float, bound: float) -> tuple[int, int]:
    """L where reports are rounded towards zero only: none grows."""
    c = Fraction(steps) * Fraction(bound)
    return _floors(c * c * (1 + Fraction(SLACK)) ** 2)


def _floors(value: Fraction) -> tuple[int, int]:
    low, high = (math.floor(value * (1 + way * _ROUNDING)) for way in (-1, 1))
    return low, high


def deviations(part: Bounded, limit: Fraction) -> tuple[int, int]:
    """σ: the least whole number with σ² >= z² L, and the next."""
    variance = (Fraction(part.deviation) / Fraction(part.bound)) ** 2 * limit
    least = math.isqrt(math.ceil(variance) - 1) + 1
    return least, least + 1


def encode(vectors: Vectors, limit: int, *, rounds: bool) -> Vectors:
    """The whole numbers of reports in steps, each no longer than its bound."""
    nearest, down = np.rint(vectors), np.trunc(vectors)
    keeps = [rounds and square(row) <= limit for row in nearest]
    return np.where(np.array(keeps)[:, None], nearest, down)


def square(numbers: Any) -> int:
    """The exact sum of squares, in Python's whole numbers."""
    return sum(int(one) ** 2 for one in np.ravel(numbers))


def at_the_bound(c: float, n: int, key: Key) -> Vectors:
    """Reports of `n` numbers no longer than `c` steps, most of them as long.

    The flat ones are those whose sums of squares grow the most when they are rounded.
    """
    used = np.arange(1, n + 1)  # how many of the numbers are not zero
    whole = np.floor(c * _INSIDE / np.sqrt(used) - _HALF)
    grown = np.where(whole < 0, 0.0, used * (whole + 1) ** 2)
    flat = np.zeros((_FLAT, n))
    for row, m in zip(flat, np.resize(used[np.argsort(-grown)], _FLAT), strict=True):
        row[:m] = max(0.0, whole[m - 1] + _HALF)
    draws = key.generator().standard_normal((_RANDOM, n))
    draws *= c * _INSIDE / np.linalg.norm(draws, axis=1, keepdims=True)
    return np.concatenate([flat, draws])


# --- A release ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rule:
    """What the formulas say of leaves that share a bound."""

    part: Bounded
    slots: Mapping[str, Slot]

    @property
    def has_products(self) -> bool:
        return any(_is_product(slot) for slot in self.slots.values())

    @property
    def is_square(self) -> bool:
        """Whether the part is one symmetric leaf that is summed from its roots."""
        slots = [*self.slots.values()]
        return len(slots) == 1 and _is_product(slots[0]) and slots[0].side is not None

    @cached_property
    def factor_steps(self) -> float:
        return steps_per_unit(self.longest_factor, most=_FACTOR_STEPS)

    @property
    def longest_factor(self) -> float:
        has_side = any(slot.side is not None for slot in self.slots.values())
        return math.sqrt(self.part.bound * (math.sqrt(2.0) if has_side else 1.0))

    @cached_property
    def steps(self) -> float:
        if self.has_products:
            return self.factor_steps**2
        return steps_per_unit(self.part.bound)

    @property
    def size(self) -> int:
        """How many numbers a report has, those of one group where there are several."""
        shapes = (s.shape if s.groups is None else s.shape[1:] for s in self._slots)
        return sum(map(math.prod, shapes))

    @property
    def _slots(self) -> list[Slot]:
        return [*self.slots.values()]

    @property
    def twice_limits(self) -> tuple[int, int]:
        """2 L: the squared norm of a half is half a whole number."""
        if self.part.has_smaller:
            return _doubled(truncated_limits(self.steps, self.part.bound))
        if self.is_square:
            [slot] = self._slots
            assert slot.side is not None
            found = limits(self.factor_steps, self.longest_factor, slot.side)
            return found[0] ** 2, found[1] ** 2
        if self.has_products:
            c = Fraction(self.steps) * Fraction(self.part.bound)
            return _doubled(_floors(c * c * (1 + _ROOM)))
        return _doubled(limits(self.steps, self.part.bound, self.size))

    def reports(self, key: Key) -> tuple[Tree, Vectors | None]:
        """Reports at their bound, and their numbers in steps if they are written out.

        Of a product the factors are at their own bound; every leaf is as large.
        """
        if self.has_products:
            return self._products(key), None
        vectors = at_the_bound(self.steps * self.part.bound, self.size, key)
        leaves, start = dict[str, Leaf](), 0
        for name, slot in self.slots.items():
            shape = slot.shape if slot.groups is None else slot.shape[1:]
            n = math.prod(shape)
            values = vectors[:, start : start + n].reshape(-1, *shape) / self.steps
            leaves[name] = _in_one_group(Dense(values), slot)
            start += n
        return Tree(leaves), vectors

    def _products(self, key: Key) -> Tree:
        share = 1 / math.sqrt(len(self.slots))
        leaves = {n: self._product(s, share, key.at(n)) for n, s in self.slots.items()}
        return Tree(leaves)

    def _product(self, slot: Slot, share: float, key: Key) -> Leaf:
        if not _is_product(slot):
            shape = slot.shape if slot.groups is None else slot.shape[1:]
            c = self.steps * self.part.bound * share
            flat = at_the_bound(c, math.prod(shape), key) / self.steps
            return _in_one_group(Dense(flat.reshape(-1, *shape)), slot)
        c = self.factor_steps * self.longest_factor * math.sqrt(share)
        sides = slot.shape[-2:] if slot.side is None else (slot.side,)
        factors = [
            at_the_bound(c, side, key.at("factor", i))[:, None] / self.factor_steps
            for i, side in enumerate(sides)
        ]
        leaf: Any = Symmetric if slot.side is not None else Factored
        return _in_one_group(leaf(*factors), slot)

    def twice_square(self, totals: Arrays) -> int:
        """Twice the squared norm of one report, from its sum in whole steps."""
        twice = 0
        for name, slot in self.slots.items():
            twice += 2 * square(totals[name])
            if slot.side is not None and _is_product(slot):
                twice -= square(totals[name][..., diagonal(slot.side)])
        return twice

    def beyond(self, totals: Arrays) -> int:
        """By how many squared steps one report passes the limit."""
        return max(0, self.twice_square(totals) - self.twice_limits[1])

    def whole(self, totals: Arrays) -> Whole:
        """One report that is written out, in steps, end to end."""
        parts = [
            totals[name] if slot.groups is None else totals[name][0]
            for name, slot in self.slots.items()
        ]
        return np.concatenate([np.ravel(part) for part in parts])

    def differing(self, vectors: Vectors, sent: Rows) -> int:
        """How many whole numbers of these reports are not the formula's."""
        rounds = not self.part.has_smaller
        wanted = encode(vectors, self.twice_limits[1] // 2, rounds=rounds)
        return int((sent != wanted).sum())

    def segments(self, totals: Arrays, deviation: int) -> Iterator[Segment]:
        """The noise in a sum of nobody, in whole steps and in the order of draws."""
        variance = deviation**2
        for name, slot in self.slots.items():
            found = np.array(totals[name], np.float64) * self.steps
            if slot.side is None or not _is_product(slot):
                yield Segment(_whole_steps(found), variance)
                continue
            on = np.zeros(slot.shape[-1], bool)
            on[diagonal(slot.side)] = True
            yield Segment(_whole_steps(found[..., ~on]), variance)
            squares = found[..., on] / math.sqrt(0.5)  # as before it was scaled
            yield Segment(_whole_steps(squares), 2 * variance)


def _whole_steps(numbers: Any) -> Whole:
    return np.rint(numbers).astype(np.int64).ravel()


def _doubled(both: tuple[int, int]) -> tuple[int, int]:
    return 2 * both[0], 2 * both[1]


def _is_product(slot: Slot) -> bool:
    return slot.rank == 1


def _in_one_group(leaf: Any, slot: Slot) -> Leaf:
    """The leaf itself; in the first of the groups where there are several."""
    if slot.groups is None:
        return leaf
    shares = np.zeros((len(leaf), slot.groups))
    shares[:, 0] = 1.0
    return Grouped(leaf, shares)


def _look_at_release(context: RoundContext, key: Key, found: _Found) -> None:
    mechanism, layout = context.mechanism, context.layout
    assert mechanism is not None
    parts = mechanism.bounded([*layout.slots])  # type: ignore[attr-defined]
    rules = [_Rule(p, {n: layout.slots[n] for n in p.leaves}) for p in parts]
    nothing = exact_sum([], mechanism, layout)
    longest = [most for _, most in longest_sums(nothing, mechanism, layout)]
    twice_limits = [round(2 * most**2) for most in longest]
    found.limits += [
        _apart(twice, rule.twice_limits)
        for rule, twice in zip(rules, twice_limits, strict=True)
    ]

    def alone(tree: Tree) -> Arrays:
        """The whole numbers of one report."""
        return exact_sum([tree], mechanism, layout)

    for number, rule in enumerate(rules):
        tree, vectors = rule.reports(key.at("reports", number))
        sums = [alone(_with(layout, tree.select([i]))) for i in range(len(tree))]
        found.beyond += [rule.beyond(one) for one in sums]
        if vectors is not None:
            sent = np.array([rule.whole(one) for one in sums])
            found.numbers.append(rule.differing(vectors, sent))
    found.beyond += [
        rule.beyond(one) for one in map(alone, _lies(context, key)) for rule in rules
    ]
    secret = key.at("secret").secret_of()
    total = exact_noise(nothing, mechanism, layout, secret)
    found.draws.append(_foreign_draws(rules, twice_limits, total, secret))


def _with(layout: Layout, leaves: Tree) -> Tree:
    """One report with these leaves, and zeros in all others."""
    every = ones(layout).tree.leaves.items()
    others = {name: leaf.map(np.zeros_like) for name, leaf in every}
    return Tree({**others, **leaves.leaves})


def _lies(context: RoundContext, key: Key) -> Iterator[Tree]:
    """Reports from small to not finite, one after the other."""
    template = ones(context.layout).tree
    assert context.mechanism is not None
    sizes = dict.fromkeys(template.leaves, context.mechanism.sensitivity)
    with np.errstate(all="ignore"):
        tried = probes(template, sizes, key.at("lies"))
    for row in range(len(tried)):
        yield tried.select([row])


def _foreign_draws(
    rules: list[_Rule], twice_limits: list[int], total: Arrays, secret: bytes
) -> int:
    """How many numbers of a sum of nobody are no draws of the formula's deviation."""
    wrong, first = 0, 0  # draw of a part; all are from one stream
    for rule, twice in zip(rules, twice_limits, strict=True):
        # Of the limit in force: one that is not the formula's has failed already.
        wrong += min(
            foreign_draws(secret, [*rule.segments(total, deviation)], first=first)
            for deviation in deviations(rule.part, Fraction(twice, 2))
        )
        first += sum(math.prod(slot.shape) for slot in rule.slots.values())
    return wrong


def _apart(measured: int, allowed: tuple[int, int]) -> int:
    """How far a whole number lies outside of two others."""
    low, high = allowed
    return max(low - measured, measured - high, 0)


# --- Two aggregators ------------------------------------------------------------------


def _look_at_two(
    context: RoundContext, most_reports: int, key: Key, found: _Found
) -> None:
    mechanism, layout = context.mechanism, context.layout
    assert mechanism is not None
    shared = SharedSum.of(mechanism, layout, most_reports=most_reports)
    [part] = mechanism.bounded([shared.leaf])  # type: ignore[attr-defined]
    if part.has_smaller:
        allowed = truncated_limits(shared.steps, part.bound)
    else:
        allowed = limits(shared.steps, part.bound, shared.size)
    found.limits.append(_apart(shared.limit, allowed))
    vectors = at_the_bound(shared.steps * part.bound, shared.size, key.at("reports"))
    values = (vectors / shared.steps).reshape(-1, *shared.shape)
    sent = shared.encoded(Tree.dense(**{shared.leaf: values}))
    whole = encode(vectors, allowed[1], rounds=not part.has_smaller)
    found.numbers.append(int((sent != whole).sum()))
    with np.errstate(all="ignore"):  # some are not finite
        lies = [shared.encoded(one) for one in _lies(context, key)]
    found.beyond += [
        max(0, square(row) - allowed[1]) for row in np.concatenate([sent, *lies])
    ]
    # Each aggregator has half of the variance that readers see.
    half = Fraction(shared.limit, 2)
    nobody = np.zeros(shared.size, np.uint32)
    both = play(nobody, shared, key.at("noise"))
    for role, one in zip((LEADER, HELPER), both, strict=True):
        secret = key.at("noise").at(role).secret_of()
        drawn = signed(one.published - one.halves)
        found.draws.append(
            min(
                foreign_draws(secret, [Segment(drawn, sigma**2)])
                for sigma in deviations(part, half)
            )
        )
