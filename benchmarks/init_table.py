"""`python -m benchmarks.init_table`: what `tacit init` costs on a large table.

A table of ratings with 390,000 users and a million lines, as a shop or a library would
have it: ids of twelve letters, most users with two or three lines, few items with most
of them. The command runs in a process of its own, with an empty cache. Its processor
time must stay below 10 seconds and its memory below 500 MB; else the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

USERS, LINES, ITEMS = 390_000, 1_000_000, 60_000
MOST_SECONDS, MOST_MEGABYTES = 10.0, 500.0
COLUMNS = ("--user", "user_id", "--item", "item_id", "--value", "rating")
_AT_ONCE = 100_000  # lines that are written


def write_table(path: Path, *, users: int, lines: int, items: int) -> None:
    """A CSV of so many lines in which every user has at least one."""
    draw = np.random.default_rng(25)
    who = np.concatenate([np.arange(users), draw.integers(users, size=lines - users)])
    draw.shuffle(who)
    what = np.minimum(draw.zipf(1.2, size=lines), items)
    stars = draw.integers(1, 6, size=lines)
    with path.open("w", encoding="ascii") as file:
        file.write("user_id,item_id,rating\n")
        for start in range(0, lines, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            columns = (one[some].tolist() for one in (who, what, stars))
            rows = zip(*columns, strict=True)
            file.writelines(f"A{u:011d},B{i:08d},{s}\n" for u, i, s in rows)


def measured(table: Path, folder: Path) -> tuple[float, float, str]:
    """Seconds of processor time, megabytes at the most, and the answer of `init`."""
    done = subprocess.run(
        [sys.executable, "-m", "tacit", "init", table, *COLUMNS, "--out", "exp.toml"],
        cwd=folder,
        env=os.environ | {"TACIT_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    kilobytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return used.ru_utime + used.ru_stime, kilobytes / 1000, done.stdout.splitlines()[0]


def main() -> int:
    """Make the table, run the command once, and say what it took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.init_table")
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--lines", type=int, default=LINES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = folder / "ratings.csv"
        sizes = {"users": options.users, "lines": options.lines, "items": ITEMS}
        write_table(table, **sizes)
        seconds, megabytes, answer = measured(table, folder)
    print(answer)
    print(f"processor time {seconds:.1f} s, bar {MOST_SECONDS:g} s")
    print(f"memory {megabytes:.0f} MB, bar {MOST_MEGABYTES:g} MB")
    return 0 if seconds < MOST_SECONDS and megabytes < MOST_MEGABYTES else 1


if __name__ == "__main__":
    sys.exit(main())
