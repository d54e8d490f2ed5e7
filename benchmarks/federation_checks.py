"""What must hold after a life of a federation, whoever was killed in it.

sums      total minus both noises is the plaintext sum of exactly what was counted
once      who was told 200 is in it, once; who was refused is not; others at most once
noise     whatever an operator published of a round, it published again as it was
ledger    the line of a round is there before anybody hears of the round
client    a killed client has sent one report per round, as the same bytes
model     whole, and a function of the two published sums
files     nothing but known ones is left, and no secret of a round
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.federation_clients import Sent, read_sent
from benchmarks.federation_lives import HISTORY, ITEMS, ROUNDS, Life, Snapshot
from benchmarks.federation_place import COORDINATOR, HELPER, LEADER
from benchmarks.federation_seeds import noted_seed
from tacit.exact_sum import Noise
from tacit.experiment.saved_run import load
from tacit.experiment.training import finished_model
from tacit.ledger.durable import ClientLedger
from tacit.service.federation.coordinated_run import PublishedSum
from tacit.service.federation.sealing import SumFields, SumManifest
from tacit.service.federation.seed_batches import Closing
from tacit.service.federation.store import CLOSED, DELETED
from tacit.service.manifest import read_document
from tacit.serving.model_file import save_model
from tacit.transport.shared_sum import Numbers, from_bytes, modulo

COUNTED, NOT_COUNTED, OVER = 200, (400, 404, 409, 413), 410
_DATABASE = {"", "-wal", "-shm"}
_RUN = {
    *("experiment.toml", "ledger.json", "model.json", "model.safetensors"),
    *("privacy-card.html", "privacy-card.json", "result.json"),
}
_KNOWN = {
    LEADER: {f"aggregator.db{end}" for end in _DATABASE},
    HELPER: {f"aggregator.db{end}" for end in _DATABASE},
    COORDINATOR: {f"coordinator.db{end}" for end in _DATABASE}
    | {f"run/{name}" for name in _RUN},
    "client": {"client.json", "history.json", "invitation", "lock"}
    | {f"ledger.db{end}" for end in _DATABASE},
}


def problems(life: Life) -> Iterator[str]:
    """Everything that is wrong with a life that has ended."""
    yield from life.wrong
    if life.wrong:
        yield from _lost(life)
        return
    of_client = _sent_by_client(life.folder) if life.has_client else {}
    for number, found in sorted(life.snapshots.items()):
        sent = read_sent(life.folder / f"sent-{number}")
        one = of_client.get(found.leader.id.hex()[:16])
        if one is not None:
            sent.append(one)
        elif life.has_client:
            yield f"round {number}: the client has sent nothing"
        for problem in _of_round(found, sent, life.folder):
            yield f"round {number}: {problem}"
    yield from _of_noises(life)
    yield from _lines(life.folder / "violations")
    if life.has_client:
        yield from _of_client(life)
    yield from _of_model(life)
    yield from _of_files(life)
    for path in sorted(life.folder.glob("log-*")):
        yield from (f"{path.name}: {line}" for line in _lines(path))


def _lost(life: Life) -> Iterator[str]:
    """Of a life that never came to its end: who was told 200 and is not there."""
    written, path = life.folder / "sent-0", life.folder / LEADER / "aggregator.db"
    if life.snapshots or not (written.exists() and path.exists()):
        return
    file = sqlite3.connect(path)
    counted = {one.hex() for (one,) in file.execute("SELECT report FROM seen")}
    file.close()
    for one in read_sent(written):
        if COUNTED in one.answers and one.id not in counted:
            yield f"a report of a {one.kind} client was acknowledged and is lost"


# --- The sum -------------------------------------------------------------------------


def _of_round(found: Snapshot, sent: list[Sent], folder: Path) -> Iterator[str]:
    if (found.leader.state, found.helper.state) != (CLOSED, CLOSED):
        yield f"{found.leader.state} at the leader, {found.helper.state} at the helper"
        return
    by_id = {bytes.fromhex(one.id): one for one in sent}
    counted = {*found.counted}
    if sorted(found.kept) != sorted(counted):
        yield "leader and helper have not counted the same reports once each"
    for id_, one in by_id.items():
        yield from one.wrong
        if COUNTED in one.answers and id_ not in counted:
            yield f"a report of a {one.kind} client was acknowledged and is lost"
        if {*NOT_COUNTED} & {*one.answers} and id_ in counted:
            yield f"a report of a {one.kind} client was refused and is counted"
        if one.kind == "broken" and (id_ in counted or COUNTED in one.answers):
            yield "a broken report was counted"
    if not counted <= by_id.keys():
        yield "a report was counted that nobody has sent"
        return
    expected = np.zeros(ITEMS, np.int64)
    for id_ in counted:
        expected += np.array(by_id[id_].numbers, np.int64)
    try:
        total = without_noise(found, folder)
    except ValueError as error:
        yield str(error)
        return
    if not (total == modulo(expected)).all():
        yield "the sum without its noises is not the sum of what was counted"
    if found.leader.noise is not None or found.helper.noise is not None:
        yield "the seed of a closed round is still on the disk"


def without_noise(found: Snapshot, folder: Path) -> Numbers:
    """What both published, without the noise of the seeds that they drew."""
    manifest = _manifest(found)
    leader, helper = _published(found, manifest)
    numbers = manifest.fields.numbers
    total = from_bytes(leader, numbers) + from_bytes(helper, numbers)
    for role in (LEADER, HELPER):
        seed = noted_seed(folder, role, found.leader.id)
        total = total - modulo(Noise(seed).draw(manifest.fields.sigma**2, len(total)))
    return total


def _manifest(found: Snapshot) -> SumManifest:
    return read_document(found.leader.document, SumFields)


def _published(found: Snapshot, manifest: SumManifest) -> tuple[bytes, bytes]:
    numbers = manifest.fields.numbers
    closing = Closing.read(found.leader.result or b"", numbers=numbers)
    return closing.published, found.helper.result or b""


def _of_noises(life: Life) -> Iterator[str]:
    said: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in _lines(life.folder / "overheard"):
        role, round_id, digest = line.split()
        said[role, round_id].add(digest)
    for (role, round_id), digests in said.items():
        if len(digests) > 1:
            yield f"the {role} published round {round_id} in {len(digests)} ways"
    if len(said) != 2 * ROUNDS:
        yield f"{len(said)} sums were overheard; there are {2 * ROUNDS}"


# --- Client, model and files ---------------------------------------------------------


def _sent_by_client(folder: Path) -> dict[str, Sent]:
    """What the durable client sent in each round, by the beginning of its id."""
    made = dict(json.loads(line) for line in _lines(folder / "client-made"))
    found: dict[str, Sent] = {}
    for line in _lines(folder / "client-sent"):
        round_id, digest, own, status = line.split()
        one = found.setdefault(round_id, Sent(own, made[own], digest))
        if (one.id, one.kind) != (own, digest):
            one.wrong.append("a client sent two different reports")
        one.answers.append(int(status))
    for one in found.values():
        one.kind = "durable"
        # Killed before it heard, it may come back when the round is over.
        if not {COUNTED, OVER} & {*one.answers}:
            one.wrong.append("the durable client was never told that it is counted")
    return found


def _of_client(life: Life) -> Iterator[str]:
    with ClientLedger(life.folder / "client" / "ledger.db", create=False) as ledger:
        rounds, waiting = [e.round for e in ledger.entries()], len(ledger.pending())
    if rounds != [*range(ROUNDS)] or waiting:
        yield f"the client's ledger has rounds {rounds}, and {waiting} reports wait"
    share = 65536 / len(HISTORY) ** 0.5  # of each item: a unit vector in steps
    for line in _lines(life.folder / "client-made"):
        numbers = {*json.loads(line)[1]}
        # Killed between the ledger's entry and the report, it sends an empty one.
        if not all(number == 0 or abs(number - share) <= 1 for number in numbers):
            yield f"the client's report has the numbers {sorted(numbers)}"


def _of_model(life: Life) -> Iterator[str]:
    run, folder = life.world.run, life.folder / COORDINATOR / "run"
    load(folder)  # as a whole
    sums = []
    for _, found in sorted(life.snapshots.items()):
        leader, helper = _published(found, _manifest(found))
        sums.append(PublishedSum(leader, helper, len(found.counted)))
    model = finished_model(run.assembled, run.after(sums))
    with tempfile.TemporaryDirectory(dir=life.folder.parent) as made:
        weights, facts = Path(made) / "weights", Path(made) / "facts"
        save_model(model, weights, facts)
        for own, name in ((weights, "model.safetensors"), (facts, "model.json")):
            if own.read_bytes() != (folder / name).read_bytes():
                yield f"{name} is not a function of the published sums"
    if json.loads((folder / "ledger.json").read_text())["rounds_begun"] != ROUNDS:
        yield "the ledger has not every round"


def _of_files(life: Life) -> Iterator[str]:
    for role, known in _KNOWN.items():
        folder = life.folder / role
        files = {
            path.relative_to(folder).as_posix()
            for path in folder.rglob("*")
            if not path.is_dir()
        }
        for name in sorted(files - known):
            yield f"{role}/{name} was left over"
    for role in (LEADER, HELPER):
        file = sqlite3.connect(life.folder / role / "aggregator.db")
        states = Counter(file.execute("SELECT state, noise FROM rounds").fetchall())
        if states != {(DELETED, None): ROUNDS}:
            yield f"the {role} has rounds {[state for state, _ in states]}"
        for table in ("seen", "totals", "batches", "seeds", "used"):
            [(n,)] = file.execute(f"SELECT count(*) FROM {table}")
            if n:
                yield f"the {role} still has {n} rows of {table}"
        file.close()
    drafts = [*(life.folder / "anchors").rglob(".*")]
    if drafts:
        yield f"{len(drafts)} drafts were left beside the anchors"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
