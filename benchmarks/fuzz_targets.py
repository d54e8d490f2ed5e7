"""Every decoder that reads bytes from outside, with sound inputs of our own making.

A target takes bytes and gives a value or raises a `TacitError`. What it decodes is also
looked at as its first user would, so that damage cannot wait until later.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from benchmarks.fuzz_federation import decoders
from benchmarks.fuzz_mutations import harmed, harmed_document, harmed_json
from tacit.accounting.dp_events import (
    ComposedDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from tacit.accounting.events import pure_local
from tacit.accounting.serialization import (
    event_from_json,
    event_to_json,
    release_from_json,
    release_to_json,
)
from tacit.data import cache
from tacit.data.columns import Columns, describe, restore
from tacit.data.shards import Shards
from tacit.data.sources import mind_writer, source
from tacit.data.sources.listed_tables import ItemsTable
from tacit.data.sources.table import EventsTable
from tacit.data.strings import Strings
from tacit.data.synthetic.checkerboard import checkerboard
from tacit.data.synthetic.news_world import NewsWorld
from tacit.documents import CHECKSUM, digest_of, sealed
from tacit.errors import BadMessage
from tacit.experiment import privacy_card, saved_run
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.ledger.durable import ClientLedger
from tacit.ledger.terms import Terms, read_terms, write_terms
from tacit.method import Clients, ItemSpace, Server, Unmetered, enrol, participate
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.privacy import CentralGaussian
from tacit.release import CELLS, Cell, Release, Standing
from tacit.runtime.checkpoint import load_checkpoint, load_learnt, save_checkpoint
from tacit.runtime.rounds import State
from tacit.runtime.run import RunDirectory
from tacit.runtime.warm_start import read_spent
from tacit.service.answer import Answer
from tacit.service.basis import read_basis, write_basis
from tacit.service.model_document import FORMAT, Content, ModelDocument, Queries
from tacit.serving.query import Mode
from tacit.serving.served_model import ServedModel
from tacit.serving.settings import ServingSettings
from tacit.transport import codec
from tacit.transport.messages import Broadcast, Layout, Reports, Slot
from tacit.tree import Dense, Factored, Tree

Make = Callable[[random.Random], Any]


@dataclass(frozen=True)
class Target:
    """One decoder: how inputs are made, who reads them, its part of all inputs."""

    name: str
    share: float
    make: Make  # bytes, or a JSON document
    read: Callable[[Any], object]
    sound: Any  # an input without harm, which must be accepted


def targets(place: Path) -> Iterator[Target]:
    """All of them; their files are kept below `place`."""
    yield from _messages()
    yield from _account()
    yield from _data(place)
    yield from _tables(place)
    yield from _run(place)
    yield from _ledgers(place)
    yield from _service(place)
    for name, (read, sound) in decoders().items():
        yield Target(name, 0.0125, partial(_harmed, sound), read, sound[0])


# --- Messages ------------------------------------------------------------------------


def _messages() -> Iterator[Target]:
    broadcast = Broadcast(
        3, bytes(range(16)), {"w": np.arange(6.0), "n": np.array(7, np.uint8)}
    )
    layout = Layout(
        {
            "b": Slot("float32", (3,)),
            "f": Slot("float64", (2, 3), 1),
            "n": Slot("uint8", ()),
        }
    )
    draws = Key.from_seed(0).generator()
    tree = Tree(
        {
            "b": Dense(draws.normal(size=(2, 3)).astype(np.float32)),
            "f": Factored(draws.normal(size=(2, 1, 2)), draws.normal(size=(2, 1, 3))),
            "n": Dense(np.array([1, 2], np.uint8)),
        }
    )
    broadcasts = [
        codec.encode_broadcast(broadcast),
        codec.encode_broadcast(replace(broadcast, weights={})),
    ]
    reports = codec.encode_reports(broadcast, Reports(tree))
    read = partial(_decode, codec.decode_reports, broadcast, layout)
    yield Target(
        "broadcast message",
        0.25,
        partial(_sealed, broadcasts),
        codec.decode_broadcast,
        broadcasts[0],
    )
    yield _broadcasts()
    yield Target("reports", 0.30, partial(_sealed, reports), read, reports[0])


def _broadcasts() -> Target:
    """A whole answer: decoded, held against the agreement, computed, encoded."""
    board = checkerboard(4, 6, 2)
    noise = CentralGaussian({"counts": 1.0, "relations": 2.0})
    method, plan = Gram(head=4, privacy=noise), Plan(4, rounds=2)
    server = method.start(plan, board.catalog, Key.from_seed(0))
    sound = [
        codec.encode_broadcast(method.broadcast(replace(server, round=r)))
        for r in (0, 1)
    ]
    keys, shards = Key.from_seed(1).each(np.arange(4)), Shards.of(board.interactions)
    clients = enrol(method, plan, board.profiles, keys, catalog=board.catalog)

    def answer(message: bytes) -> object:
        heard, failures = codec.decode_broadcast(message), list[Exception]()
        _, reports, took_part = participate(
            method,
            heard,
            clients,
            shards,
            keys,
            ledger=Unmetered(),
            on_failure=failures.append,
        )
        if not took_part.any():
            raise BadMessage("refused")
        return codec.encode_reports(heard, reports)

    return Target("broadcast", 0.01, partial(_sealed, sound), answer, sound[1])


def _decode(
    decoder: Any, broadcast: Broadcast, layout: Layout, message: bytes
) -> object:
    return decoder(broadcast, [message], layout)


def _sealed(corpus: Sequence[bytes], draw: random.Random) -> bytes:
    """Harmed; in half of all cases length and checksum are made to fit again."""
    message = harmed(draw, corpus)
    if draw.random() < 0.5 or len(message) < 56:
        return message
    head, body = message[:16], message[24:-16]
    whole = head + (len(body) - 16).to_bytes(8, "little", signed=True) + body
    return whole + hashlib.blake2b(whole, digest_size=16).digest()


# --- The account ---------------------------------------------------------------------


def _account() -> Iterator[Target]:
    sampled = PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0))
    events = [
        SelfComposedDpEvent(sampled, 9),
        ComposedDpEvent([GaussianDpEvent(1.0), pure_local(0.5, choices=5)]),
    ]
    release = _release(events[0])
    terms = Terms((release, replace(release, what="b")), rounds=9, most=9)
    plain = [json.dumps(event_to_json(event)) for event in events]
    sound = json.loads(plain[0])
    yield Target("event", 0.06, partial(_document, plain), event_from_json, sound)
    releases = [json.dumps(release_to_json(release))]
    make, sound = partial(_document, releases), json.loads(releases[0])
    yield Target("release", 0.02, make, release_from_json, sound)
    text = write_terms(terms)
    yield Target("terms", 0.01, partial(_json, [text]), _read_terms, text.encode())


def _release(event: Any) -> Release:
    cell = Cell(Standing.PROVEN, "a test", event, each=GaussianDpEvent(2.0))
    return Release("sum", "server", "each round", dict.fromkeys(CELLS, cell))


def _read_terms(text: bytes) -> object:
    return read_terms(text.decode("utf-8", "replace"))


def _document(corpus: Sequence[str], draw: random.Random) -> Any:
    return harmed_document(draw, corpus[int(draw.random() * len(corpus))])


def _json(corpus: Sequence[str], draw: random.Random) -> bytes:
    return harmed_json(draw, [text.encode() for text in corpus])


# --- Data ----------------------------------------------------------------------------

_CSV = (
    'who,what,when,how much,name,kind\nann,7,1600000000,5,"Lamp, ""old"" one",light\n'
    "bob,x,2020-09-13T12:26:40,2.5,Café,\nann,x,1599999999,1e1,,seat\n"
).encode()


def _data(place: Path) -> Iterator[Target]:
    texts = Strings.of(["Alien", "", "Amélie", "七人の侍"])
    packed = texts.offsets.tobytes() + texts.buffer.tobytes()
    made = partial(_harmed, [packed])
    yield Target("strings", 0.08, made, partial(_strings, len(texts.offsets)), packed)
    board = checkerboard(4, 4, 2)
    described, columns = describe(board, "dataset")
    made = partial(_document, [json.dumps(described)])
    read = partial(_columns, columns)
    yield Target("columns", 0.02, made, read, described)
    made = partial(_harmed, [_CSV])
    yield Target("csv", 0.01, made, partial(_csv, place / "t.csv"), _CSV)
    items = b'what,name,kind\n7,Lamp,light\nx,"Chair, old",seat\n'
    made, read = partial(_harmed, [items]), partial(_items, place / "i.csv")
    yield Target("items", 0.004, made, read, items)
    entry = place / "entry"
    cache.write(board, entry, stamp={"archive": "x"})
    for file in ("manifest.json", "0000.npy"):
        raw = (entry / file).read_bytes()
        make = harmed_json if file.endswith("json") else harmed
        made, read = partial(_made, make, [raw]), partial(_cached, entry, file)
        yield Target(f"cache {file}", 0.001, made, read, raw)


def _made(make: Any, corpus: Sequence[bytes], draw: random.Random) -> bytes:
    return make(draw, corpus)


def _harmed(corpus: Sequence[bytes], draw: random.Random) -> bytes:
    return harmed(draw, corpus)


def _strings(n: int, raw: bytes) -> object:
    """As a file of columns gives them: checked once, then read."""
    cut = min(8 * n, len(raw) // 8 * 8)
    buffer = np.frombuffer(raw, np.uint8, offset=cut)
    offsets = np.frombuffer(raw[:cut], np.int64)
    columns: Columns = {"o": offsets, "b": buffer}
    fields = {"buffer": {"column": "b"}, "offsets": {"column": "o"}}
    return list(restore({"part": "Strings", "fields": fields}, columns))


def _columns(columns: Columns, described: Any) -> object:
    return _looked(restore(described, columns))


def _looked(found: Any) -> object:
    """The titles, if it is a data set: the first thing anybody reads."""
    catalog = getattr(found, "catalog", None)
    return list(catalog.titles) if catalog is not None else None


def _csv(path: Path, raw: bytes) -> object:
    path.write_bytes(raw)
    return EventsTable(
        *(path, "who", "what"),
        time="when",
        value="how much",
        title="name",
        item_columns=("kind",),
    ).parse()


def _items(path: Path, raw: bytes) -> object:
    path.write_bytes(raw)
    return ItemsTable(path, "what", "name", ("kind",)).parse()


def _cached(entry: Path, file: str, raw: bytes) -> object:
    kept = (entry / file).read_bytes()
    (entry / file).write_bytes(raw)
    try:
        found = cache.read(entry)
        return None if found is None else _looked(found)
    finally:
        (entry / file).write_bytes(kept)


# --- Published tables ----------------------------------------------------------------

_RELEASES = {
    "movielens-100k": {
        "u.data": b"2\t10\t3\t881250949\n1\t11\t5\t881250000\n",
        "u.user": b"1|24|M|technician|85711\n2|7|F|other|T8H1N\n",
        "u.item": (
            f"10|A (1995)|||x|0|1|{'0|' * 16}1\n11|B||||1|{'0|' * 17}0\n"
        ).encode(),
    },
    "movielens-latest-small": {
        "ratings.csv": b"userId,movieId,rating,timestamp\n2,10,3.5,9\n1,11,5.0,8\n",
        "movies.csv": b'movieId,title,genres\n10,"A ""b"" (1995)",War\n11,B,War|A\n',
    },
    "citeulike-a": {
        "users.dat": b"2 2 0\n0\n3 0 3 0\n1 3",
        "item-tag.dat": b"2 1 0\n0\n1 2\n1 0\n",
        "citations.dat": b"2 2 3\n0\n1 0\n1 0\n",
        "tags.dat": "réseau\nbayesian\nold_idea".encode(),
    },
    "steam-200k": {
        "steam-200k.csv": b'151,"A, b",purchase,1.0,0\n151,"A, b",play,27.5,0\n'
        b'9,"Spore",purchase,1.0,0\n'
    },
    "filmtrust": {
        "ratings.txt": b"1 5 2\r\n1 7 4\r\n3 5 3.5\r\n",
        "trust.txt": b"3 1 1\r\n3 9 1\r\n",
    },
    "lastfm": {
        "user_artists.dat": b"userID\tartistID\tweight\n2\t51\t13883\n7\t51\t90\n",
        "artists.dat": b"id\tname\turl\tpictureURL\n53\tA\tu\tp\n51\tB\tu\tp\n",
        "tags.dat": b"tagID\ttagValue\n1\tmetal\n2\tpop\n",
        "user_taggedartists.dat": b"userID\tartistID\ttagID\tday\tmonth\tyear\n"
        b"7\t51\t2\t1\t4\t2009\n2\t53\t1\t1\t4\t2009\n",
        "user_friends.dat": b"userID\tfriendID\n2\t7\n7\t2\n",
    },
    "frappe": {
        "frappe/frappe.csv": b"user\titem\tcnt\tdaytime\tweekday\tisweekend\thomework"
        b"\tcost\tweather\tcountry\tcity\n"
        b"0\t0\t1\tmorning\tsunday\tweekend\tunknown\tfree\tsunny\tSpain\t0\n",
        "frappe/meta.csv": b"item\tpackage\tcategory\tdownloads\tdeveloper\ticon"
        b"\tlanguage\tdescription\tname\tprice\trating\tshort desc\n"
        b'0\tcom.a\tTools\t10+\tAny\tu\ten\t"Say ""x"""\tA tool\t$2.99\t4.5\tShort\n',
    },
}


