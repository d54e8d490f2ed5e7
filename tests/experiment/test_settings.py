import pytest

from tacit.errors import BadExperiment, BadValue
from tacit.experiment.assemble import load_dataset
from tacit.experiment.settings import check_experiment, read_experiment
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.sampling import Everyone, FixedSize, Once, Poisson, PoissonByGroup

SMALL = {"data": {"source": "synthetic"}, "method": {"name": "federated_popularity"}}


def with_section(**sections):
    return SMALL | sections


def test_defaults_fill_what_is_not_said():
    experiment = check_experiment(SMALL)
    assert experiment.method == FederatedPopularity()
    assert experiment.sampler == Everyone()
    assert experiment.run.rounds == 1


def test_all_problems_come_in_one_message():
    table = {
        "data": {"source": "movielens-1n", "min_valu": 3},
        "method": {"name": "federated_popularity", "max_votes": 0},
        "privacy": {"channel": "pigeon"},
        "run": {"rounds": 0, "sampler": {"name": "fixed_size"}},
        "evaluate": {"metrics": ["ndgc@10"]},
        "extra": {},
    }
    with pytest.raises(BadExperiment) as caught:
        check_experiment(table, "exp.toml")
    problems = "\n".join(caught.value.problems)
    for part in (
        "section 'extra' is not known",
        "did you mean 'min_value'",
        "max_votes=0 must be >= 1",
        "'pigeon' is not known",
        "rounds=0 must be >= 1",
        "ndcg",
    ):
        assert part in problems
    assert len(caught.value.problems) >= 6
    assert str(caught.value).startswith("exp.toml: ")


@pytest.mark.parametrize(
    ("table", "sampler"),
    [
        ({"name": "everyone"}, Everyone()),
        ({"name": "once"}, Once()),
        ({"name": "poisson", "rate": 0.1}, Poisson(0.1)),
        ({"name": "fixed_size", "size": 3}, FixedSize(3)),
        ({"name": "poisson_by_group", "rates": {"a": 1}}, PoissonByGroup({"a": 1.0})),
    ],
)
def test_samplers_by_name(table, sampler):
    assert check_experiment(with_section(run={"sampler": table})).sampler == sampler


@pytest.mark.parametrize(
    ("sampler", "problem"),
    [
        ({"name": "dice"}, "'dice' is not known"),
        ({"name": "poisson"}, "run.sampler.rate is missing"),
        ({"name": "poisson", "rate": 2.0}, "rate=2.0 must be in"),
        ({"name": "once", "rate": 0.5}, "'rate' is not known"),
    ],
)
def test_a_sampler_that_cannot_be(sampler, problem):
    with pytest.raises(BadExperiment, match=problem):
        check_experiment(with_section(run={"sampler": sampler}))


def test_a_csv_source_needs_its_table_and_the_other_way_round():
    for data in ({"source": "csv"}, {"source": "synthetic", "csv": {"path": "x"}}):
        with pytest.raises(BadExperiment, match="go together"):
            check_experiment(with_section(data=data))


def test_a_resolved_experiment_reads_back_to_itself(tmp_path):
    import tomli_w

    table = with_section(
        run={"sampler": {"name": "poisson", "rate": 0.25}, "rounds": 7},
        evaluate={"metrics": ["hr@5"], "baselines": []},
    )
    experiment = check_experiment(table)
    path = tmp_path / "exp.toml"
    path.write_text(tomli_w.dumps(experiment.resolved()))
    again = read_experiment(path)
    assert again == experiment
    assert again.digest == experiment.digest


def test_the_digest_sees_results_and_nothing_else():
    plain = check_experiment(SMALL).digest
    changed = check_experiment(with_section(run={"rounds": 2})).digest
    same = check_experiment(with_section(run={"checkpoint_every": 5})).digest
    asked = check_experiment(with_section(privacy={"contact": "me@example.org"})).digest
    assert changed != plain == same == asked


def test_set_changes_a_value(tmp_path):
    path = tmp_path / "exp.toml"
    path.write_text('[data]\nsource = "synthetic"\n[method]\nname = "x"\n')
    changes = [
        "method.name=federated_popularity",
        "method.max_votes = 7",
        'run.sampler={name="poisson", rate=0.5}',
    ]
    experiment = read_experiment(path, changes)
    assert experiment.method == FederatedPopularity(max_votes=7)
    assert experiment.sampler == Poisson(0.5)


@pytest.mark.parametrize("change", ["rounds=3", "run.rounds", "run.seed.x=1"])
def test_a_change_that_cannot_be_applied(change, tmp_path):
    path = tmp_path / "exp.toml"
    path.write_text(
        '[data]\nsource = "synthetic"\n[method]\nname = "federated_popularity"\n'
        "[run]\nseed = 1\n"
    )
    with pytest.raises(BadValue, match="--set"):
        read_experiment(path, [change])


@pytest.mark.parametrize("content", [b"[data", b"\xff\xfe", b"a = \n"])
def test_a_file_that_is_no_toml(content, tmp_path):
    path = tmp_path / "exp.toml"
    path.write_bytes(content)
    with pytest.raises(BadExperiment, match="cannot be read as TOML"):
        read_experiment(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadExperiment, match="no such file"):
        read_experiment(tmp_path / "none.toml")


def test_a_papers_protocol_brings_its_metrics_and_decides_the_rest():
    data = {"source": "filmtrust", "protocol": "fedvae"}
    found = check_experiment(with_section(data=data))
    assert found.evaluate.metrics == ("ndcg@20", "recall@20")
    own = {"metrics": ["hr@5"]}
    asked = check_experiment(with_section(data=data, evaluate=own))
    assert asked.evaluate.metrics == ("hr@5",)
    with pytest.raises(BadExperiment) as refused:
        check_experiment(
            with_section(
                data={**data, "min_value": 3, "split": "ratio"},
                evaluate={"protocol": "sampled"},
            )
        )
    said = str(refused.value)
    for key in ("data.min_value", "data.split", "evaluate.protocol"):
        assert f"{key}: data.protocol = 'fedvae' decides it" in said


def test_a_papers_protocol_is_for_its_own_data_sets():
    with pytest.raises(BadExperiment, match="protocol 'fedvae' on data set"):
        check_experiment(
            with_section(data={"source": "synthetic", "protocol": "fedvae"})
        )


def test_a_split_may_have_a_seed_of_its_own():
    data = {"source": "synthetic", "seed": 7}
    assert check_experiment(with_section(data=data)).split_seed == 7
    assert check_experiment(with_section(run={"seed": 3})).split_seed == 3


def test_a_world_has_its_own_table(tmp_path):
    data = {"source": "synthetic", "world": {"users": 60, "items": 30, "rank": 2}}
    data["world"]["events_per_user"] = 8
    made = check_experiment(with_section(data=data))
    assert load_dataset(made).interactions.n_users == 60
    again = check_experiment(made.resolved())
    assert again.digest == made.digest
    with pytest.raises(BadExperiment, match="key 'user' is not known"):
        check_experiment(with_section(data={**data, "world": {"user": 3}}))
    with pytest.raises(BadExperiment, match="source = 'synthetic' only"):
        check_experiment(with_section(data={**data, "source": "movielens-1m"}))
