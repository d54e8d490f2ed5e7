from __future__ import annotations

from collections.abc import Callable

import pytest

from tacit.data.dataset import Dataset
from tacit.data.sources import load, source


@pytest.fixture(scope="session")
def real(real_data, tmp_path_factory) -> Callable[[str], Dataset]:
    cache = tmp_path_factory.mktemp("cache")

    def load_real(name: str) -> Dataset:
        if not (real_data / source(name).archives[0]).exists():
            pytest.skip(f"{source(name).archives[0]} is not in {real_data}")
        return load(name, where=real_data, cache=cache)

    return load_real
