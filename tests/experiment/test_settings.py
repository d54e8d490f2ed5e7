from dataclasses import fields

import pytest
import tomli_w

from tacit.data.contribution_bounds import ContributionBounds
from tacit.data.metadata_vectors import MetadataVectors
from tacit.data.subset import Subset
from tacit.errors import BadExperiment, BadValue
from tacit.experiment.assemble import load_dataset
from tacit.experiment.privacy_settings import PrivacySettings
from tacit.experiment.registry import method_class, method_names
from tacit.experiment.settings import (
    check_experiment,
    read_experiment,
)
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.gram import Gram
from tacit.privacy import CentralGaussian, LocalPrivUnit, PublishedVotes
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
    for data in ({"source": "table"}, {"source": "synthetic", "table": {"path": "x"}}):
        with pytest.raises(BadExperiment, match="go together"):
            check_experiment(with_section(data=data))


@pytest.mark.parametrize(
    "privacy",
    [
        {},
        {"mechanism": "central", "noise_multiplier": 2, "clip": 1.5},
        {"mechanism": "central", "noise_multiplier": {"votes": 2.5}, "delta": 1e-6},
        {"mechanism": "central", "clip_quantile": 0.5, "bit_noise": 3.0},
        {
            "mechanism": "central",
            "groups": "gender",
            "target_epsilon": {"F": 1.0, "M": 2},
            "scale": {"F": 0.5, "M": 1.0},
        },
        {"mechanism": "local_item", "epsilon": 1.0},
    ],
)
def test_a_resolved_experiment_reads_back_to_itself(privacy, tmp_path):
    import tomli_w

    table = with_section(
        privacy=privacy,
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


@pytest.mark.parametrize(
    ("method", "privacy", "made"),
    [
        ({"name": "gram"}, {}, Gram()),
        (
            {"name": "gram", "head": 9},
            {"mechanism": "central", "noise_multiplier": {"counts": 5, "relations": 2}},
            Gram(head=9, privacy=CentralGaussian({"counts": 5.0, "relations": 2.0})),
        ),
        (
            {"name": "gram"},
            {"mechanism": "local", "epsilon": 1, "channel": "shuffle"},
            Gram(privacy=LocalPrivUnit(epsilon=1.0)),
        ),
        (
            {"name": "fmf_ldp", "mode": "paper"},
            {"mechanism": "published", "votes": 7},
            FmfLdp(mode="paper", privacy=PublishedVotes(votes=7)),
        ),
    ],
)
def test_the_mechanism_and_its_fields_protect_the_method(method, privacy, made):
    table = with_section(method=method, privacy=privacy)
    assert check_experiment(table).method == made


def problems_of(**sections):
    with pytest.raises(BadExperiment) as caught:
        check_experiment(with_section(**sections))
    return [*caught.value.problems]


def test_an_old_file_gets_one_error_with_every_key_that_moved():
    """Nothing else is said of it: a wrong head can be told once the rest is right."""
    gram = {"name": "gram", "privacy": "central", "head": 0}
    found = problems_of(
        method={**gram, "count_noise": 5.0, "relate_noise": 2.0},
        run={"groups": "gender"},
    )
    assert found == [
        "method.privacy = 'central' is now privacy.mechanism",
        "method.count_noise = 5.0 is now privacy.noise_multiplier.counts",
        "method.relate_noise = 2.0 is now privacy.noise_multiplier.relations",
        "run.groups = 'gender' is now privacy.groups",
    ]


@pytest.mark.parametrize(
    ("method", "places"),
    [
        (
            {
                "name": "privrec",
                "privacy": "central",
                "clip": 2.0,
                "is_adaptive": True,
                "quantile": 0.9,
                "clip_rate": 0.1,
                "least_clip": 1e-3,
                "most_clip": 1e3,
                "balance": 0.7,
                "noise_multiplier": 1.0,
                "bit_noise": 2.0,
            },
            {
                "privacy": "privacy.mechanism",
                "clip": "privacy.clip",
                "is_adaptive": "privacy.clip_quantile, left out for a fixed clip",
                "quantile": "privacy.clip_quantile, of 'published' privacy.quantile",
                "clip_rate": "privacy.clip_rate",
                "least_clip": "privacy.clip_span, of 'published' privacy.least_clip",
                "most_clip": "privacy.clip_span",
                "balance": "privacy.balance",
                "noise_multiplier": "privacy.noise_multiplier",
                "bit_noise": "privacy.bit_noise",
            },
        ),
        (
            {"name": "fmf_ldp", "report": "one_bit", "votes": 3, "epsilon": 1.0},
            {
                "report": "privacy.mechanism, 'local' for 'priv_unit', 'local_bits' "
                "for 'one_bit', and in mode = 'paper' 'published'",
                "votes": "privacy.votes",
                "epsilon": "privacy.epsilon",
            },
        ),
        ({"name": "fedvae", "clip_quantile": 0.5}, {"clip_quantile": None}),
    ],
)
def test_every_key_that_moved_is_named_with_its_new_place(method, places):
    found = problems_of(method=method)
    assert sorted(found) == sorted(
        f"method.{key} = {method[key]!r} is now {place or f'privacy.{key}'}"
        for key, place in places.items()
    )


def test_an_unknown_key_of_privacy_names_those_of_all_and_of_the_mechanism():
    [found] = problems_of(privacy={"mechanism": "central", "chanel": "direct"})
    assert "privacy: key 'chanel' is not known; did you mean 'channel'?" in found
    known = found.partition("known: ")[2].split(", ")
    assert {"mechanism", "channel", "delta", "target_epsilon", "groups"} < {*known}
    assert {"noise_multiplier", "clip", "clip_quantile", "bit_noise"} < {*known}
    assert not {"epsilon", "votes"} & {*known}  # of another mechanism


def test_a_field_of_another_mechanism_is_not_known():
    [found] = problems_of(privacy={"mechanism": "local", "noise_multiplier": 1.0})
    assert "key 'noise_multiplier' is not known" in found
    assert "epsilon" in found.partition("known: ")[2].split(", ")
    [bare] = problems_of(privacy={"epsilon": 1.0})  # of mechanism = "none"
    assert "key 'epsilon' is not known" in bare


@pytest.mark.parametrize(
    ("name", "mechanism", "offered"),
    [
        ("gram", "local_bits", "central, local, none"),
        ("federated_popularity", "published", "central, local, local_item, none"),
        ("fmf_ldp", "central", "local, local_bits, none, published"),
        ("dplcf", "central", "local, none"),
        ("nn_self", "central", "none"),
    ],
)
def test_a_mechanism_that_the_method_does_not_offer(name, mechanism, offered):
    [found] = problems_of(method={"name": name}, privacy={"mechanism": mechanism})
    assert found.startswith(f"privacy.mechanism: '{mechanism}' is not known")
    assert found.endswith(f"known: {offered}")


def test_what_a_mechanism_refuses_is_said_for_every_value():
    wrong = {"noise_multiplier": {"votes": 0}, "clip": -1.0, "clip_span": 0.5}
    found = problems_of(privacy={"mechanism": "central", **wrong})
    assert found == [
        "privacy: noise_multiplier[votes]=0.0 must be > 0; use mechanism = 'none' to "
        "train without protection",
        "privacy: clip=-1.0 must be > 0",
        "privacy: clip_span=0.5 must be >= 1",
    ]


def test_of_a_papers_mode_only_what_is_wrong_is_said():
    paper = {"name": "fmf_ldp", "mode": "paper", "learning_rate": 1e-4}
    found = problems_of(
        method=paper | {"factors": 0}, privacy={"mechanism": "published"}
    )
    assert found == ["method: factors=0 must be >= 1"]
    [apart] = problems_of(method=paper)
    assert "mode 'paper' and mechanism 'published' go together" in apart


@pytest.mark.parametrize("name", method_names())
def test_no_field_of_a_mechanism_hides_one_of_all(name):
    """Such a field could not be set, and would stand in place of the other."""
    shared = {field.name for field in fields(PrivacySettings)}
    for kind in method_class(name).mechanisms.values():
        assert shared & {field.name for field in fields(kind)} == set()


def test_the_noise_of_dpvae_has_a_delta_of_its_own():
    protection = {"mechanism": "published", "delta": 1e-6, "noise_delta": 1e-3}
    method = {"name": "dpvae", "mode": "paper"}
    made = check_experiment(with_section(method=method, privacy=protection))
    assert made.method.privacy.noise_delta == 1e-3
    assert made.resolved()["privacy"]["delta"] == 1e-6


def test_targets_by_group_need_groups():
    targets = {"mechanism": "central", "target_epsilon": {"F": 1.0, "M": 2.0}}
    [found] = problems_of(privacy=targets)
    assert "a target_epsilon for each group needs groups" in found
    made = check_experiment(with_section(privacy=targets | {"groups": "gender"}))
    assert made.privacy.target_epsilon == {"F": 1.0, "M": 2.0}


CHOICES = {"strict": 54, "balanced": 37.0, "open": 9}
EACH = {"strict": 1.0, "balanced": 4.0, "open": 8.0}


def test_how_many_users_choose_each_group():
    budgets = {"mechanism": "central", "groups": CHOICES, "target_epsilon": EACH}
    made = check_experiment(with_section(privacy=budgets))
    assert made.privacy.groups == CHOICES
    again = check_experiment(made.resolved())
    assert again.privacy == made.privacy
    assert again.digest == made.digest


@pytest.mark.parametrize(
    ("privacy", "problem"),
    [
        ({"groups": {}}, "must name at least one group"),
        ({"groups": {"a": 0.0}}, "groups.a=0.0 must be > 0"),
        ({"groups": CHOICES, "target_epsilon": {"strict": 1.0}}, "give each of them"),
    ],
)
def test_groups_that_cannot_be_are_refused(privacy, problem):
    [found] = problems_of(privacy={"mechanism": "central", **privacy})
    assert problem in found


def test_a_release_does_not_choose_for_its_users():
    budgets = {"mechanism": "central", "groups": CHOICES, "target_epsilon": EACH}
    [found] = problems_of(privacy=budgets, run={"purpose": "release"})
    assert "name the category of the profiles that says what each user chose" in found


def test_set_changes_a_value(tmp_path):
    path = tmp_path / "exp.toml"
    path.write_text('[data]\nsource = "synthetic"\n[method]\nname = "x"\n')
    changes = [
        "method.name=federated_popularity",
        "method.max_votes = 7",
        "privacy.mechanism=central",
        "privacy.noise_multiplier.votes=2",
        'run.sampler={name="poisson", rate=0.5}',
    ]
    experiment = read_experiment(path, changes)
    assert experiment.method == FederatedPopularity(
        max_votes=7, privacy=CentralGaussian({"votes": 2.0})
    )
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


@pytest.mark.parametrize(
    "content", [b"[data", b"\xff\xfe", b"a = \n", b"a = " + b"[" * 9999]
)
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
        check_experiment(with_section(data={"source": "frappe", "protocol": "fedvae"}))


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
    with pytest.raises(
        BadExperiment, match="source = 'synthetic' or 'synthetic-news' only"
    ):
        check_experiment(with_section(data={**data, "source": "movielens-1m"}))


# What is declared

CSV = {"path": "events.csv", "user": "who", "item": "what"}
ITEMS = {"path": "list/items.csv", "item": "id", "title": "name", "columns": ["kind"]}


def declared(**csv):
    return with_section(data={"source": "table", "table": CSV | csv})


def test_an_items_table_stands_below_the_table_of_events(tmp_path):
    made = check_experiment(declared(items=ITEMS), relative_to=tmp_path)
    assert made.table.path == tmp_path / "events.csv"
    assert made.table.items.path == tmp_path / "list" / "items.csv"
    assert made.table.items.columns == ("kind",)
    again = check_experiment(made.resolved())
    assert again.table == made.table
    assert again.digest == made.digest
    other = check_experiment(declared(items=ITEMS | {"title": "label"}))
    assert other.digest != made.digest


@pytest.mark.parametrize(
    ("csv", "problem"),
    [
        ({"items": "items.csv"}, "data.table.items must be a table, not 'items.csv'"),
        ({"items": {"path": "x"}}, "data.table.items.item is missing"),
        ({"items": ITEMS | {"titel": "x"}}, "did you mean 'title'"),
        ({"items": ITEMS, "title": "name"}, "two sources for one fact"),
        ({"itmes": ITEMS}, "did you mean 'items'"),
    ],
)
def test_a_wrong_items_table_is_a_problem_of_the_experiment(csv, problem):
    with pytest.raises(BadExperiment) as caught:
        check_experiment(declared(**csv))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("population", "problem"),
    [
        (0, "population=0 must be >= 1"),
        ({"a": 3, "b": 0}, "population.b=0 must be >= 1"),
        (1.5, "data.population must be an integer"),
    ],
)
def test_a_population_is_a_number_of_users(population, problem):
    data = {"source": "synthetic", "population": population}
    with pytest.raises(BadExperiment) as caught:
        check_experiment(with_section(data=data))
    assert problem in str(caught.value)


