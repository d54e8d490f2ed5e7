"""Services that several tests of a module share."""

import sys
from collections.abc import Iterator

import pytest
from service.federation.rounds import Pair, http_pair
from service.federation.services import Place

from tacit.service.database import Database


class Clock:
    """The clock of both aggregators; tests put it forward and back."""

    def __init__(self) -> None:
        import time

        self.ahead, self._time = 0.0, time.time

    def __call__(self) -> float:
        return self._time() + self.ahead


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[Pair]:
    """Both aggregators over HTTP; every test opens runs of its own."""
    folder = tmp_path_factory.mktemp("pair")
    with pytest.MonkeyPatch.context() as patch:
        # Their anchors outlive one test.
        state = folder / "state"
        module = sys.modules[Database.__module__]
        patch.setattr(module, "state_folder", lambda: state)
        with http_pair(Place(folder), clock=clock) as found:
            yield found
