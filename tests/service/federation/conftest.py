"""Services that several tests of a module share."""

from collections.abc import Iterator

import pytest
from service.federation.rounds import Pair, http_pair, overhear
from service.federation.services import Place

from tacit.service.federation import aggregator
from tacit.storage import anchor


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
        patch.setattr(anchor, "state_folder", lambda: state)
        with http_pair(Place(folder), clock=clock) as found:
            yield found


@pytest.fixture(autouse=True, scope="session")
def _overheard_seeds() -> Iterator[None]:
    """Seeds of noise are erased with the result; tests take the noise off again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregator, "published", overhear)
        yield
