"""Rounds of plain whole numbers at two aggregators: no method and no model.

`Pair` has both over real HTTP, `Local` both in this process, with the same functions.
A sum without its noises must be the plain sum of the reports, in every number.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from service.federation.services import Place, Urls, aggregators
from service.manifests import changed

from tacit.exact_sum import Noise
from tacit.service.federation.aggregator import Aggregator, Limits, Upload
from tacit.service.federation.operator_client import OperatorClient
from tacit.service.federation.sealing import (
    Role,
    SealedReport,
    SumFields,
    sealed_report,
)
from tacit.service.federation.seed_batches import Closing
from tacit.service.federation.store import AggregatorStore
from tacit.service.http import Failure
from tacit.service.manifest import Manifest, attach_signatures
from tacit.service.signed_document import signing_public_key
from tacit.service.signing import Signer
from tacit.transport.shared_sum import (
    Numbers,
    explicit,
    from_bytes,
    modulo,
    published,
    to_bytes,
)

NUMBERS, LIMIT, SIGMA = 6, 10_000, 500
SIGNING = {Role.LEADER: bytes([11]) * 32, Role.HELPER: bytes([12]) * 32}
LEADER, HELPER = (signing_public_key(SIGNING[role]) for role in Role)
LIMITS = Limits(0.01, free_bytes=0)


def random_reports(n: int, *, numbers: int = NUMBERS, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-40, 41, (n, numbers))


def sealed(manifest: Manifest, report: np.ndarray, **changes: Any) -> SealedReport:
    """A client's report in two halves; `changes` as `sealed_report` takes them."""
    seed = changes.pop("seed", None) or os.urandom(32)
    settings = {
        "round_id": manifest.round_id,
        "leader": manifest.keys["leader"],
        "helper": manifest.keys["helper"],
    }
    half = to_bytes(explicit(report, seed))
    return sealed_report(seed, half, **{**settings, **changes})


def manifest_of(
    leader: Any, helper: Any, *, url: str, now: float | None = None, **changes: Any
) -> Manifest:
    """A manifest with the keys of both, who are asked for them."""
    run = changes.pop("run", None) or secrets.token_bytes(16)
    number, now = changes.pop("round", 0), int(time.time() if now is None else now)
    made = Manifest(
        run=run,
        round=number,
        fields=SumFields("counts", changes.pop("numbers", NUMBERS), 64, LIMIT, SIGMA),
        least_reports=1,
        most_reports=1000,
        opens=now - 10,
        closes=now + 600,
        broadcast=sha256(b"broadcast").digest(),
        url=url,
        keys={
            "leader": leader.round_key(run, number),
            "helper": helper.round_key(run, number),
        },
    )
    return changed(made, **changes)


def signed_by(leader: Any, helper: Any, manifest: Manifest) -> bytes:
    document = manifest.document()
    signatures = {"leader": leader.sign(document), "helper": helper.sign(document)}
    return attach_signatures(manifest, signatures)


OVERHEARD: dict[bytes, bytes] = {}  # the seed of the noise of each published array


def overhear(total: Numbers, *, sigma: int, seed: bytes) -> Numbers:
    """`published`, which also notes the seed: afterwards it is on no disk."""
    found = published(total, sigma=sigma, seed=seed)
    OVERHEARD[to_bytes(found)] = seed
    return found


def without_noise(manifest: Manifest, arrays: Sequence[bytes]) -> np.ndarray:
    """What both published, added up, less the noises that follow from their seeds."""
    total = np.zeros(manifest.fields.numbers, np.uint32)
    for array in arrays:
        noise = Noise(OVERHEARD[array]).draw(manifest.fields.sigma**2, len(total))
        total += from_bytes(array, len(total)) - modulo(noise)
    return total.view(np.int32).astype(np.int64)


def seed_on_disk(folder: Path, round_id: bytes) -> bytes | None:
    """The seed of an aggregator's noise, as it stands on its disk."""
    file = sqlite3.connect(f"file:{folder / 'aggregator.db'}?mode=ro", uri=True)
    [(found,)] = file.execute("SELECT noise FROM rounds WHERE id = ?", (round_id,))
    file.close()
    return found


# --- Over HTTP ------------------------------------------------------------------------


