"""What is audited when a method or a run is named, and the document that it yields."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit import check
from tacit.audits.audit_method import TICKS, audit, groups_of, playable
from tacit.audits.canary_run import CANARIES, ROUNDS
from tacit.audits.checks import Audit
from tacit.audits.written_ledger import check_written
from tacit.documents import read_document, write_document
from tacit.errors import BadValue
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.registry import method_class, method_names
from tacit.experiment.saved_run import SavedRun
from tacit.keys import Key
from tacit.method import CentralGaussian, Method, SumMethod
from tacit.plans import Plan
from tacit.release import EVERYONE
from tacit.runtime.ledger import terms_of
from tacit.runtime.run import RunDirectory

TARGET, DELTA = 4.0, 1e-6  # the guarantee that a method's noise is calibrated to
FILE = "audit.json"  # in a run directory

Progress = Callable[[int, int], None]  # steps done, steps in all


@dataclass(frozen=True)
class Subject:
    """A method with its noise, and the plan that its claims belong to."""

    name: str
    method: Method
    plan: Plan
    left_out: tuple[str, ...] = ()  # what else the run releases

    @property
    def groups(self) -> list[str]:
        """The public groups whose claims differ."""
        return groups_of(self.method, self.plan)

    def audits(self, key: Key, steps: _Steps) -> Iterator[Audit]:
        """The audits of this subject, one per group."""
        for group in self.groups:
            name = self.name if group == EVERYONE else f"{self.name}, {group}"
            found = audit(
                self.method,
                self.plan,
                key=key.at(group),
                group=group,
                subject=name,
                tick=steps.tick,
            )
            yield replace(found, not_audited=(*found.not_audited, *self.left_out))
            steps.finish()


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

    def finish(self) -> None:
        """Count all steps of an audit that is over, however many it took."""
        self.finished += TICKS
        self.done = self.finished
        self._show()

    def _show(self) -> None:
        if self.progress is not None:
            self.progress(self.done, self.total)


def audit_named(
    name: str, *, seed: int = 0, progress: Progress | None = None
) -> dict[str, Any]:
    """Audit a run directory or every form of an installed method.

    A run's document is also written into its directory.
    """
    started = time.perf_counter()
    steps = _Steps(progress)
    run = None if _is_method(name) else _run_at(name)
    subjects = _forms(name) if run is None else _of_run(run)
    key = Key.from_seed(seed).at("audit")
    steps.total = sum(TICKS * len(subject.groups) for subject in subjects)
    found = [
        one
        for subject in subjects
        for one in subject.audits(key.at(subject.name), steps)
    ]
    if run is not None and any(one.checks for one in found):  # something is promised
        found += _of_ledger(RunDirectory(Path(name)), run)
    document = _document(Path(name).name, seed, found, time.perf_counter() - started)
    document["method"] = name if run is None else subjects[0].name
    if run is not None:
        write_document(Path(name) / FILE, document)
    return document


def subjects_of(name: str) -> list[Subject]:
    """The run in this directory, or every form of the method of this name."""
    return _forms(name) if _is_method(name) else _of_run(_run_at(name))


def _run_at(name: str) -> Assembled:
    """The run in this directory, ready to be played again."""
    if not Path(name).is_dir():
        raise BadValue(
            f"{check.unknown(name, method_names())}; no directory of this name is here "
            "either: name a method or a run"
        )
    return assemble(SavedRun.at(Path(name)).experiment)


def _of_run(run: Assembled) -> list[Subject]:
    name, plan = run.experiment.method_name, run.plan
    if run.measured is None:
        return [Subject(name, run.method, plan)]
    # Two numbers per run are too few to see the distribution of their noise.
    *_, metric = run.method.releases(plan)
    rounds = run.experiment.run.rounds
    return [Subject(name, run.learner, plan.over(rounds), (metric.what,))]


def _of_ledger(directory: RunDirectory, run: Assembled) -> list[Audit]:
    """What the ledger of a run says; nothing before its first round."""
    if not directory.ledger.exists():
        return []
    document, plan = read_document(directory.ledger), run.plan
    releases = run.simulation.releases
    terms = [
        terms_of(run.method, plan, group=group, releases=releases)
        for group in plan.groups
    ]
    checks = check_written(terms, document, delta=plan.delta)
    return [Audit(directory.ledger.name, (*checks,))]


def _is_method(name: str) -> bool:
    """Whether a method is meant; a run of the same name in this folder comes first."""
    is_run = RunDirectory(Path(name)).experiment.exists()
    return name in method_names() and not is_run


def _forms(name: str) -> list[Subject]:
    """A method under each mechanism that it offers, calibrated; and a moving clip.

    The papers' own mechanisms have a mode and a plan of their own: audit a run of them.
    """
    cls, plan = method_class(name), _plan()
    own = "published"
    kinds = {n: k() for n, k in cls.mechanisms.items() if not n.startswith(own)}
    if len(kinds) == 1:
        return [_form(name, cls(), plan)]
    is_clipped = issubclass(cls, SumMethod) and any(
        phase.is_clipped for phase in cls().phases(plan)
    )
    if is_clipped and "central" in kinds:
        kinds |= {"central, moving clip": CentralGaussian(clip_quantile=0.5)}
    return [
        _form(f"{name}, {label}", cls(privacy=kind), plan)  # type: ignore[call-arg]
        for label, kind in kinds.items()
    ]


def _form(name: str, method: Method, plan: Plan) -> Subject:
    method = method.calibrated(plan)
    return Subject(name, method, playable(method, plan))


def _plan() -> Plan:
    return Plan(
        CANARIES, ROUNDS, channel="secure_sum", delta=DELTA, target_epsilon=TARGET
    )


def _document(
    name: str, seed: int, found: Sequence[Audit], seconds: float
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
