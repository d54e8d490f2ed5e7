"""The study of PrivRec on an invented world, so small that every contender is quick.

A study is no part of the package: it is loaded here, and its modules can then be
imported by the tests as `tacit_study_privrec.<module>`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.experiment.assemble import Assembled, assemble
from tacit.reproduction.study import find_studies, load_study
from tacit.reproduction.tables import Reproduction

STUDY = load_study("privrec", find_studies(), "smoke")


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs of all tables are, so that each is made once."""
    return tmp_path_factory.mktemp("privrec")


@pytest.fixture(scope="session")
def reproduced(out: Path) -> Callable[[str], Reproduction]:
    """A table of the smoke scale by its number."""
    return lambda table: STUDY.reproduced(out, table=table)


@pytest.fixture(scope="session")
def films() -> Assembled:
    """PrivRec as we train it, assembled and not trained."""
    from tacit_study_privrec.contenders import Bench

    [experiment] = Bench("ml1m", "smoke").cell("PrivRec").experiments()
    return assemble(experiment)
