"""What MkDocs does on the way: the command reference, and pages of the notebooks.

A marker on a page becomes the reference, and each notebook becomes a page.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))  # MkDocs runs this file by its path

from documentation import notebooks
from documentation.commands import reference

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

MARKER = "<!-- the commands, as the parser has them -->"


def on_page_markdown(markdown: str, **_: object) -> str:
    """The page, with the reference in place of the marker."""
    return markdown.replace(MARKER, reference()) if MARKER in markdown else markdown


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """The files of the site, with a page for each notebook beside it."""
    from mkdocs.structure.files import File  # tests of the rest need no MkDocs

    for name in notebooks.names():
        text = notebooks.page(notebooks.read(name), name)
        place = f"{notebooks.FOLDER.name}/{name}.md"
        files.append(File.generated(config, place, content=text))
    return files
