"""`python -m benchmarks.fuzz --inputs 10000000 [--seconds S] [--only NAME] [--seed S]`.

Every decoder gets harmed inputs; each must give a value or raise a `TacitError`, within
bounded memory and time. A foreign exception is printed with the bytes that raised it
(`--only NAME --bytes HEX` runs them again with a traceback), and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fuzz_targets import Target, targets
from tacit.errors import TacitError

SLOWEST = 5.0  # seconds of processor time for one input; more is a finding
MEMORY = 1024  # megabytes that all inputs together may need beyond the start
_LONGEST = 2000  # hexadecimal digits of a printed input
_EACH = 3  # findings of one kind that are printed


@dataclass
class Outcome:
    """What became of a target's inputs."""

    target: str
    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    foreign: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    findings: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def found(self, kind: str, given: Any, said: str = "") -> None:
        """Note an input that did what none may do."""
        self.foreign += 1
        kept = self.findings.setdefault(kind, [])
        if len(kept) < _EACH:
            kept.append((said, _written(given)[:_LONGEST]))


def fuzz(target: Target, inputs: int, *, seed: int, until: float) -> Outcome:
    """Give a target so many inputs, or as many as the time allows."""
    outcome, draw = Outcome(target.name), random.Random(f"{seed} {target.name}")
    began = time.perf_counter()
    while outcome.inputs < inputs and time.perf_counter() < until:
        for _ in range(min(100, inputs - outcome.inputs)):
            _try(target, target.make(draw), outcome)
    outcome.seconds = time.perf_counter() - began
    return outcome


def _try(target: Target, given: Any, outcome: Outcome) -> None:
    outcome.inputs += 1
    before = time.thread_time()
    try:
        target.read(given)
    except TacitError:
        outcome.refused += 1
    except Exception as error:
        outcome.found(_kind(error), given, f"{str(error)[:80]!r}")
    else:
        outcome.accepted += 1
    took = time.thread_time() - before
    outcome.slowest = max(outcome.slowest, took)
    if took > SLOWEST:
        outcome.found(f"took {took:.1f} s", given)


def _kind(error: Exception) -> str:
    """The exception and the line of ours that let it pass."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/tacit/" in f.filename] or frames
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
    return f"{type(error).__name__} at {place}"


def _written(given: Any) -> str:
    raw = given if isinstance(given, bytes) else json.dumps(given).encode()
    return raw.hex()


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz, print a table; 1 if any input was not answered as it should be."""
    options = _options(arguments)
    warnings.simplefilter("ignore")
    logging.getLogger("tacit.files").addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TACIT_STATE"] = f"{folder}/state"  # nobody's own anchors
        every = list(targets(Path(folder)))
        chosen = [t for t in every if not options.only or t.name in options.only]
        if not chosen:
            print(f"no such target; there are: {', '.join(t.name for t in every)}")
            return 2
        if options.bytes:
            print(chosen[0].read(_read(chosen[0], options.bytes)))
            return 0
        _bound_memory(options.memory)
        outcomes = _all(chosen, options)
    return _told(outcomes)


def _all(chosen: Sequence[Target], options: argparse.Namespace) -> list[Outcome]:
    total, outcomes = sum(target.share for target in chosen), []
    print(f"{'target':24}{'inputs':>11}{'accepted':>10}{'refused':>11}{'foreign':>9}"
          f"{'a second':>10}{'slowest':>10}{'peak':>9}")  # fmt: skip
    for target in chosen:
        part = target.share / total
        until = time.perf_counter() + options.seconds * part
        n = max(options.least, round(options.inputs * part))
        outcomes.append(fuzz(target, n, seed=options.seed, until=until))
        _show(outcomes[-1])
    return outcomes


def _show(o: Outcome) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rate = o.inputs / o.seconds if o.seconds else 0.0
    print(f"{o.target:24}{o.inputs:11,}{o.accepted:10,}{o.refused:11,}{o.foreign:9,}"
          f"{rate:10,.0f}{1e3 * o.slowest:7.1f} ms{peak:6,.0f} MB",
          flush=True)  # fmt: skip


def _told(outcomes: Sequence[Outcome]) -> int:
    for outcome in outcomes:
        for kind, inputs in outcome.findings.items():
            print(f"\nFOREIGN {outcome.target}: {kind}")
            for said, given in inputs:
                print(f"  {said}\n  --only {outcome.target!r} --bytes {given}")
    foreign = sum(outcome.foreign for outcome in outcomes)
    print(f"\n{sum(o.inputs for o in outcomes):,} inputs, {foreign:,} foreign")
    return 1 if foreign else 0


def _bound_memory(megabytes: int) -> None:
    if sys.platform != "linux":
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _read(target: Target, digits: str) -> Any:
    raw = bytes.fromhex(digits)
    return raw if isinstance(target.sound, bytes) else json.loads(raw)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="in all")
    parser.add_argument("--least", type=int, default=0, help="for each target")
    parser.add_argument("--seconds", type=float, default=7200.0, help="at most")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", type=int, default=MEMORY, help="megabytes")
    parser.add_argument("--bytes", default="", metavar="HEX", help="one input again")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
