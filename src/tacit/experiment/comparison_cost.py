"""What a contender of a comparison costs: a client's bytes, time and memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from tacit import memory
from tacit.documents import read_document
from tacit.runtime.run import ONLY, RunDirectory

T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    """What one line costs; None where nothing was measured or nothing is sent.

    Bytes are those of one client over a whole training. `client_seconds` is the time of
    the simulated training over its clients. `seconds` is what training, or the fit of a
    baseline, took here once it was warm: before the first one of a line is measured,
    rounds of every phase (or a fit) were made and thrown away, so that libraries are
    loaded and kernels compiled. `memory_bytes` is the most that it took on top of what
    the process had before: its own, without libraries, data or other lines.
    """

    bytes_up: float | None = None
    bytes_down: float | None = None
    client_seconds: float | None = None
    seconds: float | None = None
    memory_bytes: float | None = None

    @classmethod
    def of_runs(cls, costs: Sequence[Cost]) -> Cost:
        """Mean bytes, the time of the quickest run, the memory of the largest."""
        found = {
            name: [asdict(one)[name] for one in costs] for name in cls.__annotations__
        }
        return cls(
            **{
                name: None if None in values else _JOINED[name](values)
                for name, values in found.items()
            }
        )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_JOINED: Mapping[str, Callable[[Sequence[float]], float]] = {
    "bytes_up": _mean,
    "bytes_down": _mean,
    "client_seconds": min,
    "seconds": min,
    "memory_bytes": max,
}


@dataclass(frozen=True)
class Measured:
    """How long work took, and the most memory that it took on top of what was there."""

    seconds: float
    memory_bytes: int | None


def measure(work: Callable[[], T]) -> tuple[T, Measured]:
    """The result of the work, and what it took."""
    meter = memory.Meter.started()
    start = time.perf_counter()
    result = work()
    return result, Measured(time.perf_counter() - start, meter.taken)


def cost_of_run(directory: RunDirectory, result: Mapping[str, Any]) -> Cost:
    """The cost of a finished run."""
    counted, clients = result[ONLY], read_document(directory.inputs)["people"]
    return Cost(
        counted["bytes_up"] / clients,
        counted["bytes_down"] / clients,
        result["seconds"] / clients,
        result["seconds"],
        counted.get("memory_bytes"),  # runs of earlier versions have none
    )
