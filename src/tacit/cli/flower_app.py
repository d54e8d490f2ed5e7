"""The two apps that Flower loads: `server` where the SuperLink is, `client` on a node.

`tacit flower run` hands Flower a bundle that names them and has no code of its own: all
code is that of the installed package.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.experiment.over_nodes import gather_over, head_of, node_at
from tacit.experiment.settings import Experiment, read_experiment
from tacit.experiment.training import train
from tacit.runtime.flower_client import client_app
from tacit.runtime.flower_server import GridNodes, server_app
from tacit.runtime.node import Node
from tacit.runtime.node_log import note_failure


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
    return node_at(_folder(settings), run, head=head)


def note(settings: Mapping[str, Any], error: Exception) -> None:
    """Write what went wrong to the node's own log."""
    note_failure(_folder(settings), error)


def _folder(settings: Mapping[str, Any]) -> Path:
    return Path(str(settings["folder"]))


server = server_app(play)
client = client_app(build, note)
