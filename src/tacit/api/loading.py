"""`tacit.load`: a trained model as a client holds it, without what trains."""

from __future__ import annotations

from pathlib import Path

from tacit.experiment import saved_run
from tacit.method import ListFor
from tacit.serving.recommender import Recommender
from tacit.system_errors import explained


def load(run: str | Path, *, list_for: ListFor | None = None) -> Recommender:
    """The trained model of a run directory, ready to recommend on this device.

    It reads the model and the experiment's settings: no data set, no torch.

    Args:
        run: The directory of a run, as `tacit train` or `tacit release` makes it.
        list_for: What users are about to do: `"session"` (go on with this one),
            `"visit"` (come back), or `"any"`; by default as the run's experiment says.

    Returns:
        The recommender; what it is asked stays in this process.

    Raises:
        TacitError: There is no model, its files are damaged, or its method cannot
            weigh a history.

    """
    with explained():
        return saved_run.load(run, list_for=list_for)
