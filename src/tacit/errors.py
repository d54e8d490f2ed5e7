"""The errors Tacit raises on purpose. Catch `TacitError` to catch them all.

TacitError
├── BadValue          a value is out of range: says the value, what is allowed, a remedy
│   └── BadExperiment    an experiment file, all its problems in one message
├── BadData           a data file is malformed: names file and line
├── MissingData       an archive is not here: names its home page and what to do
├── BadMessage        bytes on the wire that are not what was agreed
│   └── OtherVersion     a query for another model: get the model again
├── Diverged          training left the numbers: says in which round, what to lower
├── Unanswered        a server that cannot be reached, or that refuses
│   └── ChildEnded       a process that this one needs and has started is dead
├── BadRun            a run directory that cannot be read, resumed or overwritten
│   └── Damaged          a file that is not as it was written: names it, and a remedy
├── MissingExtra      an optional dependency is not installed: names the extra
├── DiskError         a place that cannot be read or written (`system_errors`)
├── TooLittleMemory   an allocation that the machine cannot give (`system_errors`)
└── Refused           the plan or a client says no, with the reason
    └── EmptyCohort      a round was asked of nobody

They survive pickling, so a worker process can raise them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tacit.version import DISTRIBUTION


class TacitError(Exception):
    """Everything that Tacit raises on purpose."""


class BadValue(TacitError, ValueError):
    """A value is out of range, of the wrong kind, or not known."""


class BadExperiment(BadValue):
    """An experiment cannot be run; `problems` lists every reason found."""

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        self.where, self.problems = where, tuple(problems)
        super().__init__(where, self.problems)  # arguments as pickle hands them back

    def __str__(self) -> str:
        n = len(self.problems)
        count = "1 problem" if n == 1 else f"{n} problems"
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        return f"{self.where}: {count}{lines}"


class BadData(TacitError):
    """A data file does not have the shape its format promises."""

    def __init__(self, file: str | Path, line: int | None, problem: str) -> None:
        self.file, self.line, self.problem = str(file), line, problem
        super().__init__(self.file, line, problem)

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{where}: {self.problem}"


class MissingData(TacitError):
    """A data set's archive could not be found."""


class BadMessage(TacitError):
    """Bytes that do not decode to the agreed message."""


class OtherVersion(BadMessage):
    """A query that was made for another model than the one served."""


class Diverged(BadMessage, BadValue):
    """What was trained holds no numbers any more, or scores nothing by them.

    `round` counts from 0, as in metrics.jsonl; None: while users were ranked for.
    `lower` names the settings of steps with their values, such as `method.rate = 0.1`.
    Both a message that nobody accepts and a value that cannot be.
    """

    def __init__(
        self, problem: str, round: int | None = None, lower: Sequence[str] = ()
    ) -> None:
        self.problem, self.round, self.lower = problem, round, tuple(lower)
        super().__init__(problem, round, self.lower)

    def __str__(self) -> str:
        when = "in ranking" if self.round is None else f"in round {self.round}"
        steps = " or ".join(self.lower) or "the sizes of its steps"
        return f"training diverged, seen {when}: {self.problem}; lower {steps}"

    def to_json(self) -> dict[str, object]:
        """All of it as plain data, of which `Diverged(**data)` makes it again."""
        return {"problem": self.problem, "round": self.round, "lower": [*self.lower]}


class Unanswered(TacitError):
    """A server that gave no answer, or none that can be used."""


class ChildEnded(Unanswered):
    """A process that this one has started, and cannot do without, has ended."""


class BadRun(TacitError):
    """A run directory that cannot be used as asked."""


class Damaged(BadRun):
    """A file that something else than this program has changed."""

    def __init__(self, file: str | Path, problem: str) -> None:
        self.file, self.problem = str(file), problem
        super().__init__(self.file, problem)

    def __str__(self) -> str:
        return (
            f"{self.file} is damaged: {self.problem}; restore it from a copy, or make "
            "it again"
        )


class MissingExtra(TacitError):
    """An optional dependency is needed and not installed.

    `alone` is a package that no extra can bring: it is installed without what it asks
    for.
    """

    def __init__(self, module: str, extra: str, alone: str | None = None) -> None:
        self.module, self.extra, self.alone = module, extra, alone
        super().__init__(module, extra, alone)

    def __str__(self) -> str:
        said = (
            f"{self.module} is not installed; it comes with the extra '{self.extra}': "
            f"pip install '{DISTRIBUTION}[{self.extra}]'"
        )
        then = f" && pip install --no-deps {self.alone}"
        return said if self.alone is None else said + then


class Refused(TacitError):
    """What was asked would break a guarantee or cannot be kept."""


class EmptyCohort(Refused):
    """A round was asked of no client at all."""
