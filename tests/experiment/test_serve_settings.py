"""Tests of the section [serve], and of one account over training and serving."""

from dataclasses import replace

import pytest

from tacit.errors import BadValue
from tacit.experiment.serve_settings import ServeSettings
from tacit.ledger.terms import Terms
from tacit.method import CentralGaussian
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.release import Unit, View
from tacit.runtime.ledger import terms_of

PLAN = Plan(5000, rounds=3, channel="secure_sum", target_epsilon=4.0, delta=1e-6)
METHOD = Gram(privacy=CentralGaussian()).calibrated(PLAN)
TERMS = [terms_of(METHOD, PLAN)]


def of(lines, view):
    [found] = [one for one in lines if (one.unit, one.view) == (Unit.USER, view)]
    return found


def of_group(lines, group):
    return of([one for one in lines if one.group == group], View.SERVER)


def test_on_the_device_there_is_nothing_to_add():
    assert ServeSettings().statements(TERMS) == {}
    assert ServeSettings().queries is None


def test_queries_add_to_what_training_costs():
    """Gaussian queries compose with the Gaussian sums; thirty cost more than none."""
    daily = ServeSettings("dpa", 1.0, delta=1e-6)
    found = daily.statements(TERMS)
    month, year = (of(found[days], View.SERVER).epsilon for days in (30, 365))
    assert 4.0 < month < 4.0 + 30
    assert month < year
    assert of(found[30], View.SERVER).what == "training and 30 queries"


def test_several_trainings_cost_what_they_do_together():
    daily = ServeSettings("dpa", 1.0, delta=1e-6)
    once, twice = (of(daily.statements(TERMS, runs=n)[30], View.SERVER) for n in (1, 2))
    assert twice.what == "2 trainings and 30 queries"
    assert twice.epsilon > once.epsilon + 0.3


def test_every_group_has_lines_of_its_own():
    daily = ServeSettings("dpa", 1.0, delta=1e-6)
    named = [replace(TERMS[0], group="open"), Terms((), 3, 3, group="strict")]
    together = daily.statements(named)[30]
    assert {line.group for line in together} == {"open", "strict"}
    dear, cheap = (of_group(together, one.group) for one in named)
    assert cheap.epsilon < dear.epsilon
    assert cheap == of_group(daily.statements(named[1:])[30], "strict")


def test_a_longer_refresh_costs_less():
    daily = ServeSettings("dpa", 1.0, delta=1e-6).statements(TERMS)
    weekly = ServeSettings("dpa", 1.0, delta=1e-6, refresh_days=7)
    assert weekly.releases(30) == 5
    assert (
        of(weekly.statements(TERMS)[30], View.SERVER).epsilon
        < of(daily[30], View.SERVER).epsilon
    )


def test_what_training_does_not_promise_the_total_does_not():
    found = ServeSettings("dpa", 1.0, delta=1e-6).statements(TERMS)
    assert of(found[30], View.COLLUSION).epsilon is None


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 1.0},
        {"mode": "krr"},
        {"mode": "krr", "epsilon": 1.0, "axes": 2},
        {"mode": "krr", "epsilon": 1.0, "refresh_days": 0},
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_refused(bad):
    with pytest.raises(BadValue):
        ServeSettings(**bad)
