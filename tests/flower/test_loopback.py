"""Three SuperNodes as real processes: equal to one machine, killed, and lied to."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="Flower is in .venv-flower: make test-flower")

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from flower.loopback import (
    SHARES,
    Federation,
    assert_same_model,
    experiment,
    finished,
    free_ports,
    guarded,
    on_one_machine,
    rounds_of,
)

from tacit.documents import read_document
from tacit.runtime.node_store import NodeStore

CENTRAL = """
[privacy]
mechanism = "central"
channel = "secure_sum"
noise_multiplier = 1.0
delta = 1e-5
"""
POISSON = 'sampler = { name = "poisson", rate = 0.6 }'
METHODS = {
    "gram": '[method]\nname = "gram"\ncount_rounds = 1\nhead = 15\nrank = 4' + CENTRAL,
    "fmf_ldp": """
[method]
name = "fmf_ldp"
[privacy]
mechanism = "local"
channel = "direct"
epsilon = 4.0
delta = 1e-6
""",
    "fmf_ldp_bits": """
[method]
name = "fmf_ldp"
[privacy]
mechanism = "local_bits"
channel = "direct"
epsilon = 2.0
votes = 5
delta = 1e-6
""",
    "fedvae": """
[method]
name = "fedvae"
hidden = [5]
latent = 3
dtype = "float64"
"""
    + CENTRAL,
    "privrec": """
[method]
name = "privrec"
embedding = 3
widths = [5]
precision = "float64"
local_epochs = 1
"""
    + CENTRAL,
    "federated_popularity": """
[method]
name = "federated_popularity"
max_votes = 4
"""
    + CENTRAL,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder, and an environment in which nothing connects elsewhere."""
    before = {**os.environ}
    folder = tmp_path_factory.mktemp("loopback")
    guarded(folder)
    yield folder
    log = folder / "connections.log"
    assert not log.exists(), log.read_text()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def _own_cache():
    """Processes that live longer than a test share one cache."""


@pytest.fixture(autouse=True)
def _own_state():
    """They share what is remembered of their stores as well."""