def _tables(place: Path) -> Iterator[Target]:
    news = place / "news"
    mind_writer.write(NewsWorld(users=3, news=20, shown=3, seed=3).dataset(), news)
    releases: dict[str, dict[str, bytes]] = {
        **_RELEASES,
        "mind-small-sample": {
            path.name: path.read_bytes() for path in sorted(news.iterdir())
        },
    }
    for name, files in releases.items():
        folder = place / "tables" / name
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(text)
        parse = source(name).parse  # type: ignore[attr-defined]
        make = partial(_one_file, list(files.items()))
        share, first = 0.008 / len(releases), next(iter(files.items()))
        sound = first[0].encode() + b"\0" + first[1]
        yield Target(name, share, make, partial(_in_folder, parse, folder), sound)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        for file, text in _RELEASES["filmtrust"].items():
            out.writestr(file, text)
    raw = packed.getvalue()
    make, read = partial(_harmed, [raw]), partial(_zipped, place / "f.zip")
    yield Target("zip", 0.002, make, read, raw)


def _one_file(files: Sequence[tuple[str, bytes]], draw: random.Random) -> bytes:
    """Which file, a zero byte, and its harmed text."""
    name, text = files[int(draw.random() * len(files))]
    return name.encode() + b"\0" + harmed(draw, [text])


