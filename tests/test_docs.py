"""Every example runs: the code of a page, the commands of a page, the doctests.

What happens on a page happens in one empty directory, from top to bottom:

    ```python                     runs; all of a page's blocks share one namespace
    ```console                    lines that start with `$ tacit ` run and must succeed
    ```csv title="ratings.csv"    is written to that file
    ```python title="Not run in the tests: a reason"    is left out, and says why
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
import traceback
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from quick import slow

from tacit.experiment.serve_settings import ServeSettings
from tacit.experiment.settings import (
    DataSettings,
    EvaluateSettings,
    PrivacySettings,
    RunSettings,
    check_experiment,
)
from tacit.privacy import CentralGaussian, LocalPrivUnit

EXPLAINED = (
    *(
        DataSettings,
        PrivacySettings,
        RunSettings,
        EvaluateSettings,
        ServeSettings,
    ),
    *(CentralGaussian, LocalPrivUnit),
)
ROOT = Path(__file__).parents[1]
SITE = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *SITE]
MODULES = [p for p in sorted((ROOT / "src").rglob("*.py")) if p.stem != "__main__"]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))

FENCE = re.compile(r"^ *(?P<ticks>```+) *(?P<language>[\w-]*) *(?P<remark>[^`]*)$")
REMARK = re.compile(
    r'title="(?P<skipped>Not run in the tests: \S[^"]*)"|title="(?P<file>[\w.-]+)"|'
)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)[^)]*\)")
COMMAND = re.compile(r"^\$ tacit((?:.*\\\n)*.*)$", re.MULTILINE)
TACIT = Path(sys.executable).with_name("tacit")
SECONDS = 300  # no command on a page may take longer
LONG = (  # left to `make test-all`
    "docs/audit.md",  # 25 s: every form of a method is audited
    "docs/privacy-card.md",  # the demo, which docs/index.md runs as well
)


class BrokenExample(Exception):
    """An example does not do what its page says: names page and line."""


@dataclass(frozen=True)
class Block:
    """A fenced block: what its fence says, and its text from page line `line` on."""

    language: str
    remark: str
    text: str
    line: int


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


def run_page(page: Path, where: Path) -> None:
    """Do in `where` what the page shows; stop at the first thing that fails."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page.read_text("utf-8")):
        remark = REMARK.fullmatch(block.remark.strip())
        if remark is None:
            problem = f"{block.remark!r} is not a remark this page's runner knows"
            raise BrokenExample(f"{page}:{block.line - 1}: {problem}")
        if remark["file"]:
            (where / remark["file"]).write_text(block.text + "\n", "utf-8")
        elif block.language in RUNNERS and not remark["skipped"]:
            RUNNERS[block.language](page, block, where, namespace)


def run_python(
    page: Path, block: Block, where: Path, namespace: dict[str, Any]
) -> None:
    if block.text.lstrip().startswith(">>>"):
        return run_session(page, block, where, namespace)
    padded = "\n" * (block.line - 1) + block.text  # so that line numbers are the page's
    try:
        exec(compile(padded, str(page), "exec"), namespace)
    except Exception as error:
        raise BrokenExample(_place(page, block, error)) from error


def run_session(
    page: Path, block: Block, where: Path, namespace: dict[str, Any]
) -> None:
    parser, said = doctest.DocTestParser(), list[str]()
    test = parser.get_doctest(block.text, namespace, page.name, str(page), block.line)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    if runner.run(test, out=said.append, clear_globs=False).failed:
        raise BrokenExample(f"{page}:{block.line}: {''.join(said)}")
    namespace.update(test.globs)


def run_console(
    page: Path, block: Block, where: Path, namespace: dict[str, Any]
) -> None:
    for command in COMMAND.finditer(block.text):
        line = block.line + block.text.count("\n", 0, command.start())
        words = shlex.split(command[1].replace("\\\n", " "), comments=True)
        _run([str(TACIT), *words], f"{page}:{line}", where)


