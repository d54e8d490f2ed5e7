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
    baseline, took here. `peak_bytes` is the most that the process took meanwhile, data
    and libraries included.
    """

    bytes_up: float | None = None
    bytes_down: float | None = None
    client_seconds: float | None = None
    seconds: float | None = None
    peak_bytes: float | None = None

    @classmethod
    def of_runs(cls, costs: Sequence[Cost]) -> Cost:
        """Mean bytes, the time of the quickest run, the memory of the largest.

        The first run of a process compiles kernels, which is no cost of a method.
        """
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
    "peak_bytes": max,
}


@dataclass(frozen=True)
class Measured:
    """How long something took, and the most memory that the process had meanwhile."""

    seconds: float
    peak_bytes: int | None


def measure(work: Callable[[], T]) -> tuple[T, Measured]:
    """The result of the work, and what it took."""
    memory.reset_peak()
    start = time.perf_counter()
    made = work()
    return made, Measured(time.perf_counter() - start, memory.peak())


def cost_of_run(directory: RunDirectory, result: Mapping[str, Any]) -> Cost:
    """The cost of a finished run."""
    counted, clients = result[ONLY], read_document(directory.inputs)["people"]
    return Cost(
        counted["bytes_up"] / clients,
        counted["bytes_down"] / clients,
        result["seconds"] / clients,
        result["seconds"],
        counted.get("peak_bytes"),  # runs of earlier versions have none
    )
