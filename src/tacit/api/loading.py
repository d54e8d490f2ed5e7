"""`tacit.load`: a trained model as a client holds it, without what trains."""

from __future__ import annotations

from pathlib import Path

from tacit.experiment import saved_run
from tacit.serving.recommender import Recommender
from tacit.system_errors import explained


def load(run: str | Path) -> Recommender:
    """The trained model of a run directory, ready to recommend on this device.

    It reads `model.safetensors` and `model.json` only: no data set, no torch.

    Args:
        run: The directory of a run, as `tacit train` or `tacit release` makes it.

    Returns:
        The recommender; what it is asked stays in this process.

    Raises:
        TacitError: There is no model, or its files are damaged.

    """
    with explained():
        return saved_run.load(run)