RUNNERS = {"python": run_python, "pycon": run_session, "console": run_console}


def _run(command: list[str], place: str, where: Path) -> None:
    environment = os.environ | {"TACIT_CACHE": str(where / ".cache"), "COLUMNS": "100"}
    done = subprocess.run(
        command,
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode != 0:
        shown = shlex.join([Path(command[0]).name, *command[1:]])
        end = f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        raise BrokenExample(f"{place}: {shown}: {end}")


def _place(page: Path, block: Block, error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if f.filename == str(page)]
    return f"{page}:{lines[-1] if lines else block.line}: {error!r}"


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=slow if _name(p) in LONG else ()) for p in PAGES],
    ids=_name,
)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / ".cache"))
    run_page(page, tmp_path)


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_example_scripts_run(script: Path, tmp_path: Path) -> None:
    _run([sys.executable, str(script)], _name(script), tmp_path)


@pytest.mark.parametrize("file", MODULES, ids=_name)
def test_doctests(file: Path) -> None:
    parts = file.relative_to(ROOT / "src").with_suffix("").parts
    module = import_module(".".join(p for p in parts if p != "__init__"))
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.failed == 0, f"{_name(file)}: see the output above"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    lost = [target for target in links(page) if not (page.parent / target).exists()]
    assert lost == [], f"{_name(page)} links to files that are not there"


def test_the_pages_that_take_long_are_pages() -> None:
    assert {*LONG} <= {*map(_name, PAGES)}


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"^ +-.*?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    pages = [_name(page).removeprefix("docs/") for page in SITE]
    assert sorted(set(pages) - set(listed)) == [], "these pages are not in mkdocs.yml"
    assert len(listed) == len(set(listed))


def test_the_experiment_that_is_explained_is_one() -> None:
    page = ROOT / "docs" / "cli.md"
    [shown] = [b for b in blocks(page.read_text("utf-8")) if b.language == "toml"]
    check_experiment(tomllib.loads(shown.text), _name(page))
    # What is commented out is explained as well: its keys are known ones.
    keys = re.findall(r"^# (\w+) = ", shown.text, re.MULTILINE)
    known = {f.name for kind in EXPLAINED for f in fields(kind)}
    assert sorted({*keys} - known) == []


def links(page: Path) -> list[str]:
    """The files a page links to, anchors cut off; code is not prose."""
    text = page.read_text("utf-8")
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    targets = [link["target"].partition("#")[0] for link in LINK.finditer(prose)]
    return [t for t in targets if t and not re.match(r"[a-z]+:", t)]


# --- The runner itself fails when it should ------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("one\n\n```python\nx = 1\nx / 0\n```", "page.md:5: ZeroDivisionError"),
        ("```python\nx = 1\n```\n```python\nassert x == 2\n```", "page.md:5: Ass"),
        ("```python\nx = (\n```", "page.md:2: SyntaxError"),
        ("```python\n>>> 1 + 1\n3\n```", "page.md:2: "),
        ("```python norun\n1 / 0\n```", "page.md:1: 'norun' is not a remark"),
        ("```python no-run: x\n1 / 0\n```", "page.md:1: 'no-run: x' is not a remark"),
        ("```console\n$ ls\n$ tacit nonesuch\n```", "page.md:3: tacit nonesuch: exit"),
        ("```python\nx = 1\n", "line 2 is never closed"),
    ],
)
def test_a_broken_example_is_found(text: str, said: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    with pytest.raises(BrokenExample, match=re.escape(said)):
        run_page(page, tmp_path)


def test_a_page_is_run_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        """
```csv title="table.csv"
a,b
```
- in a list

    ```python
    import pathlib
    text = pathlib.Path("table.csv").read_text()
    assert text == "a,b\\n"
    ```

```python title="Not run in the tests: it would fail"
1 / 0
```
```pycon
>>> text.strip()
'a,b'
```
""",
        "utf-8",
    )
    run_page(page, tmp_path)
