"""A promise has a figure only if it is proven, and names who it is against."""

from __future__ import annotations

from dataclasses import replace

from dp_accounting import GaussianDpEvent

from tacit.accounting.events import pure_local
from tacit.codes import Code
from tacit.plans import Plan
from tacit.privacy.guarantees import local, summed, unprotected
from tacit.release import Release, Standing, View
from tacit.reporting.plain_words import observers
from tacit.reporting.promises import largest, promises
from tacit.statement import Statement, account

PLAN = Plan(1000, channel="secure_sum", delta=1e-6)


def totals(cells) -> tuple[Statement, ...]:
    return account(PLAN, (Release("x", "server", "once", cells),)).totals


def test_observers_who_are_told_the_same_are_one_promise() -> None:
    said = totals(summed(PLAN, GaussianDpEvent(4.2247), reason="noise"))
    kept, broken = promises(said)
    assert kept.observers == observers([View.RELEASE, View.SERVER], said[0])
    assert kept.figure == "epsilon 1.00"
    assert kept.worth == "PROVEN"
    assert kept.meaning.startswith("a strong promise")
    assert "delta 1e-06" in kept.terms[0]
    assert kept.terms[1] == "rests on: noise"
    assert kept.terms[2] == f"assumes: {Code('trusted_aggregator')}"
    assert broken.figure == "no promise"
    assert broken.standing is Standing.NONE
    assert not broken.worth  # the figure says it
    assert not broken.terms


def test_a_papers_own_figure_stands_beside_what_is_proven_or_not() -> None:
    said = totals(summed(PLAN, GaussianDpEvent(4.2247), reason="noise"))
    kept, broken = promises([replace(one, published_epsilon=250.0) for one in said])
    assert kept.figure == "epsilon 1.00"
    assert broken.figure == "no promise"
    assert kept.terms[-1] == broken.terms[-1] == "the paper's own figure is 250"


def test_local_reports_hold_against_everyone() -> None:
    said = totals(local(PLAN, pure_local(1.0), reason="coins"))
    [kept] = promises(said)
    assert kept.observers == observers([*View], said[0])
    assert "any other history" in kept.terms[0]


def test_the_order_of_the_lines_does_not_matter() -> None:
    said = totals(summed(PLAN, GaussianDpEvent(4.2247), reason="noise"))
    figures = {(one.observers, one.figure) for one in promises(said)}
    assert {(one.observers, one.figure) for one in promises(said[::-1])} == figures


def test_the_largest_epsilon_is_one_that_is_proven() -> None:
    said = totals(summed(PLAN, GaussianDpEvent(4.2247), reason="noise"))
    found = largest(said)
    assert found is not None
    assert found.figure == "epsilon 1.00"
    assert largest(totals(unprotected("bare_reports", "bare"))) is None
