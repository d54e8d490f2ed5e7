"""Tacit: a recommender that learns from everyone and knows no one.

    import tacit

    run = tacit.train("exp.toml", out="run")         # rounds, evaluation, files
    tacit.load("run").recommend(["item-1"], n=10)    # on this device, nothing is sent

Read `tacit.method` first: it says what a federated recommender is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.version import __version__

if TYPE_CHECKING:
    from tacit.experiment.training import Outcome
    from tacit.serving.recommender import Recommender

__all__ = ["__version__", "load", "train"]

# numpy's threads look out for work for 2^26 cycles after a matrix product and take a
# core from whatever comes next. Here 2^4, if numpy is not loaded yet
# (docs/decisions/numpy_base.md).
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def train(
    experiment: str | Path | Mapping[str, Any],
    *,
    out: str | Path = "run",
    resume: bool = False,
) -> Outcome:
    """Train an experiment: a TOML file, or a nested table of its sections."""
    from tacit.experiment import training
    from tacit.experiment.settings import check_experiment, read_experiment

    if isinstance(experiment, Mapping):
        checked = check_experiment(experiment)
    else:
        checked = read_experiment(Path(experiment))
    return training.train(checked, Path(out), resume=resume)


def load(run: str | Path) -> Recommender:
    """The trained model of a run directory, ready to recommend on this device."""
    from tacit.experiment import saved_run

    return saved_run.load(run)
