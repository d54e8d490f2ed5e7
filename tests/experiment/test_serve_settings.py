"""Tests of the section [serve], and of one account over training and serving."""

from dataclasses import replace

import pytest

from tacit.errors import BadExperiment, BadValue
from tacit.experiment.serve_settings import ServeSettings
from tacit.experiment.settings import check_experiment
from tacit.ledger.terms import Terms
from tacit.mechanisms.padding import Padding
from tacit.method import CentralGaussian
from tacit.methods.gram import Gram
from tacit.methods.privaterec import PrivateRec
from tacit.plans import Plan
from tacit.privacy import PublishedAttentionNoise
from tacit.release import Standing, Unit, View, of_one_operator
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


def experiment(**tables):
    world = {"users": 60, "items": 20, "events_per_user": 6.0}
    return check_experiment(
        {
            "data": {"source": "synthetic", "world": world},
            "method": {"name": "gram"},
            **tables,
        }
    )


def test_what_lists_are_for_stays_in_the_run_and_trains_the_same_model():
    plain, session = experiment(), experiment(serve={"list_for": "session"})
    assert plain.serve.ranked_for == "any"
    assert "serve" not in plain.resolved()
    again = check_experiment(session.resolved())
    assert again.serve.ranked_for == session.serve.ranked_for == "session"
    assert plain.digest == session.digest
    assert plain.ranking_for("visit").serve.ranked_for == "visit"
    assert session.ranking_for(None) == session


def test_padding_drops_order_and_times_and_the_plan_says_so():
    padded = ServeSettings("dpa", 1.0, padding=0.5, list_for="session")
    assert padded.ranked_for == "any"
    assert "for any, not for a session: padding=0.5" in padded.note
    assert replace(padded, padding=0.0).ranked_for == "session"
    assert replace(padded, padding=0.0).note is None


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ({"serve": {"list_for": "night"}}, "list_for must be one of"),
        ({"method": {"name": "federated_popularity"}}, "cannot weigh a history"),
        ({"method": {"name": "gram", "half_life": 9.0}}, "half_life=9 weighs"),
    ],
)
def test_what_cannot_be_ranked_for_is_refused_early(tables, problem):
    with pytest.raises(BadExperiment, match=f"serve.*{problem}"):
        experiment(**{"serve": {"list_for": "session"}, **tables})


def test_a_released_metric_is_of_lists_for_any():
    tables = {
        "serve": {"list_for": "visit"},
        "run": {"rounds": 3},
        "privacy": {"mechanism": "central", "target_epsilon": 1.0, "delta": 1e-6},
        "evaluate": {"release": {"share": 0.1}},
    }
    with pytest.raises(BadExperiment, match=r"list_for='visit': evaluate.release"):
        experiment(**tables)


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


# --- PrivateRec's own mechanism ------------------------------------------------------

PRINTED = ServeSettings("dpa", 10.0, padding=0.5, noise="paper")
NEWS = PrivateRec(mode="paper", model="plm-nr", privacy=PublishedAttentionNoise())
TWO = Plan(
    5000,
    rounds=3,
    channel="two_servers",
    target_epsilon={"strict": 1.0, "open": 4.0},
    groups={"strict": 2500, "open": 2500},
    delta=1e-6,
)


def test_a_query_is_over_the_basis_that_training_makes():
    asked = PRINTED.queries_of(NEWS)
    assert (asked.count, asked.has_trained_basis) == (3, True)
    assert "3 basis vectors that training made" in asked.reason
    assert not ServeSettings("dpa", 1.0).queries_of(METHOD).has_trained_basis


@pytest.mark.parametrize("one_operator", ["", "one_machine"])
def test_groups_pay_what_is_proven_of_the_papers_queries(one_operator):
    """Never the claimed 10, in no group, view or unit, on one machine or two."""
    gram = Gram(privacy=CentralGaussian()).calibrated(TWO)
    of_groups = [terms_of(gram, TWO, group=group) for group in TWO.groups]
    if one_operator:
        of_groups = [
            replace(one, releases=of_one_operator(one.releases, one_operator))
            for one in of_groups
        ]
    lines = PRINTED.statements(of_groups, method=NEWS)[30]
    assert {line.group for line in lines} == {"strict", "open"}
    assert {line.published_epsilon for line in lines} == {None}
    bare = [line for line in lines if line.epsilon is None]
    hidden = {View.SERVER, View.COLLUSION} if one_operator else {View.COLLUSION}
    assert {line.view for line in bare} == hidden
    # Thirty queries, each of ε0 twice as the printed sensitivity is short by that.
    one = 2 * Padding(0.5).inner_epsilon(10.0)
    for line in lines:
        if line.unit is Unit.USER and line.epsilon is not None:
            assert 30 * one < line.epsilon < 30 * one + 4.1
            assert line.standing is Standing.ASSUMED


def test_training_that_promises_nothing_is_not_mended_by_a_query():
    terms = terms_of(NEWS, Plan(5000, rounds=3, delta=1e-6))
    lines = PRINTED.statements([terms], method=NEWS)[30]
    assert {line.standing for line in lines} == {Standing.NONE}


def test_an_infinite_epsilon_is_for_experiments_alone():
    with pytest.raises(BadValue, match="epsilon"):
        ServeSettings("dpa", float("inf"), noise="paper")


def test_an_experiment_says_with_all_other_problems_that_there_is_no_basis():
    table = {
        "data": {"source": "ml-100k", "nonsense": 1},
        "method": {"name": "gram"},
        "serve": {"mode": "dpa", "epsilon": 1.0, "noise": "paper"},
    }
    with pytest.raises(BadExperiment) as caught:
        check_experiment(table)
    assert {"nonsense" in str(caught.value), "basis" in str(caught.value)} == {True}
