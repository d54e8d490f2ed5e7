"""What memory this machine has left, and the most that this process has taken.

Linux says both in files. Elsewhere nothing is known, and nothing is claimed.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

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


@dataclass(frozen=True)
class Meter:
    """What work takes on top of what the process had before: no libraries, no data.

    `before` is what was resident when the work began; None if the system does not say.
    """

    before: int | None

    @classmethod
    def started(cls) -> Self:
        """A meter that begins now, when what was freed is given back to the system."""
        settle()
        return cls(_field(_OWN, "VmRSS"))

    @property
    def taken(self) -> int | None:
        """The most bytes above those before, since the start or the last `settle`."""
        most = peak()
        if most is None or self.before is None:
            return None
        return max(0, most - self.before)


def settle() -> None:
    """Give freed memory back to the system, and begin to measure the peak anew.

    The C library keeps what was freed for later; another line's would be counted here.
    """
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library: it keeps what it keeps
        ctypes.CDLL(None).malloc_trim(0)
    reset_peak()


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
