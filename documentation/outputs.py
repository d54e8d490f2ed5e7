"""Writes what commands print below them, where a page shows it and it has changed.

    python -m documentation.outputs README.md docs/start.md

A page is run from top to bottom in an empty directory. An output that still matches
stays as it is, with the `...` for what was left out; another one is written in full, to
be cut by hand.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from documentation.page_runner import Command, page_commands, run_tacit


def refreshed(page: Path, where: Path) -> str:
    """The text of a page with the outputs that its commands have now."""
    lines = page.read_text("utf-8").splitlines()
    moved = 0  # how many lines earlier outputs have grown by
    for command in page_commands(page):
        output = run_tacit(command, f"{page}:{command.line}", where)
        if command.differs(output):
            first, old = _place(command, moved)
            new = [line.rstrip() for line in output.rstrip().splitlines()]
            lines[first : first + old] = new
            moved += len(new) - old
    return "\n".join(lines) + "\n"


def _place(command: Command, moved: int) -> tuple[int, int]:
    """Where the output of a command begins, and how many lines it has."""
    first = command.line - 1 + command.text.count("\n") + 1 + moved
    return first, command.printed.count("\n")


def main() -> None:
    """Refresh the pages that are named."""
    for name in sys.argv[1:]:
        page = Path(name)
        with tempfile.TemporaryDirectory() as place:
            text = refreshed(page, Path(place))
        if text != page.read_text("utf-8"):
            page.write_text(text, "utf-8")
            print(f"{page}: refreshed; leave out what readers do not need, by `...`")


if __name__ == "__main__":
    main()
