"""Events are dp_accounting's own classes, loaded without its accountants."""

import subprocess
import sys

import pytest
from dp_accounting import dp_event

from tacit.accounting import dp_events


@pytest.mark.parametrize("name", dp_events.__all__)
def test_every_event_is_the_class_of_the_package(name):
    assert getattr(dp_events, name) is getattr(dp_event, name)


def test_no_accountant_is_loaded_with_the_events():
    script = (
        "import sys; from tacit.accounting.dp_events import GaussianDpEvent as own\n"
        "print('dp_accounting.pld' in sys.modules, 'scipy.stats' in sys.modules)\n"
        "from dp_accounting import dp_event; print(dp_event.GaussianDpEvent is own)"
    )
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["False", "False", "True"]
