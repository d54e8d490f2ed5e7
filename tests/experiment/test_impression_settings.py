"""Experiments in which impressions are held out: what they say, and may not say."""

from __future__ import annotations

from copy import deepcopy

import pytest
import tomli_w

from tacit.data.synthetic.news_world import NewsWorld
from tacit.data.synthetic.world import World
from tacit.errors import BadExperiment
from tacit.evaluation.candidate_sets import FullRanking, ShownCandidates
from tacit.evaluation.impressions import METRICS
from tacit.experiment.assemble import divide, load_dataset, protocol
from tacit.experiment.settings import check_experiment, read_experiment

WORLD = {"users": 40, "news": 100, "shown": 5, "history": 4, "topics": 3}
BY_TIME = {
    "source": "synthetic-news",
    "world": WORLD,
    "split": "by-time",
    "validation_from": "2023-02-03",
    "test_from": "2023-02-05",
}


def table(*, data=None, **sections):
    own = BY_TIME if data is None else {**BY_TIME, **data}
    return deepcopy({"data": own, "method": {"name": "gram"}, **sections})


def problems(**sections):
    with pytest.raises(BadExperiment) as caught:
        check_experiment(table(**sections))
    return [*caught.value.problems]


def test_impressions_have_a_protocol_and_metrics_of_their_own():
    made = check_experiment(table())
    assert made.evaluate.protocol == "impressions"
    assert made.evaluate.metrics == METRICS
    assert protocol(made) == ShownCandidates()
    assert made.world == NewsWorld(**WORLD)
    other = check_experiment(table(evaluate={"metrics": ["hr@1"]}))
    assert other.evaluate.metrics == ("hr@1",)
    same = check_experiment(table(evaluate={"protocol": "impressions"}))
    assert same.digest == made.digest


def test_it_reads_back_to_itself(tmp_path):
    made = check_experiment(table())
    path = tmp_path / "experiment.toml"
    path.write_text(tomli_w.dumps(made.resolved()))
    again = read_experiment(path)
    assert again.resolved() == made.resolved()
    assert again.digest == made.digest


def test_moments_count_in_the_digest_and_others_are_as_they_were():
    later = check_experiment(table(data={"test_from": 1_675_600_000}))
    assert later.digest != check_experiment(table()).digest
    films = check_experiment({"data": {"source": "synthetic"}, **_method()})
    said = films.resolved()["data"]
    assert not {"validation_from", "test_from", "validation_part"} & said.keys()
    assert protocol(films) == FullRanking()
    assert films.world is None


def _method():
    return {"method": {"name": "gram"}}


def test_the_split_is_by_time_and_nobody_is_filtered():
    made = check_experiment(table())
    dataset = load_dataset(made)
    whole = NewsWorld(**WORLD).dataset()
    assert len(dataset.profiles) == len(whole.profiles)
    split = divide(made, dataset)
    parts = (split.train.impressions, split.validation, split.test)
    assert sum(map(len, parts)) == len(whole.impressions)
    assert min(map(len, parts)) > 0


def test_all_problems_stand_in_one_message():
    found = problems(
        data={"test_from": "2023-02-01", "min_value": 2.0, "items": "training"},
        evaluate={"protocol": "full", "metrics": ["coverage@5", "hr_each@3", "auc"]},
    )
    starts = [
        "data: validation_from=2023-02-03 must be before test_from=2023-02-01",
        "data.min_value: split = 'by-time' keeps all users",
        "data.items = 'training'",
        "evaluate.protocol = 'full' ranks users",
        "evaluate.metrics: 'coverage@5' is not of impressions",
        "evaluate.metrics: 'hr_each@3' is not of impressions",
    ]
    assert len(found) == len(starts)
    for problem, start in zip(found, starts, strict=True):
        assert problem.startswith(start)


@pytest.mark.parametrize(
    ("data", "evaluate", "problem"),
    [
        ({"test_from": None}, {}, "data.test_from is missing; split = 'by-time'"),
        ({"test_from": "Sunday"}, {}, "test_from='Sunday' must be unix seconds"),
        ({"split": "by-part"}, {}, "data.validation_part is missing"),
        ({"split": "by-part"}, {}, "data.test_from goes with split = 'by-time'"),
        ({"test_part": "dev"}, {}, "data.test_part goes with split = 'by-part'"),
        ({"split": "new-users"}, {}, "data.validation_from goes with split"),
        ({"min_interactions": 3}, {}, "data.min_interactions: split = 'by-time'"),
        ({"validation": 0.2}, {}, "data.validation: split"),
        ({"subset": {"users": 3}}, {}, "data.subset: split"),
        ({}, {"protocol": "sampled"}, "evaluate.protocol = 'sampled' ranks users"),
        ({}, {"full_metrics": ["hr@5"]}, "evaluate.full_metrics rank among all"),
        ({}, {"metrics": ["auk"]}, "auk"),
        ({}, {"baselines": ["content"]}, "add it to data.text_vectors"),
        ({"world": {"users": 0}}, {}, "data.world"),
        ({"world": {"items": 9}}, {}, "data.world: key 'items'"),
    ],
)
def test_what_does_not_go_together_is_refused(data, evaluate, problem):
    given = {k: v for k, v in {**BY_TIME, **data}.items() if v is not None}
    with pytest.raises(BadExperiment) as caught:
        check_experiment({"data": given, **_method(), "evaluate": evaluate})
    assert any(problem in one for one in caught.value.problems)


def test_parts_must_differ_and_films_have_no_impressions():
    parts = {"split": "by-part", "validation_part": "dev", "test_part": "dev"}
    own = {"source": "mind-small", **parts}
    with pytest.raises(BadExperiment, match="must not be the test part"):
        check_experiment({"data": own, **_method()})
    films = {"source": "synthetic"}
    with pytest.raises(BadExperiment, match=r"goes with data\.split"):
        check_experiment(
            {"data": films, **_method(), "evaluate": {"protocol": "impressions"}}
        )


def test_each_invented_source_has_its_own_world():
    films = {"source": "synthetic", "world": {"users": 50}}
    made = check_experiment({"data": films, **_method()})
    assert made.world == World(users=50)
    with pytest.raises(BadExperiment, match="goes with source = 'synthetic' or"):
        check_experiment({"data": {**films, "source": "synthetic-1m"}, **_method()})


def test_in_a_release_everybody_trains_on_all_impressions():
    made = check_experiment(
        table(data={"population": 60}, run={"purpose": "release", "rounds": 3})
    )
    assert made.data.split == "none"
    split = divide(made, load_dataset(made))
    assert len(split.test.users) == 0
    assert split.train.impressions is not None
    assert len(split.train.impressions) == len(NewsWorld(**WORLD).dataset().impressions)


def test_a_text_that_content_reads_must_be_made():
    own = {"baselines": ["content"], "baseline_settings": {"content": {"text": "body"}}}
    found = problems(data={"text_vectors": ["title"]}, evaluate=own)
    assert found == [
        "baseline 'content' reads the vectors of 'body'; add it to data.text_vectors"
    ]
    check_experiment(
        table(data={"text_vectors": ["title"]}, evaluate={"baselines": ["content"]})
    )