def words(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tacit", "flower", *arguments]


def test_three_nodes_by_the_commands(place):
    """`up`, `run` and `status`; the model is that of one machine, also by its noise."""
    path = experiment(place, "commands", METHODS["gram"], rounds=2)
    port = free_ports(1 + SHARES)
    link = f"127.0.0.1:{port}"
    where = ("--port", str(port), "--folder", str(place / "up"))
    up = subprocess.Popen(
        words("up", str(path), "--nodes", "3", *where, "--json"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        said = "".join(iter(up.stdout.readline, "}\n"))
        assert link in said
        out = place / "by-commands"
        asked = ("--superlink", link, "--out", str(out), "--json")
        done = subprocess.run(
            words("run", str(path), "--nodes", "3", *asked),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        status = subprocess.run(
            words("status", *asked), capture_output=True, text=True, check=True
        )
    finally:
        up.send_signal(signal.SIGTERM)
        up.communicate(timeout=60)
    assert_same_model(out, on_one_machine(path))
    views = {(line["unit"], line["view"]): line for line in told["epsilons"]}
    assert views["user", "server"]["standing"] == "NONE"
    assert views["user", "release"]["standing"] == "PROVEN"
    found = json.loads(status.stdout)
    assert [len(line["answered"]) for line in found["rounds"]] == [3, 3]
    assert sum(node["status"] == "online" for node in found["nodes"]) == 3
    assert read_document(out / "ledger.json")["rounds_begun"] == 2
    card = read_document(out / "privacy-card.json")
    assert "without noise" in json.dumps(card["totals"])


@pytest.fixture(scope="module")
def federation(place):
    """A SuperLink and three nodes that the slow tests share."""
    made = Federation(place / "shared")
    made.start_link()
    for part in range(SHARES):
        made.start_node(part)
    made.flwr.wait_for_nodes(SHARES, [*made.processes.values()])
    yield made
    made.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_method_equals_one_machine(name, place, federation):
    run = 'sampler = { name = "once" }' if "ldp" in name else POISSON
    run = "" if name == "gram" else run
    path = experiment(place, name, METHODS[name], rounds=2, run=run)
    federation.prepare(path)
    out = place / f"run-{name}"
    finished(federation.run(path, out))
    made = on_one_machine(path)
    assert_same_model(out, made)
    *_, (state, _) = made.run(made.start())
    taken = sum(line["simulation_only"]["took_part"] for line in rounds_of(out))
    assert taken == state.taken.sum()


def stores(federation: Federation, out: Path) -> list[list[int]]:
    """The rounds that each node was asked in the run of this directory."""
    name = read_document(out / "nodes.json")["name"]
    found = []
    for part in range(SHARES):
        for path in sorted((federation.place / f"node-{part}").glob("*/store.db")):
            store = NodeStore(path)
            if store.has(name):
                found.append(store.rounds(name))
            store.close()
    return found


@pytest.mark.slow
def test_a_superlink_killed_between_rounds_ends_the_run_and_it_goes_on(place):
    made = Federation(place / "killed-link")
    path = experiment(
        place, "link", METHODS["federated_popularity"], rounds=3, run=POISSON
    )
    made.prepare(path)
    made.start_link()
    for part in range(SHARES):
        made.start_node(part)
    out = place / "run-killed-link"
    try:
        run = made.run(path, out)
        made.wait(lambda: len(rounds_of(out)) == 1, "a round is over")
        made.kill("link")
        _, err = run.communicate(timeout=200)
        assert run.returncode == 2
        assert "refused" in err
        made.start_link()
        made.flwr.wait_for_nodes(SHARES, [*made.processes.values()])
        finished(made.run(path, out, "--resume"))
    finally:
        made.stop()
    assert_same_model(out, on_one_machine(path))
    assert read_document(out / "ledger.json")["rounds_begun"] == 3
    assert [line["round"] for line in rounds_of(out)] == [0, 1, 2]
    assert stores(made, out) == [[0, 1, 2]] * SHARES


@pytest.mark.slow
def test_a_node_killed_in_a_round_counts_as_nothing(place):
    """Its users contribute zero from then on; the divisor and the noise stay."""
    made = Federation(place / "killed-node")
    path = experiment(
        place, "node", METHODS["federated_popularity"], rounds=2, run=POISSON
    )
    made.prepare(path)
    made.start_link()
    for part in range(SHARES):
        made.start_node(part)
    made.flwr.wait_for_nodes(SHARES, [*made.processes.values()])
    out = place / "run-killed-node"
    try:
        run = made.run(path, out, "--min-nodes", "2", "--deadline", "40")
        made.wait((out / "ledger.json").exists, "the first round has begun")
        made.kill("node 1")
        finished(run)
    finally:
        made.stop()
    first, second = rounds_of(out)
    assert first["nodes"]["answered"] == ["part 0 of 3", "part 2 of 3"]
    [why] = first["nodes"]["dropped"].values()
    assert "gave no answer in 40 s" in why or "failed" in why
    assert second["nodes"]["answered"] == ["part 0 of 3", "part 2 of 3"]
    assert_same_model(out, on_one_machine(path, without=(1,)))
    assert read_document(out / "ledger.json")["rounds_begun"] == 2


@pytest.mark.slow
def test_a_node_killed_while_it_computes_rejoins_and_answers_the_next_round(place):
    """The round that it was killed in stays spent on its users, and counts nothing."""
    made = Federation(place / "killed-computing")
    path = experiment(
        place, "computing", METHODS["federated_popularity"], rounds=2, run=POISSON
    )
    made.prepare(path)
    made.start_link()
    began = place / "computing-began"
    for part in range(SHARES):
        slow = {"TACIT_TEST_HANGS": str(began)} if part == 1 else {}
        made.start_node(part, **slow)
    out = place / "run-killed-computing"
    try:
        made.flwr.wait_for_nodes(SHARES, [*made.processes.values()])
        run = made.run(path, out, "--min-nodes", "2", "--deadline", "200")
        made.wait(began.exists, "the node has begun to compute")
        made.kill("node 1")
        made.start_node(1)
        finished(run)
    finally:
        made.stop()
    first, second = rounds_of(out)
    assert first["nodes"]["answered"] == ["part 0 of 3", "part 2 of 3"]
    assert len(first["nodes"]["dropped"]) == 1
    assert len(second["nodes"]["answered"]) == SHARES
    assert_same_model(out, on_one_machine(path, without=(1,), rounds=(0,)))
    assert read_document(out / "ledger.json")["rounds_begun"] == 2
    assert stores(made, out) == [[0, 1]] * SHARES


@pytest.mark.slow
def test_a_node_that_lies_is_dropped_in_every_round(place):
    """NaN, a wrong shape, 100 MB, 10^11 floats and an old version, one a round."""
    made = Federation(place / "hostile")
    path = experiment(
        place, "hostile", METHODS["federated_popularity"], rounds=5, run=POISSON
    )
    made.prepare(path)
    made.start_link()
    for part in range(SHARES):
        hostile = {"TACIT_TEST_HOSTILE": "1"} if part == 2 else {}
        made.start_node(part, **hostile)
    out = place / "run-hostile"
    try:
        finished(made.run(path, out, "--min-nodes", "2", "--deadline", "120"))
    finally:
        made.stop()
    told = [[*line["nodes"]["dropped"].values()] for line in rounds_of(out)]
    for [why], expected in zip(
        told,
        ("NaN", "bytes; every", "no answer that", "as numpy.ndarray", "version 0"),
        strict=True,
    ):
        assert expected in why
    assert_same_model(out, on_one_machine(path, without=(2,)))
