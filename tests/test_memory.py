"""What is free and what was taken, read from files such as Linux has."""

import subprocess
import sys

import pytest

from tacit import memory


def test_the_smaller_of_machine_and_container_counts(tmp_path, monkeypatch):
    machine = tmp_path / "meminfo"
    machine.write_text("MemTotal: 900 kB\nMemAvailable:   400 kB\n")
    monkeypatch.setattr(memory, "_MACHINE", machine)
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    assert memory.available() == 400 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert memory.available() == 400 * 1024
    (tmp_path / "memory.max").write_text("5000\n")
    assert memory.available() == 4000


def test_nothing_is_claimed_where_no_file_says_it(tmp_path, monkeypatch):
    for name in ("_MACHINE", "_GROUP", "_OWN", "_RESET"):
        monkeypatch.setattr(memory, name, tmp_path / "none" / "such")
    memory.reset_peak()
    assert memory.available() is None
    assert memory.peak() is None


# In a process of its own: here, another test's garbage may be freed while it measures.
_TAKE = """
import numpy as np
from tacit import memory

memory.reset_peak()
before = memory.peak()
taken = np.ones(8 * 2**20)  # 64 MiB
print((memory.peak() - before) / taken.nbytes)
"""


@pytest.mark.skipif(memory.peak() is None, reason="the system has no such file")
def test_the_peak_grows_with_what_is_taken():
    command = [sys.executable, "-c", _TAKE]
    printed = subprocess.run(command, check=True, capture_output=True, text=True)
    assert float(printed.stdout) > 0.5


_WORK = """
import numpy as np
from tacit import memory

data = np.ones(32 * 2**20 // 8)  # 32 MiB that stay: not the work's
lists = [np.ones(1000) for _ in range(8 * 2**10)]  # 64 MiB of another line, freed
del lists
meter = memory.Meter.started()
work = [np.ones(1000) for _ in range(4 * 2**10)]  # 32 MiB
taken = meter.taken
del work
memory.settle()
print(taken / 2**20, meter.taken / 2**20)
"""


@pytest.mark.skipif(memory.peak() is None, reason="the system has no such file")
def test_a_meter_counts_what_the_work_takes_alone():
    """Neither data that were there, nor what another line has freed."""
    command = [sys.executable, "-c", _WORK]
    printed = subprocess.run(command, check=True, capture_output=True, text=True)
    taken, after = map(float, printed.stdout.split())
    assert 25 < taken < 45
    assert after < 10
