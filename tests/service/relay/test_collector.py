"""What a collector takes of a relay, what it keeps, and what it can never tell.

Its relay is played here: it answers what the test says, and shuffles nothing.
"""

import sqlite3
import stat
import threading
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256

import numpy as np
import pytest
from safetensors.numpy import load
from service.relay.places import Place, a_batch, experiment, shards

from tacit.errors import Refused
from tacit.keys import Key
from tacit.service import hpke
from tacit.service.federation.accepted_round import accept
from tacit.service.federation.operator_client import Unknown
from tacit.service.federation.simulated_clients import SimulatedClients
from tacit.service.federation.stepwise_run import Schedule
from tacit.service.http import Failure
from tacit.service.manifest import read_document, read_manifest
from tacit.service.relay.batches import Closing
from tacit.service.relay.collector import Collector
from tacit.service.relay.relay import Status
from tacit.service.relay.services import _signer
from tacit.service.relay.uploads import MessageFields, Upload, upload
from tacit.service.signed_document import signature
from tacit.service.signing import Signer
from tacit.system_errors import DiskError

USERS = 6
POPULAR = {
    "method": {"name": "federated_popularity"},
    "privacy": {"mechanism": "local", "epsilon": 4.0, "votes": None},
}


@dataclass
class PlayedRelay:
    """Signs and opens everything, and says of an epoch what it is told to say."""

    signer: Signer
    opened: list[bytes] = field(default_factory=list)
    voided: list[bytes] = field(default_factory=list)
    said: Status = field(default_factory=lambda: Status("open", None))

    def sign(self, document: bytes) -> bytes:
        return signature(read_document(document, MessageFields), self.signer.key)

    def open(self, sent: bytes) -> bytes:
        self.opened.append(sent)
        return bytes(32)

    def epoch(self, epoch: bytes) -> Status:
        return self.said

    def void(self, epoch: bytes) -> None:
        self.voided.append(epoch)


class World:
    """A collector whose first epoch is open, and uploads of six clients."""

    free_bytes = 0

    def __init__(self, folder, made=None):
        self.place = Place(folder)
        self.run = self.place.run(made or experiment(run={"rounds": 2}))
        self.relay = PlayedRelay(_signer(self.place.relay()))
        self.start()
        self.step_to("open")

    def start(self):
        self.collector = Collector(
            self.run,
            self.place.folder / "collector",
            relay=self.relay,
            relay_url="https://relay.invalid",
            signer=_signer(self.place.collector()),
            schedule=Schedule(window=600),
            free_bytes=self.free_bytes,
        )

    def again(self):
        self.collector.close()
        self.start()

    def step_to(self, state):
        for _ in range(20):
            if self.state == state:
                return
            self.collector.step()
        raise AssertionError(f"never {state}: {self.state}")

    @property
    def state(self):
        epochs = self.collector.epochs()
        return epochs[-1].state if epochs else ""

    @property
    def manifest(self):
        return self.collector.epochs()[-1].manifest

    @property
    def file(self):
        return self.place.folder / "collector" / "collector.db"

    def epoch_keys(self):
        """The private keys of epochs that are on the disk."""
        found = (self.place.folder / "collector" / "keys").iterdir()
        return [one for one in found if one.stem != "signing"]

    def uploads(self, n=USERS):
        """Real uploads of so many clients, as a relay has them."""
        keys = self.place.keys
        read = {name: bytes.fromhex(keys[name]) for name in keys}
        manifest = read_manifest(self.relay.opened[-1], MessageFields, read)
        message = self.collector.public.broadcasts[manifest.broadcast.hex()]
        known = {0: manifest.previous} if manifest.round else {}
        epoch = accept(
            self.run.invitation, manifest, message, now=manifest.opens, known=known
        )
        many = SimulatedClients(
            "https://a.invalid", self.run.invitation, shards(n), Key.from_os()
        )
        rows = many._computed(epoch, np.arange(n))
        return [Upload.read(epoch.form.seal(row, manifest), manifest) for row in rows]

    def batches(self, uploads, size=7):
        seals = sorted(one for each in uploads for one in each.sealed)
        return {
            bytes([n]) * 16: a_batch(self.manifest.round_id, seals[i : i + size])
            for n, i in enumerate(range(0, len(seals), size))
        }

    def close(self, uploads, batches):
        made = Closing(uploads, tuple(sorted(batches)))
        return self.collector.close_epoch(self.manifest.round_id, made.document())

    def all_of(self, n=USERS):
        batches = self.batches(self.uploads(n))
        for id_, body in batches.items():
            assert self.collector.take(id_, body) == 201
        assert self.close(n, batches) == 200
        return batches


