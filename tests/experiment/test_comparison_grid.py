"""The folders of a comparison stay in it, and no two lines share one."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadValue
from tacit.experiment.comparison_grid import Contest, Grid, aimed_at, folder_name

HOSTILE = [
    *("..", ".", "", "...", "../..", "/etc/passwd", "a/b", "a\\b", "a\0b", "\n", " "),
    *("-", "~", "$(reboot)", "é", "\udcff", "n" * 300, ".hidden", "con\x1b[2J"),
    *("comparison.json", "comparison.html", "baselines", "a b", "a, b", "\u202e"),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_that_of_a_folder_in_the_same_place(name):
    found = folder_name(name)
    assert found == os.path.basename(found)
    assert (Path("/out") / found).resolve().parent == Path("/out")
    assert found.isascii()
    assert found.isprintable()
    assert 0 < len(found) < 120
    assert not found.startswith((".", "comparison.", "-"))
    assert found != "baselines"


@given(st.text())
def test_so_is_any_other(name):
    found = folder_name(name)
    assert (Path("/out") / found).resolve().parent == Path("/out")
    assert found != "baselines"


@pytest.mark.parametrize("name", ["gram", "fedvae", "nn_self", "my-exp.2", "a+b"])
def test_a_plain_name_stays(name):
    assert folder_name(name) == name
    assert Contest(name, 2.0, ()).folder == f"{name}-epsilon-2"
    assert Contest(name, float("inf"), ()).folder == f"{name}-no-privacy"
    assert Contest(name, None, ()).folder == name


def test_a_target_for_everyone_is_named_where_the_file_has_budgets():
    own, one, none = (
        Contest("gram", target, (), is_for_all=True)
        for target in (None, 2.0, float("inf"))
    )
    labels = [contest.label for contest in (own, one, none)]
    assert labels == ["gram", "gram, everyone at epsilon 2", "gram, no privacy"]
    assert one.folder == "gram-epsilon-2"  # where earlier versions left it
    assert Contest("gram", 2.0, ()).label == "gram, epsilon 2"


@pytest.mark.parametrize("epsilons", [(1.0, 1.0), (None, 2.0, None)])
def test_a_target_that_is_named_twice_is_refused(epsilons):
    with pytest.raises(BadValue, match="name a target twice"):
        Grid((Path("a.toml"),), epsilons=epsilons)


def test_no_two_names_share_a_folder():
    names = [*HOSTILE, "a-b", "a.b", "experiment"]
    assert len({folder_name(name) for name in names}) == len(names)


RESOLVED = """
[data]
source = "synthetic"

[method]
name = "gram"

[privacy]
mechanism = "central"
channel = "secure_sum"
delta = 1e-6
budgets = "scale"

[privacy.scale]

[run]
rounds = 2
"""


def test_the_defaults_that_a_run_writes_are_no_budgets_of_groups(tmp_path):
    file = tmp_path / "experiment.toml"
    file.write_text(RESOLVED)
    labels = [one.label for one in Grid((file,), epsilons=(2.0,), seeds=1).contests()]
    assert labels == ["gram, epsilon 2", "private_popularity, epsilon 2"]


def test_a_noisy_list_has_the_same_target_and_is_not_there_twice(tmp_path):
    file = tmp_path / "experiment.toml"
    file.write_text(RESOLVED)
    _, listed = Grid((file,), epsilons=(2.0,), seeds=1).contests()
    ((run,),) = listed.runs
    assert run.method_name == "federated_popularity"
    assert run.privacy.target_epsilon == 2.0
    assert run.privacy.delta == 1e-6
    assert run.run.rounds == 1
    alone = Grid((file,), epsilons=(2.0,), seeds=1, baselines=("popularity",))
    assert [one.name for one in alone.contests()] == ["gram"]
    file.write_text(RESOLVED.replace('"gram"', '"federated_popularity"'))
    twice = Grid((file,), epsilons=(2.0,), seeds=1).contests()
    assert [one.name for one in twice] == ["federated_popularity"]


def test_without_privacy_two_servers_become_one_sum():
    """They refuse to add up without noise; the line is there to compare with."""
    over = {"mechanism": "central", "channel": "two_servers", "delta": 1e-6}
    table = {"privacy": {**over, "target_epsilon": 2.0, "target_view": "release"}}
    found = aimed_at(float("inf"), table, Path("a.toml"))["privacy"]
    assert found == {"mechanism": "none", "channel": "secure_sum", "delta": 1e-6}
    assert aimed_at(1.0, table, Path("a.toml"))["privacy"] == {
        **over,
        "target_epsilon": 1.0,
        "target_view": "release",
    }


def test_without_privacy_masked_sums_become_trusted_ones():
    over = {"mechanism": "central", "channel": "masked_sum", "min_contributors": 90}
    table = {"privacy": {**over, "target_epsilon": 2.0}}
    found = aimed_at(float("inf"), table, Path("a.toml"))["privacy"]
    assert (found["mechanism"], found["channel"]) == ("none", "secure_sum")
    assert aimed_at(1.0, table, Path("a.toml"))["privacy"]["channel"] == "masked_sum"


def test_a_consenting_group_is_compared_with_itself_alone(tmp_path):
    path = tmp_path / "few.toml"
    path.write_text(
        '[data]\nsource = "synthetic"\n[method]\nname = "gram"\n[privacy]\n'
        'mechanism = "central"\nchannel = "secure_sum"\ndelta = 1e-6\n'
        "groups = { others = 9, few = 1 }\n"
        'target_epsilon = { others = 1.0, few = "none" }\n'
    )
    found = Grid((path,), (None, 1.0), seeds=1, baselines=()).contests()
    labels = [one.label for one in found]
    assert labels == ["gram", "gram, everyone at epsilon 1", "gram, few alone"]
    alone = found[-1].runs[0][0].privacy
    assert (alone.mechanism, alone.asks) == ("none", ("few",))
    assert found[0].runs[0][0].privacy.asks is None
    without = Grid((path,), (1.0,), seeds=1, baselines=()).contests()
    assert [one.label for one in without] == ["gram, everyone at epsilon 1"]
