"""The study of DP-VAE on an invented world: what one test trains, the others read.

A study is no part of the package: it is loaded here, and its modules can then be
imported by the tests as `tacit_study_dpvae.<module>`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.reproduction.study import Study, find_studies, load_study
from tacit.reproduction.tables import Reproduction

STUDY = load_study("dpvae", find_studies(), "smoke")


@pytest.fixture(scope="session")
def study() -> Study:
    return STUDY


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs of all tables are, so that each is made once."""
    return tmp_path_factory.mktemp("dpvae")


@pytest.fixture(scope="session")
def reproduced(out: Path) -> Callable[[str], Reproduction]:
    """A table of the smoke scale by its number."""
    return lambda table: STUDY.reproduced(out, table=table)
