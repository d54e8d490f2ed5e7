"""What memory this machine has left, and the most that this process has taken.

Linux says both in files. Elsewhere nothing is known, and nothing is claimed.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_MACHINE = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")  # the limits of a container
_OWN = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"  # man 5 proc: resets the peak of resident memory


def available() -> int | None:
    """Bytes that can still be taken without swapping; None if nobody says."""
    found = [_field(_MACHINE, "MemAvailable"), _left_in_group()]
    known = [one for one in found if one is not None]
    return min(known) if known else None


def reset_peak() -> None:
    """Begin to measure the peak anew, where the system lets us."""
    with suppress(OSError):
        _RESET.write_text(_FORGET_PEAK)


def peak() -> int | None:
    """The most bytes that this process had in memory since `reset_peak`."""
    return _field(_OWN, "VmHWM")


def in_words(size: float) -> str:
    """A number of bytes for readers.

    >>> in_words(27 * 2**30), in_words(5 * 2**20), in_words(2584), in_words(0)
    ('27 GiB', '5.0 MiB', '2.5 KiB', '0 B')
    """
    for unit, one in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= one:
            value = size / one
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    return f"{size:.0f} B"


def _field(path: Path, name: str) -> int | None:
    """A line such as `VmHWM:  1234 kB`, in bytes."""
    with suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            key, _, value = line.partition(":")
            if key == name:
                return int(value.split()[0]) * 1024
    return None


def _left_in_group() -> int | None:
    with suppress(OSError, ValueError):
        most = int((_GROUP / "memory.max").read_text())  # "max": no limit
        return most - int((_GROUP / "memory.current").read_text())
    return None
