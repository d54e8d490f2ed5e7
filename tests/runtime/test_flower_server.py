"""The server under Flower, on a grid in this process: no reply can stop a round."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="Flower is in .venv-flower: make test-flower")

import threading
import time
from dataclasses import dataclass, field, replace

import numpy as np
from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity
from runtime.machines import CASES, Case

from tacit.errors import BadValue, Refused
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.runtime import flower_server
from tacit.runtime.flower_client import answered, client_app
from tacit.runtime.flower_server import GridNodes, server_app
from tacit.transport.node_answer import Share

COMPARED = ("gram", "fmf_ldp", "fmf_ldp, bits", "fedvae", "privrec", "popularity")
COUNTED = Case(FederatedPopularity(max_votes=4), "secure_sum")


@pytest.fixture(autouse=True)
def _task():
    """Messages can be made within a task of Flower's only."""
    TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1


@dataclass
class LocalGrid(Grid):
    """Nodes in this process: a message is answered when it is pulled."""

    apps: dict[int, ClientApp]
    sent: dict[str, Message] = field(default_factory=dict)
    silent: tuple[int, ...] = ()
    unsent: tuple[int, ...] = ()

    def set_run(self, run):
        raise NotImplementedError

    @property
    def run(self):
        raise NotImplementedError

    def create_message(self, *_, **__):
        raise NotImplementedError

    def get_node_ids(self):
        return [*self.apps]

    def push_messages(self, messages):
        ids = []
        for message in messages:
            node = message.metadata.dst_node_id
            ids.append("" if node in self.unsent else f"{len(self.sent)}")
            self.sent[f"{len(self.sent)}"] = message
        return ids

    def pull_messages(self, message_ids):
        for one in message_ids:
            message = self.sent[one]
            node = message.metadata.dst_node_id
            if node not in self.silent:
                made = Context(
                    run_id=1,
                    node_id=node,
                    node_config={},
                    state=RecordDict(),
                    run_config={},
                )
                yield self.apps[node](message, made)

    def send_and_receive(self, messages, *, timeout=None):
        raise NotImplementedError


def grid_of(case, place, **options):
    def app(part):
        def build(settings, run, head):
            return case.node(place, Share(part, 3), run=run)

        return client_app(build, lambda *_: None)

    return LocalGrid({10 + part: app(part) for part in range(3)}, **options)


def over(case, place, grid, **options):
    nodes = GridNodes(grid, shares=3, deadline=0.3).of_run("run", head="h")
    made = case.federation(place / "unused")
    return replace(made, nodes=nodes, **options)


@pytest.mark.parametrize("name", COMPARED)
def test_a_grid_gives_what_one_machine_gives(name, tmp_path):
    case = CASES[name]
    made = over(case, tmp_path, grid_of(case, tmp_path))
    alone = case.alone()
    here, there = alone.start(), made.start()
    while not alone.method.is_over(here.server):
        there = replace(there, server=here.server)
        here, _ = alone.step(here)
        there, tally = made.step(there)
        assert tally.dropped == {}
        for leaf, value in here.server.weights.items():
            np.testing.assert_allclose(
                there.server.weights[leaf], value, rtol=1e-9, atol=1e-9
            )


def test_a_node_that_says_nothing_is_late(tmp_path):
    made = over(COUNTED, tmp_path, grid_of(COUNTED, tmp_path, silent=(11,)))
    made = replace(made, min_nodes=2)
    _, tally = made.step(made.start())
    assert tally.dropped == {"node 11": "gave no answer in 0.3 s"}
    assert len(tally.answered) == 2


def test_a_node_that_cannot_be_asked_is_named(tmp_path):
    made = over(COUNTED, tmp_path, grid_of(COUNTED, tmp_path, unsent=(12,)))
    made = replace(made, min_nodes=2)
    _, tally = made.step(made.start())
    assert tally.dropped == {"node 12": "could not be sent the question"}


def replying(reply):
    app = ClientApp()
    app.query("round")(reply)
    return app


def failing(message, context):
    raise RuntimeError("this is not a message")


