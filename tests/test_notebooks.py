"""Every notebook runs, and what it shows is what its cells made.

Tests `documentation.notebooks`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from documentation import notebooks
from documentation.notebooks import BrokenNotebook, cells_digest, page, read, run

NAMES = notebooks.names()
MOST_BYTES = 80_000
COMMAND = "run `python -m documentation.notebooks`"


def kinds(cell: dict[str, Any]) -> list[str]:
    """What the outputs of a cell are, whatever figures they have."""
    found = cell.get("outputs", [])
    return [one.get("name") or next(iter(one["data"])) for one in found]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_what_it_kept(name: str) -> None:
    pytest.importorskip("pandas")
    kept = read(name)
    made = run(kept, name)
    assert [kinds(c) for c in made["cells"]] == [kinds(c) for c in kept["cells"]]
    assert "/tmp" not in json.dumps(made), "an output names a folder of this machine"


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_of_these_cells(name: str) -> None:
    kept = read(name)
    assert kept["metadata"][notebooks.DIGEST] == cells_digest(kept), COMMAND
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    assert len({cell["id"] for cell in kept["cells"]}) == len(kept["cells"])
    assert (notebooks.FOLDER / f"{name}.ipynb").stat().st_size < MOST_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_links_of_a_notebook_lead_somewhere(name: str) -> None:
    texts = ["".join(c["source"]) for c in read(name)["cells"]]
    found = re.findall(r"\]\(([^)#:]+?)\)", "\n".join(texts))
    lost = [target for target in found if not (notebooks.FOLDER / target).exists()]
    assert lost == []


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_every_cell_and_its_outputs(name: str) -> None:
    shown, kept = page(read(name), name), read(name)
    assert shown.startswith("# ")
    for cell in kept["cells"]:
        if cell["cell_type"] == "code":
            assert "".join(cell["source"]) in shown
    outputs = [kind for cell in kept["cells"] for kind in kinds(cell)]
    assert shown.count('<div class="output">') == outputs.count("text/html")
    assert ".ipynb)" not in shown.replace(f"({name}.ipynb)", "")


def test_three_notebooks_are_on_the_site() -> None:
    listed = Path(notebooks.FOLDER.parents[1], "mkdocs.yml").read_text("utf-8")
    assert len(NAMES) == 3
    for name in NAMES:
        assert f"notebooks/{name}.md" in listed


def cell(source: str, kind: str = "code") -> dict[str, Any]:
    return {"cell_type": kind, "id": source, "metadata": {}, "source": [source]}


def test_what_is_printed_and_the_last_value_are_shown() -> None:
    cells = [cell("# Two", "markdown"), cell("print(1)\n1 + 1"), cell("x = 3")]
    made = run({"cells": cells, "metadata": {}}, "two")
    outputs = made["cells"][1]["outputs"]
    assert [one.get("text") for one in outputs] == [["1\n"], None]
    assert outputs[1]["data"] == {"text/plain": ["2"]}
    assert made["cells"][2]["outputs"] == []
    assert "```text\n2\n```" in page(made, "two")


def test_a_cell_that_fails_is_named() -> None:
    cells = [cell("x = 1"), cell("y = 2\nx / 0")]
    with pytest.raises(BrokenNotebook, match=r"two, cell 2, line \[2\]: ZeroDiv"):
        run({"cells": cells, "metadata": {}}, "two")
