"""One table decides between a kernel and its twin, and every site asks it."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

import tacit
from tacit.kernels import dispatch
from tacit.kernels.dispatch import TABLE, Twin

PACKAGE = Path(tacit.__file__).parent
ALWAYS_COMPILED = {  # no twin is chosen there
    "models/feature_mlp/compiled_pass.py": "training.py has asked before it is built",
    "tree/sparse_factored.py": "models.item_relations has asked before it is built",
}


def sites():
    """Every module outside `kernels` and its tree."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("kernels/"):
            yield name, ast.parse(path.read_text())


def asked(tree):
    """The kernels that a module asks the table about."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "pays"
        and isinstance(call.args[0], ast.Constant)
    }


def loaded(tree):
    """The modules of kernels that a module imports when it needs them."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.ImportFrom) and node.module == "tacit.kernels":
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                package, _, module = node.module.rpartition(".")
                if package == "tacit.kernels":
                    yield module


def test_every_site_that_loads_a_kernel_asks_the_table():
    silent = {
        f"{name}: {module}"
        for name, tree in sites()
        for module in loaded(tree)
        if module not in {kernel.partition(".")[0] for kernel in asked(tree)}
        and name not in ALWAYS_COMPILED
    }
    assert not silent, f"call dispatch.pays(...) there: {sorted(silent)}"
    assert {name for name, tree in sites() if [*loaded(tree)]} >= {*ALWAYS_COMPILED}


def test_every_row_has_a_site_and_every_site_a_row():
    assert set().union(*(asked(tree) for _, tree in sites())) == {*TABLE}


def test_no_site_has_a_size_of_its_own():
    own = [
        f"{name}: {target.id}"
        for name, tree in sites()
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and "COMPILED" in target.id
    ]
    assert own == []


@pytest.mark.parametrize("kernel", TABLE)
def test_a_row_names_a_kernel(kernel):
    module, _, function = kernel.partition(".")
    assert callable(
        getattr(importlib.import_module(f"tacit.kernels.{module}"), function)
    )


def test_reports_are_never_computed_by_what_depends_on_the_others():
    """Rounding may differ only where the size is public, whatever is loaded."""
    with pytest.raises(ValueError, match="public size"):
        Twin("users", 10, "a guess", agrees="rounding")
    with pytest.raises(ValueError, match="what is loaded"):
        Twin("weights", 10, "a guess", loaded=1, agrees="rounding", is_public=True)
    Twin("weights", 10, "a guess", agrees="rounding", is_public=True)
    Twin("users", 10, "a guess", agrees="rounding", is_reported=False)
    Twin("users", 10, "a guess", loaded=1)


def test_a_kernel_pays_from_its_size_on(monkeypatch):
    monkeypatch.setitem(TABLE, "one_bit.tally", Twin("votes", 10, "", loaded=3))
    monkeypatch.setitem(sys.modules, "numba", pytest)
    assert [dispatch.pays("one_bit.tally", n) for n in (2, 3)] == [False, True]
    monkeypatch.delitem(sys.modules, "numba")
    assert [dispatch.pays("one_bit.tally", n) for n in (9, 10)] == [False, True]
    with pytest.raises(KeyError):
        dispatch.pays("bits.tallly", 3)


def test_the_table_starts_without_numba():
    """Every command asks it; loading numba would cost each of them 0.3 s."""
    tree = ast.parse(Path(dispatch.__file__).read_text())
    named = {name.name for node in tree.body for name in getattr(node, "names", ())}
    assert "sys" in named
    assert not {name for name in named if name.startswith("numba")}
