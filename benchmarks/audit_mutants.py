"""Which check catches which mutant: `python -m benchmarks.audit_mutants [--seeds 20]`.

Prints the tables of docs/mutants.md; `--write docs/mutants.md` puts them there, between
its markers. `--only NAME` takes the subjects whose name holds the word. The mutants are
those of the tests; every method is audited in every form that it has.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from audit.mutants import BY_TESTS, HONEST, MUTANTS, Mutant, every_form

from tacit.keys import Key

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def main() -> int:
    """Audit all with every seed; 1 if a mutant got away or an alarm was false."""
    asked, started = _asked(), time.perf_counter()
    mutants = _Table("mutant", "caught by the audit", "by")
    honest = _Table("honest", "false alarms")
    missed = sum(
        _mutant(one, asked.seeds, mutants) for one in _named(MUTANTS, asked.only)
    )
    subjects = (*HONEST, *every_form())
    alarms = sum(
        _honest(one, asked.seeds, honest) for one in _named(subjects, asked.only)
    )
    tests = _Table("variant", "caught by the test")
    for variant, test in BY_TESTS.items():
        tests.add(variant, f"`{test}`")
    made = f"{alarms} false alarms, {missed} missed; {asked.seeds} seeds each"
    text = "\n\n".join([mutants.text, honest.text, tests.text, made])
    print(text)
    if asked.write is not None:
        _write(asked.write, text)
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    return 1 if alarms or missed else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit_mutants")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default="", help="a word of the names to look at")
    parser.add_argument("--write", type=Path, help="the page that holds the tables")
    asked = parser.parse_args()
    if asked.write is not None and asked.only:
        parser.error("--write needs all subjects; leave --only out")
    return asked


class _Table:
    """Rows for a page, told on stderr as they are made."""

    def __init__(self, *header: str) -> None:
        self.rows = [header, tuple("---" for _ in header)]

    def add(self, *row: str) -> None:
        self.rows.append(row)

    def tell(self, *row: str) -> None:
        self.add(*row)
        print("  ".join(row), file=sys.stderr, flush=True)

    @property
    def text(self) -> str:
        return "\n".join(f"| {' | '.join(row)} |" for row in self.rows)


def _named(subjects: Iterable[Mutant], word: str) -> list[Mutant]:
    return [subject for subject in subjects if word.lower() in subject.name.lower()]


def _honest(subject: Mutant, n: int, table: _Table) -> int:
    caught = _audited(subject, n)
    alarms = sum(bool(names) for names in caught)
    table.tell(subject.name, f"{alarms} of {n}")
    for name in (name for names in caught for name in names):
        print(f"  FALSE ALARM: {name}", file=sys.stderr)
    return alarms


def _mutant(mutant: Mutant, n: int, table: _Table) -> int:
    """How many seeds missed it; the table has the checks that saw it, surest first."""
    caught = _audited(mutant, n)
    seen = sum(bool(names) for names in caught)
    counts = Counter(name for names in caught for name in names)
    by = "; ".join(f"{name} ({times})" for name, times in counts.most_common())
    table.tell(mutant.name, f"{seen} of {n}", by)
    return n - seen


def _audited(subject: Mutant, n: int) -> Sequence[list[str]]:
    return [subject.caught_by(Key.from_seed(seed)) for seed in range(n)]


def _write(page: Path, text: str) -> None:
    """Put the tables where the page has its markers."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    whole = f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"
    page.write_text(whole, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
