"""`python -m benchmarks.test_all [NAME ...] [--again] [--list]`: every test and proof.

The parts run one after the other. What a part says stands in `build/test_all/NAME.log`.
A part that has passed is noted there together with a hash of every file, and is not run
again as long as no file changes: a stopped `make test-all` goes on where it was. The
last lines have every part, its time and its result; the exit code is 1 unless all
passed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOTES = ROOT / "build" / "test_all"
MINUTES = 80  # a part that takes longer is stopped, and has failed
JOBS = os.environ.get("JOBS", "2")
# How far the proofs go that could go on for ever. So far they fit into a night, with
# all else; docs/mutants.md was written with 20 seeds. Ten million inputs take hours.
SEEDS = os.environ.get("SEEDS", "3")
INPUTS = os.environ.get("INPUTS", "1000000")
PYTHON = sys.executable
VERSION = "{version}"  # in a command: the first digits of the hash of all files
AUDITS = f"-m benchmarks.audit_mutants --jobs {JOBS}"
SLOW = "--dist loadfile --hypothesis-profile all"
MADE = ("build", "dist", "site", "demo", "runs", "__pycache__")


@dataclass(frozen=True)
class Part:
    """A command that succeeds or fails, and what it shows."""

    name: str
    shows: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """What came of a part, and for which files."""

    name: str
    outcome: str  # "passed", "failed" or "stopped"
    seconds: float
    version: str
    command: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the part succeeded."""
        return self.outcome == "passed"


def _python(words: str) -> tuple[str, ...]:
    return (PYTHON, *words.split())


def _study(paper: str) -> Part:
    """The study of a paper on real data; it keeps its runs and goes on from them.

    The folder has the version in its name: runs of other code prove nothing.
    """
    out = NOTES.relative_to(ROOT) / f"{paper}-{VERSION}"
    command = _python(f"-m tacit reproduce {paper} --scale quick --out {out}")
    return Part(f"reproduce-{paper}", f"the tables of {paper}, real data", command)


PARTS = (
    Part(
        "quick",
        "all that `make test` runs, with array checks everywhere",
        ("make", "test", f"JOBS={JOBS}", "ELSEWHERE=on"),
    ),
    Part(
        "slow",
        "the tests and pages marked slow, and many more random examples",
        (*_python(f"-m pytest -n {JOBS} {SLOW} -m"), "slow or hypothesis"),
    ),
    Part(
        "flower",
        "nodes under Flower: five methods, kills, lies, and a front",
        ("make", "test-flower-all"),
    ),
    Part(
        "kills",
        "1,400 kills lose nothing, 200 of them between a query's entry and sending",
        _python("-m benchmarks.kills --times 1400 --seed 1"),
    ),
    Part(
        "federation-kills",
        "1,000 kills of leader, helper, coordinator and client lose and double nothing",
        _python("-m benchmarks.federation_kills --times 1000 --seed 1"),
    ),
    Part(
        "fuzz",
        f"{int(INPUTS):,} harmed inputs raise nothing foreign",
        # Seconds are shared out like inputs; so many cut no decoder's share short.
        _python(f"-m benchmarks.fuzz --inputs {INPUTS} --seed 7 --seconds 80000"),
    ),
    Part(
        "mutants",
        f"every broken variant is caught, with each of {SEEDS} seeds",
        _python(f"{AUDITS} --seeds {SEEDS} --honest-seeds 0"),
    ),
    Part(
        "honest",
        f"no audit of a method in any form raises an alarm, with {SEEDS} seeds",
        _python(f"{AUDITS} --seeds 0 --honest-seeds {SEEDS}"),
    ),
    *map(_study, ("fmf-ldp", "fedvae", "privrec", "dpvae", "privaterec")),
)


def main(arguments: Sequence[str] | None = None, parts: Sequence[Part] = PARTS) -> int:
    """Run what has not passed yet, say what came of each part; 1 unless all passed."""
    asked = _asked(arguments, parts)
    chosen = [part for part in parts if not asked.names or part.name in asked.names]
    if asked.list:
        for part in chosen:
            print(f"{part.name:20} {part.shows}\n{'':20} {_shown(part.command)}")
        return 0
    notes, version = asked.notes, version_of(asked.root)
    found, earlier = list[Result](), list[str]()
    for part in chosen:
        result = None if asked.again else passed(part, notes, version)
        if result is None:
            print(f"{part.name}: {_shown(part.command)}", flush=True)
            result = run(part, notes, version, root=asked.root, minutes=asked.minutes)
        else:
            earlier.append(part.name)
        found.append(result)
    print(table(found, earlier), flush=True)
    if changed := version_of(asked.root) != version:
        print("files changed meanwhile: what was run is not what is here; run again")
    return 0 if all(result.passed for result in found) and not changed else 1


