"""What MkDocs does on the way: a marker on a page becomes the command reference."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # MkDocs runs this file by its path

from documentation.commands import reference

MARKER = "<!-- the commands, as the parser has them -->"


def on_page_markdown(markdown: str, **_: object) -> str:
    """The page, with the reference in place of the marker."""
    return markdown.replace(MARKER, reference()) if MARKER in markdown else markdown
