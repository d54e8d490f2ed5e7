"""Runs what a page shows, from top to bottom, in one empty directory.

```python                     runs; all of a page's blocks share one namespace
```console                    lines that start with `$ tacit ` run and must succeed;
                              lines below a command are what it prints, and `...`
                              stands for whatever is left out
```csv title="ratings.csv"    is written to that file
```python title="Not run in the tests: a reason"    is left out, and says why
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^ *(?P<ticks>```+) *(?P<language>[\w-]*) *(?P<remark>[^`]*)$")
REMARK = re.compile(
    r'title="(?P<skipped>Not run in the tests: \S[^"]*)"|title="(?P<file>[\w.-]+)"|'
)
PROMPT, OURS = "$ ", "$ tacit "
BIN = Path(sys.executable).parent  # where `tacit` is installed
SECONDS = 300  # no command on a page may take longer
COLUMNS = 80  # the width of what a command prints
MATCHER = doctest.OutputChecker()


class BrokenExample(Exception):
    """An example does not do what its page says: names page and line."""


@dataclass(frozen=True)
class Block:
    """A fenced block: what its fence says, and its text from page line `line` on."""

    language: str
    remark: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A command of a console block, and what the page says that it prints."""

    text: str
    printed: str
    line: int

    @property
    def is_ours(self) -> bool:
        """Whether it is run: other programs are for the reader."""
        return self.text.startswith(OURS)

    @property
    def script(self) -> str:
        """The command as it stands on the page, for a shell."""
        return self.text.removeprefix(PROMPT)

    def differs(self, output: str) -> bool:
        """Whether the page shows an output, and other words than these.

        Line breaks, blanks and the rules of tables are layout, and may differ.
        """
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        said, printed = (text.replace("─", "") for text in (self.printed, output))
        return bool(said) and not MATCHER.check_output(said, printed, flags)


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    fence, start, body = None, 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        if fence is None:
            fence, start, body = FENCE.match(line), number + 1, []
        elif line.strip() == fence["ticks"]:
            inside = textwrap.dedent("\n".join(body))
            found.append(Block(fence["language"], fence["remark"], inside, start))
            fence = None
        else:
            body.append(line)
    if fence is not None:
        raise BrokenExample(f"the block that starts on line {start} is never closed")
    return found


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block with the lines that follow each."""
    lines = block.text.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith(PROMPT)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        last = start
        while lines[last].endswith("\\"):
            last += 1
        text, printed = lines[start : last + 1], lines[last + 1 : end]
        told = "".join(f"{line}\n" for line in printed)
        yield Command("\n".join(text), told, block.line + start)


def page_commands(page: Path) -> list[Command]:
    """All commands of a page that are run, in their order."""
    return [
        command
        for block in blocks(page.read_text("utf-8"))
        if block.language == "console" and not _remark(page, block)["skipped"]
        for command in commands(block)
        if command.is_ours
    ]


def run_page(page: Path, where: Path) -> None:
    """Do in `where` what the page shows; stop at the first thing that fails."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page.read_text("utf-8")):
        remark = _remark(page, block)
        if remark["file"]:
            (where / remark["file"]).write_text(block.text + "\n", "utf-8")
        elif block.language in RUNNERS and not remark["skipped"]:
            RUNNERS[block.language](page, block, where, namespace)


def run_tacit(command: Command, place: str, where: Path) -> str:
    """What a command prints, run by a shell as it stands; raises if it fails."""
    return run_process(["bash", "-euc", command.script], place, where)


def run_process(command: list[str], place: str, where: Path) -> str:
    """The standard output of a process that must succeed."""
    environment = os.environ | {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "TACIT_CACHE": str(where / ".cache"),
        "COLUMNS": str(COLUMNS),
    }
    done = subprocess.run(
        command,
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode != 0:
        end = f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        raise BrokenExample(f"{place}: {command[-1]}: {end}")
    return done.stdout


# --- What each language does ---------------------------------------------------------


def _run_python(
    page: Path, block: Block, where: Path, namespace: dict[str, Any]
) -> None:
    if block.text.lstrip().startswith(">>>"):
        return _run_session(page, block, where, namespace)
    padded = "\n" * (block.line - 1) + block.text  # so that line numbers are the page's
    try:
        exec(compile(padded, str(page), "exec"), namespace)
    except Exception as error:
        raise BrokenExample(_place(page, block, error)) from error


def _run_session(
    page: Path, block: Block, where: Path, namespace: dict[str, Any]
) -> None:
    parser, said = doctest.DocTestParser(), list[str]()
    test = parser.get_doctest(block.text, namespace, page.name, str(page), block.line)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    if runner.run(test, out=said.append, clear_globs=False).failed:
        raise BrokenExample(f"{page}:{block.line}: {''.join(said)}")
    namespace.update(test.globs)


def _run_console(
    page: Path, block: Block, where: Path, namespace: dict[str, Any]
) -> None:
    for command in commands(block):
        if command.is_ours:
            place = f"{page}:{command.line}"
            output = run_tacit(command, place, where)
            if command.differs(output):
                told = "prints something else; see `python -m documentation.outputs`"
                raise BrokenExample(f"{place}: {command.text} {told}\n{output}")


RUNNERS = {"python": _run_python, "pycon": _run_session, "console": _run_console}


def _remark(page: Path, block: Block) -> re.Match[str]:
    found = REMARK.fullmatch(block.remark.strip())
    if found is None:
        problem = f"{block.remark!r} is not a remark this page's runner knows"
        raise BrokenExample(f"{page}:{block.line - 1}: {problem}")
    return found


def _place(page: Path, block: Block, error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if f.filename == str(page)]
    return f"{page}:{lines[-1] if lines else block.line}: {error!r}"