def _in_folder(parse: Any, folder: Path, raw: bytes) -> object:
    name, _, text = raw.partition(b"\0")
    path = folder / name.decode()
    kept = path.read_bytes()
    path.write_bytes(text)
    try:
        return _looked(parse(folder))
    finally:
        path.write_bytes(kept)


def _zipped(path: Path, raw: bytes) -> object:
    path.write_bytes(raw)
    return source("filmtrust").parse(path)  # type: ignore[attr-defined]


# --- A run directory -----------------------------------------------------------------

_EXPERIMENT = """
[data]
source = "table"
split = "new-users"
validation = 4
test = 4
[data.table]
path = "events.csv"
user = "u"
item = "i"
[method]
name = "federated_popularity"
[privacy]
mechanism = "central"
channel = "secure_sum"
noise_multiplier = 2.0
delta = 1e-4
[evaluate]
metrics = ["ndcg@3"]
baselines = []
"""


def _run(place: Path) -> Iterator[Target]:
    rows = (f"u{n},i{(n + 5 * k) % 7}\n" for n in range(24) for k in range(4))
    (place / "events.csv").write_text("u,i\n" + "".join(rows))
    experiment = place / "experiment.toml"
    experiment.write_text(_EXPERIMENT)
    raw = _EXPERIMENT.encode()
    make, read = partial(_harmed, [raw]), partial(_experiment, place / "e.toml")
    yield Target("experiment", 0.001, make, read, raw)
    tacit.train(experiment, out=place / "run")
    run = RunDirectory(place / "run")
    readers: dict[Path, tuple[float, Callable[[], object]]] = {
        run.model: (0.001, partial(_model, run.path)),
        run.model_facts: (0.001, partial(_model, run.path)),
        run.ledger: (0.003, partial(read_spent, run.ledger)),
        run.result: (0.003, lambda: saved_run.SavedRun.at(run.path).result),
        run.metrics: (0.003, run.rounds_logged),
        run.privacy_card: (0.0005, partial(privacy_card.write_card, run)),
        run.checkpoint: (0.002, partial(load_learnt, run.checkpoint)),
    }
    for path, (share, reader) in readers.items():
        sound = path.read_bytes()
        mutate = _resealed_json if path.suffix == ".json" else harmed
        made = partial(_made, mutate, [sound])
        looked = partial(_with_its_digest, run, reader) if path == run.model else reader
        yield Target(path.name, share, made, partial(_replaced, path, looked), sound)
    yield _state(place / "small" / "state.safetensors")


