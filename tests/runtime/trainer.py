"""A process that trains, to be killed: `python trainer.py`, then a directory a line.

For each line it forks a child that trains into the directory and says its number on
standard output, then how it ended. Imports are paid once; a child inherits no training.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tacit.data.catalog import Catalog, Profiles
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadRun
from tacit.keys import Key
from tacit.plans import Plan
from tacit.runtime.run import RunDirectory, play
from tacit.runtime.simulate import Simulation
from tacit.sampling import Poisson
from tacit.testing.toy import ToyFactors

ROUNDS, EVERY, DIGEST = 45, 2, "experiment"
DONE, REFUSED = 0, 3


@dataclass(frozen=True)
class Momentum:
    """A server optimizer with a memory that needs no torch."""

    def start(self, weights):
        return {
            f"speed/{name}": np.zeros_like(value) for name, value in weights.items()
        }

    def step(self, weights, memory, gradient, *, epoch=0):
        speed = {n: 0.5 * memory[f"speed/{n}"] + gradient[n] for n in weights}
        after = {name: value - 0.1 * speed[name] for name, value in weights.items()}
        return after, {f"speed/{name}": value for name, value in speed.items()}


@dataclass(frozen=True)
class Overheard(ToyFactors):
    """Writes down, past every buffer, which clients said what in which round."""

    file: Path | None = field(default=None, compare=False)

    def privatize(self, broadcast, clients, updates, keys):
        reports = super().privatize(broadcast, clients, updates, keys)
        said = hashlib.blake2b(digest_size=8)
        for leaf in reports.tree.leaves.values():
            for part in leaf.parts.values():
                said.update(np.ascontiguousarray(part))
        if self.file is not None:
            who = "-".join(map(str, clients.numbers))
            line = f"{broadcast.round} {who} {said.hexdigest()}\n"
            handle = os.open(self.file, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
            os.write(handle, line.encode())
            os.close(handle)
        return reports


def simulation(n_users: int = 12, items: int = 8) -> Simulation:
    draws = Key.from_seed(1).generator()
    held = draws.random((n_users, items)) < 0.5
    users, what = np.nonzero(held)
    log = Interactions.of_columns(users, what, n_users=n_users, n_items=items)
    return Simulation(
        Overheard(optimizer=Momentum()),
        Plan(n_users, rounds=ROUNDS, sampler=Poisson(0.6)),
        Catalog.of_ids([f"item {i}" for i in range(items)]),
        Profiles(Strings.of(f"user {i}" for i in range(n_users))),
        Shards.of(log),
        Key.from_seed(7),
        chunk=4,
    )


def train(path: Path) -> None:
    made, directory = simulation(), RunDirectory(path)
    heard = replace(made, method=replace(made.method, file=path / "overheard"))
    with directory.locked():
        for _ in play(heard, directory, digest=DIGEST, observe=told, every=EVERY):
            pass


def told(state: object, tally: object) -> Mapping[str, object]:
    return {"took_part": tally.took_part}


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            os._exit(_life(Path(line.rstrip("\n"))))
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _life(path: Path) -> int:
    try:
        train(path)
    except BadRun as error:
        print(error, file=sys.stderr, flush=True)
        return REFUSED
    return DONE


if __name__ == "__main__":
    main()
