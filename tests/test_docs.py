"""Every example runs: the code of a page, the commands of a page, the doctests.

How a page is run: `documentation.page_runner`.
"""

from __future__ import annotations

import doctest
import re
import sys
import tomllib
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
from quick import slow

from documentation.page_runner import (
    BrokenExample,
    blocks,
    run_page,
    run_process,
)
from tacit.experiment.privacy_settings import PrivacySettings
from tacit.experiment.serve_settings import ServeSettings
from tacit.experiment.settings import (
    DataSettings,
    EvaluateSettings,
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

OF_FLOWER = (  # they import what has an environment of its own
    ("tacit", "runtime", "flower_client"),
    ("tacit", "runtime", "flower_server"),
    ("tacit", "cli", "flower_app"),
)

LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)[^)]*\)")
LONG = (  # left to `make test-all`
    "docs/audit.md",  # 25 s: every form of a method is audited
    "docs/privacy-card.md",  # the demo, which README.md runs as well
    "docs/start.md",  # sixteen commands: 40 s
)


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
    run_process([sys.executable, str(script)], _name(script), tmp_path)


@pytest.mark.parametrize("file", MODULES, ids=_name)
def test_doctests(file: Path) -> None:
    parts = file.relative_to(ROOT / "src").with_suffix("").parts
    if parts in OF_FLOWER:
        pytest.importorskip("flwr", reason="in .venv-flower: make test-flower")
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
        ("```console\n$ tacit --version\nzebra\n```", "page.md:2: $ tacit --version p"),
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
