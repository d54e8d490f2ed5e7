"""A user's taste: computed once on the device, used for as many lists as are wanted.

Stored in a file it outlives the process. The file belongs to the owner of the device,
as the ledger does, and stays there: a taste has no codec. It says which model and
history it was made of, and is computed again if either is another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from tacit.data.catalog import Profiles
from tacit.data.columns import describe
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.errors import BadData, BadRun
from tacit.files import write_atomically
from tacit.method import Method, Tastes
from tacit.runtime.checkpoint import checksum, parts_of, tree_of
from tacit.tensors import read_tensors
from tacit.transport.messages import Broadcast
from tacit.tree import Arrays
from tacit.version import __version__

_FORMAT = 2  # raised whenever the same model and history make another taste
_FACTS = "taste"  # key of the file's only metadata: its origin and a checksum


@dataclass(frozen=True, eq=False)
class Taste:
    """What a client knows of its user under one model; never leaves."""

    tastes: Tastes  # of one user
    histories: Ragged  # the items of the user, which are not recommended again
    model: str  # the digest of the model it was made with


def model_digest(method: Method, broadcast: Broadcast) -> str:
    """A digest of the method, its settings, the weights and this program's version."""
    facts = {
        "version": __version__,
        "method": repr(method),  # a frozen dataclass: its name and all its fields
        "round": str(broadcast.round),
        "plan": broadcast.agreement.hex(),
    }
    return _digest(facts, broadcast.weights)


def origin(model: str, shard: Shards, *, profile: Profiles) -> str:
    """A digest of the model and of everything that the client holds of its user."""
    parts: dict[str, object] = {"log": shard.log, "profile": profile}
    if shard.impressions is not None:
        parts["impressions"] = shard.impressions
    described = {name: describe(part, name) for name, part in parts.items()}
    facts = {name: json.dumps(said) for name, (said, _) in described.items()}
    columns = {n: c for _, found in described.values() for n, c in found.items()}
    return _digest({"format": str(_FORMAT), "model": model, **facts}, columns)


def read_or_make(path: Path, origin: str, *, make: Callable[[], Tastes]) -> Tastes:
    """The tastes in the file if they have this origin; else made, and stored there."""
    found = _read(path, origin)
    if found is None:
        found = make()
        _write(path, origin, found)
    return found


def _write(path: Path, origin: str, tastes: Tastes) -> None:
    arrays = {n: np.asarray(a, order="C") for n, a in parts_of(tastes.tree).items()}
    facts = {"origin": origin}
    described = json.dumps({**facts, "checksum": checksum(facts, arrays)})
    content = save(arrays, metadata={_FACTS: described})
    write_atomically(path, content, is_private=True)


def _read(path: Path, origin: str) -> Tastes | None:
    """The tastes; None if the file is missing, of another origin, or damaged."""
    if not path.exists():
        return None
    try:
        found = read_tensors(path)
        facts = json.loads(found.metadata[_FACTS])
        if facts.pop("origin") != origin:
            return None
    except (BadRun, LookupError, TypeError, ValueError, AttributeError) as error:
        raise BadData(
            path,
            None,
            f"is no taste that a client kept: {error!r}; give another file, or delete "
            "it and it is made anew",
        ) from error
    arrays = found.arrays
    if facts != {"checksum": checksum({"origin": origin}, arrays)}:
        return None
    return Tastes(tree_of(arrays))


def _digest(facts: Mapping[str, str], values: Arrays) -> str:
    return checksum(facts, {n: np.asarray(a, order="C") for n, a in values.items()})
