"""The state of a run on disk: one file, replaced in one step, resumed bit for bit.

No generator state is saved: every draw is addressed by key and round; a release saves
the secrets of the open round instead (`tacit.runtime.secrets`). The file is
written beside the old one, flushed, and renamed over it, so at every moment there is
one whole checkpoint or none. A checksum over its content finds what a disk lost later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from tacit.errors import BadRun, Damaged
from tacit.files import write_atomically
from tacit.runtime.rounds import State
from tacit.runtime.secrets import Secrets
from tacit.tensors import read_tensors
from tacit.tree import Array, Arrays, Dense, Factored, Leaf, Symmetric, Tree

FORMAT = "4"  # raised whenever the names or meanings of arrays change
_READABLE = ("2", "3", FORMAT)  # what the server learnt stands alike in all of them
OF_BEFORE = (
    "an earlier version made this run. Its model can still be ranked with, exported "
    "and refreshed (tacit recommend --history, tacit export, tacit train --from); for "
    "all else train again into another directory, or use the version that made it"
)
_WEIGHTS, _MEMORY, _STATE = "server/weights/", "server/memory/", "clients/state/"
_TAKEN, _SPENT = "clients/taken", "clients/spent"
_RUN, _ROUND = "secrets/run", "secrets/round"
_NODES = "nodes/"  # of each share, by its number, the store that answers for it


def save_checkpoint(path: Path, state: State, *, digest: str) -> None:
    """Write the state; `digest` names the experiment it belongs to.

    It holds what clients keep, so it is readable by its owner alone.
    """
    facts = {"format": FORMAT, "round": str(state.server.round), "experiment": digest}
    arrays = _arrays(state)
    facts["checksum"] = checksum(facts, arrays)
    # One entry: safetensors would write several in an order that varies.
    metadata = {"facts": json.dumps(facts, sort_keys=True)}
    write_atomically(path, save(arrays, metadata=metadata), is_private=True)


def load_checkpoint(path: Path, start: State, *, digest: str) -> State:
    """The saved state, on top of `start` of the same experiment."""
    facts, arrays = _whole(path)
    if facts["format"] != FORMAT:  # its experiment had another digest, too
        raise BadRun(f"{path} has format {facts['format']}: {OF_BEFORE}")
    if facts["experiment"] != digest:
        raise BadRun(
            f"{path} belongs to another experiment; resume with the experiment that "
            "began the run, or train into a new directory"
        )
    try:
        return _state(facts, arrays, start)
    except (LookupError, TypeError, ValueError) as error:
        raise Damaged(path, f"it holds no state: {error!r}") from error


def _state(facts: Mapping[str, str], arrays: Arrays, start: State) -> State:
    server = replace(
        start.server,
        round=int(facts["round"]),
        weights=_under(_WEIGHTS, arrays),
        memory=_under(_MEMORY, arrays),
    )
    tree = tree_of(_under(_STATE, arrays))
    clients = replace(start.clients, state=tree)
    secrets = _secrets(arrays)
    stores = {int(n): a.tobytes() for n, a in _under(_NODES, arrays).items()}
    return State(server, clients, arrays[_TAKEN], arrays[_SPENT], secrets, stores)


def load_learnt(path: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    """The server's weights and memory, whatever the experiment and the format."""
    _, arrays = _whole(path)
    return _under(_WEIGHTS, arrays), _under(_MEMORY, arrays)


def parts_of(tree: Tree) -> dict[str, Array]:
    """A tree of private state as named arrays; `tree_of` is the reverse."""
    return {
        name + suffix: part
        for name, leaf in tree.leaves.items()
        for suffix, part in leaf.parts.items()
    }


def tree_of(parts: Arrays) -> Tree:
    """The tree whose named arrays `parts_of` gave."""
    leaves: dict[str, Leaf] = {}
    for name, value in parts.items():
        stem, _, side = name.partition("#")
        if side == "left":
            leaves[stem] = Factored(value, parts[f"{stem}#right"])
        elif side == "root":
            leaves[stem] = Symmetric(value)
        elif not side:
            leaves[stem] = Dense(value)
    return Tree(leaves)


def checksum(facts: Mapping[str, str], arrays: Arrays) -> str:
    """32 hexadecimal digits that change with any fact and any byte of an array."""
    digest = hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16)
    for name, value in sorted(arrays.items()):
        label = f"{name} {value.dtype} {value.shape}"
        # A damaged file may have a name that is no text; it must not stop the check.
        digest.update(label.encode("utf-8", "backslashreplace"))
        digest.update(value.data)
    return digest.hexdigest()


def _arrays(state: State) -> dict[str, Array]:
    named = {_WEIGHTS + n: v for n, v in state.server.weights.items()}
    named |= {_MEMORY + n: v for n, v in state.server.memory.items()}
    named |= {_STATE + n: v for n, v in parts_of(state.clients.state).items()}
    named |= {_TAKEN: state.taken, _SPENT: state.spent}
    for part, store in state.stores.items():
        named[f"{_NODES}{part}"] = np.frombuffer(store, np.uint8)
    if state.secrets is not None:
        named |= {
            _RUN: np.frombuffer(state.secrets.run, np.uint8),
            _ROUND: np.frombuffer(state.secrets.round, np.uint8),
        }
    return {name: np.asarray(value, order="C") for name, value in named.items()}


def _read(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    found = read_tensors(path)
    try:
        facts = json.loads(found.metadata.get("facts", "{}"))
    except (ValueError, TypeError, RecursionError) as error:
        raise Damaged(path, f"it says nothing sound of itself: {error}") from error
    if not isinstance(facts, dict):
        raise Damaged(path, f"it says of itself {facts!r}, which is no table")
    return facts, found.arrays


def _whole(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    """The facts and arrays of a checkpoint; refuses other formats and damage."""
    facts, arrays = _read(path)
    if facts.get("format") not in _READABLE:
        raise BadRun(
            f"{path}: format {facts.get('format')}, this program reads {FORMAT}"
        )
    if facts.pop("checksum", "") != checksum(facts, arrays):
        raise Damaged(path, "its checksum does not match")
    return facts, arrays


def _secrets(arrays: Arrays) -> Secrets | None:
    """The secrets of a release whose rounds are not over."""
    if _RUN not in arrays:
        return None
    return Secrets(arrays[_RUN].tobytes(), arrays[_ROUND].tobytes())


def _under(prefix: str, arrays: Arrays) -> dict[str, Array]:
    return {
        n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)
    }
