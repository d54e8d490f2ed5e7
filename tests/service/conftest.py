"""Small runs, trained once."""

from pathlib import Path

import pytest
from service.worlds import trained


@pytest.fixture(scope="session")
def vectors_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gram on forty users and fifteen items; a server can rank for it."""
    return trained(tmp_path_factory.mktemp("gram"), "gram", rounds=2)


@pytest.fixture(scope="session")
def popular_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A method that scores without an inner product, so that no server can."""
    return trained(tmp_path_factory.mktemp("popular"), "federated_popularity", rounds=1)