def test_text_vectors_read_back_to_themselves_and_count_in_the_digest(tmp_path):
    data = {"source": "synthetic", "text_vectors": ["title"]}
    made = check_experiment(with_section(data=data))
    assert made.data.text_vectors == ("title",)
    path = tmp_path / "resolved.toml"
    path.write_text(tomli_w.dumps(made.resolved()))
    assert read_experiment(path).digest == made.digest
    assert made.digest != check_experiment(SMALL).digest


def test_a_subset_and_its_filters_read_back_to_themselves(tmp_path):
    made = check_experiment(
        {
            "data": {
                "source": "synthetic",
                "min_users": 3,
                "subset": {"users": 10, "choose": "popular"},
            },
            "method": {"name": "federated_popularity"},
            "privacy": {"min_contributors": "all"},
        }
    )
    assert made.subset == Subset(users=10, choose="popular")
    path = tmp_path / "resolved.toml"
    path.write_text(tomli_w.dumps(made.resolved()))
    again = read_experiment(path)
    assert (again.digest, again.subset) == (made.digest, made.subset)


def test_construction_and_metadata_read_back_to_themselves(tmp_path):
    """Where the words lie is next to the file, and does not count as a setting."""
    path = tmp_path / "own.toml"
    path.write_text(
        """
        [data]
        source = "synthetic"
        construction = { least = 0.01, dimension = 40 }
        metadata_vectors = { words = "words.txt", of = ["kind"] }
        [method]
        name = "federated_popularity"
        """
    )
    made = read_experiment(path)
    assert made.construction == ContributionBounds(0.01, dimension=40)
    assert made.metadata == MetadataVectors(str(tmp_path / "words.txt"), of=("kind",))
    path.write_text(tomli_w.dumps(made.resolved()))
    again = read_experiment(path)
    assert (again.construction, again.metadata) == (made.construction, made.metadata)
    assert again.digest == made.digest
    elsewhere = read_experiment(path, ['data.metadata_vectors.words="other.txt"'])
    assert elsewhere.digest == made.digest


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"data": {"construction": {"least": -1}}}, "least=-1"),
        ({"data": {"metadata_vectors": {"of": []}}}, "words"),
        ({"data": {"min_users": 0}}, "min_users=0"),
        ({"data": {"subset": {"people": 3}}}, "people.*users"),
        ({"data": {"text_vectors": ["title", "title"]}}, "must name each text once"),
        ({"data": {"text_vectors": "title"}}, "text_vectors must be a list"),
        (
            {"data": {"text_vectors": ["title"], "selection": {"most": 3}}},
            "declare the items, or leave text_vectors out",
        ),
        ({"data": {"subset": {"choose": "best"}}}, "'random', 'popular'"),
        ({"privacy": {"min_contributors": "most"}}, "min_contributors"),
        ({"privacy": {"min_contributors": 0}}, "min_contributors=0"),
        ({"evaluate": {"max_users": 0}}, "max_users=0"),
        ({"evaluate": {"full_metrics": ["hit@3"]}}, "hit"),
    ],
)
def test_a_wrong_size_or_rule_is_a_problem(table, problem):
    data = {"source": "synthetic", **table.get("data", {})}
    whole = {**table, "data": data, "method": {"name": "federated_popularity"}}
    with pytest.raises(BadExperiment, match=problem):
        check_experiment(whole)
