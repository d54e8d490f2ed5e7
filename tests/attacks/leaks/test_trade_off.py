from __future__ import annotations

import math

import pytest
from dp_accounting import DpEvent, GaussianDpEvent

from tacit.accounting.events import pure_local
from tacit.attacks.leaks.membership import AUC, CAUGHT, ceilings
from tacit.attacks.leaks.trade_off import TradeOff
from tacit.errors import BadValue
from tacit.plans import Plan
from tacit.release import Adjacency, Cell, Standing
from tacit.sampling import Everyone, Poisson


def bound(event: DpEvent, adjacency: Adjacency = Adjacency.ZERO_OUT) -> TradeOff:
    return TradeOff.of(Cell(Standing.PROVEN, "test", event, adjacency))


@pytest.mark.parametrize("noise", [1.0, 6.0])
def test_a_gaussian_has_its_closed_form(noise: float) -> None:
    """Never below it, and hardly above."""
    found, exact = bound(GaussianDpEvent(noise)), ceilings(noise)
    assert 0 <= found.auc - exact[AUC] < 1e-3
    assert 0 <= found.found(0.01) - exact[CAUGHT] < 1e-3


def test_a_pure_epsilon_has_its_closed_form() -> None:
    found = bound(pure_local(1.0), Adjacency.REPLACE_ONE)
    assert found.auc == pytest.approx(math.e / (1 + math.e), abs=1e-3)
    assert found.found(0.01) == pytest.approx(0.01 * math.e, abs=1e-3)
    assert found.found(0.9) == pytest.approx(1 - 0.1 / math.e, abs=1e-3)


def test_sampling_in_secret_lowers_the_bound() -> None:
    plan, one = Plan(10, rounds=3), GaussianDpEvent(2.0)
    samplers = Everyone(), Poisson(0.5)
    always, half = (s.event(one, group="everyone", plan=plan) for s in samplers)
    assert bound(always).auc == pytest.approx(ceilings(2 / math.sqrt(3))[AUC], abs=1e-3)
    assert 0.5 < bound(half).auc < bound(always).auc - 0.1


def test_without_a_promise_there_is_no_bound() -> None:
    with pytest.raises(BadValue, match="nothing bounds an attack where it is bare"):
        TradeOff.of(Cell.none("bare_reports", "it is bare"))
