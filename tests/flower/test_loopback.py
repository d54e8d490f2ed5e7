"""Three SuperNodes as real processes: equal to one machine, killed, and lied to."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="Flower is in .venv-flower: make test-flower")

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
from flower.loopback import (
    SHARES,
    Federation,
    assert_same_model,
    below,
    experiment,
    finished,
    free_ports,
    guarded,
    on_one_machine,
    rounds_of,
)
from test_child_processes import is_running, wait_until

from tacit.child_processes import ChildProcess
from tacit.cli.flower_keys import write_keys
from tacit.cli.flower_processes import Flwr, Link
from tacit.cli.flower_watch import started
from tacit.documents import read_document
from tacit.errors import Unanswered
from tacit.exact_sum import steps_per_unit
from tacit.experiment.over_nodes import gather_over, head_of, node_at, prepare_node
from tacit.experiment.settings import read_experiment
from tacit.runtime.node_store import NodeStore, digest_of
from tacit.runtime.rounds import open_round
from tacit.serving.model_file import load_model
from tacit.transport.channels import partial_slots
from tacit.transport.codec import decode_partial, encode_broadcast
from tacit.transport.node_answer import NodeAnswer, Share

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


TABLE = """
[data]
source = "table"
items = "declared"
population = 70
split = "none"
[data.table]
path = "events.csv"
user = "who"
item = "what"
[data.table.items]
path = "items.csv"
item = "id"
[run]
purpose = "release"
rounds = 1
"""
N_ITEMS = 25


def write_tables(folder: Path) -> Path:
    """An experiment that releases a table of sixty users, all of whose votes count."""
    draws = np.random.default_rng(8)
    lines = [
        f"user {user},item {item}"
        for user in range(60)
        for item in draws.choice(N_ITEMS, size=draws.integers(2, 9), replace=False)
    ]
    folder.mkdir()
    (folder / "events.csv").write_text("\n".join(["who,what", *lines, ""]))
    items = [f"item {number}" for number in range(N_ITEMS)]
    (folder / "items.csv").write_text("\n".join(["id", *items, ""]))
    path = folder / "release.toml"
    method = METHODS["federated_popularity"].replace("max_votes = 4", "max_votes = 9")
    path.write_text(TABLE + method)
    return path


def sent(folder: Path, run: str, question: bytes) -> NodeAnswer:
    """The answer that the node in a folder has sent to this question."""
    store = NodeStore(folder / "store.db")
    asked = store.asked(run, 0)
    store.close()
    assert asked.digest == digest_of(question)
    return NodeAnswer.decode(asked.content)


def test_a_release_of_a_table_is_exact_in_whole_numbers(place, federation):
    """What the nodes send adds up to the sum of one machine with the whole table.

    The model is that sum and noise: in whole steps, not zero, and no more than ten
    deviations, which is a false alarm below 1e-20.
    """
    path = write_tables(place / "tables")
    federation.prepare(path)
    out = place / "run-release"
    told = finished(federation.run(path, out))
    experiment = read_experiment(path)
    made = gather_over(experiment, None, shares=SHARES).simulation
    broadcast, context = open_round(made.method, made.start(), made.key)
    question, slots = encode_broadcast(broadcast), partial_slots(context)

    def votes(answer: NodeAnswer) -> np.ndarray:
        assert answer.is_release
        assert answer.asked == answer.took_part == 0  # no count of users is told
        return decode_partial(broadcast, answer.messages[0], slots).total["votes"]

    name, head = read_document(out / "nodes.json")["name"], head_of(experiment).digest
    folders = [federation.place / f"node-{part}" / head for part in range(SHARES)]
    parts = [votes(sent(folder, name, question)) for folder in folders]
    prepare_node(experiment, Share(0, 1), place / "whole")
    whole = node_at(place / "whole", "whole", head=head)
    expected = votes(NodeAnswer.decode(whole.answer(question)))
    whole.store.close()
    assert expected.dtype == np.int64
    assert min(part.sum() for part in parts) > 0
    np.testing.assert_array_equal(sum(parts), expected)

    model = load_model(out / "model.safetensors", out / "model.json").broadcast
    steps = steps_per_unit(1.0)
    released = model.weights["share"] * made.method.planned(made.plan) * steps
    noise = released - expected
    np.testing.assert_allclose(noise, np.rint(noise), atol=1e-4)
    assert np.abs(noise).min() > 0.5
    assert np.abs(noise).max() < 10 * 1.01 * steps
    assert not told["simulation"]
    assert all("simulation_only" not in line for line in rounds_of(out))
    assert stores(federation, out) == [[0]] * SHARES


def test_the_guard_sees_a_connection_that_leaves(place, tmp_path, monkeypatch):
    """A positive control, by programs that are started as Flower's are.

    192.0.2.1 is nobody's. The guard refuses before the system is asked to connect.
    """
    seen = tmp_path / "seen.log"
    monkeypatch.setenv("TACIT_TEST_CONNECTIONS", str(seen))
    for call in ("socket.create_connection", "socket.getaddrinfo"):
        where = "(('192.0.2.1', 443), 0.2)" if "create" in call else "('a.example', 1)"
        command = [sys.executable, "-c", f"import socket; {call}{where}"]
        log = tmp_path / f"{call}.log"
        made = ChildProcess.start("A program", command, log=log, environment=os.environ)
        made.popen.wait(60)
        assert "is not this machine" in log.read_text()
    write_keys(tmp_path / "keys", nodes=1, hosts=[])
    asked = Flwr(Link("192.0.2.1:443", tmp_path / "keys" / "ca.crt"), tmp_path / "flwr")
    with pytest.raises(Unanswered):
        asked.nodes()
    first, *later = seen.read_text().splitlines()
    assert "192.0.2.1" in first
    assert any("a.example" in line for line in later)
    assert any("192.0.2.1" in line and "flwr" in line for line in later)


@pytest.mark.slow
def test_a_run_that_is_interrupted_stops_and_goes_on(place, federation):
    """Ctrl-C stops it at the SuperLink too; its directory is free at once."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in some shells
    popularity = METHODS["federated_popularity"]
    path = experiment(place, "interrupted", popularity, rounds=3, run=POISSON)
    federation.prepare(path)
    out = place / "run-interrupted"
    run = federation.run(path, out)
    federation.wait(lambda: len(rounds_of(out)) == 1, "a round is over")
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=100)
    assert run.returncode == 130
    assert "stopped; nothing is lost" in err
    assert f"--out {out} --json --resume" in err
    assert federation.flwr.status(started(out))["status"] == "finished:stopped"
    finished(federation.run(path, out, "--resume"))
    assert_same_model(out, on_one_machine(path))
    assert read_document(out / "ledger.json")["rounds_begun"] == 3
    assert stores(federation, out) == [[0, 1, 2]] * SHARES
    again = subprocess.run(
        words("stop", "--superlink", federation.link.address, "--out", str(out)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 2  # it is over
    assert "flwr stop" in again.stderr


@pytest.mark.slow
def test_up_with_keys_starts_again_on_its_folder(place):
    """Its database knows the keys. Killed or interrupted, it leaves no process."""
    path = experiment(place, "again", METHODS["federated_popularity"])
    keys, folder, port = place / "up-keys", place / "up-again", free_ports(2)
    write_keys(keys, nodes=1, hosts=[])
    where = ("--port", str(port), "--folder", str(folder), "--keys", str(keys))
    for nodes, how in (("1", signal.SIGTERM), ("1", signal.SIGKILL), ("0", 15)):
        up = subprocess.Popen(
            words("up", str(path), "--nodes", nodes, *where, "--json"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        said = ""
        for line in iter(up.stdout.readline, "}\n"):
            assert line, f"{said}: it has ended with code {up.wait()}"
            said += line
        assert str(port) in said
        others = below(up.pid)
        assert len(others) > int(nodes)  # the SuperLink among them
        up.send_signal(how)
        up.communicate(timeout=60)
        wait_until(lambda others=others: not any(map(is_running, others)))
        for taken in (port, port + 1):
            socket.create_server(("127.0.0.1", taken)).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700  # nobody else may enter
    for one in folder.glob("superlink.*"):
        assert stat.S_IMODE(one.stat().st_mode) == 0o600


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
        assert f"the SuperLink at {made.link.address} gave no answer about run" in err
        assert "start it again with `tacit flower up`" in err
        assert f"--out {out} --json --resume" in err
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
    # Every round is spent, also by the users of the node that lied, and only once.
    assert read_document(out / "ledger.json")["rounds_begun"] == 5
    assert [line["round"] for line in rounds_of(out)] == [0, 1, 2, 3, 4]
    for line in rounds_of(out):
        assert line["nodes"]["answered"] == ["part 0 of 3", "part 1 of 3"]
    assert stores(made, out) == [[0, 1, 2, 3, 4]] * SHARES