def _experiment(path: Path, raw: bytes) -> object:
    path.write_bytes(raw)
    return read_experiment(path)


def _model(run: Path) -> object:
    """A model, its titles, and a list from it."""
    found = tacit.load(run)
    return list(found.catalog.titles), found.recommend(list(found.catalog.ids)[:1], 3)


def _resealed_json(draw: random.Random, corpus: Sequence[bytes]) -> bytes:
    """Harmed; in half of all cases the checksum is made to fit again."""
    raw = harmed_json(draw, corpus)
    if draw.random() < 0.5:
        return raw
    try:
        found = json.loads(raw)
        rest = {name: value for name, value in found.items() if name != CHECKSUM}
        return json.dumps(sealed(rest)).encode()
    except (ValueError, AttributeError, RecursionError, OverflowError):
        return raw  # no table, or one that has no checksum


def _with_its_digest(run: RunDirectory, read: Callable[[], object]) -> object:
    """Read a model whose description has the digest of whatever its arrays are."""
    kept = run.model_facts.read_bytes()
    facts = json.loads(kept) | {"digest": digest_of(run.model.read_bytes())}
    facts.pop(CHECKSUM)
    run.model_facts.write_text(json.dumps(sealed(facts)))
    try:
        return read()
    finally:
        run.model_facts.write_bytes(kept)