@pytest.fixture
def world(tmp_path):
    found = World(tmp_path)
    yield found
    found.collector.close()


def status(work, *args):
    with pytest.raises(Failure) as caught:
        work(*args)
    return caught.value.status


def test_an_epoch_is_folded_its_key_and_messages_are_gone(world):
    batches = world.all_of()
    world.step_to("done")
    assert world.epoch_keys() == []
    assert status(world.collector.take, *next(iter(batches.items()))) == 410
    row = world.collector.epochs()[0]
    assert (row.messages, row.dropped, row.uploads) == (6 * USERS, 0, USERS)
    with closing(sqlite3.connect(world.file)) as file:
        assert [*file.execute("SELECT * FROM batches")] == []


def test_the_run_goes_on_to_a_published_model_across_restarts(world):
    world.all_of()
    world.again()
    world.step_to("done")
    world.again()
    world.collector.step()
    world.step_to("open")
    assert world.manifest.round == 1
    world.all_of()
    for _ in range(10):
        world.collector.step()
    assert world.collector.is_published
    assert (world.collector.published_run / "model.safetensors").is_file()


class TestBatches:
    def test_repeated_batches_are_kept_once(self, world):
        uploads = world.uploads()
        batches = world.batches(uploads)
        first = next(iter(batches))
        assert world.collector.take(first, batches[first]) == 201
        assert world.collector.take(first, batches[first]) == 200
        for id_, body in reversed(batches.items()):  # in whatever order
            world.collector.take(id_, body)
        assert world.close(USERS, batches) == 200
        assert world.close(USERS, batches) == 200
        assert world.collector.take(first, batches[first]) == 200
        world.step_to("folded")
        assert world.collector.epochs()[0].messages == 6 * USERS

    def test_other_bytes_under_an_id_are_refused(self, world):
        uploads = world.uploads()
        [one, two, *_] = world.batches(uploads).values()
        world.collector.take(bytes(16), one)
        assert status(world.collector.take, bytes(16), two) == 409

    def test_a_batch_after_the_closing_is_refused(self, world):
        batches = world.all_of()
        late = a_batch(world.manifest.round_id, [bytes(56)])
        assert late not in batches.values()
        assert status(world.collector.take, b"\xfe" * 16, late) == 409

    def test_batches_of_other_sizes_and_epochs_are_refused(self, world):
        epoch = world.manifest.round_id
        for body, wanted in (
            (b"", 404),
            (a_batch(bytes(32), [bytes(56)]), 404),
            (a_batch(epoch, [bytes(55)]), 400),
            (a_batch(epoch, []), 400),
            (a_batch(epoch, [bytes(56)]) + b"\0", 400),
        ):
            assert status(world.collector.take, bytes(16), body) == wanted

    def test_a_batch_that_the_relay_does_not_name_is_not_read(self, world):
        """Left of a relay that was killed: its messages came in other batches, too."""
        uploads = world.uploads()
        world.collector.take(
            b"\xaa" * 16, next(iter(world.batches(uploads, 5).values()))
        )
        batches = world.batches(uploads)
        for id_, body in batches.items():
            world.collector.take(id_, body)
        world.close(USERS, batches)
        world.step_to("folded")
        assert world.collector.epochs()[0].messages == 6 * USERS


