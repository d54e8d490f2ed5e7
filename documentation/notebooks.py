"""Runs the notebooks, keeps what they show, and makes pages of them.

    python -m documentation.notebooks [NAME ...]    runs them and writes their outputs

A notebook is run from top to bottom in an empty directory, in this process: what a cell
prints and its last value are its outputs, as in Jupyter, which is not needed. A digest
of the cells stands beside the outputs, so that a test finds outputs of other cells
(docs/decisions/notebooks.md).
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
DIGEST = "cells_digest"  # of the cells that the outputs are of; in the metadata

_LINK = re.compile(r"\]\(([\w-]+)\.ipynb\)")  # to another notebook, which is a page

Notebook = Mapping[str, Any]
Cell = Mapping[str, Any]


class BrokenNotebook(Exception):
    """A cell that fails: names the notebook, the cell and the line."""


def names() -> list[str]:
    """The names of all notebooks, without their ending."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def read(name: str) -> dict[str, Any]:
    """The notebook of this name as JSON has it."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))
    return found


def cells_digest(notebook: Notebook) -> str:
    """A digest of what all cells say."""
    texts = [[cell["cell_type"], _source(cell)] for cell in notebook["cells"]]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]


def run(notebook: Notebook, name: str) -> dict[str, Any]:
    """The same notebook with the outputs that its cells have now."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    with _empty_directory():
        for number, cell in enumerate(notebook["cells"], start=1):
            if cell["cell_type"] != "code":
                cells.append(dict(cell))
                continue
            count += 1
            place = f"{name}, cell {number}"
            outputs = _outputs(_source(cell), namespace, place, count)
            cells.append({**cell, "execution_count": count, "outputs": outputs})
    metadata = {**notebook["metadata"], DIGEST: cells_digest(notebook)}
    return {**notebook, "cells": cells, "metadata": metadata}


def page(notebook: Notebook, name: str) -> str:
    """The notebook as a page of the site, with what its cells show."""
    parts = [_part(cell) for cell in notebook["cells"]]
    told = (
        f"*This page is the notebook [`{name}.ipynb`]({name}.ipynb), run from top to "
        "bottom. Download it, or change it and see what happens.*"
    )
    title, _, rest = parts[0].partition("\n")
    return "\n\n".join([title, told, rest, *parts[1:]]) + "\n"


# --- Running -------------------------------------------------------------------------


@contextlib.contextmanager
def _empty_directory() -> Iterator[None]:
    """An empty directory to work in, with a cache of its own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        kept = os.environ.get("TACIT_CACHE")
        os.environ["TACIT_CACHE"] = str(Path(place, ".cache"))
        os.chdir(place)
        try:
            yield
        finally:
            os.chdir(before)
            os.environ.pop("TACIT_CACHE")
            if kept is not None:
                os.environ["TACIT_CACHE"] = kept


def _outputs(
    source: str, namespace: dict[str, Any], place: str, count: int
) -> list[dict[str, Any]]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            value = _value(source, namespace, place)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = [frame.lineno for frame in frames if frame.filename == place]
        raise BrokenNotebook(f"{place}, line {line[-1:]}: {error!r}") from error
    printed = said.getvalue()
    stream = {"output_type": "stream", "name": "stdout", "text": _lines(printed)}
    found = [stream] if printed else []
    return found if value is None else [*found, _shown(value, count)]


def _value(source: str, namespace: dict[str, Any], place: str) -> object:
    """The value of the last expression of a cell; None if it ends otherwise."""
    tree = ast.parse(source, place)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, place, "exec"), namespace)
        return None
    before = ast.Module(tree.body[:-1], tree.type_ignores)
    exec(compile(before, place, "exec"), namespace)
    return eval(compile(ast.Expression(last.value), place, "eval"), namespace)


def _shown(value: object, count: int) -> dict[str, Any]:
    as_html = getattr(value, "_repr_html_", None)
    # Without its text where there is a table: the text may name this machine's folders.
    data = (
        {"text/html": _lines(as_html())}
        if callable(as_html)
        else {"text/plain": _lines(repr(value))}
    )
    return {
        "output_type": "execute_result",
        "execution_count": count,
        "metadata": {},
        "data": data,
    }


# --- Reading and writing -------------------------------------------------------------


def _source(cell: Cell) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _lines(text: str) -> list[str]:
    """A text as notebooks have it: line by line, so that changes can be read."""
    return text.splitlines(keepends=True)


def _part(cell: Cell) -> str:
    """A cell and its outputs in Markdown."""
    if cell["cell_type"] == "markdown":
        return _LINK.sub(r"](\1.md)", _source(cell))
    shown = [_fenced(_source(cell), "python"), *map(_output, cell["outputs"])]
    return "\n\n".join(shown)


def _output(output: Mapping[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="output">\n{"".join(data["text/html"])}</div>'
    return _fenced("".join(output.get("text") or data["text/plain"]), "text")


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def main(wanted: Sequence[str]) -> None:
    """Run the notebooks that are named, or all of them."""
    for name in wanted or names():
        made = json.dumps(run(read(name), name), indent=1, ensure_ascii=False)
        (FOLDER / f"{name}.ipynb").write_text(made + "\n", "utf-8")
        print(f"{name}: run")


if __name__ == "__main__":
    main(sys.argv[1:])