def _replaced(path: Path, read: Callable[[], object], raw: bytes) -> object:
    kept = path.read_bytes()
    path.write_bytes(raw)
    try:
        return read()
    finally:
        path.write_bytes(kept)


def _state(path: Path) -> Target:
    plan, catalog = Plan(2, rounds=9), checkerboard(2, 2, 1).catalog
    weights = {"W": np.arange(4.0).reshape(2, 2)}
    server = Server(plan, catalog, 4, weights, {"step": np.array(3, np.int64)})
    leaves = {"u": Dense(np.ones((2, 3), np.float32))}
    clients = Clients(plan, np.arange(2), np.zeros(2, np.int64), Tree(leaves))
    state = State(server, clients, np.array([[4], [1]]), np.array([0.5, 0.125]))
    save_checkpoint(path, state, digest="d")
    sound = path.read_bytes()

    def read() -> object:
        return load_checkpoint(path, state, digest="d")

    make = partial(_harmed, [sound])
    return Target("checkpoint", 0.003, make, partial(_replaced, path, read), sound)


# --- A client's ledger ---------------------------------------------------------------


def _ledgers(place: Path) -> Iterator[Target]:
    path, kept = place / "ledger.db", place / "kept.db"
    terms = Terms((_release(GaussianDpEvent(2.0)),), rounds=9, most=9)
    with ClientLedger(kept) as ledger:
        ledger.join("run", terms, state=b"state")
        with ledger.transaction():
            ledger.permits("run", 0, asked=b"?")
        ledger.keep("run", 0, report=b"report", state=b"next", before=b"state")
    sound, read = kept.read_bytes(), partial(_ledger, path)
    yield Target("ledger.db", 0.0004, partial(_harmed, [sound]), read, sound)
    make = partial(_row, kept, path, [write_terms(terms)])
    yield Target("ledger.db rows", 0.0004, make, read, sound)