def run(
    part: Part, notes: Path, version: str, *, root: Path, minutes: float = MINUTES
) -> Result:
    """Run a part, with its output in a log, and note the result."""
    notes.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with (notes / f"{part.name}.log").open("w", encoding="utf-8") as log:
        words = [word.replace(VERSION, version[:12]) for word in part.command]
        outcome = _outcome(words, log.fileno(), root, 60 * minutes)
    seconds = round(time.monotonic() - began, 1)
    result = Result(part.name, outcome, seconds, version, part.command)
    written = notes / f"{part.name}.json.new"
    written.write_text(json.dumps(asdict(result), indent=2) + "\n", encoding="utf-8")
    written.replace(notes / f"{part.name}.json")
    return result


def _outcome(command: Sequence[str], log: int, root: Path, seconds: float) -> str:
    """Whether a command succeeded; with all of its children it has so many seconds."""
    process = subprocess.Popen(
        command,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,  # a group of its own, so that its children end with it
    )
    try:
        return "failed" if process.wait(timeout=seconds) else "passed"
    except subprocess.TimeoutExpired:
        return "stopped"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def passed(part: Part, notes: Path, version: str) -> Result | None:
    """The note that the same command has passed with the same files, if there is one.

    A note that cannot be read counts as none: the part is run again.
    """
    try:
        fields = json.loads((notes / f"{part.name}.json").read_text(encoding="utf-8"))
        result = Result(**{**fields, "command": tuple(fields["command"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    known = (result.passed, result.version, result.command)
    return result if known == (True, version, part.command) else None


def table(found: Iterable[Result], earlier: Sequence[str]) -> str:
    """One line per part: its time and its result."""
    lines = []
    for result in found:
        minutes, seconds = divmod(round(result.seconds), 60)
        when = ", earlier, with the same files" if result.name in earlier else ""
        told = f"{result.name:20} {minutes:4}:{seconds:02}  {result.outcome}{when}"
        lines.append(told)
    return "\n".join(lines)


def version_of(root: Path) -> str:
    """A hash of every file that belongs to the project, committed or not, and Python's
    version: git's list where git knows the folder, else whatever is not hidden or made.
    """
    whole = hashlib.sha256(sys.version.encode())
    for name in sorted(_files(root)):
        path = root / name
        if path.is_file():  # a file that is listed may have been deleted
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{name}\0{content}\n".encode())
    return whole.hexdigest()


def _files(root: Path) -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        paths = (path.relative_to(root) for path in root.rglob("*"))
        return [p.as_posix() for p in paths if not any(map(_made, p.parts))]
    return [*{*done.stdout.decode().split("\0")} - {""}]


def _made(name: str) -> bool:
    """Whether a file or folder of this name is hidden or made, and no source."""
    return name.startswith(".") or name in MADE or name.endswith(".egg-info")


def _shown(command: Sequence[str]) -> str:
    return " ".join("python" if word == PYTHON else word for word in command)


def _asked(
    arguments: Sequence[str] | None, parts: Sequence[Part]
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.test_all")
    parser.add_argument("names", nargs="*", metavar="NAME", help="all if left out")
    parser.add_argument("--again", action="store_true", help="also what has passed")
    parser.add_argument("--list", action="store_true", help="only say what there is")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for one part")
    parser.add_argument("--notes", type=Path, default=NOTES, metavar="DIR")
    parser.add_argument("--root", type=Path, default=ROOT, metavar="DIR")
    asked = parser.parse_args(arguments)
    known = [part.name for part in parts]
    unknown = [name for name in asked.names if name not in known]
    if unknown:
        parser.error(
            f"no such part: {', '.join(unknown)}; there are {', '.join(known)}"
        )
    return asked


if __name__ == "__main__":
    sys.exit(main())