@dataclass
class Pair:
    """Both aggregators as services, and what clients and a coordinator do there."""

    place: Place
    urls: Urls
    leader: OperatorClient
    helper: OperatorClient
    as_leader: OperatorClient  # the leader, as the helper knows it
    http: httpx.Client

    def manifest(self, **changes: Any) -> Manifest:
        url = self.urls.reports
        return manifest_of(self.leader, self.helper, url=url, **changes)

    def open(self, **changes: Any) -> Manifest:
        manifest = self.manifest(**changes)
        sent = signed_by(self.leader, self.helper, manifest)
        for one in (self.leader, self.helper):
            assert one.open(sent) == manifest.round_id
        return manifest

    def post(
        self, manifest: Manifest, body: bytes | SealedReport, **headers: str
    ) -> httpx.Response:
        url = f"{self.urls.reports}/v1/rounds/{manifest.round_id.hex()}/reports"
        content = body if isinstance(body, bytes) else body.body()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(url, content=content, headers=names)

    def close(self, manifest: Manifest) -> tuple[Closing, bytes]:
        """What both publish of a round."""
        found = Closing.read(
            _at_last(self.leader, manifest), numbers=manifest.fields.numbers
        )
        chosen = b"".join(found.batches)
        return found, _at_last(self.helper, manifest, chosen)

    def plain_sum(self, manifest: Manifest) -> np.ndarray:
        """The sum of a round without its noises."""
        leader, helper = self.close(manifest)
        return without_noise(manifest, [leader.published, helper])


def _at_last(
    operator: OperatorClient, manifest: Manifest, chosen: bytes = b""
) -> bytes:
    for _ in range(500):
        found = operator.close(manifest.round_id, chosen)
        if found is not None:
            return found
        time.sleep(0.01)
    raise AssertionError("never closed")


@contextlib.contextmanager
def http_pair(place: Place, **settings: Any) -> Iterator[Pair]:
    with aggregators(place, **settings) as urls, httpx.Client(timeout=20) as http:
        clients = [
            place.client_of("leader", urls.leader),
            place.client_of("helper", urls.helper),
            place.client_of("pair", urls.helper),
        ]
        yield Pair(place, urls, *clients, http)
        for one in clients:
            one.close_connection()


def status_of(work: Any) -> int:
    """The status that a refused call had."""
    try:
        work()
    except Failure as error:
        return error.status
    return 200


# --- In this process ------------------------------------------------------------------


@dataclass
class Local:
    """Both aggregators without HTTP; `start` again to find what is on their disks."""

    folder: Path
    limits: Limits = LIMITS
    now: float = field(default_factory=time.time)
    url: str = "http://leader.test"
    is_helper_away: bool = False

    def __post_init__(self) -> None:
        self.stores: list[AggregatorStore] = []
        self.start()

    def start(self, **restored: bool) -> None:
        """Begin anew from the disk; `leader=True`: as one that was restored."""
        self.stop()
        made = {role: self._made(role, restored) for role in Role}
        self.leader, self.helper = made[Role.LEADER], made[Role.HELPER]

    def _made(self, role: Role, restored: dict[str, bool]) -> Aggregator:
        name = role.name.lower()
        store = AggregatorStore(
            self.folder / name, name, is_restored=restored.get(name, False)
        )
        self.stores.append(store)
        return Aggregator(
            role,
            store,
            Signer(SIGNING[role], {"leader": LEADER, "helper": HELPER}),
            self.limits,
            url=self.url,
            pass_on=self.pass_on if role is Role.LEADER else None,
            clock=lambda: self.now,
        )

    def stop(self) -> None:
        for one in self.stores:
            one.close()
        self.stores = []

    def pass_on(self, round_id: bytes, batch: bytes, body: bytes) -> bytes:
        from tacit.errors import Refused, Unanswered

        if self.is_helper_away:
            raise Unanswered("the helper is away")
        try:
            return self.helper.take(round_id, batch, body)
        except Failure as error:
            raise Refused(str(error)) from None

    def manifest(self, **changes: Any) -> Manifest:
        return manifest_of(
            self.leader, self.helper, url=self.url, now=self.now, **changes
        )

    def open(self, **changes: Any) -> Manifest:
        manifest = self.manifest(**changes)
        sent = signed_by(self.leader, self.helper, manifest)
        for one in (self.leader, self.helper):
            one.open(sent)
        return manifest

    def admit(
        self, manifest: Manifest, *reports: SealedReport, ticket=b""
    ) -> list[int]:
        """The status of each of these reports, sent in one batch."""
        uploads = [Upload(one, ticket) for one in reports]
        found = self.leader.admit(manifest.round_id, uploads)
        return [200 if one is None else one.status for one in found]

    def close(self, manifest: Manifest) -> tuple[Closing, bytes]:
        closing = closed(self.leader, manifest.round_id)
        found = Closing.read(closing, numbers=manifest.fields.numbers)
        chosen = b"".join(found.batches)
        return found, closed(self.helper, manifest.round_id, chosen)

    def plain_sum(self, manifest: Manifest) -> np.ndarray:
        leader, helper = self.close(manifest)
        return without_noise(manifest, [leader.published, helper])


def closed(
    aggregator: Aggregator, round_id: bytes, chosen: bytes | None = None
) -> bytes:
    """What an aggregator publishes, computed if it must be."""
    found = aggregator.close(round_id, chosen)
    if found is None:
        found = aggregator.finish(round_id, aggregator.compute(round_id))
    return found
