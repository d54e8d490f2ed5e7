"""The study at smoke size: what one test trains, the others read."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tacit.reproduction.study import Study, find_studies, load_study


@pytest.fixture(scope="session")
def study() -> Study:
    return load_study("fmf-ldp", find_studies(), "smoke")


@pytest.fixture(scope="session")
def module(study) -> ModuleType:
    """What stands in study.py."""
    return sys.modules["tacit_study_fmf_ldp"]


@pytest.fixture(scope="session")
def reproduced(study, tmp_path_factory):
    """A table of the paper; all of them share their runs."""
    out = tmp_path_factory.mktemp("fmf_ldp")
    return lambda number: study.reproduced(out, table=number)
