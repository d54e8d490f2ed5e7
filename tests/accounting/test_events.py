"""Our own events refuse nonsense, and only this module imports the library at once."""

import math
import subprocess
import sys

import pytest

from tacit.accounting.events import (
    FailureDpEvent,
    PaddedDpEvent,
    PureDpEvent,
    ShuffledDpEvent,
    SkellamDpEvent,
    local_gaussian,
    pure_local,
    randomized_response_epsilon,
)
from tacit.errors import BadValue

GAUSSIAN = local_gaussian(1.0, diameter=1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pure_local(0.0),
        lambda: pure_local(math.inf),
        lambda: pure_local(1.0, choices=1),
        lambda: pure_local(1.0, choices=2.5),
        lambda: ShuffledDpEvent(-1.0, 5),
        lambda: ShuffledDpEvent(1.0, 0),
        lambda: PaddedDpEvent(0.0, GAUSSIAN),
        lambda: PaddedDpEvent(1.0, GAUSSIAN),
        lambda: SkellamDpEvent(0.0, 1.0, 1.0),
        lambda: FailureDpEvent(0.0),
        lambda: FailureDpEvent(1.0),
        lambda: local_gaussian(0.0, diameter=1.0),
        lambda: local_gaussian(1.0, diameter=math.nan),
        lambda: randomized_response_epsilon(1.5, choices=2),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(BadValue):
        make()


def test_events_are_values():
    assert pure_local(1.0) == PureDpEvent(1.0, 2)
    assert len({pure_local(1.0), pure_local(1.0), pure_local(1.0, choices=3)}) == 2


@pytest.mark.parametrize("choices", [2, 5, 37])
@pytest.mark.parametrize("eps", [0.1, 1.0, 2.5, 10.0])
def test_the_librarys_noise_and_back(eps, choices):
    noise = pure_local(eps, choices=choices).noise
    assert randomized_response_epsilon(noise, choices=choices) == pytest.approx(eps)
    keep = 1 - noise + noise / choices
    assert keep == pytest.approx(math.exp(eps) / (math.exp(eps) + choices - 1))


def test_nothing_else_imports_the_library():
    names = "calibration decomposition epsilon ftrl lattice pld profiles published rdp"
    modules = [f"tacit.accounting.{n}" for n in (*names.split(), "shuffling", "views")]
    code = f"import sys, {', '.join(modules)}; sys.exit('dp_accounting' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
