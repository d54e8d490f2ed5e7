"""`tacit flower`: what can be said without Flower; test_loopback.py has the rest."""

import pytest

EXPERIMENT = """
[data]
source = "synthetic"
world = { users = 60, items = 30, events_per_user = 8.0, rank = 3, seed = 1 }
validation = 5
test = 5
[method]
name = "federated_popularity"
[run]
rounds = 2
"""


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "exp.toml"
    path.write_text(EXPERIMENT)
    return path


def test_a_node_reads_its_share(tacit, experiment, tmp_path):
    found = []
    for part in range(3):
        done = tacit(
            "flower",
            "node",
            experiment,
            "--share",
            f"{part}/3",
            "--folder",
            tmp_path / f"node-{part}",
            "--prepare",
            "--json",
        )
        found.append(done.json["users"])
    assert sum(found) == 50
    assert min(found) > 5


@pytest.mark.parametrize("share", ["3", "3/", "a/b", "3/3"])
def test_a_share_is_a_part_of_so_many(tacit, experiment, share):
    done = tacit("flower", "node", experiment, "--share", share, "--prepare")
    assert done.code == 2
    assert "part" in done.err.lower()


def test_keys_say_what_to_do_next(tacit, tmp_path):
    done = tacit("flower", "keys", tmp_path / "keys", "--nodes", "2", "--json")
    names = [path.rsplit("/", 1)[1] for path in done.json["files"]]
    assert {"ca.crt", "node-1.key", "nginx.conf", "operator.crt"} <= {*names}
    again = tacit("flower", "keys", tmp_path / "keys")
    assert "has keys already" in again.err


def test_another_machine_without_tls_is_refused(tacit, experiment):
    done = tacit("flower", "run", experiment, "--nodes", "3", "--superlink", "h:1")
    assert "without TLS" in done.err


def test_what_cannot_run_over_nodes_is_refused_before_anybody_is_asked(
    tacit, experiment, tmp_path
):
    experiment.write_text(
        EXPERIMENT.replace(
            "rounds = 2", 'rounds = 2\nsampler = { name = "fixed_size", size = 5 }'
        )
    )
    done = tacit("flower", "run", experiment, "--nodes", "3")
    assert done.code == 2
    assert "cannot be drawn by nodes" in done.err


def test_a_directory_with_a_run_is_not_overwritten(tacit, experiment, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    (out / "experiment.toml").write_text("")
    done = tacit("flower", "run", experiment, "--nodes", "3", "--out", out)
    assert "--resume" in done.err
