"""`python -m benchmarks.federation [--shapes counts h300]`: load of two aggregators.

A leader and a helper run as processes of their own. Reports are sealed beforehand, each
with an id and a seed of its own, in passes of at most 256 MB that lie in a file; one
cheap process sends them over kept-alive connections of this machine, 64 or as many as
have 64 MiB on their way. What counts is the time that processors spend on the leader,
beside a handler on the same stack that reads a body of the same size and answers 200.
The sum of each round must be exact.

    rate       reports per second of the leader's processor, against the target
    helper     milliseconds of the helper's processor per report, closing included
    memory     the peaks of both after a quarter of the reports and after all of them
    latency    of an answer, at half of the target's rate
    close      seconds until both have published
    back       seconds from a kill of the leader to its next answer

Exit code 1 if a sum is not exact, and with `--judge` if a target is missed: on a busy
machine times say little.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
from starlette.types import ASGIApp, Receive, Scope, Send

from benchmarks.federation_load import Answers, Sealer, send
from benchmarks.federation_place import HELPER, LEADER, Operators, Place, Ports
from benchmarks.federation_seeds import Noting, noted_seed
from tacit.errors import Unanswered
from tacit.exact_sum import Noise
from tacit.service.federation.operator_client import OperatorClient
from tacit.service.federation.sealing import SumFields, SumManifest, body_size
from tacit.service.federation.seed_batches import Closing
from tacit.service.manifest import Manifest, attach_signatures
from tacit.service.server import Address, listen, serve
from tacit.transport.shared_sum import from_bytes, modulo

PASS_BYTES = 256 * 2**20  # of sealed reports that lie in a file at once
MANY = 50_000  # clients of the last measurement
LONGEST = {"close": 10.0, "back": 3.0, "many": 180.0, "p99": 1000.0}


@dataclass(frozen=True)
class Shape:
    """A round: how many numbers a report has, and the rate that is asked for."""

    name: str
    numbers: int
    target: float  # reports per second of the leader's processor


SHAPES = {
    one.name: one
    for one in (
        Shape("counts", 3533, 1000.0),
        Shape("h300", 300 * 301 // 2, 1000.0),
        Shape("h600", 600 * 601 // 2, 400.0),
        Shape("h900", 900 * 901 // 2, 250.0),
    )
}


@dataclass
class Service:
    """A process that is measured."""

    process: BaseProcess

    def cpu_seconds(self) -> float:
        """The time that processors have spent on it so far."""
        path = Path(f"/proc/{self.process.pid}/stat")
        user, system = path.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self) -> float:
        """The most memory that it had."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("no VmHWM")


