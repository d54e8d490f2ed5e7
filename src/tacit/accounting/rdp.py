"""Rényi divergence: the cross-check of every loss distribution, and where none exists.

The library's accountant makes the curves. Ours is what it is asked: additive noise
under `replace_one` with half its multiplier (trap T2, docs/privacy.md), each release
under its own adjacency, and releases it has no word for.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.accounting.decomposition import (
    REPLACE_ONE,
    ZERO_OUT,
    Part,
    Parts,
    delta_left,
    distance,
    take_apart,
    without_failures,
)
from tacit.errors import Refused

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent
    from tacit.accounting.events import PureDpEvent

Curve = Float64[np.ndarray, "orders"]


def rdp_epsilon(event: DpEvent, *, delta: float, adjacency: str = ZERO_OUT) -> float:
    """The epsilon by Rényi divergence: never below the loss distribution's figure."""
    check.fraction(delta=delta)
    parts = take_apart([(event, adjacency)])
    if parts is None:
        return math.inf
    parts, failure = without_failures(parts)
    return parts_rdp_epsilon(parts, delta=delta_left(delta, failure))


def parts_rdp_epsilon(parts: Parts, *, delta: float) -> float:
    """The epsilon of releases whose Rényi curves are added."""
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    orders = _orders()
    total = np.zeros(len(orders))
    for part, count in parts.items():
        total += count * rdp(part, orders)
    # A negative divergence is a numerical failure; the library would take it for zero.
    total[~(total >= 0)] = np.inf
    return float(compute_epsilon(orders, total, delta)[0])


def rdp(part: Part, orders: Curve) -> Curve:
    """The Rényi divergence of a release at these orders; infinite where unknown."""
    from tacit.accounting.events import PureDpEvent, SkellamDpEvent

    event: Any = part.event
    if isinstance(event, SkellamDpEvent):
        reach = distance(part.adjacency)
        return skellam_rdp(
            orders, variance=event.variance, l1=reach * event.l1, l2=reach * event.l2
        )
    if isinstance(event, PureDpEvent):
        return _pure_rdp(event, orders)
    return _library_rdp(
        _in_library_terms(event, part.adjacency), orders, part.adjacency
    )


def skellam_rdp(orders: Curve, *, variance: float, l1: float, l2: float) -> Curve:
    """The bound for Skellam noise of this total variance, at whole orders.

    Source: Agarwal, Kairouz and Liu 2021, Corollary 3.6.
    """
    check.positive(variance=variance, l1=l1, l2=l2)
    # The first term is the Gaussian's; `extra` is the price of whole numbers.
    extra = ((2 * orders - 1) * l2**2 + 6 * l1) / (4 * variance**2)
    bound = orders * l2**2 / (2 * variance) + np.minimum(extra, 1.5 * l1 / variance)
    return np.where((orders >= 2) & (orders == np.floor(orders)), bound, np.inf)


def skellam_epsilon(
    *, variance: float, l1: float, l2: float, delta: float, count: int = 1
) -> float:
    """The epsilon of sums with Skellam noise; `l1`, `l2` bound what a neighbour moves.

    Each of n clients adds a share: variance / (n_min - colluders), where n_min is the
    fewest who take part and colluders may subtract theirs.
    """
    from tacit.accounting.events import SkellamDpEvent

    check.fraction(delta=delta)
    check.count(count=count)
    part = Part(SkellamDpEvent(variance, l1, l2), ZERO_OUT)
    return parts_rdp_epsilon({part: count}, delta=delta)


def _orders() -> Curve:
    from dp_accounting.rdp.rdp_privacy_accountant import DEFAULT_RDP_ORDERS

    return np.array(DEFAULT_RDP_ORDERS, float)


def _pure_rdp(event: PureDpEvent, orders: Curve) -> Curve:
    """K-ary randomised response: p^a q^(1-a) summed over its three kinds of answer."""
    other = -event.epsilon - math.log1p((event.choices - 1) * math.exp(-event.epsilon))
    keep = other + event.epsilon
    # The victim's own answer, the neighbour's, and the k - 2 that neither has.
    terms = [keep * orders + other * (1 - orders), other * orders + keep * (1 - orders)]
    if event.choices > 2:
        terms.append(np.full(len(orders), math.log(event.choices - 2) + other))
    exact = np.logaddexp.reduce(terms) / (orders - 1)
    # Divergences lie between 0 and the pure epsilon, whatever rounding makes of them.
    return np.minimum(np.maximum(exact, 0.0), event.epsilon)


def _in_library_terms(event: Any, adjacency: str) -> Any:
    """The same event with sigma / (2 S) where the library's accountant wants that."""
    import dp_accounting as dp

    if adjacency != REPLACE_ONE:
        return event
    if isinstance(event, dp.GaussianDpEvent | dp.LaplaceDpEvent):
        return type(event)(event.noise_multiplier / 2)
    if isinstance(event, dp.dp_event.RepeatAndSelectDpEvent):
        raise Refused(
            "repeated selection has an account under zero_out only; state it so"
        )
    return event


def _library_rdp(event: Any, orders: Curve, adjacency: str) -> Curve:
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    relation = dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    if adjacency == REPLACE_ONE:
        relation = dp.NeighboringRelation.REPLACE_ONE
    accountant = RdpAccountant(orders, relation)
    try:
        with _fewer_warnings(), np.errstate(all="ignore"):
            return np.asarray(accountant.compose(event).rdp)
    except dp.UnsupportedEventError as error:
        raise Refused(
            f"{type(event).__name__} has no Rényi account under {adjacency}: "
            f"{getattr(error, 'error_message', error)}"
        ) from None


@contextmanager
def _fewer_warnings() -> Iterator[None]:
    """Silences the library's warning for each order it leaves out.

    Leaving one out only loosens the bound: epsilon is the least over all orders.
    """
    absl = logging.getLogger("absl")
    absl.addFilter(_is_news)
    try:
        yield
    finally:
        absl.removeFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return "Excluding this order" not in record.getMessage()
