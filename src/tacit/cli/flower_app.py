"""The two apps that Flower loads: `server` where the SuperLink is, `client` on a node.

`tacit flower run` hands Flower a bundle that names them and has no code of its own: all
code is that of the installed package.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.errors import Refused
from tacit.experiment.over_nodes import gather_over, head_of, node_at
from tacit.experiment.settings import Experiment, read_experiment
from tacit.experiment.training import train
from tacit.files import append
from tacit.runtime.flower_client import Declined, Reason, client_app
from tacit.runtime.flower_server import GridNodes, server_app
from tacit.runtime.node import Node

LOG = "node.log"  # in the folder of a node
# Refusals of `node_at` that follow from what the operator agreed to, and nothing else.
_TOLD = {
    "this node has agreed to no run with the head": Reason.NOT_AGREED,
    "this node's users were trained on": Reason.NO_MORE_RUNS,
}


def play(nodes: GridNodes, settings: Mapping[str, Any]) -> None:
    """Train an experiment over the nodes of a grid, into a run directory."""
    changes = [one for one in str(settings["changes"]).split("\n") if one]
    experiment = read_experiment(Path(str(settings["experiment"])), changes)
    out = Path(str(settings["out"]))
    head = head_of(experiment)
    named = nodes.of_run(str(settings["name"]), head=head.digest)
    min_nodes = int(settings["min-nodes"]) or None

    def gather(known: Experiment) -> Any:
        return gather_over(
            known, named, shares=named.shares, min_nodes=min_nodes, head=head
        )

    train(experiment, out, resume=bool(settings["resume"]), page=False, gather=gather)


def build(settings: Mapping[str, Any], run: str, head: str) -> Node:
    """The node whose folder the operator has named when starting it."""
    try:
        return node_at(Path(str(settings["folder"])), run, head=head)
    except Refused as error:
        for beginning, reason in _TOLD.items():
            if str(error).startswith(beginning):
                raise Declined(reason) from error
        raise


def note(settings: Mapping[str, Any], error: Exception) -> None:
    """Write what went wrong to the node's own log, which only its owner can read."""
    told = "".join(traceback.format_exception(error))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with contextlib.suppress(OSError):  # a full disk must not change what is answered
        path = Path(str(settings["folder"])) / LOG
        append(path, f"{now} {told}\n".encode("utf-8", "replace"), is_private=True)


server = server_app(play)
client = client_app(build, note)
