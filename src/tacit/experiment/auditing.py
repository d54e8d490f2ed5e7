"""An audit of a method or a run by its name, and the document that it yields."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit import check
from tacit.accounting.serialization import agreed_release
from tacit.audits.checks import Audit
from tacit.audits.written_ledger import check_written
from tacit.documents import read_document, write_document
from tacit.errors import BadValue
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.audit_subjects import Subject, forms, of_run
from tacit.experiment.registry import method_names
from tacit.experiment.saved_run import SavedRun
from tacit.keys import Key
from tacit.runtime.run import RunDirectory
from tacit.runtime.simulate import Simulation
from tacit.runtime.warm_start import NO_ACCOUNT, read_past

FILE = "audit.json"  # in a run directory
_ONE = ("one_machine", "one_machine_relay")  # codes of one operator of two

Progress = Callable[[int, int], None]  # steps done, steps in all


@dataclass
class _Steps:
    """Counts steps for a progress bar; an audit may need fewer than planned."""

    progress: Progress | None
    total: int = 0
    finished: int = 0
    done: int = 0

    def tick(self) -> None:
        """Count one more step and show it."""
        self.done += 1
        self._show()

    def finish(self, steps: int) -> None:
        """Count all steps of a subject that is over, however many it took."""
        self.finished += steps
        self.done = self.finished
        self._show()

    def _show(self) -> None:
        if self.progress is not None:
            self.progress(self.done, self.total)


def audit_named(
    name: str,
    *,
    seed: int = 0,
    looks_at_all: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Audit a run directory or every form of an installed method.

    With `looks_at_all`, every channel, group and mode that they admit as well. A run's
    document is also written into its directory.
    """
    started = time.perf_counter()
    key = Key.from_seed(seed).at("audit")
    run = None if _is_method(name) else _run_at(name)
    subjects = _subjects(name, run)
    if looks_at_all:
        subjects = [one for subject in subjects for one in subject.whole]
    steps = _Steps(progress, total=sum(subject.ticks for subject in subjects))
    found, seen = list[Audit](), list[Subject]()
    for subject in subjects:
        own = [*subject.audits(key.at(subject.name), steps.tick)]
        seen += [subject] * any(one.checks for one in own)
        found += own
        steps.finish(subject.ticks)
    if run is not None and any(one.checks for one in found):  # something is promised
        found += _of_ledger(RunDirectory(Path(name)), run)
    seconds = time.perf_counter() - started
    document = _document(Path(name).name, seed, found, seconds)
    document |= _scope(seen, subjects)
    document["method"] = name if run is None else subjects[0].name
    if run is not None:
        write_document(Path(name) / FILE, document)
    return document


def subjects_of(name: str) -> list[Subject]:
    """The run in this directory, or every form of the method of this name."""
    found = _subjects(name, None if _is_method(name) else _run_at(name))
    return [one for one in found if one.checks is None]


def _subjects(name: str, run: Assembled | None) -> list[Subject]:
    return forms(name) if run is None else of_run(run, name)


def _run_at(name: str) -> Assembled:
    """The run in this directory, ready to be played again."""
    if not Path(name).is_dir():
        raise BadValue(
            f"{check.unknown(name, method_names())}; no directory of this name is here "
            "either: name a method or a run"
        )
    return assemble(SavedRun.at(Path(name)).experiment)


def _of_ledger(directory: RunDirectory, run: Assembled) -> list[Audit]:
    """What the ledger of a run says; nothing before its first round."""
    if not directory.ledger.exists():
        return []
    document, logged = read_document(directory.ledger), len(directory.rounds_logged())
    simulation = _as_played(run.simulation, document)
    checks = check_written(simulation, document, logged=logged)
    return [Audit(directory.ledger.name, (*checks,))]


def _as_played(simulation: Simulation, document: Mapping[str, Any]) -> Simulation:
    """The simulation of one operator where the ledger's releases are those of one.

    One that sees what both see is promised less, so nothing is passed that the plan
    does not hold.
    """
    try:
        releases = read_past(document["account"]).releases
        played = [agreed_release(one) for one in releases]
    except NO_ACCOUNT:
        return simulation  # its lines are compared with the plan's own
    known = [simulation, *(replace(simulation, one_operator=why) for why in _ONE)]
    agreed = ([agreed_release(one) for one in each.releases] for each in known)
    same = (each for each, own in zip(known, agreed, strict=True) if own == played)
    return next(same, simulation)


def _is_method(name: str) -> bool:
    """Whether a method is meant; a run of the same name in this folder comes first."""
    is_run = RunDirectory(Path(name)).experiment.exists()
    return name in method_names() and not is_run


def _document(
    name: str,
    seed: int,
    found: Sequence[Audit],
    seconds: float,
) -> dict[str, Any]:
    return {
        "audited": name,
        "simulation": True,
        "seed": seed,
        "ok": all(one.ok for one in found),
        "checks": [
            {"subject": one.subject, **check.to_json()}
            for one in found
            for check in one.checks
        ],
        "monitoring": [
            {"subject": one.subject, **estimate.to_json()}
            for one in found
            for estimate in one.monitoring
        ],
        "not_audited": [
            {"subject": one.subject, "what": what}
            for one in found
            for what in one.not_audited
        ],
        "seconds": seconds,
    }


def _scope(seen: Sequence[Subject], subjects: Sequence[Subject]) -> dict[str, Any]:
    """What was looked at, and what the same subjects admit beside."""
    return {
        "looked_at": [
            {"subject": one.name, **aspect.to_json()}
            for one in seen
            for aspect in one.shows
        ],
        "not_looked_at": [
            {"subject": one.name, **aspect.to_json()}
            for one in subjects
            for aspect in one.lacks
        ],
    }
