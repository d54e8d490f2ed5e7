"""Tacit: a recommender that learns from everyone and knows no one.

    import tacit

    run = tacit.train(frame, user="customer", item="product", epsilon=4)
    print(run.statement)                             # who sees what, what is promised
    run.recommender.recommend(["tea", "bread"])      # on this device, nothing is sent

Read `tacit.method` first: it says what a federated recommender is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tacit.version import __version__

if TYPE_CHECKING:
    from tacit.api.auditing import Audited, audit
    from tacit.api.comparing import Compared, compare
    from tacit.api.evaluating import Evaluated, evaluate
    from tacit.api.loading import load
    from tacit.api.planning import Planned, plan
    from tacit.api.statement import PrivacyStatement
    from tacit.api.training import Run, train
    from tacit.errors import TacitError
    from tacit.records import Records
    from tacit.serving.recommender import Recommender

__all__ = [
    "Audited",
    "Compared",
    "Evaluated",
    "Planned",
    "PrivacyStatement",
    "Recommender",
    "Records",
    "Run",
    "TacitError",
    "__version__",
    "audit",
    "compare",
    "evaluate",
    "load",
    "plan",
    "train",
]

# Where each name is. A module is imported when its name is first asked for, so that
# `import tacit` stays fast and `tacit.load` needs nothing that trains.
_PLACES = {
    "Audited": "tacit.api.auditing",
    "Compared": "tacit.api.comparing",
    "Evaluated": "tacit.api.evaluating",
    "Planned": "tacit.api.planning",
    "PrivacyStatement": "tacit.api.statement",
    "Recommender": "tacit.serving.recommender",
    "Records": "tacit.records",
    "Run": "tacit.api.training",
    "TacitError": "tacit.errors",
    "audit": "tacit.api.auditing",
    "compare": "tacit.api.comparing",
    "evaluate": "tacit.api.evaluating",
    "load": "tacit.api.loading",
    "plan": "tacit.api.planning",
    "train": "tacit.api.training",
}

# numpy's threads look out for work for 2^26 cycles after a matrix product and take a
# core from whatever comes next. Here 2^4, if numpy is not loaded yet
# (docs/decisions/numpy_base.md).
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(_PLACES[name]), name)
    globals()[name] = found  # from now on without this function
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