def _row(kept: Path, path: Path, terms: Sequence[str], draw: random.Random) -> bytes:
    """A sound database with a cell that is not."""
    shutil.copy(kept, path)
    table, column = draw.choice(
        (
            *(("runs", "terms"), ("runs", "terms"), ("runs", "joined")),
            *(("answers", "round"), ("answers", "asked"), ("answers", "multiplier")),
            *(("answers", "sent"), ("entries", "release"), ("entries", "at")),
        )
    )
    value = draw.choice((None, -1, 2**63 - 1, 1e308, "x", b"\xff", ""))
    if column == "terms":
        value = _json(terms, draw).decode("utf-8", "replace")
    file = sqlite3.connect(path)
    try:
        file.execute("PRAGMA ignore_check_constraints = ON")
        file.execute(f"UPDATE {table} SET {column} = ?", (value,))
        file.commit()
    except sqlite3.IntegrityError:
        pass  # not every column takes nothing
    finally:
        file.close()
    return path.read_bytes()


def _ledger(path: Path, raw: bytes) -> object:
    path.write_bytes(raw)
    path.with_name(path.name + "-journal").unlink(missing_ok=True)
    with ClientLedger(path, create=False) as ledger:
        found = [*ledger.runs(), *ledger.entries(), *ledger.caps()]
        return found, ledger.joined("run"), ledger.answer("run", 0)


# --- The service ---------------------------------------------------------------------


def _service(place: Path) -> Iterator[Target]:
    space = ItemSpace(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), np.zeros(3))
    users = np.array([[2.0, 0.0], [0.0, 2.0], [-2.0, -2.0]] * 5)
    settings = ServingSettings(Mode.VDP, 2.0)
    mechanism = settings.mechanism(space, users, Key.from_seed(0))
    model = ServedModel(space, mechanism)
    [query] = model.release(users[:1], Key.from_seed(1).alone())
    sound = query.encode()
    yield Target("query", 0.02, partial(_harmed, [sound]), model.decode, sound)
    answer = Answer(model.version, np.array([2, 0], np.int32), np.array([1.0, 0.5]))
    read, sound = partial(Answer.decode, n_items=3), answer.encode()
    yield Target("answer", 0.02, partial(_harmed, [sound]), read, sound)
    content = Content(f"/v1/basis/{'ab' * 32}", "ab" * 32, 12)
    queries = Queries("vdp", model.version.hex(), 28, 3, content, [])
    document = ModelDocument(FORMAT, "0", 3, {}, content, queries, False, [])
    made = partial(_made, harmed_json, [document.encode()])
    yield Target("model", 0.01, made, ModelDocument.decode, document.encode())
    sound, path = write_basis(mechanism), place / "basis"
    yield Target(
        "basis", 0.002, partial(_harmed, [sound]), partial(_basis, path), sound
    )


def _basis(path: Path, raw: bytes) -> object:
    path.write_bytes(raw)
    return read_basis(path)