def test_what_is_stored_does_not_say_which_messages_came_together(world):
    """Batches as the relay sent them, and no column that could hold more."""
    uploads = world.uploads()
    batches = world.batches(uploads)
    for one in batches.items():
        world.collector.take(*one)
    world.close(USERS, batches)
    with closing(sqlite3.connect(world.file)) as file:
        tables = [n for (n,) in file.execute("SELECT name FROM sqlite_schema")]
        columns = {
            name: [row[1] for row in file.execute(f"PRAGMA table_info({name})")]
            for name in tables
            if not name.startswith("sqlite_")
        }
        kept = {id_: body for _, id_, _, body in file.execute("SELECT * FROM batches")}
    assert kept == batches
    assert columns == {
        "store": ["role", "id", "starts", "head", "total", "link"],
        "run": [
            *("name", "invitation", "is_published", "is_retired"),
            *("metrics", "withheld"),
        ],
        "batches": ["epoch", "batch", "count", "body"],
        "epochs": [
            *("number", "state", "document", "signed", "broadcast", "uploads"),
            *("closing", "messages", "dropped", "learnt", "why"),
        ],
    }
    folder = world.place.folder / "collector"
    for path in (one for one in folder.rglob("*") if one.is_file()):
        content = path.read_bytes()
        assert not any(one.digest in content for one in uploads), path
    world.step_to("done")
    for path in (one for one in folder.rglob("*") if one.is_file()):
        content = path.read_bytes()
        assert not any(m in content for one in uploads for m in one.sealed), path


def test_no_more_is_taken_than_an_epoch_can_have(world):
    """Twice everybody's: a relay that was killed may have left some behind."""
    manifest = world.manifest
    whole = manifest.most_reports * manifest.fields.reports_per_user
    body = a_batch(manifest.round_id, [bytes(56)] * whole)
    for n in range(2):
        assert world.collector.take(bytes([n]) * 16, body) == 201
    one = a_batch(manifest.round_id, [bytes(56)])
    assert status(world.collector.take, b"\2" * 16, one) == 409


def test_a_full_disk_is_told_to_come_again(world):
    world.collector.free_bytes = 2**62
    [(id_, body), *_] = world.batches(world.uploads()).items()
    assert status(world.collector.take, id_, body) == 503
    world.collector.free_bytes = 0
    assert world.collector.take(id_, body) == 201


def test_of_what_was_learnt_the_last_is_kept_and_little_is_read(world):
    """Every batch looks at the epochs: their models and broadcasts stay on the disk."""
    for number in range(2):
        world.all_of()
        world.step_to("done")
        row = world.collector.epochs()[number]
        assert not any(
            isinstance(v, bytes) and len(v) > 5000 for v in vars(row).values()
        )
        assert len(world.collector.public.broadcasts) == 1
        if not number:
            world.again()
            world.collector.step()
            world.step_to("open")
    with closing(sqlite3.connect(world.file)) as file:
        kept = [*file.execute("SELECT learnt IS NULL FROM epochs ORDER BY number")]
    assert kept == [(1,), (0,)]
    world.again()
    for _ in range(3):
        world.collector.step()
    assert world.collector.is_published


class Killed(BaseException):
    """What ends a process in the middle of a step."""


def kept_arrays(world):
    """The names of the arrays that the collector has of each epoch."""
    with closing(sqlite3.connect(world.file)) as file:
        rows = [*file.execute("SELECT learnt FROM epochs ORDER BY number")]
    return [None if one is None else {*load(one)} for (one,) in rows]


@pytest.mark.parametrize("point", ["model_written", "published"])
def test_killed_while_it_publishes_it_goes_on_with_the_same_model(tmp_path, point):
    """What it still needs is there; when the model is out, the memory is not."""
    world = World(tmp_path, experiment(**POPULAR))
    world.all_of()
    world.step_to("done")
    assert kept_arrays(world) == [{"weights/share", "memory/votes"}]

    def kills(passed):
        if passed == point:
            raise Killed

    world.collector.passing = kills
    with pytest.raises(Killed):
        world.collector.step()
    model = world.collector.published_run / "model.safetensors"
    written = model.read_bytes()
    assert kept_arrays(world) == [{"weights/share", "memory/votes"}]
    world.again()
    world.collector.step()
    assert world.collector.is_published
    assert model.read_bytes() == written
    assert kept_arrays(world) == [{"weights/share"}]
    world.again()
    world.collector.step()
    assert world.collector.models == (sha256(written).hexdigest(),)
    world.collector.close()


def test_a_run_that_ends_without_a_model_keeps_nothing_that_it_learnt(tmp_path):
    world = World(tmp_path, experiment(**POPULAR | {"run": {"rounds": 2}}))
    world.all_of()
    world.step_to("done")
    world.collector.retire()
    world.collector.step()
    assert world.collector.is_over
    assert kept_arrays(world) == [None]
    world.collector.close()


