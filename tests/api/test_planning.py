"""A plan from Python says what `tacit plan` says."""

import math

import pytest

import tacit


def test_a_plan_promises_what_a_run_of_it_does(shop, run):
    planned = tacit.plan(shop, user="customer", item="product", epsilon=4.0)
    assert planned.statement.epsilon == run.statement.epsilon
    assert planned.cost["population"] == 480
    assert planned.releases.lines
    assert planned.to_dict()["cost"] == planned.cost
    shown = str(planned)
    assert shown.startswith("gram on frame: 480 clients")
    assert "epsilon 4.00  PROVEN" in shown
    assert "gram on frame" in planned._repr_html_()


def test_without_privacy_nothing_is_promised(shop):
    planned = tacit.plan(shop, user="customer", item="product", epsilon=math.inf)
    assert planned.statement.epsilon is None


def test_more_runs_cost_more(shop):
    how = {"user": "customer", "item": "product", "epsilon": 1.0}
    assert tacit.plan(shop, **how, runs=4).statement.epsilon > 1.5
    assert tacit.plan(shop, **how).statement.epsilon == pytest.approx(1.0)
