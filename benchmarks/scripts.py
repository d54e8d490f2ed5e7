"""The programs beside the bars, and a tiny run of each for `--smoke`.

A bar is measured by every `make bench`; a script makes one table of a page and runs
once in a while. So a script that no longer runs would be noticed by the next reader who
needs its table. Here each of them runs once with small sizes, in a process of its own
and through its command line, in some seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_HERE = Path(__file__).parent
_GRAM = ("--experiment", str(_HERE / "smoke-gram.toml"), "--seeds", "2")
_DPVAE = ("--experiment", str(_HERE / "smoke-dpvae.toml"), "--seeds", "2")
_NEWS = ("--experiment", str(_HERE / "smoke-news.toml"))
_ENCODER = (
    *(*_NEWS, "--set", "method.model=plm-nr", "--set", "method.content=['title']"),
    *("--set", "method.learns=gradients", "--set", "run.rounds=2"),
)
_NEWS_LOCAL = (
    "--experiment",
    str(_HERE.parent / "experiments" / "synthetic-news-privaterec-local.toml"),
)
# The bars run beside a script, and both would wait for each other's threads.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

TINY: dict[str, tuple[tuple[str, ...], ...]] = {
    "audit_mutants": (("--only", "single precision", "--seeds", "1"),),
    "budgets": (
        (*_GRAM, "--draws", "1", "--shares", "thirds"),
        (*_DPVAE, "--draws", "1", "--shares", "thirds", "--also"),
    ),
    "dpvae_ablations": (
        (
            *(*_DPVAE, "--sets", "ml-1m", "--epsilons", "inf", "4", "--variants"),
            *("plain", "beta = 1", "at most 50 items"),
        ),
    ),
    "federation": (("--smoke",),),
    "federation_kills": (("--times", "4"),),
    "federation_quality": ((*_GRAM[:2], "--epsilons", "8", "--draws", "1"),),
    "federation_mutants": (("--only", "noise drawn late"),),
    "flower": (("--smoke",),),
    "fuzz": (("--inputs", "100", "--least", "2"),),
    "gram_floor": (
        ("--sets", "few", "--epsilons", "4", "--seeds", "2", "--draws", "1"),
        (
            *("--sets", "few", "--epsilons", "4", "--seeds", "1", "--draws", "1"),
            *("--method", "krr", "--lengths", "0", "all"),
        ),
    ),
    "gram_forecast": (
        ("--measure", "few", "--epsilons", "4", "--seeds", "1", "--draws", "1"),
    ),
    "gram_local": (("--users", "300", "--draws", "2", "--test", "40"),),
    "gram_titles": (
        (*_GRAM, "--epsilons", "4", "--variants", "none", "others", "titles by words"),
    ),
    "gram_validation": (("refresh", *_GRAM), ("reach", *_GRAM)),
    "how_many": (
        ("--sets", "world-150", "--seeds", "1"),
        ("--sets", "world-150", "--seeds", "1", "--weights", "3"),
    ),
    "init_table": (("--users", "300", "--lines", "2000"),),
    "kills": (("--times", "7"),),
    "masked_sum": (("--clients", "40", "--numbers", "20"),),
    "news_basis": ((*_ENCODER, "--set", "method.interests=2", "--seeds", "1"),),
    "news_fedrec": (
        (*_ENCODER, "--every", "1"),
        (
            *(*_ENCODER, "--set", "method.mode=paper"),
            *("--set", "privacy.mechanism=published_gradient", "--part", "test"),
        ),
    ),
    "news_language_model": ((*_NEWS, "--rounds", "1", "--epochs", "1"),),
    "news_validation": (("nrms", "epochs=1", *_NEWS), ("naml", "epochs=1", *_NEWS)),
    "news_users": (
        ("--users", "300", "--learns", "clicks and gradients", "clicks"),
        ("--users", "300", *_NEWS_LOCAL),
    ),
    "next_items": (("--sets", "memory-1", "--epsilons", "4", "--seeds", "1"),),
    "private_serving": (("--sets", "smoke", "--epsilons", "2", "--draws", "1"),),
    "proofs": (("--smoke",),),
    "relay": (("--smoke",),),
    "relay_kills": (("--times", "4"),),
    "release_gram": (_GRAM,),
    "serving": (("--check", "--items", "300", "--factors", "8"),),
    "serving_cost": (("--items", "200", "300", "--accuracy", "smoke"),),
    "test_all": (("--list",),),
}
"""For each script the arguments of its smallest real runs."""


def found() -> list[str]:
    """The modules of this folder that are programs, by name; bars are not."""
    return sorted(
        path.stem
        for path in _HERE.glob("[a-z]*.py")
        if 'if __name__ == "__main__":' in path.read_text().splitlines()
    )


def broken() -> Iterator[str]:
    """What went wrong, one line per script that does not run as it should."""
    for name in found():
        for arguments in TINY.get(name, ()):
            done = subprocess.run(
                [sys.executable, "-m", f"benchmarks.{name}", *arguments],
                cwd=_HERE.parent,
                env=os.environ | _ONE_THREAD,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                last = (done.stderr or done.stdout).strip().splitlines()[-1:]
                yield f"{name} {' '.join(arguments)} does not run: {' '.join(last)}"
            elif not done.stdout:
                yield f"{name} {' '.join(arguments)} prints nothing"