def test_a_window_that_went_by_before_the_relay_opened_is_planned_again(world):
    """Nobody was shown that manifest; opened late, it would have been destroyed."""
    world.all_of()
    world.step_to("done")
    world.step_to("signed")
    [_, first] = world.collector.epochs()
    world.relay.said = Status("signed", None)
    world.collector.clock = lambda: first.manifest.closes + 1.0
    world.collector.step()
    assert [row.number for row in world.collector.epochs()] == [0]
    assert world.epoch_keys() == []
    world.step_to("open")
    assert world.manifest.round_id != first.manifest.round_id


def test_a_relay_that_has_lost_a_signed_epoch_signs_another(world):
    world.all_of()
    world.step_to("done")
    world.step_to("signed")
    closes = world.manifest.closes

    def unknown(_):
        raise Unknown("404")

    world.relay.epoch = unknown
    world.collector.clock = lambda: closes + 1.0
    world.collector.step()
    assert world.state == "done"


def test_a_key_that_no_epoch_names_is_deleted_at_the_start(world):
    """A collector may be killed between a key and the plan that names it."""
    orphan = world.place.folder / "collector" / "keys" / f"{'ab' * 32}.key"
    orphan.write_bytes(bytes(32))
    [kept] = [one for one in world.epoch_keys() if one != orphan]
    world.again()
    assert world.epoch_keys() == [kept]


def test_a_plan_that_cannot_be_kept_leaves_no_key(world, monkeypatch):
    world.all_of()
    world.step_to("done")

    def full(*_):
        raise DiskError(28, "full")

    monkeypatch.setattr(world.collector, "_insert", full)
    for _ in range(3):
        with pytest.raises(DiskError):
            world.collector.step()
    assert world.epoch_keys() == []


def test_an_epoch_is_never_shown_without_its_broadcast(world, monkeypatch):
    """A shared cache would keep an empty one as long as the epoch is open."""
    world.all_of()
    world.step_to("done")
    world.step_to("signed")
    large, seen = world.collector._large, []

    def looks(name, number):
        seen.append(world.collector.public)
        return large(name, number)

    monkeypatch.setattr(world.collector, "_large", looks)
    world.step_to("open")
    assert seen
    for public in [*seen, world.collector.public]:
        assert all(public.broadcasts.values())
    assert world.collector.public.open is not None


def test_a_window_that_went_by_after_the_relay_opened_voids_the_run(world):
    """It signs no other manifest for that epoch."""
    world.all_of()
    world.step_to("done")
    world.step_to("signed")
    closes = world.manifest.closes
    world.collector.clock = lambda: closes + 1.0
    world.step_to("void")
    assert "its window went by" in world.collector.epochs()[-1].why


def test_a_run_that_is_retired_while_it_plans_opens_nothing(world, monkeypatch):
    """What was planned meanwhile is not kept, and neither is its key."""
    world.all_of()
    world.step_to("done")
    collector = world.collector
    form = collector.run.form

    def retires(server):
        collector.retire()
        return form(server)

    monkeypatch.setattr(type(collector.run), "form", lambda _, server: retires(server))
    collector.step()
    assert [row.state for row in collector.epochs()] == ["done"]
    assert collector.is_over
    assert world.epoch_keys() == []


def test_a_run_that_is_retired_while_it_folds_stays_retired(world):
    real = world.run.next

    def slowly(*args, **kwargs):
        world.collector.retire()
        return real(*args, **kwargs)

    object.__setattr__(world.run, "next", slowly)
    world.all_of()
    world.collector.step()
    assert world.state == "voiding"
    world.step_to("void")
    assert world.collector.epochs()[0].why == "the run was retired"


