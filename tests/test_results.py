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
