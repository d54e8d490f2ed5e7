from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.results import Evaluation, Groups, Metric, pool


@pytest.fixture
def evaluation():
    values = {"ndcg@10": np.array([0.0, 1.0, 0.5]), "hr@10": np.array([0.0, 1.0, 1.0])}
    groups = Groups(("few", "many", "nobody"), np.array([0, 1, 1]))
    return Evaluation(
        "full ranking", np.array([4, 5, 9]), values, groups, {"coverage@10": 0.25}
    )


def test_means_and_standard_errors(evaluation):
    metrics = evaluation.metrics()
    assert metrics["ndcg@10"] == Metric(0.5, pytest.approx(0.5 / np.sqrt(3)), 3)
    assert metrics["coverage@10"] == Metric(0.25, None, 3)


def test_groups_without_members_are_left_out(evaluation):
    groups = evaluation.by_group()
    assert list(groups) == ["few", "many"]
    assert groups["few"]["hr@10"] == Metric(0.0, None, 1)
    assert groups["many"]["ndcg@10"].mean == 0.75


def test_json_is_plain_and_comes_back(evaluation):
    text = json.dumps(evaluation.to_json())  # would refuse numpy's types
    document = json.loads(text)
    assert document["metrics"]["coverage@10"] == {"mean": 0.25, "se": None, "n": 3}
    back = Evaluation.from_json(document)
    assert back.metrics() == evaluation.metrics()
    assert back.by_group() == evaluation.by_group()
    assert back.users.tolist() == [4, 5, 9]
    assert back.protocol == "full ranking"


def test_public_groups_stand_beside_those_by_activity(evaluation):
    """One of the three chose no group; an older document knows of none."""
    assert evaluation.by_budget() == {}
    assert "budgets" not in evaluation.to_json()
    chosen = Groups(("strict", "open"), np.array([-1, 1, 1]))
    grouped = replace(evaluation, budgets=chosen)
    back = Evaluation.from_json(json.loads(json.dumps(grouped.to_json())))
    assert back.by_budget() == grouped.by_budget()
    assert back.by_budget()["open"]["ndcg@10"].mean == 0.75
    assert [*back.to_json()["budgets"]] == ["open"]
    with pytest.raises(BadValue, match="budgets"):
        replace(evaluation, budgets=Groups(("a",), np.zeros(2, np.int64)))


def test_pooling_names_both_standard_errors(evaluation):
    other = replace(
        evaluation, values={n: v + 0.3 for n, v in evaluation.values.items()}
    )
    pooled = pool([evaluation, other])["ndcg@10"]
    over_users = 0.5 / np.sqrt(3)
    assert pooled.mean == pytest.approx(0.65)
    assert pooled.se_seeds == pytest.approx(0.15)  # means .5 and .8
    assert pooled.se_users == pytest.approx(over_users / np.sqrt(2))
    assert (pooled.n_seeds, pooled.n_users) == (2, 6)
    assert pooled.to_json()["se"] == pooled.se_seeds
    assert pooled.to_json()["se_over"] == "seeds"


def test_one_seed_has_an_error_over_users_only(evaluation):
    pooled = pool([evaluation])
    assert pooled["ndcg@10"].se_seeds is None
    assert pooled["ndcg@10"].to_json()["se_over"] == "users"
    assert pooled["coverage@10"].se_users is None
    json.dumps(pooled["ndcg@10"].to_json())


def test_what_does_not_fit_together_is_refused(evaluation):
    with pytest.raises(BadValue, match="no evaluation to pool"):
        pool([])
    with pytest.raises(BadValue, match="cannot pool different protocol"):
        pool([evaluation, replace(evaluation, protocol="sampled 99 candidates")])
    with pytest.raises(BadValue, match="cannot pool different metrics"):
        pool([evaluation, replace(evaluation, totals={})])
    with pytest.raises(BadValue, match="3 users, but values for"):
        replace(evaluation, groups=Groups.everyone(2))
    with pytest.raises(BadValue, match="an evaluation of nobody"):
        Evaluation("full ranking", np.zeros(0, np.int64), {}, Groups.everyone(0))


# impressions


def of_impressions(values, users=(0, 0, 1, 2)):
    users = np.array(users)
    everyone = Groups.everyone(len(users))
    given = {"auc": np.array(values, float)}
    return Evaluation("shown", users, given, everyone, per="impression", left_out=3)


def test_impressions_of_a_user_are_one_cluster():
    found = of_impressions([1.0, 0.0, 0.5, 0.7])
    metric = found.metrics()["auc"]
    assert (metric.n, metric.n_users, found.n_users) == (4, 3, 3)
    strays = [1.0 - 2 * 0.55, 0.5 - 0.55, 0.7 - 0.55]
    by_hand = (3 / 2 * sum(s**2 for s in strays)) ** 0.5 / 4
    assert metric.se == pytest.approx(by_hand)
    back = Evaluation.from_json(json.loads(json.dumps(found.to_json())))
    assert back.metrics() == found.metrics()
    assert (back.per, back.left_out) == ("impression", 3)
    half = found.only(np.array([True, True, True, False]))
    assert half.metrics()["auc"].n_users == 2
    assert Evaluation.joined([half, half]).metrics()["auc"].n_users == 2


def test_seeds_on_the_same_impressions_do_not_make_them_more():
    a, b = of_impressions([1.0, 0.0, 0.5, 0.7]), of_impressions([0.8, 0.0, 0.5, 0.5])
    both = pool([a, b])["auc"]
    mean = of_impressions([0.9, 0.0, 0.5, 0.6]).metrics()["auc"]
    assert both.se == both.se_users == pytest.approx(mean.se)
    assert both.se_seeds == pytest.approx(0.05)  # means .55 and .45
    assert (both.n_users, both.n_seeds) == (3, 2)
    assert both.to_json()["se_over"] == "users"
    assert pool([a, a])["auc"].se == pytest.approx(a.metrics()["auc"].se)
    others = of_impressions([0.8, 0.0, 0.5, 0.5], users=(0, 1, 1, 2))
    apart = pool([a, others])["auc"]
    assert apart.to_json()["se_over"] == "seeds"
    assert apart.n_users == 6


def test_differences_need_the_same_users_and_metrics(evaluation):
    other = replace(
        evaluation, values={n: v - 0.1 for n, v in evaluation.values.items()}
    )
    assert evaluation.minus(other)["hr@10"].mean == pytest.approx(0.1)
    with pytest.raises(BadValue, match="different users or metrics"):
        evaluation.minus(replace(other, users=np.array([4, 5, 8])))
    with pytest.raises(BadValue, match="different impressions or metrics"):
        of_impressions([1, 0, 1, 0]).minus(of_impressions([1, 0, 1, 0], (0, 1, 1, 2)))
