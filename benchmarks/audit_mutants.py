"""Which check catches which mutant: `python -m benchmarks.audit_mutants [--seeds 20]`.

Prints the tables of docs/mutants.md; `--write docs/mutants.md` puts them there, between
its markers. `--only NAME` takes the subjects whose name holds the word, `--jobs N` as
many processes; `--seeds 0 --honest-seeds 20` leaves the mutants out, and the other way
round the honest ones. The mutants are those of the tests; every method is audited in
every form that it has.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from audits.mutants import BY_TESTS, HONEST, MUTANTS, Mutant, every_form

from tacit.keys import Key

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def main() -> int:
    """Audit all with every seed; 1 if a mutant got away or an alarm was false."""
    asked, started = _asked(), time.perf_counter()
    fewer = asked.seeds if asked.honest_seeds is None else asked.honest_seeds
    audits, watched = _Audits(asked.seeds, asked.jobs), _Audits(fewer, asked.jobs)
    mutants = _Table("mutant", "caught by the audit", "by")
    honest = _Table("honest", "false alarms")
    broken = MUTANTS if audits.seeds else ()
    missed = sum(_mutant(one, audits, mutants) for one in _named(broken, asked.only))
    subjects = (*HONEST, *every_form()) if watched.seeds else ()
    alarms = sum(_honest(one, watched, honest) for one in _named(subjects, asked.only))
    tests = _Table("variant", "caught by the test")
    for variant, test in BY_TESTS.items():
        tests.add(variant, f"`{test}`")
    made = (
        f"{alarms} false alarms with {fewer} seeds for each honest form, "
        f"{missed} missed with {asked.seeds} seeds for each mutant."
    )
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
    parser.add_argument("--honest-seeds", type=int, help="if not as many")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
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


class _Audits:
    """Audits of a subject with every seed, in some forked processes."""

    def __init__(self, seeds: int, jobs: int) -> None:
        self.seeds, self.jobs = seeds, jobs

    def of(self, subject: Mutant) -> Sequence[list[str]]:
        """The names of the checks that failed, for each seed."""
        global _subject  # inherited by the children: its functions cannot be sent
        _subject = subject
        if self.jobs == 1:
            return [_caught(seed) for seed in range(self.seeds)]
        with multiprocessing.get_context("fork").Pool(self.jobs) as pool:
            return pool.map(_caught, range(self.seeds), chunksize=1)


_subject: Mutant


def _caught(seed: int) -> list[str]:
    return _subject.caught_by(Key.from_seed(seed))


def _honest(subject: Mutant, audits: _Audits, table: _Table) -> int:
    if not subject.run(Key.from_seed(0)):
        table.tell(subject.name, "not audited: nothing is promised")
        return 0
    caught, n = audits.of(subject), audits.seeds
    alarms = sum(bool(names) for names in caught)
    table.tell(subject.name, f"{alarms} of {n}")
    for name in (name for names in caught for name in names):
        print(f"  FALSE ALARM: {name}", file=sys.stderr)
    return alarms


def _mutant(mutant: Mutant, audits: _Audits, table: _Table) -> int:
    """How many seeds missed it; the table has the checks that saw it, surest first."""
    caught, n = audits.of(mutant), audits.seeds
    seen = sum(bool(names) for names in caught)
    counts = Counter(name for names in caught for name in names)
    by = "; ".join(f"{name} ({times})" for name, times in counts.most_common())
    table.tell(mutant.name, f"{seen} of {n}", by)
    return n - seen


def _write(page: Path, text: str) -> None:
    """Put the tables where the page has its markers."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    whole = f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"
    page.write_text(whole, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
