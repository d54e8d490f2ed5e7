"""A checkpoint is whole, belongs here, or is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

from tacit.data.federated_data import FederatedData
from tacit.errors import BadRun
from tacit.keys import Key
from tacit.method import Clients, Server
from tacit.plans import Plan
from tacit.runtime import checkpoint
from tacit.runtime.checkpoint import (
    load_checkpoint,
    load_learnt,
    save_checkpoint,
)
from tacit.runtime.rounds import State
from tacit.tree import Dense, Factored, Tree

WORLD = FederatedData.of_histories([[0], [1]], n_items=2)
PLAN = Plan(2, rounds=9)


def state(**changed) -> State:
    draws = Key.from_seed(0).generator()
    fields = {
        "weights": {"W/deep": draws.normal(size=(2, 2)), "half": np.float16([0.5])},
        "memory": {"step": np.array(3, np.int64), "none": np.zeros((0, 2))},
        "leaves": {
            "u": Dense(draws.normal(size=(2, 3)).astype(np.float32)),
            "f": Factored(draws.normal(size=(2, 1, 2)), draws.normal(size=(2, 1, 3))),
            "n": Dense(np.array([True, False])),
        },
        "spent": np.array([0.5, 0.125]),
    } | changed
    server = Server(PLAN, WORLD.catalog, 4, fields["weights"], fields["memory"])
    codes = np.zeros(2, np.int64)
    clients = Clients(PLAN, np.arange(2), codes, Tree(fields["leaves"]))
    return State(server, clients, np.array([[4], [1]]), fields["spent"])


def start() -> State:
    blank = state(weights={}, memory={}, leaves={}, spent=np.zeros(2))
    return replace(blank, server=replace(blank.server, round=0))


def parts(found: State) -> dict[str, np.ndarray]:
    leaves = found.clients.state.leaves.items()
    return {
        **{f"weights {name}": value for name, value in found.server.weights.items()},
        **{f"memory {name}": value for name, value in found.server.memory.items()},
        **{n + s: part for n, leaf in leaves for s, part in leaf.parts.items()},
        "taken": found.taken,
        "spent": found.spent,
    }


def assert_same(found: State, expected: State) -> None:
    assert found.server.round == expected.server.round
    ours, theirs = parts(found), parts(expected)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert (ours[name].dtype, ours[name].shape) == (value.dtype, value.shape)
        assert ours[name].tobytes() == value.tobytes()


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "checkpoint" / "state.safetensors"
    save_checkpoint(path, state(), digest="mine")
    return path


def load(path, digest: str = "mine") -> State:
    return load_checkpoint(path, start(), digest=digest)


def test_it_comes_back_bit_for_bit(saved):
    found = load(saved)
    assert_same(found, state())
    assert found.server.plan is PLAN
    assert type(found.clients.state.leaves["f"]) is Factored


def test_clients_who_keep_nothing_come_back_too(tmp_path):
    empty = state(leaves={})
    save_checkpoint(tmp_path / "c", empty, digest="mine")
    assert_same(load(tmp_path / "c"), empty)


def test_the_next_one_replaces_it(saved):
    later = state(memory={})
    save_checkpoint(saved, later, digest="mine")
    assert_same(load(saved), later)
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_counts_by_part_come_back(tmp_path):
    two = replace(state(), taken=np.array([[1, 4], [0, 2]]))
    save_checkpoint(tmp_path / "c", two, digest="mine")
    found = load_checkpoint(tmp_path / "c", two, digest="mine")
    assert found.taken.tolist() == two.taken.tolist()


# --- Refused -------------------------------------------------------------------------


def test_another_experiment(saved):
    with pytest.raises(BadRun, match="belongs to another experiment; resume with"):
        load(saved, "yours")


def test_another_format(saved, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", "1")
    save_checkpoint(saved, state(), digest="mine")
    monkeypatch.undo()
    with pytest.raises(BadRun, match="format 1, this program reads 4"):
        load(saved)


@pytest.mark.parametrize("before", ["2", "3"])
def test_what_an_earlier_version_saved_is_learnt_from_and_not_resumed(
    tmp_path, monkeypatch, before
):
    """Whatever the digest: its experiment said other things, in other words."""
    path, arrays = tmp_path / "c", checkpoint._arrays(state())
    del arrays["clients/spent"]
    monkeypatch.setattr(checkpoint, "FORMAT", before)
    monkeypatch.setattr(checkpoint, "_arrays", lambda _: arrays)
    save_checkpoint(path, state(), digest="mine")
    monkeypatch.undo()
    for digest in ("mine", "yours"):
        with pytest.raises(BadRun, match=f"format {before}: an earlier version made"):
            load(path, digest)
    weights, memory = load_learnt(path)
    for found, expected in (
        *((weights, state().server.weights), (memory, state().server.memory)),
    ):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert found[name].tobytes() == value.tobytes()


def test_no_checkpoint_at_all(tmp_path):
    with pytest.raises(BadRun, match="cannot be read"):
        load(tmp_path / "nothing")
    (tmp_path / "other").write_bytes(save({"x": np.ones(1)}))
    with pytest.raises(BadRun, match="format None"):
        load(tmp_path / "other")


def test_every_truncation(saved):
    whole = saved.read_bytes()
    for end in range(0, len(whole), 3):
        saved.write_bytes(whole[:end])
        with pytest.raises(BadRun):
            load(saved)


def test_every_changed_byte_is_found_or_changes_nothing(saved):
    """The header has spaces that mean nothing; all else is under the checksum."""
    whole, harmless = saved.read_bytes(), 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x01
        saved.write_bytes(bytes(changed))
        try:
            assert_same(load(saved), state())
        except BadRun:
            continue
        harmless += 1
    assert harmless < 8


@pytest.mark.parametrize("name", ["round", "experiment", "checksum"])
def test_a_fact_that_is_missing(saved, name):
    with safe_open(saved, framework="numpy") as file:
        facts = json.loads(file.metadata()["facts"])
        arrays = {n: file.get_tensor(n) for n in file.keys()}  # noqa: SIM118
    del facts[name]
    saved.write_bytes(save(arrays, metadata={"facts": json.dumps(facts)}))
    with pytest.raises(BadRun, match="checksum does not match"):
        load(saved)