REPLIES = {
    "an error": (
        lambda m, c: Message(Error(code=3, reason="out of memory"), reply_to=m),
        "failed: out of memory",
    ),
    "an empty message": (
        lambda m, c: Message(RecordDict(), reply_to=m),
        "needed is 'answer'",
    ),
    "no answer": (
        lambda m, c: Message(answered(b"something else" * 9), reply_to=m),
        "does not begin",
    ),
    "100 MB": (
        lambda m, c: Message(answered(bytes(100 * 2**20)), reply_to=m),
        "104,857,600 bytes; no answer",
    ),
    "an error that a terminal would obey": (
        lambda m, c: Message(Error(code=3, reason="\x1b[2Jgone"), reply_to=m),
        "failed: \\x1b[2Jgone",
    ),
    "what cannot be read": (failing, "cannot be read: RuntimeError"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_bad_reply_is_dropped_and_named(name, tmp_path):
    reply, why = REPLIES[name]
    grid = grid_of(COUNTED, tmp_path)
    grid.apps[10] = replying(reply)
    made = replace(over(COUNTED, tmp_path, grid), min_nodes=2)
    _, tally = made.step(made.start())
    assert [*tally.dropped] == ["node 10"]
    assert why in tally.dropped["node 10"]


def test_too_few_nodes_stop_the_run_with_their_names(tmp_path):
    made = over(COUNTED, tmp_path, grid_of(COUNTED, tmp_path, silent=(10, 12)))
    with pytest.raises(Refused, match=r"1 of 3 nodes .*node 10 gave .*node 12 gave"):
        made.step(made.start())


def test_a_round_waits_for_nodes_that_come_late(tmp_path):
    grid = grid_of(COUNTED, tmp_path)
    late = grid.apps.pop(12)
    looked = []

    class Slow(LocalGrid):
        def get_node_ids(self):
            looked.append(1)
            if len(looked) == 2:
                self.apps[12] = late
            return [*self.apps]

    made = over(COUNTED, tmp_path, Slow(grid.apps))
    nodes = replace(made.nodes, deadline=30.0)
    _, tally = replace(made, nodes=nodes).step(made.start())
    assert len(tally.answered) == 3
    assert len(looked) == 2


def rounds_without(node, place, **settings):
    """Two rounds over nodes of whom one is never there, and how long each took."""
    grid = grid_of(COUNTED, place)
    del grid.apps[node]
    nodes = GridNodes(grid, shares=3, **settings).of_run("run", head="h")
    made = replace(over(COUNTED, place, grid), nodes=nodes, min_nodes=2)
    state, took = made.start(), []
    for _ in range(2):
        began = time.monotonic()
        state, tally = made.step(state)
        assert len(tally.answered) == 2
        took.append(time.monotonic() - began)
    return took


def test_a_node_that_stays_away_is_waited_for_once(tmp_path, monkeypatch):
    """Enough others are there; half of the deadline would be a minute."""
    monkeypatch.setattr(flower_server, "AWAY_SECONDS", 1.5)
    first, second = rounds_without(11, tmp_path, deadline=120.0, min_nodes=2)
    assert 1.5 <= first < 30
    assert second < 1.5


def test_nodes_that_are_needed_are_waited_for_in_every_round(tmp_path):
    """Half of the deadline each time: without them the round cannot be finished."""
    first, second = rounds_without(11, tmp_path, deadline=2.0, min_nodes=3)
    assert min(first, second) >= 1.0


def test_a_node_that_is_back_is_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(flower_server, "AWAY_SECONDS", 0.2)
    grid = grid_of(COUNTED, tmp_path)
    away = grid.apps.pop(11)
    nodes = GridNodes(grid, shares=3, deadline=60.0, min_nodes=2)
    made = over(COUNTED, tmp_path, grid, min_nodes=2)
    made = replace(made, nodes=nodes.of_run("run", head="h"))
    state, tally = made.step(made.start())
    assert len(tally.answered) == 2
    grid.apps[11] = away
    _, tally = made.step(state)
    assert len(tally.answered) == 3


def test_the_app_plays_what_it_was_given():
    played = []
    app = server_app(lambda nodes, settings: played.append((nodes.shares, settings)))
    settings = {"shares": 4, "deadline": 7.0, "min-nodes": 0, "name": "x"}
    made = Context(
        run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config=settings
    )
    app(LocalGrid({}), made)
    assert played == [(4, settings)]


def test_a_slow_upload_makes_nobody_else_late(tmp_path, monkeypatch):
    """The first node hangs; the others' answers are taken meanwhile."""
    monkeypatch.setattr(flower_server, "LAST_LOOK_SECONDS", 0.2)
    never = threading.Event()

    class Slow(LocalGrid):
        def pull_messages(self, message_ids):
            for one in message_ids:
                if self.sent[one].metadata.dst_node_id == 10:
                    never.wait(20)
            return [*super().pull_messages(message_ids)]

    made = over(COUNTED, tmp_path, Slow(grid_of(COUNTED, tmp_path).apps))
    nodes = replace(made.nodes, deadline=2.0)
    began = time.monotonic()
    _, tally = replace(made, min_nodes=2, nodes=nodes).step(made.start())
    took = time.monotonic() - began
    never.set()
    assert tally.dropped == {"node 10": "gave no answer in 2 s"}
    assert len(tally.answered) == 2
    assert took < 10


def test_what_is_ready_at_the_deadline_still_counts(tmp_path):
    """Nobody has looked while the nodes answered; the last look finds them all."""
    grid = grid_of(COUNTED, tmp_path)
    opens = []

    class Late(LocalGrid):
        def push_messages(self, messages):
            found = super().push_messages(messages)
            time.sleep(0.4)  # past the deadline
            opens.append(1)
            return found

    made = over(COUNTED, tmp_path, Late(grid.apps))
    _, tally = made.step(made.start())
    assert len(tally.answered) == 3
    assert opens


def test_a_superlink_that_is_gone_ends_the_round(tmp_path):
    class Gone(LocalGrid):
        def pull_messages(self, message_ids):
            raise ConnectionError("refused")

    made = over(COUNTED, tmp_path, Gone(grid_of(COUNTED, tmp_path).apps))
    with pytest.raises(ConnectionError):
        made.step(made.start())


def test_a_deadline_is_positive():
    with pytest.raises(BadValue, match="deadline"):
        GridNodes(LocalGrid({}), shares=1, deadline=0.0)
