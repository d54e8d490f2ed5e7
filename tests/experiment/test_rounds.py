"""The rounds of a run: those of its method, and never too few for its floor.

Also tests `tacit.experiment.needs`, as far as it speaks of rounds.
"""

import pytest

from tacit.errors import Refused
from tacit.experiment.needs import note_on_rounds
from tacit.experiment.planning import plan_experiment
from tacit.experiment.registry import method_class
from tacit.experiment.settings import check_experiment, read_table
from tacit.experiment.starting_points import STARTING_POINTS
from tacit.experiment.training import train

WORLD = {"users": 120, "items": 12, "rank": 2, "events_per_user": 5}
PRIVACY = {"mechanism": "central", "channel": "secure_sum", "delta": 1e-6}
GROUPS = {
    "groups": {"strict": 2, "open": 1},
    "target_epsilon": {"strict": 1.0, "open": 8.0},
}


def gram(*, privacy=None, run=None, method=None):
    return check_experiment(
        {
            "data": {"source": "synthetic", "world": WORLD},
            "method": {"name": "gram", **(method or {})},
            "privacy": {**PRIVACY, "target_epsilon": 4.0, **(privacy or {})},
            "run": run or {},
            "evaluate": {"metrics": ["ndcg@10"], "baselines": []},
        }
    )


@pytest.mark.parametrize("content", [(), ("topics",)])
@pytest.mark.parametrize("privacy", [{}, GROUPS], ids=["one target", "groups"])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_gram_has_the_rounds_that_its_floor_needs(rounds, privacy, content):
    experiment = gram(
        privacy=privacy, run={"rounds": rounds}, method={"content": content}
    )
    if rounds < 3:
        with pytest.raises(Refused, match=r"too few: Gram needs 3 .* run\.rounds = 3"):
            plan_experiment(experiment)
        return
    planned = plan_experiment(experiment)
    # It may go on counting, which makes it private popularity where that is all.
    assert planned.assembled.method.chooses_phases


@pytest.mark.parametrize(
    "how",
    [
        {"method": {"count_rounds": 1}},  # planned by hand
        {"privacy": {"mechanism": "none", "target_epsilon": 4.0}},
        {"run": {"sampler": {"name": "poisson", "rate": 0.5}}},  # has no floor at all
    ],
)
def test_two_rounds_are_enough_where_nothing_is_chosen(how):
    run = {"rounds": 2, **how.get("run", {})}
    plan_experiment(gram(**{**how, "run": run}))


def test_a_run_with_too_few_rounds_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(Refused, match="needs 3 rounds"):
        train(gram(run={"rounds": 2}), tmp_path / "run")
    assert not (tmp_path / "run" / "experiment.toml").exists()


@pytest.mark.parametrize("name", STARTING_POINTS)
def test_rounds_that_nobody_gives_are_those_of_the_method(name):
    table = {"data": {"source": "synthetic"}, "method": {"name": name}}
    found = check_experiment(table)
    assert found.run.rounds == method_class(name).usual_rounds
    assert note_on_rounds(found) is None
    given = check_experiment({**table, "run": {"rounds": 7}})
    assert given.run.rounds == 7


SHOP = """
[data]
source = "synthetic"
[method]
name = "gram"
ridge = 0.5
[run]
seed = 3
rounds = 3
sampler = { name = "everyone" }
"""


def test_another_method_begins_with_rounds_of_its_own(tmp_path):
    """Three rounds were Gram's; FedVAE would learn nothing in them."""
    file = tmp_path / "shop.toml"
    file.write_text(SHOP)
    table = read_table(file, ["method.name=fedvae", "method.latent=8"])
    found = check_experiment(table)
    assert (found.run.rounds, found.run.seed) == (151, 3)
    assert found.method.latent == 8
    same = read_table(file, ["method.name=gram"])
    assert (same["run"]["rounds"], same["method"]["ridge"]) == (3, 0.5)


def test_few_rounds_are_told(tmp_path):
    file = tmp_path / "shop.toml"
    file.write_text(SHOP)
    table = read_table(file, ["method.name=fedvae", "run.rounds=3"])
    said = note_on_rounds(check_experiment(table))
    assert said is not None
    assert "fedvae usually takes 151" in said
    assert "run.rounds=3" in said
