"""What all tests share. The axes of arrays are checked while tests run.

`ARRAY_CHECKS=off` leaves the checks out, for a whole process: the Makefile has them in
one part of `make test` only, and `make test-all` everywhere.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import hypothesis
import jaxtyping
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # benchmarks
sys.path.insert(0, str(Path(__file__).parent))
pytest_plugins = ["held_out", "quick"]
if os.environ.get("ARRAY_CHECKS", "on") != "off":
    import_module("axes").install()  # before anything imports tacit

# Checked axes are slow and machines are shared, so no example has a deadline.
hypothesis.settings.register_profile("tacit", deadline=None, max_examples=25)
hypothesis.settings.register_profile("all", deadline=None, max_examples=300)
hypothesis.settings.load_profile("tacit")


@pytest.fixture
def without_axis_checks() -> Iterator[None]:
    """For tests that hand over arrays of a wrong type to see our own error."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def federation_vectors() -> dict[str, Any]:
    """Published numbers that every implementation of the exact sum must give."""
    path = Path(__file__).parent / "vectors" / "federation.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of archives: $TACIT_DATA, or `shared/data` beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    place = Path(os.environ.get("TACIT_DATA") or beside)
    if not place.is_dir():
        pytest.skip(f"no real data: set TACIT_DATA, or put archives into {place}")
    return place


@pytest.fixture(autouse=True)
def _own_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests never read or fill the cache of whoever runs them."""
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def _own_state(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests never leave anchors of ledgers with whoever runs them."""
    own = tmp_path_factory.getbasetemp() / "state" / secrets.token_hex(8)
    monkeypatch.setenv("TACIT_STATE", str(own))
