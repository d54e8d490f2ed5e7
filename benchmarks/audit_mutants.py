"""Which check catches which mutant: `python -m benchmarks.audit_mutants [--seeds 20]`.

Prints the tables of docs/audit.md. The mutants are those of the tests.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from audit.mutants import HONEST, MUTANTS, Mutant

from tacit.keys import Key


def main() -> int:
    """Audit all with every seed; 1 if a mutant got away or an alarm was false."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit_mutants")
    parser.add_argument("--seeds", type=int, default=20)
    n = parser.parse_args().seeds
    started = time.perf_counter()
    print("| honest | false alarms |\n|---|---|")
    alarms = sum(_honest(subject, n) for subject in HONEST)
    print("\n| mutant | caught | by |\n|---|---|---|")
    missed = sum(_mutant(mutant, n) for mutant in MUTANTS)
    print(f"\n{alarms} false alarms, {missed} missed; {n} seeds each")
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    return 1 if alarms or missed else 0


def _honest(subject: Mutant, n: int) -> int:
    alarms = sum(bool(caught) for caught in _audited(subject, n))
    print(f"| {subject.name} | {alarms} of {n} |", flush=True)
    return alarms


def _mutant(mutant: Mutant, n: int) -> int:
    """How many seeds missed it; prints the checks that saw it, the surest first."""
    caught = _audited(mutant, n)
    seen = sum(bool(names) for names in caught)
    counts = Counter(name for names in caught for name in names)
    by = ", ".join(f"{name} ({times})" for name, times in counts.most_common())
    print(f"| {mutant.name} | {seen} of {n} | {by} |", flush=True)
    return n - seen


def _audited(subject: Mutant, n: int) -> Sequence[list[str]]:
    return [subject.caught_by(Key.from_seed(seed)) for seed in range(n)]


if __name__ == "__main__":
    sys.exit(main())
