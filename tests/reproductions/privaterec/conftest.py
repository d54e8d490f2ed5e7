"""The study at smoke size: what one test trains, the others read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tacit.reproduction.study import Study, find_studies, load_study
from tacit.reproduction.tables import Reproduction


@pytest.fixture(scope="session")
def study() -> Study:
    return load_study("privaterec", find_studies(), "smoke")


@pytest.fixture(scope="session")
def reproduced(study, tmp_path_factory) -> Callable[[str], Reproduction]:
    """A table of the paper; all of them share their runs."""
    out = tmp_path_factory.mktemp("privaterec")
    return lambda number: study.reproduced(out, table=number)
