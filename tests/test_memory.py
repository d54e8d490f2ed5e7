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
