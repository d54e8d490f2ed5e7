"""The study at smoke size: what one test trains, the others read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from tacit.reproduction.study import Study, find_studies, load_study
from tacit.reproduction.tables import Reproduction


@pytest.fixture(scope="session")
def study() -> Study:
    return load_study("fedvae", find_studies(), "smoke")


@pytest.fixture(scope="session")
def module(study) -> Callable[[str], ModuleType]:
    """A module of the study, such as figure_1; study.py under its own name."""

    def named(name: str) -> ModuleType:
        own = "" if name == "study" else f".{name}"
        return sys.modules[f"tacit_study_fedvae{own}"]

    return named


@pytest.fixture(scope="session")
def reproduced(study, tmp_path_factory) -> Callable[[str], Reproduction]:
    """A table of the paper; all of them share their runs."""
    out = tmp_path_factory.mktemp("fedvae")
    return lambda number: study.reproduced(out, table=number)
