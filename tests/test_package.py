"""What `pip install tacit-recommender` gives: built, installed elsewhere, run.

The wheel is built from a copy, so the checkout stays clean and workers do not collide.

Also tests `tacit.version`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import tacit
from tacit.version import DISTRIBUTION

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

PINNED_EXTRAS = (
    "train",
    "baselines",
    "text",
    "tables",
    "pandas",
    "onnx",
    "serve",
    "bench",
    "dev",
    "docs",
)
PIN = re.compile(r"[a-z]")

RATINGS = """\
customer,product
alice,tea
alice,milk
bob,tea
bob,bread
carol,milk
carol,bread
dave,tea
dave,jam
"""

DISTRIBUTIONS = """\
from importlib.metadata import distributions
print(*(distribution.name for distribution in distributions()))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    source, out = place / "source", place / "out"
    unbuilt = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=unbuilt)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    run([*build, "--outdir", str(out), str(source)])
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of executables of an environment that holds the wheel alone."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python")]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    run([*pip, "install", "--quiet", "--no-compile", *constraints, str(wheel)])
    return place / "bin"


def run(command: list[str], *, where: Path | None = None) -> str:
    """Run it with nothing of this checkout on the path; fail with what it said."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if where:
        environment["TACIT_CACHE"] = str(where / "cache")
    done = subprocess.run(
        command, cwd=where, env=environment, capture_output=True, text=True
    )
    said = f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    assert done.returncode == 0, said
    return done.stdout


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert PROJECT["version"] == tacit.__version__
    assert f"\nversion: {tacit.__version__}\n" in citation


def test_every_install_command_names_this_distribution() -> None:
    """`tacit` on the public index is another project: its code would be installed."""
    assert PROJECT["name"] == DISTRIBUTION
    folders = ("src", "docs", "benchmarks", "examples")
    found = [path for name in folders for path in (ROOT / name).rglob("*.*")]
    texts = [*ROOT.glob("*.md"), *(p for p in found if p.suffix in {".py", ".md"})]
    stranger = re.compile(r"pip install ['\"]?tacit(?![-\w])")
    assert [str(p) for p in texts if stranger.search(p.read_text("utf-8"))] == []


def test_the_package_is_not_found_above_the_checkout() -> None:
    """Beside a clone called `tacit`, an import finds the install, not the folder."""
    assert not (ROOT / "tacit").exists()
    assert not (ROOT / "__init__.py").exists()


def test_every_dependency_is_pinned_within_its_bounds() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = {r.name: r for r in map(Requirement, filter(PIN.match, lines))}
    extras = PROJECT["optional-dependencies"]
    wanted = PROJECT["dependencies"] + [r for e in PINNED_EXTRAS for r in extras[e]]
    for wish in map(Requirement, wanted):
        (pin,) = pins[wish.name].specifier
        assert pin.operator == "=="
        assert wish.specifier.contains(pin.version), (str(wish), str(pin))


def test_entry_points_import() -> None:
    points = {"tacit": PROJECT["scripts"]["tacit"]}
    for group in PROJECT["entry-points"].values():
        points |= group
    for name, point in points.items():
        module, _, attribute = point.partition(":")
        assert callable(getattr(import_module(module), attribute)), (name, point)


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_no_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "tacit/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    code = [n for n in names if ".dist-info/" not in n and n != "tacit/py.typed"]
    assert all(name.startswith("tacit/") for name in code)
    strangers = [name for name in code if not name.endswith(".py")]
    assert strangers == []


@pytest.mark.slow
def test_the_wheel_holds_every_module(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src").rglob("*.py")}
    assert modules - names == set()


@pytest.mark.slow
def test_the_base_install_has_no_torch(installed: Path) -> None:
    names = run([str(installed / "python"), "-c", DISTRIBUTIONS]).lower().split()
    assert DISTRIBUTION in names
    assert not {"torch", "pytest", "pandas"} & set(names)


@pytest.mark.slow
def test_plan_works_from_the_base_install(installed: Path, tmp_path: Path) -> None:
    command = str(installed / "tacit")
    (tmp_path / "ratings.csv").write_text(RATINGS, "utf-8")
    assert "plan" in run([command, "--help"], where=tmp_path)
    assert tacit.__version__ in run([command, "--version"], where=tmp_path)
    columns = ["--user", "customer", "--item", "product", "--out", "shop.toml"]
    run([command, "init", "ratings.csv", *columns], where=tmp_path)
    said = json.loads(run([command, "plan", "shop.toml", "--json"], where=tmp_path))
    assert said["releases"], "a plan has at least one release"
    for entry in (*said["releases"], *said["totals"]):
        assert {"what", "seen_by", "unit", "view", "epsilon", "standing"} <= set(entry)
        if entry["standing"] != "PROVEN":
            assert entry["epsilon"] is None, entry


@pytest.mark.parametrize(("given", "found"), [(None, "4"), ("20", "20")])
def test_threads_of_numpy_sleep_soon_unless_told_otherwise(given, found):
    name = "OPENBLAS_THREAD_TIMEOUT"
    environment = {k: v for k, v in os.environ.items() if k != name}
    if given is not None:
        environment[name] = given
    script = (
        f"import tacit, os, sys; print(os.environ['{name}'], 'numpy' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == [found, "False"]
