"""`python -m benchmarks [--quick | --smoke] [--only 12 13] [--out bench.json]`."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from threadpoolctl import threadpool_limits

import benchmarks
from benchmarks import scripts
from benchmarks.bar import Bar, Outcome
from benchmarks.timing import Sgemm, smoke


def main() -> int:
    """Measure, print a table, write a file; 1 if any bar fails."""
    options = _options()
    bars = [bar for bar in found() if not options.only or bar.number in options.only]
    if not bars:
        print(f"no such bar; there are {[bar.number for bar in found()]}")
        return 2
    if options.smoke:
        wrong = tried(bars, with_scripts=not options.only)
        print("\n".join(wrong) or "every one of them runs")
        return 1 if wrong else 0
    sgemm, outcomes = Sgemm(), []
    sgemm.take()
    for bar in bars:
        outcomes.append(bar.run(quick=options.quick))
        sgemm.take()
        _show(outcomes[-1])
    document = {
        "quick": options.quick,
        "bars": [outcome.to_json() for outcome in outcomes],
        "sgemm_gflops": max(sgemm.gflops),
        "sgemm_gflops_before_and_after_each_bar": sgemm.gflops,
        "machine": _machine(),
    }
    options.out.write_text(json.dumps(document, indent=2) + "\n")
    return _sum_up(outcomes, sgemm, options.out)


def tried(bars: Sequence[Bar], *, with_scripts: bool) -> list[str]:
    """What does not run; the scripts, processes of their own, run beside the bars."""
    with ThreadPoolExecutor(1) as beside:
        said = beside.submit(lambda: [*scripts.broken()] if with_scripts else [])
        return [*_try(bars), *said.result()]


def _try(bars: Sequence[Bar]) -> Iterator[str]:
    """Run every bar once, small; a line for each that cannot be measured at all.

    On one thread: two that wait for each other beside a busy script take many times
    as long.
    """
    for bar in bars:
        start = time.process_time()
        with smoke(), threadpool_limits(1):
            outcome = bar.run(quick=True)
        print(f"bar {bar.number}: {time.process_time() - start:.1f} s of processors")
        if outcome.error is not None:
            yield f"bar {bar.number} does not run: {outcome.error}"


def found() -> list[Bar]:
    """Every bar in this package, by number."""
    names = [m.name for m in pkgutil.iter_modules(benchmarks.__path__)]
    files = [name for name in names if name.startswith("bar") and name != "bar"]
    bars = [importlib.import_module(f"benchmarks.{name}").BAR for name in files]
    return sorted(bars, key=lambda bar: bar.number)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="smaller sizes")
    size.add_argument(
        "--smoke",
        action="store_true",
        help="run each bar and script once, small; no ratio is judged",
    )
    parser.add_argument("--only", type=int, nargs="+", help="numbers of bars")
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    return parser.parse_args()


def _show(outcome: Outcome) -> None:
    bar = outcome.bar
    verdict = "ok  " if outcome.ok else "FAIL"
    ratio = "   -" if outcome.ratio is None else f"{outcome.ratio:6.2f}"
    print(f"{verdict} {bar.number:3}  {ratio} {bar.sense} {bar.bar:<5} {bar.name}")
    for case in outcome.cases:
        times = ", ".join(f"{n} {1e3 * s:.3g} ms" for n, s in case.seconds.items())
        note = f"  [{case.note}]" if case.note else ""
        print(f"            {case.ratio:6.2f}  {case.name}: {times}{note}")
    if outcome.error:
        print(f"            {outcome.error}")
    sys.stdout.flush()


def _sum_up(outcomes: Sequence[Outcome], sgemm: Sgemm, out: Path) -> int:
    failed = [outcome.bar.number for outcome in outcomes if not outcome.ok]
    low, high = min(sgemm.gflops), max(sgemm.gflops)
    print(f"sgemm 1024^3: {low:.0f} to {high:.0f} GF/s beside the bars; wrote {out}")
    print(f"failed: {failed}" if failed else f"all {len(outcomes)} bars hold")
    return 1 if failed else 0


def _machine() -> dict[str, object]:
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    sys.exit(main())
