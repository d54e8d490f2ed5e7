"""Every starting point is an experiment, and a method keeps the rest of one."""

import pytest

from tacit.errors import BadValue
from tacit.experiment.settings import check_experiment
from tacit.experiment.starting_points import STARTING_POINTS, with_method

TABLE = {
    "data": {"source": "synthetic", "min_interactions": 3},
    "method": {"name": "gram", "ridge": 0.5},
    "privacy": {
        "mechanism": "central",
        "channel": "secure_sum",
        "target_epsilon": 4.0,
        "delta": 1e-6,
    },
    "run": {"seed": 7, "rounds": 3},
    "evaluate": {"metrics": ["ndcg@10"]},
}


@pytest.mark.parametrize("name", STARTING_POINTS)
@pytest.mark.parametrize("mechanism", ["none", "central"])
def test_every_starting_point_is_an_experiment(name, mechanism):
    privacy = TABLE["privacy"] if mechanism == "central" else {}
    table = with_method({**TABLE, "privacy": privacy}, name)
    found = check_experiment(table)
    assert found.method_name == name
    assert (found.run.seed, found.data.min_interactions) == (7, 3)
    assert found.evaluate.metrics == ("ndcg@10",)
    assert (found.privacy.mechanism == "none") == (mechanism == "none")
    assert found.privacy.target_epsilon == privacy.get("target_epsilon")


def test_the_same_method_keeps_its_rounds_and_settings():
    found = with_method(TABLE, {"name": "gram", "head": 50})
    assert found["method"] == {"name": "gram", "ridge": 0.5, "head": 50}
    assert found["run"] == TABLE["run"]
    assert "head" not in TABLE["method"]


def test_hyper_parameters_come_with_the_name():
    found = with_method(TABLE, {"name": "fedvae", "latent": 8})
    assert found["method"]["latent"] == 8
    assert found["method"]["tied"]
    assert "ridge" not in found["method"]


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("gramm", "did you mean 'gram'"),
        ("privrec", "needs more than a table of users and items"),
        ({"ridge": 1.0}, "must be a name, or a table with name"),
        ({"name": 3}, "must be a name"),
    ],
)
def test_a_method_that_cannot_be_is_refused(method, said):
    with pytest.raises(BadValue, match=said):
        with_method(TABLE, method)