class Pair:
    """A leader and a helper on this machine, and rounds of theirs."""

    def __init__(self, folder: Path) -> None:
        operators = Operators.made_in(folder / "operators")
        ports = Ports.free(random.Random(os.getpid()))
        self.place, self.folder = Place(operators, folder, ports), folder
        self.services = {role: self._started(role) for role in (HELPER, LEADER)}
        self.clients = {role: self.place.client_of(role) for role in self.services}
        self._rounds = 0
        for role in self.services:
            self.wait_for(role)

    def stop(self) -> None:
        """End both processes."""
        for client in self.clients.values():
            client.close_connection()
        for service in self.services.values():
            service.process.terminate()
            service.process.join(40)

    def kill(self, role: str) -> float:
        """Kill one and start it again; seconds until it answers."""
        process = self.services[role].process
        process.kill()
        process.join()
        began = time.monotonic()
        self.services[role] = self._started(role)
        self.wait_for(role)
        return time.monotonic() - began

    def wait_for(self, role: str) -> None:
        """Until a service answers whatever it is asked."""
        for _ in range(3000):
            with contextlib.suppress(Unanswered):
                self.clients[role].round_key(bytes(16), 0)
                return
            time.sleep(0.02)
        raise TimeoutError(f"the {role} does not answer")

    def opened(self, numbers: int, people: int) -> SumManifest:
        """A new round of reports of so many numbers."""
        run, now = os.urandom(16), int(time.time())
        keys = {role: one.round_key(run, 0) for role, one in self.clients.items()}
        manifest = Manifest(
            run=run,
            round=0,
            fields=SumFields("numbers", numbers, 65536, 2**32, 40_000),
            least_reports=1,
            most_reports=people,
            opens=now - 1,
            closes=now + 86_400,
            broadcast=bytes(32),
            url=self.place.url("reports"),
            keys={"leader": keys[LEADER], "helper": keys[HELPER]},
        )
        document = manifest.document()
        both = {role: one.sign(document) for role, one in self.clients.items()}
        signatures = {"leader": both[LEADER], "helper": both[HELPER]}
        sent = attach_signatures(manifest, signatures)
        for one in self.clients.values():
            one.open(sent)
        return manifest

    def closed(self, manifest: SumManifest) -> tuple[np.ndarray, float, float]:
        """The exact sum of a round, and seconds of leader and helper to close it."""
        began = time.monotonic()
        body = _closed(self.clients[LEADER], manifest.round_id)
        middle = time.monotonic()
        closing = Closing.read(body, numbers=manifest.fields.numbers)
        chosen = b"".join(closing.batches)
        other = _closed(self.clients[HELPER], manifest.round_id, chosen)
        end = time.monotonic()
        total = from_bytes(closing.published, manifest.fields.numbers)
        total = total + from_bytes(other, manifest.fields.numbers)
        for role in self.services:
            seed = noted_seed(self.folder, role, manifest.round_id)
            noise = Noise(seed).draw(manifest.fields.sigma**2, len(total))
            total = total - modulo(noise)
        for one in self.clients.values():
            one.delete(manifest.round_id)
        return total, middle - began, end - middle

    def _started(self, role: str) -> Service:
        process = _spawn(_aggregate, self.place, role)
        return Service(process)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every shape that was asked for; 1 if a sum is not exact."""
    asked = _asked(arguments)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        os.environ["TACIT_STATE"] = str(Path(folder) / "state")
        print(f"load of this machine: {os.getloadavg()[0]:.1f} processes", flush=True)
        print(_HEAD, flush=True)
        wrong = []
        for name in asked.shapes:
            place = Path(folder) / name
            wrong += _shape(SHAPES[name], asked.reports, place)
        if asked.many:
            wrong += _many(asked.many, Path(folder) / "many")
        print(f"load of this machine: {os.getloadavg()[0]:.1f} processes")
    for line in wrong:
        print(f"WRONG: {line}")
    is_exact = not any("exact" in line for line in wrong)
    return 0 if not wrong or (is_exact and not asked.judge) else 1


_HEAD = (
    f"{'shape':8}{'reports':>8}{'bytes':>10}{'leader/s':>10}{'target':>8}{'empty/s':>9}"
    f"{'ms':>7}{'helper ms':>10}{'leader MB':>12}{'helper MB':>12}"
    f"{'p50 ms':>8}{'p99 ms':>8}{'close s':>9}{'back s':>8}"
)


def _shape(shape: Shape, reports: int, folder: Path) -> list[str]:
    """Measure one shape and print a line; what was wrong."""
    file = Path(folder.parent) / "reports"
    with _pair(folder) as pair, served(empty) as (nothing, port):
        leader, helper = pair.services[LEADER], pair.services[HELPER]
        manifest = pair.opened(shape.numbers, reports + MANY)
        sealer = Sealer(manifest, file)
        _sent_all(pair, sealer, min(64, reports))  # warms up
        before = leader.cpu_seconds(), helper.cpu_seconds()
        quarter = reports // 4
        _sent_all(pair, sealer, quarter)
        early = leader.peak_mb(), helper.peak_mb()
        _sent_all(pair, sealer, reports - quarter)
        used = leader.cpu_seconds() - before[0]
        helped = (helper.cpu_seconds() - before[1]) / reports
        late = leader.peak_mb(), helper.peak_mb()
        # The same bytes that were sent last: how they are read without any work.
        cost = _empty_cost(nothing, port, sealer)
        n = max(16, int(min(5 * shape.target / 2, reports / 2)))
        answers = _sent_all(pair, sealer, n, rate=shape.target / 2)
        back = pair.kill(LEADER)
        before_close = helper.cpu_seconds()
        total, *closing = pair.closed(manifest)
        helped += (helper.cpu_seconds() - before_close) / sealer.sealed
    is_exact = bool((total == sealer.total).all())
    rate = reports / max(used, 0.01)
    print(
        f"{shape.name:8}{reports:8,}{body_size(shape.numbers):10,}{rate:10,.0f}"
        f"{shape.target:8,.0f}{1 / cost:9,.0f}{1e3 / rate:7.2f}"
        f"{1e3 * helped:10.2f}"
        f"{early[0]:6.0f}{late[0]:6.0f}{early[1]:6.0f}{late[1]:6.0f}"
        f"{answers.percentile(50):8.0f}{answers.percentile(99):8.0f}"
        f"{sum(closing):9.1f}{back:8.1f}",
        flush=True,
    )
    found = {"close": sum(closing), "back": back, "p99": answers.percentile(99)}
    wrong = [] if is_exact else [f"{shape.name}: the sum is not exact"]
    if rate < shape.target:
        wrong.append(f"{shape.name}: {rate:,.0f}/s, the target is {shape.target:,.0f}")
    return wrong + [
        f"{shape.name}: {name} {value:.1f}, at most {LONGEST[name]:g}"
        for name, value in found.items()
        if value > LONGEST[name]
    ]


def _many(people: int, folder: Path) -> list[str]:
    """So many clients with counts, by the clock; sealing is not timed."""
    shape = SHAPES["counts"]
    with _pair(folder) as pair:
        manifest = pair.opened(shape.numbers, people)
        sealer = Sealer(manifest, Path(folder.parent) / "reports")
        seconds = _sent_all(pair, sealer, people).seconds
        total, *closing = pair.closed(manifest)
        cpu = {role: one.cpu_seconds() for role, one in pair.services.items()}
        peak = {role: one.peak_mb() for role, one in pair.services.items()}
    seconds += sum(closing)
    is_exact = bool((total == sealer.total).all())
    print(
        f"{people:,} clients × counts: {seconds:.0f} s by the clock; leader and helper "
        f"{cpu[LEADER]:.0f} and {cpu[HELPER]:.0f} s of processors, {peak[LEADER]:.0f} "
        f"and {peak[HELPER]:.0f} MB; sum {'exact' if is_exact else 'WRONG'}"
    )
    wrong = [] if is_exact else ["many: the sum is not exact"]
    if seconds > LONGEST["many"]:
        wrong.append(f"many: {seconds:.0f} s, at most {LONGEST['many']:g}")
    return wrong


def _sent_all(
    pair: Pair, sealer: Sealer, reports: int, *, rate: float | None = None
) -> Answers:
    """Seal and send in passes that fit into a file; all must be counted."""
    size = sealer.manifest.fields.body_bytes
    port = pair.place.ports.reports
    seconds, latencies = 0.0, list[float]()
    while reports:
        count = min(reports, max(1, PASS_BYTES // size))
        sealer.write(count)
        found = send(sealer.path, sealer.manifest, port, rate=rate)
        if found.statuses != {"200": count}:
            raise RuntimeError(f"statuses {found.statuses} of {count} reports")
        seconds, latencies = seconds + found.seconds, latencies + found.latencies
        reports -= count
    return Answers(seconds, {}, latencies)


def _empty_cost(nothing: Service, port: int, sealer: Sealer) -> float:
    """Seconds of a processor that a body of this size costs without any work."""
    n = sealer.path.stat().st_size // sealer.manifest.fields.body_bytes
    send(sealer.path, sealer.manifest, port)  # warms up
    before, times = nothing.cpu_seconds(), 0
    while times * n < 2000 and times < 3:
        send(sealer.path, sealer.manifest, port)
        times += 1
    return max(nothing.cpu_seconds() - before, 0.01) / (times * n)


def _closed(client: OperatorClient, round_id: bytes, chosen: bytes = b"") -> bytes:
    while (found := client.close(round_id, chosen)) is None:
        time.sleep(0.02)
    return found


# --- Processes -----------------------------------------------------------------------


@contextlib.contextmanager
def _pair(folder: Path) -> Iterator[Pair]:
    pair = Pair(folder)
    try:
        yield pair
    finally:
        pair.stop()


@contextlib.contextmanager
def served(app: Callable[[], ASGIApp]) -> Iterator[tuple[Service, int]]:
    """A server of this application in a process of its own, and its port."""
    listening = listen(Address(port=0))
    port = listening.getsockname()[1]
    process = _spawn(_serve, app, listening)
    listening.close()
    try:
        yield Service(process), port
    finally:
        process.terminate()
        process.join(40)


def _spawn(work: Callable[..., None], *args: object) -> BaseProcess:
    # As a command starts: forked, a process would have the memory of this one.
    process = multiprocessing.get_context("spawn").Process(
        target=work, args=args, daemon=True
    )
    process.start()
    return process


def _aggregate(place: Place, role: str) -> None:
    from tacit.service.federation.services import serve_aggregator

    settings = place.aggregator(role)
    serve_aggregator(settings, passing=Noting(settings.folder.parent, role))


def _serve(app: Callable[[], ASGIApp], listening: socket.socket) -> None:
    serve(app(), listening)


def empty() -> ASGIApp:
    """Reads a report and answers 200, as cheaply as this stack can."""

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    return app


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.federation")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=[*SHAPES])
    parser.add_argument("--reports", type=int, default=5000, help="of each shape")
    parser.add_argument("--many", type=int, default=MANY, help="clients; 0 for none")
    parser.add_argument("--folder", help="for databases and reports; else a new one")
    parser.add_argument("--judge", action="store_true", help="1 if a target is missed")
    parser.add_argument("--smoke", action="store_true", help="a few reports of counts")
    asked = parser.parse_args(arguments)
    if asked.smoke:
        asked.shapes, asked.reports, asked.many = ["counts"], 64, 0
    return asked


if __name__ == "__main__":
    sys.exit(main())
