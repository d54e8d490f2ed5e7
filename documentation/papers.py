"""docs/papers.md: what the five papers describe, and where it is in the code.

    python -m documentation.papers

The data are in `documentation/papers.toml`.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).with_name("papers.toml")
PAGE = ROOT / "docs" / "papers.md"
STATES = ("whole", "partly", "not")

_HEAD = """# The five papers, part by part

Every equation, line of an algorithm, mechanism, baseline, data set, table and figure of
the five papers, with the place in the code. *Whole*: all that the text describes is
there. `tacit reproduce` makes the tables and figures, and tries what the text claims:
the last column is of `--scale quick`. This page is made by
`python -m documentation.papers`, and a test finds every name.
"""


@dataclass(frozen=True)
class Part:
    """A part of a paper: its number there, its content, and its places here."""

    part: str
    what: str
    at: tuple[str, ...]
    state: str = "whole"
    note: str = ""

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Part:
        """From a line of the data; refuses a state without its reason."""
        part = cls(**{**document, "at": tuple(document["at"])})
        if part.state not in STATES:
            raise ValueError(f"{part.part}: state '{part.state}'; use one of {STATES}")
        if part.state != "whole" and not part.note:
            raise ValueError(f"{part.part}: '{part.state}' needs a note")
        if part.state != "not" and not part.at:
            raise ValueError(f"{part.part}: '{part.state}' needs a place")
        return part


def papers() -> dict[str, tuple[Mapping[str, Any], tuple[Part, ...]]]:
    """The facts and the parts of each paper, by the name of its study."""
    document = tomllib.loads(DATA.read_text("utf-8"))
    return {
        name: (paper, tuple(Part.read(line) for line in paper["parts"]))
        for name, paper in document.items()
    }


def is_there(place: str) -> bool:
    """Whether a name of the data exists: `package.module:Class.method` or a file.

    A file of the repository may be followed by `:name` of a function or class in it.
    """
    where, _, name = place.partition(":")
    if not where.startswith("tacit."):
        file = ROOT / where
        return file.is_file() and (not name or name in _definitions(file))
    found: object = import_module(where)
    for attribute in name.split("."):
        found = getattr(found, attribute, None)
    return found is not None


def _definitions(file: Path) -> set[str]:
    body = ast.parse(file.read_text("utf-8")).body
    return {
        node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def page() -> str:
    """The page as Markdown."""
    found = papers()
    blocks = [_HEAD, "\n".join(_summary(found))]
    for paper, parts in found.values():
        blocks.append("\n".join(_section(paper, parts)))
    return "\n\n".join(block.rstrip() for block in blocks) + "\n"


def _summary(
    found: Mapping[str, tuple[Mapping[str, Any], tuple[Part, ...]]],
) -> Iterator[str]:
    yield "| paper | `tacit reproduce` | parts | whole | partly | not | claims hold |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for name, (paper, parts) in found.items():
        states = [part.state for part in parts]
        counts = " | ".join(str(states.count(state)) for state in STATES)
        quick = {"version": "an earlier version", **paper["quick"]}
        claims = "{held} of {claims} ({version})".format(**quick)
        yield f"| {paper['title']} | `{name}` | {len(parts)} | {counts} | {claims} |"


def _section(paper: Mapping[str, Any], parts: Sequence[Part]) -> Iterator[str]:
    links = (f"[{_label(where)}]({where})" for where in paper["pages"])
    yield f"## {paper['title']}"
    yield ""
    yield f"{paper['source']}. Pages: {', '.join(links)}."
    yield ""
    yield "| in the paper | content | here | state | |"
    yield "|---|---|---|---|---|"
    for part in parts:
        places = "<br>".join(map(_shown, part.at)) or "–"
        yield f"| {part.part} | {part.what} | {places} | {part.state} | {part.note} |"


def _label(where: str) -> str:
    folder, _, file = where.rpartition("/")
    kind = {"methods": "method", "errata": "errata", "reproduction": "figures"}
    name = file.removesuffix(".md").replace("_", " ")
    return f"{kind[folder]}, {name}" if folder else name


def _shown(place: str) -> str:
    """A place as a reader looks for it."""
    if place.startswith("docs/"):
        where = place.removeprefix("docs/")
        return f"[{_label(where)}]({where})"
    return f"`{place.removesuffix(':__doc__')}`"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
