"""Where things are printed: answers on stdout, everything else on stderr.

With `--json` the answer is one JSON document and nothing else is on stdout. Progress is
a bar on a terminal and an occasional plain line in a pipe or in CI. Text is printed as
it is, never read as markup, and what a terminal would obey is written as an escape;
whoever puts text from data into a line also sends it through `shown`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import IO, Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tacit.reporting.terminal import wrapped
from tacit.text import in_json, shown

_NARROWEST = 40  # columns; what is narrower reads no sentence
_TELLING_SECONDS = 1.0  # of work, before a guess of how much is left is worth telling
PLAIN_SECONDS = 5.0  # between progress lines in a pipe: a log of hours stays readable


class _Safe(Console):
    """A console that prints strings as they are, without what a terminal would obey."""

    def __init__(self, file: IO[str]) -> None:
        wraps = not file.isatty()  # a pipe has no width, and programs read whole lines
        super().__init__(
            file=file, soft_wrap=wraps, highlight=False, markup=False, emoji=False
        )

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as Rich does, with strings cleaned and wrapped line by line.

        Rich would break a long word, such as a path, where nobody can copy it.
        """
        cleaned = map(_clean, objects)
        if self.soft_wrap:
            super().print(*cleaned, **options)
            return
        fitted = (_fitted(one, self.width) for one in cleaned)
        super().print(*fitted, overflow="ignore", crop=False, **options)


def out() -> Console:
    """The console for answers, on stdout."""
    return _Safe(sys.stdout)


def width() -> int:
    """The columns of a line of an answer, one less than the terminal has."""
    # In the last column some terminals begin a new line, and an empty one follows.
    return max(_NARROWEST, out().width - 1)


def tell(lines: Iterable[str]) -> None:
    """Print lines that were made for this width on stdout."""
    for line in lines:
        out().print(line, markup=False)


def err() -> Console:
    """The console for progress, notes and errors, on stderr."""
    return _Safe(sys.stderr)


def _clean(value: object) -> object:
    if not isinstance(value, str):
        return value
    return "\n".join(shown(line, longest=None) for line in value.split("\n"))


def _fitted(value: object, width: int) -> object:
    """A string in lines that are no wider; those after a long one keep its margin."""
    if not isinstance(value, str):
        return value
    lines: list[str] = []
    for line in value.split("\n"):
        bare = line.lstrip(" ")
        margin = " " * (len(line) - len(bare))
        is_short = cell_len(line) <= width
        lines += (
            [line] if is_short else wrapped(bare, width, first=margin, later=margin)
        )
    return "\n".join(lines)


def print_json(document: Any) -> None:
    """Print one JSON document on stdout: exact, and valid UTF-8 whatever it holds."""
    # Under another encoding titles are escaped, so that the document stays readable.
    is_utf8 = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    text = json.dumps(document, indent=2, ensure_ascii=not is_utf8, default=_plain)
    sys.stdout.write(in_json(text) + "\n")


def note(text: str) -> None:
    """Print a line for the reader on stderr."""
    err().print(text)


class Bar:
    """A progress bar for long work; use it as a context."""

    def __init__(self, label: str) -> None:
        self.label, self.console = label, err()
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[beside]}"),
            console=self.console,
            transient=True,  # the bar goes when it is done; the answer stays
        )
        self.task: TaskID | None = None
        self.counted = ""  # what the task counts; another thing is another task
        self.began, self.last_line = time.monotonic(), 0.0

    def __enter__(self) -> Bar:
        if self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.bar.stop()

    def say(self, text: str) -> None:
        """Print that a step has begun."""
        self.console.print(f"{self.label}: {shown(text)}", style="dim")

    def read(self, done: int, total: int) -> None:
        """Show how much of a table has been read: bytes, or rows of Arrow's files."""
        self.step(done, total, "of the table read")

    def texts(self, done: int, total: int) -> None:
        """Show that so many texts have become vectors."""
        self.step(done, total, "texts to vectors")

    def step(self, done: int, total: int, what: str) -> None:
        """Show how far a step has come, and about how long it will take.

        In a pipe nothing is said of a step of some seconds.
        """
        self._count(what)
        is_short = time.monotonic() - self.began < PLAIN_SECONDS
        if self.console.is_terminal or not is_short:
            self.advance(done, total, what)

    def round(self, done: int, planned: int, facts: Mapping[str, Any]) -> None:
        """Show that a round is over, with the first validation metric."""
        self._count("rounds")
        self.advance(done, planned, _beside(facts))

    def _count(self, what: str) -> None:
        """Begin a bar of its own, with its own time left, if another thing counts."""
        if what == self.counted:
            return
        self.counted, self.began = what, time.monotonic()
        if self.task is not None:
            self.bar.remove_task(self.task)
            self.task = None

    def advance(self, done: int, total: int | None, beside: str = "") -> None:
        """Show that `done` of `total` steps are done."""
        if self.console.is_terminal:
            self._draw(done, total, beside)
        else:
            self._line(done, total, beside)

    def _draw(self, done: int, total: int | None, beside: str) -> None:
        if self.task is None:
            self.task = self.bar.add_task(self.label, total=total, beside="")
        self.bar.update(self.task, completed=done, total=total, beside=beside)

    def _line(self, done: int, total: int | None, beside: str) -> None:
        now = time.monotonic()
        # The last step is always told: a log must show that the work ended.
        if now - self.last_line < PLAIN_SECONDS and done != total:
            return
        self.last_line = now
        of = "" if total is None else f" of {total:,}"
        told = [f"{done:,}{of}", shown(beside), self._left(done, total, now)]
        self.console.print(f"{self.label}: {'  '.join(filter(None, told))}")

    def _left(self, done: int, total: int | None, now: float) -> str:
        spent = now - self.began
        if not total or not 0 < done < total or spent < _TELLING_SECONDS:
            return ""
        seconds = spent * (total - done) / done
        return f"about {timedelta(seconds=round(seconds))} left"


def _beside(facts: Mapping[str, Any]) -> str:
    looked = facts.get("simulation_only", {}).get("validation", {})
    return "  ".join(f"{name} {m['mean']:.4f}" for name, m in list(looked.items())[:1])


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
