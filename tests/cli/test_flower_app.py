"""The apps that Flower loads play an experiment over a grid, into a run directory."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="Flower is in .venv-flower: make test-flower")

import stat

from flwr.app import Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from runtime.test_flower_server import LocalGrid

from tacit.cli import flower_app
from tacit.documents import read_document
from tacit.experiment.over_nodes import head_of, prepare_node
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.runtime import node_log
from tacit.runtime.declined import NoMoreRuns, NotAgreed
from tacit.runtime.flower_client import FAILED, MESSAGE_TYPE, asked
from tacit.transport.codec import encode_broadcast
from tacit.transport.node_answer import Share

EXPERIMENT = """
[data]
source = "synthetic"
world = { users = 60, items = 30, events_per_user = 8.0, rank = 3, seed = 1 }
validation = 5
test = 5
[method]
name = "federated_popularity"
max_votes = 3
[privacy]
channel = "secure_sum"
[run]
rounds = 2
"""


class Folders(LocalGrid):
    """A grid whose nodes are the app of this package, each with its folder."""

    def __init__(self, folders):
        super().__init__({})
        self.folders = folders

    def get_node_ids(self):
        return [*self.folders]

    def pull_messages(self, message_ids):
        for one in message_ids:
            message = self.sent[one]
            node = message.metadata.dst_node_id
            made = Context(
                run_id=1,
                node_id=node,
                node_config={"folder": str(self.folders[node])},
                state=RecordDict(),
                run_config={},
            )
            yield flower_app.client(message, made)


def test_a_run_from_bundle_to_model(tmp_path):
    TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1
    path = tmp_path / "exp.toml"
    path.write_text(EXPERIMENT)
    experiment = read_experiment(path, ["run.seed=3"])
    folders = {part + 5: tmp_path / f"node-{part}" for part in range(2)}
    for part, folder in enumerate(folders.values()):
        prepare_node(experiment, Share(part, 2), folder)
    settings = {
        "experiment": str(path),
        "changes": "run.seed=3",
        "out": str(tmp_path / "run"),
        "resume": False,
        "name": "films",
        "shares": 2,
        "deadline": 20.0,
        "min-nodes": 0,
    }
    made = Context(
        run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config=settings
    )
    flower_app.server(Folders(folders), made)
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert read_document(tmp_path / "run" / "ledger.json")["rounds_begun"] == 2


def reply_of(folder, head, question=b"?", run="films"):
    """What the server is told by the node in a folder."""
    TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1
    made = Context(
        run_id=1,
        node_id=5,
        node_config={"folder": str(folder)},
        state=RecordDict(),
        run_config={},
    )
    message = Message(asked(run, head, question), 5, MESSAGE_TYPE)
    reply = flower_app.client(message, made)
    return reply.error.reason if reply.has_error() else ""


def first_question(experiment):
    """What the server of an experiment asks in its first round."""
    head = head_of(experiment)
    start = head.method.start(head.plan, head.catalog, Key.from_seed(0))
    return encode_broadcast(head.method.broadcast(start))


def test_what_goes_wrong_is_in_the_nodes_own_log(tmp_path):
    for _ in range(2):
        assert reply_of(tmp_path, "../etc") == FAILED
    log = tmp_path / node_log.NAME
    assert log.read_text().count("Refused: head='../etc' is no digest") == 2
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_node_says_that_it_has_not_agreed_and_not_to_what(tmp_path):
    """The server's operator can mend that alone; the folder's path stays here."""
    assert reply_of(tmp_path, "0" * 32) == NotAgreed.told
    told = (tmp_path / node_log.NAME).read_text()
    assert "agreed to no run with the head" in told


def test_a_node_says_that_its_operator_allows_no_more_runs(tmp_path):
    path = tmp_path / "exp.toml"
    path.write_text(EXPERIMENT)
    experiment = read_experiment(path)
    prepare_node(experiment, Share(0, 1), tmp_path / "node", most_runs=1)
    head = head_of(experiment).digest
    assert not reply_of(tmp_path / "node", head, first_question(experiment))
    told = reply_of(tmp_path / "node", head, run="another")
    assert told == NoMoreRuns.told


def test_users_that_changed_are_told_of_as_everything_else(tmp_path):
    """That refusal has a digest of their events in it."""
    path = tmp_path / "exp.toml"
    path.write_text(EXPERIMENT)
    experiment = read_experiment(path)
    prepare_node(experiment, Share(0, 2), tmp_path / "node")
    head = head_of(experiment).digest
    assert not reply_of(tmp_path / "node", head, first_question(experiment))
    prepare_node(experiment, Share(1, 2), tmp_path / "node")
    assert reply_of(tmp_path / "node", head) == FAILED
    assert "over other users" in (tmp_path / "node" / node_log.NAME).read_text()
