"""Every public docstring is a plain sentence, and the pages name what exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tacit"
LEAST_WORDS = 4  # a docstring of three words says nothing
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if not {"reproduction", "decisions"} & {*page.parts}
]
ENTRY_POINTS = ("tacit.leaks",)  # groups of entry points in pyproject.toml
READERS_OWN = ("trending.py", "test_trending.py")  # files that a page tells to write
DOTTED = re.compile(r"\btacit(?:\.[A-Za-z_]\w*)+")
FILE = re.compile(r"(?<![\w./-])(?:[\w-]+/)*[\w-]+\.py\b")


class Documented(NamedTuple):
    """A public module, class or function, and its docstring."""

    where: str
    text: str


def documented(source: str, where: str) -> Iterator[Documented]:
    """The public things of a module that have a docstring."""
    tree = ast.parse(source)
    yield from _own(tree, where)
    yield from _inside(tree, where)


def _inside(node: ast.AST, where: str) -> Iterator[Documented]:
    for child in ast.iter_child_nodes(node):
        kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(child, kinds) and not child.name.startswith("_"):
            name = f"{where}:{child.lineno} {child.name}"
            yield from _own(child, name)
            if isinstance(child, ast.ClassDef):
                yield from _inside(child, name)


def _own(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, where: str
) -> Iterator[Documented]:
    text = ast.get_docstring(node)
    if text is not None:
        yield Documented(where, text)


def riddles(source: str, where: str) -> list[str]:
    """The docstrings that are too short, or that lack a noun before "of"."""
    return [
        f"{one.where}: {one.text!r}"
        for one in documented(source, where)
        if len(one.text.split()) < LEAST_WORDS or one.text.split()[0] == "Of"
    ]


def test_every_public_docstring_is_a_plain_sentence() -> None:
    found = [
        riddle
        for path in sorted(PACKAGE.rglob("*.py"))
        for riddle in riddles(path.read_text("utf-8"), str(path.relative_to(ROOT)))
    ]
    assert not found, "\n".join(["say what it gives, in a full sentence:", *found])


@pytest.mark.parametrize(
    "text",
    ["Nothing.", "Line 3.", "Of the noise on the diagonal.", "The whole catalog."],
)
def test_a_riddle_is_found(text: str) -> None:
    source = f'"""A module of four words."""\nclass A:\n    """{text}"""\n'
    assert len(riddles(source, "a.py")) == 1
    private = source.replace("class A", "class _A")
    assert not riddles(private, "a.py")


def test_a_plain_sentence_is_no_riddle() -> None:
    source = '"""A module that says what it has."""\n\ndef f():\n    pass\n'
    assert not riddles(source, "a.py")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_modules_and_files_on_a_page_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    missing = [name for name in sorted({*DOTTED.findall(text)}) if not is_there(name)]
    missing += [name for name in sorted({*FILE.findall(text)}) if not has_file(name)]
    assert not missing, f"{page.name} names what does not exist: {missing}"


def is_there(name: str) -> bool:
    """Whether `tacit.a.b` is a module, or a name that a module defines or imports."""
    path = PACKAGE
    if name in ENTRY_POINTS:
        return True
    for index, part in enumerate(parts := name.split(".")[1:]):
        if (path / part).is_dir():
            path = path / part
        elif (path / f"{part}.py").is_file():
            rest = parts[index + 1 : index + 2]
            return not rest or _defines(path / f"{part}.py", rest[0])
        else:
            return _defines(path / "__init__.py", part)
    return True


def has_file(name: str) -> bool:
    """Whether a path that a page names is the end of a file's path here."""
    wanted = Path(name).parts
    return wanted[-1] in READERS_OWN or any(
        path.parts[-len(wanted) :] == wanted for path in _files()
    )


def _files() -> list[Path]:
    folders = ("src", "tests", "examples", "benchmarks", "reproductions", "docs")
    return [path for folder in folders for path in (ROOT / folder).rglob("*.py")]


def _defines(module: Path, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", module.read_text("utf-8")))


def test_a_name_that_is_gone_is_missed() -> None:
    assert is_there("tacit.method")
    assert is_there("tacit.privacy.CentralGaussian")
    assert not is_there("tacit.models.no_such_module")
    assert not is_there("tacit.method.NoSuchThing")
    assert has_file("models/item_bucketing.py")
    assert not has_file("models/no_such_file.py")
