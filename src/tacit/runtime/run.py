"""A run on disk: where its files are, and rounds that survive being killed.

    experiment.toml  inputs.json  metrics.jsonl  result.json  ledger.json
    model.safetensors  model.json  privacy-card.json  report.html
    checkpoint/state.safetensors

In every round, in this order: the ledger says that the round has begun, clients speak,
the metrics get a line, the checkpoint is replaced. Killed in between, a run resumes at
its checkpoint: a spent round is never forgotten, and the same round played again says
the same bytes, so it is not spent twice.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tacit import check
from tacit.documents import (
    CHECKSUM,
    opened,
    parsed,
    read_bytes,
    read_document,
    say_unverified,
    sealed,
    write_document,
)
from tacit.errors import BadRun, Damaged, Refused
from tacit.files import append, locked, make_folders, sweep, write_atomically
from tacit.ledger.snapshot import dearest_rounds
from tacit.runtime.checkpoint import load_checkpoint, save_checkpoint
from tacit.runtime.ledger import run_statements
from tacit.runtime.rounds import State, Tally, refuse_diverged
from tacit.runtime.simulate import Simulation
from tacit.runtime.warm_start import plain_past
from tacit.statement import Past
from tacit.text import nth_round

Facts = Mapping[str, Any]
Observe = Callable[[State, Tally], Facts]

ONLY = "simulation_only"  # key of everything that is computed from private users
_OLD_DRAFT = re.compile(r"\..+\.[0-9]+\.part")  # half-written files, as once named
# What an earlier version wrote beside `simulation_only`; `in_its_place` moves it.
_ONCE_OUTSIDE = ("metrics", "clients_per_second", "bytes_up", "bytes_down")


@dataclass(frozen=True)
class RunDirectory:
    """The files of one run."""

    path: Path

    @property
    def experiment(self) -> Path:
        """The resolved experiment, with every default written out."""
        return self.path / "experiment.toml"

    @property
    def inputs(self) -> Path:
        """A digest of the data; private, as the data are."""
        return self.path / "inputs.json"

    @property
    def selected_items(self) -> Path:
        """The items that a release selected under noise, if it did: public."""
        return self.path / "selected-items.json"

    @property
    def metrics(self) -> Path:
        """The metrics, one line per round."""
        return self.path / "metrics.jsonl"

    @property
    def result(self) -> Path:
        """What the run yielded; written last."""
        return self.path / "result.json"

    @property
    def ledger(self) -> Path:
        """The ledger: which rounds began, and what they cost."""
        return self.path / "ledger.json"

    @property
    def model(self) -> Path:
        """The weights everyone may see."""
        return self.path / "model.safetensors"

    @property
    def model_facts(self) -> Path:
        """What a client needs to know beside the weights."""
        return self.path / "model.json"

    @property
    def privacy_card(self) -> Path:
        """The privacy card: every release, and what all amount to."""
        return self.path / "privacy-card.json"

    @property
    def report(self) -> Path:
        """The report as one HTML page for readers."""
        return self.path / "report.html"

    @property
    def checkpoint(self) -> Path:
        """The state to resume from."""
        return self.path / "checkpoint" / "state.safetensors"

    @property
    def diverged(self) -> Path:
        """How a run of a comparison or study diverged; then it has no result."""
        return self.path / "diverged.json"

    @property
    def lock(self) -> Path:
        """An empty file that is locked while a process trains into the directory."""
        return self.path / ".lock"

    def rounds_logged(self) -> list[dict[str, Any]]:
        """The lines of the metrics file; a torn last line is dropped."""
        if not self.metrics.exists():
            return []
        *lines, torn = read_bytes(self.metrics).split(b"\n")
        found = [parsed(self.metrics, line) for line in lines]
        _refuse_lost_line_end(self.metrics, torn)
        if found and not any(CHECKSUM in line for line in found):
            say_unverified(self.metrics)
        else:
            found = [opened(self.metrics, line) for line in found]
        if [line.get("round") for line in found] != [*range(len(found))]:
            raise Damaged(self.metrics, "its lines are not those of rounds in order")
        return [in_its_place(line) for line in found]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second process from training into the same directory.

        It also removes what a killed process left half written.
        """
        make_folders(self.path)
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(locked(self.lock))
            except BlockingIOError as error:
                raise BadRun(
                    f"{self.path} is in use by another process; wait for it, or train "
                    "into another directory"
                ) from error
            self._sweep()
            yield

    def _sweep(self) -> None:
        for folder in (self.path, self.checkpoint.parent):
            if folder.is_dir():
                sweep(folder)
                for path in folder.iterdir():
                    if _OLD_DRAFT.fullmatch(path.name):
                        path.unlink()


def in_its_place(facts: Facts) -> dict[str, Any]:
    """The result or the log line of a round in the current form.

    What an earlier version had outside `simulation_only` is put there.
    """
    moved = {name: facts[name] for name in _ONCE_OUTSIDE if name in facts}
    others = {name: value for name, value in facts.items() if name not in moved}
    return {**others, ONLY: {**moved, **facts.get(ONLY, {})}} if moved else others


