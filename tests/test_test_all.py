"""`python -m benchmarks.test_all`, with toy parts in an empty folder.

A toy part appends a line to a file outside the folder whenever it is run.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchmarks.test_all import PARTS, Part, main, version_of

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Bench:
    """A folder of sources, a folder of notes, and who was run."""

    root: Path
    notes: Path
    log: Path

    def part(self, name: str, *, script: str = "pass") -> Part:
        said = f"open({str(self.log)!r}, 'a').write({name + chr(10)!r}); {script}"
        return Part(name, "a toy", (sys.executable, "-c", said))

    def run(self, *parts: Part, more: tuple[str, ...] = ()) -> int:
        places = ["--root", str(self.root), "--notes", str(self.notes)]
        return main([*more, *places], parts)

    @property
    def ran(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    root = tmp_path / "root"
    root.mkdir()
    (root / "code.py").write_text("x = 1\n")
    return Bench(root, tmp_path / "notes", tmp_path / "log")


def test_what_has_passed_is_not_run_again_until_a_file_changes(bench, capsys):
    parts = bench.part("one"), bench.part("two")
    assert bench.run(*parts) == bench.run(*parts) == 0
    assert bench.ran == ["one", "two"]
    assert capsys.readouterr().out.count("earlier") == 2
    (bench.root / "code.py").write_text("x = 2\n")
    assert bench.run(*parts) == 0
    assert bench.ran == ["one", "two"] * 2


def test_a_failed_part_fails_all_keeps_the_others_and_is_run_again(bench, capsys):
    wrong = bench.part("wrong", script="print('said'); raise SystemExit(3)")
    parts = wrong, bench.part("right")
    assert bench.run(*parts) == 1
    lines = capsys.readouterr().out.splitlines()[-2:]
    assert [line.split()[2] for line in lines] == ["failed", "passed"]
    assert (bench.notes / "wrong.log").read_text() == "said\n"
    assert bench.run(*parts) == 1
    assert bench.ran == ["wrong", "right", "wrong"]


def test_another_command_under_the_same_name_is_run(bench):
    part = bench.part("one")
    assert bench.run(part) == 0
    assert bench.run(replace(part, command=(*part.command, "more"))) == 0
    assert bench.ran == ["one", "one"]


def test_a_part_that_takes_too_long_is_stopped_with_its_children(bench, capsys):
    """The lock that a child of the part holds is free when the part was stopped."""
    lock = bench.root.parent / "lock"
    lock.touch()
    child = f"import fcntl, time; f = open({str(lock)!r}); fcntl.flock(f, 2)"
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', "
    long = bench.part("long", script=f"{script}{child + '; time.sleep(600)'!r}])")
    assert bench.run(long, more=("--minutes", "0.05")) == 1
    assert "stopped" in capsys.readouterr().out
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def test_a_command_may_name_a_folder_by_the_version(bench):
    part = bench.part("one", script="import sys; print(sys.argv[1])")
    bench.run(replace(part, command=(*part.command, "kept-{version}")))
    said = (bench.notes / "one.log").read_text()
    assert said == f"kept-{version_of(bench.root)[:12]}\n"


def test_a_note_that_was_cut_off_counts_as_none(bench):
    part = bench.part("one")
    bench.run(part)
    note = bench.notes / "one.json"
    note.write_text(note.read_text()[:40])
    assert bench.run(part) == 0
    assert bench.ran == ["one", "one"]


def test_files_that_change_meanwhile_are_told(bench, capsys):
    edit = f"open({str(bench.root / 'code.py')!r}, 'a').write('#')"
    assert bench.run(bench.part("edits", script=edit)) == 1
    assert "files changed meanwhile" in capsys.readouterr().out


def test_names_choose_parts_and_an_unknown_one_is_named(bench, capsys):
    parts = bench.part("one"), bench.part("two")
    assert bench.run(*parts, more=("two",)) == 0
    assert bench.ran == ["two"]
    with pytest.raises(SystemExit):
        bench.run(*parts, more=("three",))
    assert "three" in capsys.readouterr().err


def test_again_runs_what_has_passed(bench):
    part = bench.part("one")
    assert bench.run(part) == bench.run(part, more=("--again",)) == 0
    assert bench.ran == ["one", "one"]


def test_a_version_is_the_same_before_and_after_a_commit(tmp_path):
    def git(*words: str) -> None:
        own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *own, *words], cwd=tmp_path, check=True)

    (tmp_path / "code.py").write_text("x = 1\n")
    git("init", "--quiet")
    before = version_of(tmp_path)
    git("add", "code.py")
    git("commit", "--quiet", "--message", "one")
    assert version_of(tmp_path) == before
    (tmp_path / ".gitignore").write_text("made\n")
    ignored = version_of(tmp_path)
    assert ignored != before
    (tmp_path / "made").write_text("by a test")
    assert version_of(tmp_path) == ignored


def test_every_part_says_what_it_shows_and_has_a_name_of_its_own(capsys):
    assert main(["--list"]) == 0
    said = capsys.readouterr().out
    assert all(part.name in said and part.shows in said for part in PARTS)
    assert len({part.name for part in PARTS}) == len(PARTS)


def test_the_result_has_what_a_note_needs(bench):
    bench.run(bench.part("one"))
    kept = json.loads((bench.notes / "one.json").read_text())
    assert (kept["name"], kept["outcome"]) == ("one", "passed")
    assert kept["seconds"] >= 0
    assert kept["version"] == version_of(bench.root)
