from __future__ import annotations

import pytest
from reporting import small

from tacit.reporting.report_data import Report


@pytest.fixture
def report() -> Report:
    return small.report()