class TestClosing:
    def test_a_batch_of_one_victim_is_not_read(self, world):
        """A relay that forwards too few breaks what both have signed."""
        batches = world.batches(world.uploads(1))
        for id_, body in batches.items():
            world.collector.take(id_, body)
        assert status(world.close, 1, batches) == 412
        assert world.state == "open"

    def test_messages_must_be_as_many_as_the_uploads_have(self, world):
        batches = world.batches(world.uploads())
        for id_, body in batches.items():
            world.collector.take(id_, body)
        assert status(world.close, USERS + 1, batches) == 409
        some = dict([*batches.items()][:2])
        assert status(world.close, USERS, some) == 409

    def test_no_epoch_has_more_than_everybodys_uploads(self, world):
        n = world.manifest.most_reports + 1
        seals = [n.to_bytes(4, "big") * 14 for n in range(6 * n)]
        world.collector.take(bytes(16), a_batch(world.manifest.round_id, seals))
        assert status(world.close, n, {bytes(16): b""}) == 409
        assert world.state == "open"

    def test_missing_batches_and_other_closings_are_refused(self, world):
        assert status(world.close, USERS, {bytes(16): b""}) == 409
        batches = world.all_of()
        assert status(world.close, USERS + 1, batches) == 409
        epoch = world.manifest.round_id
        assert status(world.collector.close_epoch, epoch, b"{}") == 400
        some = Closing(USERS, (bytes(16),)).document()
        assert status(world.collector.close_epoch, bytes(32), some) == 404

    @pytest.mark.parametrize(
        ("state", "why"),
        [
            ("destroyed", "too few"),
            ("void", "put back from a backup"),
            ("forwarded", "not here"),
        ],
    )
    def test_what_the_relay_destroyed_or_lost_is_void(self, world, state, why):
        world.relay.said = Status(state, None)
        world.collector.step()
        world.collector.step()
        assert world.state == "void"
        assert why in world.collector.epochs()[0].why
        assert not world.collector.is_over  # there is another epoch
        assert world.relay.voided == [world.manifest.round_id]
        assert not [
            one
            for one in (world.place.folder / "collector" / "keys").glob("*.key")
            if one.name != "signing.key"
        ]


def test_a_round_that_the_relay_has_lost_is_void(world, monkeypatch):
    def lost(*_):
        raise Unknown("404")

    monkeypatch.setattr(world.relay, "epoch", lost)
    world.step_to("void")
    assert "the relay has lost its file" in world.collector.epochs()[0].why
    assert world.collector.is_over  # it signs no epoch that follows


@pytest.mark.parametrize("void", [0, 1])
def test_a_run_of_many_epochs_goes_on_without_a_void_one(world, void):
    seals = [bytes([n]) * 56 for n in range(6 * USERS)]  # none of them opens
    for number in range(2):
        if number == void:
            world.collector.take(bytes(16), a_batch(world.manifest.round_id, seals))
            world.close(USERS, {bytes(16): b""})
            world.step_to("void")
            world.again()
        else:
            world.all_of()
            world.step_to("done")
        if not number:
            assert world.collector.public.ended == ""
            world.collector.step()
            world.step_to("open")
            assert world.manifest.round == 1
    for _ in range(10):
        world.collector.step()
    assert world.collector.is_published
    assert f"without epoch {void}, " in world.collector.state.text
    assert [bool(one.messages) for one in world.collector.epochs()][void] is False
    # What the other epoch taught is in the model.
    weights = load((world.collector.published_run / "model.safetensors").read_bytes())
    empty = world.run.without(world.run.without(world.run.start))
    learnt = np.abs(weights["weights/items"] - empty.weights["items"])
    assert learnt.max() > 0


def test_a_run_ends_where_every_epoch_is_void(world):
    for number in range(2):
        world.relay.said = Status("destroyed", None)
        world.step_to("void")
        assert world.collector.is_over == (number == 1)
        world.relay.said = Status("open", None)
        if not number:
            world.collector.step()
            world.step_to("open")
    assert not world.collector.is_published
    assert world.collector.public.ended == "round 2 is void"


def test_messages_that_do_not_open_are_left_out_and_counted(world):
    uploads = world.uploads()
    batches = world.batches(uploads)
    id_, body = batches.popitem()
    batches[id_] = body[:-10] + bytes(10)
    for one in batches.items():
        world.collector.take(*one)
    world.close(USERS, batches)
    world.step_to("folded")
    row = world.collector.epochs()[0]
    assert (row.messages, row.dropped) == (6 * USERS - 1, 1)


def lies(world, *rows):
    """Uploads of liars beside those of honest clients, in one epoch that is closed."""
    manifest, uploads = world.manifest, world.uploads()
    for row in rows:
        body = upload([row] * manifest.fields.reports_per_user, manifest)
        uploads.append(Upload.read(body, manifest))
    batches = world.batches(uploads)
    for one in batches.items():
        world.collector.take(*one)
    assert world.close(len(uploads), batches) == 200


