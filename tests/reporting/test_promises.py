"""A promise has a figure only if it is proven, and names who it is against."""

from __future__ import annotations

from dataclasses import replace

from dp_accounting import GaussianDpEvent

from tacit.accounting.events import pure_local
from tacit.plans import Plan
from tacit.privacy.guarantees import local, summed, unprotected
from tacit.release import Release, Standing
from tacit.reporting.promises import largest, promises
from tacit.statement import Statement, account

PLAN = Plan(1000, channel="secure_sum", delta=1e-6)


def totals(cells) -> tuple[Statement, ...]:
    return account(PLAN, (Release("x", "server", "once", cells),)).totals


def test_observers_who_are_told_the_same_are_one_promise() -> None:
    said = totals(summed(PLAN, GaussianDpEvent(4.2247), reason="noise"))
    kept, broken = promises(said)
    assert kept.observers == "The server, and everyone who sees the model"
    assert kept.figure == "ε 1.00"
    assert kept.meaning.startswith("A strong promise: a belief of 1 in 2")
    assert "delta 1e-06" in kept.terms[0]
    assert kept.terms[1] == "Rests on: noise. Assumes: trusted aggregator."
    assert broken.figure == "no promise"
    assert broken.standing is Standing.NONE
    assert not broken.terms


def test_a_papers_own_figure_stands_beside_what_is_proven_or_not() -> None:
    said = totals(summed(PLAN, GaussianDpEvent(4.2247), reason="noise"))
    kept, broken = promises([replace(one, published_epsilon=250.0) for one in said])
    assert kept.figure == "ε 1.00"
    assert kept.terms[2] == "The paper's own figure is 250."
    assert broken.figure == "no promise"
    assert "; the paper's own figure is 250." in broken.meaning


def test_local_reports_hold_against_everyone() -> None:
    [kept] = promises(totals(local(PLAN, pure_local(1.0), reason="coins")))
    assert kept.observers == "Everyone, whoever works together"
    assert "this or any other" in kept.terms[0]


def test_the_order_of_the_lines_does_not_matter() -> None:
    said = totals(summed(PLAN, GaussianDpEvent(4.2247), reason="noise"))
    figures = {(one.observers, one.figure) for one in promises(said)}
    assert {(one.observers, one.figure) for one in promises(said[::-1])} == figures


def test_the_largest_epsilon_is_one_that_is_proven() -> None:
    said = totals(summed(PLAN, GaussianDpEvent(4.2247), reason="noise"))
    found = largest(said)
    assert found is not None
    assert found.figure == "ε 1.00"
    assert largest(totals(unprotected("bare_reports", "bare"))) is None