def play(
    simulation: Simulation,
    directory: RunDirectory,
    *,
    digest: str,
    observe: Observe,
    every: int = 1,
) -> Iterator[tuple[State, Facts]]:
    """Play the remaining rounds; the run can be resumed after a kill at any moment.

    `digest` names the experiment: files of another one are refused. `observe` says what
    to log of a round. Checkpoints are written every `every` rounds and after the last;
    over nodes after each, because nodes answer no earlier round again; and in a release
    before the first and after each, because they hold the secrets of the next round.
    The caller holds `directory.locked()`.
    """
    check.count(every=every)
    if simulation.keeps_every_round:
        every = 1
    state = _resumed(simulation, directory, digest)
    if state.secrets is not None:  # on the disk before anything is drawn from them
        save_checkpoint(directory.checkpoint, state, digest=digest)
    spending = Spending(simulation, directory.ledger, digest)
    _drop_lines_after(directory, state.server.round)
    while not simulation.method.is_over(state.server):
        _spend(spending, state)  # on the disk before any client speaks
        state, tally = simulation.step(state)
        refuse_diverged(state.server)  # before anything of it is written down
        facts = {"round": tally.round, **observe(state, tally)}
        _append(directory.metrics, facts)
        done = state.server.round
        if done % every == 0 or simulation.method.is_over(state.server):
            save_checkpoint(directory.checkpoint, state, digest=digest)
        yield state, facts


def _resumed(simulation: Simulation, directory: RunDirectory, digest: str) -> State:
    start = simulation.start()
    if not directory.checkpoint.exists():
        return start
    state = load_checkpoint(directory.checkpoint, start, digest=digest)
    if state.server.round and not directory.ledger.exists():
        raise Damaged(directory.ledger, "it is gone, and rounds were played")
    return state


class Spending:
    """The ledger of a run; it never goes back, though rounds may be played again."""

    def __init__(self, simulation: Simulation, path: Path, digest: str) -> None:
        self.simulation, self.path, self.digest = simulation, path, digest
        entry = _ledger(path, digest)
        self.begun = int(entry.get("rounds_begun", 0))
        self.most = int(entry.get("most_participations", 0))  # of any one client
        # Of the last statements: composing events takes up to a second.
        self._counted: list[list[int]] = []  # the rounds of a client, by group
        self._stated: list[dict[str, Any]] = []

    def begin(self, round: int, *, most: int) -> None:
        """Write down that a round begins and what it can cost, before anyone speaks.

        `most` is the number of rounds that any client can have joined after it.
        """
        if max(self.most, most) < 1:
            raise Refused(
                f"{nth_round(round)} would begin, and no client may take part in it: "
                "by their caps they answer 0 rounds, and nothing would be learnt; "
                "raise the caps, or plan a run that costs less"
            )
        self.begun = max(self.begun, round + 1)
        self.most = max(self.most, most)
        plan = self.simulation.plan
        entry = {
            "experiment": self.digest,
            "plan": plan.digest.hex(),
            "rounds_planned": plan.rounds,
            "rounds_begun": self.begun,
            "most_participations": self.most,
            "releases": [
                f"{part.what}, {part.when}"
                for release in self.simulation.releases
                for part in release.leaving()
            ],
            "spent": self._spent(),
            **self._account,
        }
        write_document(self.path, entry, is_private=True)

    @cached_property
    def _account(self) -> dict[str, Any]:
        """What a later run must know to compose this one's releases with its own."""
        simulation = self.simulation
        own = Past(simulation.plan.population, simulation.releases)
        both = simulation.account.both if simulation.spent_before else ()
        return {
            "account": plain_past(own),
            "earlier": [plain_past(past) for past in simulation.spent_before],
            "spent_with_earlier": [asdict(line) for line in both],
        }

    def _spent(self) -> list[dict[str, Any]]:
        """Statements per group, unit and view, for a client that spoke the most often.

        Its participations are cut by what the plan promises and by nothing else: what
        a client may answer by its caps does not change what it has answered. Where
        rounds differ it is an upper bound: so many of each part are counted, or all of
        the part that have begun.
        """
        rounds = [
            dearest_rounds(terms, most=self.most, begun=self.begun)
            for terms in self.simulation.terms
        ]
        if rounds != self._counted:
            delta = self.simulation.plan.delta
            self._counted = rounds
            self._stated = [
                asdict(line)
                for terms, taken in zip(self.simulation.terms, rounds, strict=True)
                for line in run_statements(terms, taken, delta=delta)
            ]
        return self._stated


def _spend(spending: Spending, state: State) -> None:
    """The first step of a round; a function of its own so that tests can stop there."""
    spending.begin(
        state.server.round, most=spending.simulation.most_participations(state)
    )


def _ledger(path: Path, digest: str) -> dict[str, Any]:
    """The entry of the ledger; it may be ahead of the checkpoint."""
    if not path.exists():
        return {}
    entry = read_document(path)
    if entry.get("experiment") != digest:
        raise BadRun(
            f"{path} says what another experiment has spent; resume with "
            "the experiment that began the run, or train into a new directory"
        )
    return entry


def _append(path: Path, facts: Facts) -> None:
    append(path, _line(facts), is_private=True)  # before the checkpoint that follows


def _line(facts: Facts) -> bytes:
    return (json.dumps(sealed(facts), allow_nan=False) + "\n").encode()


def _refuse_lost_line_end(path: Path, torn: bytes) -> None:
    """Refuse a whole last line with one more byte, which was the line's end."""
    try:
        opened(path, parsed(path, torn[:-1]))
    except Damaged:
        return
    raise Damaged(path, "its last line has lost its end")


def _drop_lines_after(directory: RunDirectory, round: int) -> None:
    lines = [line for line in directory.rounds_logged() if line["round"] < round]
    if len(lines) < round:  # a line is on the disk before the checkpoint of its round
        raise Damaged(
            directory.metrics, f"it tells of {len(lines)} rounds, the model of {round}"
        )
    text = b"".join(map(_line, lines))
    write_atomically(directory.metrics, text, is_private=True)