ITEM = {"mechanism": "local_item", "votes": None}
WHOLE = {"mechanism": "local", "epsilon": 4.0, "votes": None}


@pytest.mark.parametrize(
    ("method", "privacy", "lie"),
    [
        ({"name": "gram", "head": 5}, WHOLE, np.float32(3e38)),
        ({"name": "fmf_ldp", "factors": 2}, WHOLE, np.float32(3e38)),
        ({"name": "fmf_ldp", "factors": 2}, WHOLE, np.float32(1e6)),
        ({"name": "federated_popularity"}, ITEM, np.uint8(255)),
        ({"name": "fmf_ldp", "factors": 2}, {}, np.int32(31)),
    ],
)
def test_one_liar_ends_no_run_and_moves_no_model(tmp_path, method, privacy, lie):
    """A message that no mechanism makes counts as none, whatever it says."""
    made = experiment(method=method, privacy=privacy, run={"rounds": 2})
    world = World(tmp_path, made)
    with closing(world.collector):
        form = world.run.form(world.run.start)
        told = np.zeros(form.content_bytes // lie.dtype.itemsize, lie.dtype)
        told[0] = lie
        lies(world, told.tobytes().ljust(form.message_bytes, b"\0"))
        world.step_to("folded")
        row = world.collector.epochs()[0]
        assert (row.messages, row.dropped) == (USERS * form.count, form.count)


def test_an_epoch_that_cannot_be_aggregated_is_void_and_says_the_type(world):
    def failing(*args, **kwargs):
        raise ValueError("canary 4711")

    object.__setattr__(world.run, "next", failing)
    world.all_of()
    world.step_to("void")
    why = world.collector.epochs()[0].why
    assert "ValueError" in why
    assert "4711" not in why


def test_a_model_that_no_client_would_answer_is_void(world):
    """Whatever the messages: the broadcast is held against the declared layout."""
    method = type(world.run.invitation.method)
    real = method.learn

    def learn(self, server, phase, total):
        after = real(self, server, phase, total)
        return replace(after, weights={n: v * np.inf for n, v in after.weights.items()})

    with pytest.MonkeyPatch.context() as patch, np.errstate(invalid="ignore"):
        patch.setattr(method, "learn", learn)
        world.all_of()
        world.step_to("void")
    assert "BadMessage" in world.collector.epochs()[0].why


def test_a_failure_of_any_kind_is_told_and_tried_again(world, caplog):
    """The thread goes on; neither page nor log has the words of the failure."""
    stop, tries = threading.Event(), []

    def step():
        tries.append(world.collector.trouble)
        if len(tries) == 2:
            stop.set()
        raise ValueError("canary 4711")

    world.collector.step = step
    stop.wait = lambda seconds: None
    world.collector.play(stop=stop)
    assert tries == ["", "a failure: ValueError"]
    assert "ValueError" in caplog.text
    assert "4711" not in caplog.text


def test_an_epoch_without_any_sound_message_is_void(world):
    seals = [bytes([n]) * 56 for n in range(6 * USERS)]
    world.collector.take(bytes(16), a_batch(world.manifest.round_id, seals))
    world.close(USERS, {bytes(16): b""})
    world.step_to("void")


def test_the_key_of_an_epoch_is_its_owners_alone_and_new_each_time(world):
    folder = world.place.folder / "collector" / "keys"
    [one] = [p for p in folder.glob("*.key") if p.name != "signing.key"]
    assert stat.S_IMODE(one.stat().st_mode) == 0o600
    assert hpke.public_key(one.read_bytes()) == world.manifest.keys["collector"]
    first = world.manifest.keys["collector"]
    world.all_of()
    world.step_to("done")
    world.collector.step()
    world.step_to("open")
    assert world.manifest.keys["collector"] != first


def test_the_plan_reaches_the_relay_by_the_manifest(world):
    assert (
        world.manifest.least_reports == world.run.invitation.plan.min_contributors == 5
    )


def test_a_folder_is_of_one_run(world):
    world.collector.close()
    world.run = world.place.run(experiment(run={"rounds": 3}))
    with pytest.raises(Refused, match="another run"):
        world.start()
    world.run = world.place.run(experiment(run={"rounds": 2}))
    world.start()


def test_the_ledger_has_a_line_before_anybody_is_asked(world):
    assert (world.collector.published_run / "ledger.json").is_file()
