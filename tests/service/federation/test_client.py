"""A client over real HTTP: what it checks, what it sends, and what it remembers.

Also `tacit.service.federation.client_folder`, its files, and
`tacit.service.federation.accepted_round`, what it compares.
"""

import hashlib
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from quick import some_of
from service.federation.test_rotation import PRIVATE as NEXT
from service.federation.two_operators import (
    SIGNING,
    WINDOW,
    TwoOperators,
    histories,
    invitation_of,
)

from tacit.data.shards import Shards
from tacit.errors import BadRun, BadValue, Refused, Unanswered
from tacit.keys import Key
from tacit.ledger.budget import Cap
from tacit.ledger.durable import ClientLedger
from tacit.ledger.records import GIVEN_UP
from tacit.method import CentralGaussian, Unmetered, enrol, participate
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.service.federation.client import FederationClient, Kind
from tacit.service.federation.history import History
from tacit.service.federation.invitation import MOST_BYTES
from tacit.service.federation.rotation import (
    SigningKeys,
    rotation,
    sign_rotation,
    write_rotations,
)
from tacit.service.federation.sealing import Role, body_size
from tacit.service.signed_document import signing_public_key
from tacit.testing.contract import mixed_world
from tacit.transport.channels import channel

WORLD = mixed_world()
USERS, SOME = len(WORLD.shards), 6
PLAN = Plan(
    USERS,
    rounds=3,
    channel="two_servers",
    delta=1e-6,
    target_epsilon=4.0,
    min_contributors=3,
)
POPULAR = FederatedPopularity(privacy=CentralGaussian())
HISTORIES = histories(WORLD.shards, WORLD.catalog)


@pytest.fixture
def world():
    made = invitation_of("federated_popularity", POPULAR, PLAN, WORLD.catalog)
    with TwoOperators(made).running() as found:
        yield found


class Clock:
    """A clock that stands still until it is told to go, or until somebody sleeps."""

    def __init__(self) -> None:
        self.now = time.time()
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def make(world, tmp_path):
    made = []

    def client(user: int = 4, **settings) -> FederationClient:
        folder = tmp_path / f"user {user}"
        if not (folder / "client.json").exists():
            join(folder, world, HISTORIES[user])
        clock = settings.setdefault("clock", Clock())
        settings = {"spread": 0.0, "sleep": clock.sleep} | settings
        made.append(FederationClient(folder, **settings))
        return made[-1]

    yield client
    for one in made:
        one.close()


def join(folder, world, items, **settings) -> History:
    return FederationClient.join(
        folder, world.url, lambda _: History(tuple(items)), **settings
    )


# --- A whole run ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        Gram(head=6, count_rounds=1, load_rounds=1, privacy=CentralGaussian()),
        POPULAR,
    ],
    ids=["gram", "popularity"],
)
def test_clients_over_http_teach_what_the_simulations_channel_does(tmp_path, method):
    """All phases, a handful of users; the published integers are equal."""
    name = "gram" if isinstance(method, Gram) else "federated_popularity"
    world = TwoOperators(invitation_of(name, method, PLAN, WORLD.catalog))
    with world.running():
        for user, items in enumerate(HISTORIES[:SOME]):
            join(tmp_path / str(user), world, items)
        for _ in range(PLAN.rounds):
            opened = world.open()
            broadcast = world.invitation.method.broadcast(world.server)
            for user in range(SOME):
                with FederationClient(tmp_path / str(user)) as client:
                    assert client.once(now=True).kind is Kind.SENT
                    assert client.once(now=True).kind in (Kind.NOTHING, Kind.OVER)
            assert len(opened.reports) == SOME
            expected = simulated(world.invitation, broadcast, opened.context)
            found = world.close()
            assert found.total.keys() == expected.total.keys()
            for leaf, value in found.total.items():
                assert (value == expected.total[leaf]).all()
        with FederationClient(tmp_path / "0") as client:
            assert client.once().kind is Kind.OVER


def simulated(invitation, broadcast, context):
    own = [WORLD.catalog.indices(one) for one in HISTORIES[:SOME]]
    n, method = len(WORLD.catalog), invitation.method
    shards = Shards.of_histories(own, n_items=n, value=method.liked)
    rows = np.arange(SOME)
    keys, who = Key.from_seed(0).each(rows), WORLD.profiles.take(rows)
    clients = enrol(method, PLAN, who, keys, catalog=WORLD.catalog)
    _, reports, _ = participate(
        method, broadcast, clients, shards, keys, ledger=Unmetered()
    )
    return channel("two_servers").carry([reports], context)


def test_outcomes_go_on_until_the_run_is_over(world, make):
    client, seen = make(), []
    world.open()
    for outcome in client.outcomes(now=True):
        seen.append(outcome.kind)
        if outcome.kind is Kind.SENT and outcome.round < PLAN.rounds - 1:
            world.close()
            world.open()
    assert seen == [Kind.SENT] * 3 + [Kind.OVER]


# --- Joining and leaving --------------------------------------------------------------


def test_what_joins_is_private_and_says_nothing(world, make, tmp_path):
    client = make()
    folder = tmp_path / "user 4"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("client.json", "history.json", "invitation"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert [path for _, path, _ in world.requests] == ["/v1/invitation"]
    assert client.folder.history().items == tuple(HISTORIES[4])


def test_every_request_names_the_protocol_and_carries_no_cookie(world, make):
    world.open()
    make().once(now=True)
    for _, _, headers in world.requests:
        assert headers["tacit-protocol"] == "1"
        assert "cookie" not in headers
        assert "authorization" not in headers


def test_a_ticket_is_for_the_leader_alone(world, tmp_path):
    join(tmp_path, world, HISTORIES[0], ticket=bytes(range(16)))
    world.open()
    with FederationClient(tmp_path) as client:
        client.once(now=True)
    asked = [(how, headers.get("authorization")) for how, _, headers in world.requests]
    tickets = [(how, one) for how, one in asked if one is not None]
    assert tickets == [("POST", f"Bearer {bytes(range(16)).hex()}")]


def test_an_invitation_can_be_expected(world, tmp_path):
    digest = hashlib.sha256(world.invitation.encode()).hexdigest()
    with pytest.raises(Refused, match="is expected"):
        join(tmp_path, world, HISTORIES[0], expected="0" * 64)
    assert not (tmp_path / "client.json").exists()
    join(tmp_path, world, HISTORIES[0], expected=digest.upper())


def test_a_folder_holds_one_client(world, make, tmp_path):
    make()
    with pytest.raises(Refused, match="holds a client already"):
        join(tmp_path / "user 4", world, HISTORIES[4])
    with pytest.raises(BadRun, match="holds no client"):
        FederationClient(tmp_path / "elsewhere")


def test_what_is_agreed_and_spent_is_shown(world, make):
    world.open()
    client = make()
    before = client.show()
    assert (before.entries, before.waiting) == ((), 0)
    client.once(now=True)
    after = client.show()
    assert len(after.entries) == 1
    [spent] = [s for s in after.spent if (s.unit, s.view) == ("user", "server")]
    [agreed] = [s for s in after.agreed if (s.unit, s.view) == ("user", "server")]
    assert 0 < spent.epsilon < agreed.epsilon <= PLAN.target_epsilon


def test_a_trial_of_one_machine_says_so_and_keeps_the_owners_cap(tmp_path):
    """A cap in the server's view is passed by whatever that view does not bound."""
    made = invitation_of("federated_popularity", POPULAR, PLAN, WORLD.catalog)
    world = TwoOperators(replace(made, one_machine=True))
    with world.running():
        world.open()
        for name in ("capped", "free"):
            join(tmp_path / name, world, HISTORIES[4])
        with ClientLedger(tmp_path / "capped" / "ledger.db") as ledger:
            ledger.set_cap(Cap(100.0, 1e-6, view="server"))
        with FederationClient(tmp_path / "capped") as client:
            assert client.once(now=True).kind is Kind.REFUSED
        with FederationClient(tmp_path / "free") as client:
            assert client.once(now=True).kind is Kind.SENT
            shown = client.show()
    for lines in (shown.agreed, shown.spent):
        found = {line.view: line for line in lines if line.unit == "user"}
        assert found["server"].epsilon is None
        assert "one machine" in found["server"].reason
        assert 0 < found["release"].epsilon < PLAN.target_epsilon


# --- Sending --------------------------------------------------------------------------


def test_every_report_has_one_length(world, make):
    world.open()
    make(0).once(now=True)
    make(4).once(now=True)
    assert {len(body) for body in world.bodies} == {body_size(len(WORLD.catalog))}


def test_the_first_send_is_at_a_random_moment_of_the_window(world, make):
    world.open()
    client = make(spread=None)
    outcome = client.once()
    assert outcome.kind is Kind.WAITING
    assert world.bodies == []
    clock = client._clock
    assert clock.now <= outcome.until <= clock.now + WINDOW * 0.9
    assert client.show().waiting == 1
    clock.now = outcome.until + 1
    assert client.once().kind is Kind.SENT
    assert client.show().waiting == 0


def test_after_a_restart_the_same_bytes_are_sent(world, make):
    world.open()
    make(spread=1000.0).once()
    world.answers += [503, 503, 503]
    assert make().once(now=True).kind is Kind.WAITING
    assert make().once(now=True).kind is Kind.SENT
    assert len(world.bodies) == 4
    assert len(set(world.bodies)) == 1
    assert len(world.rounds[0].reports) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 302])
def test_who_is_busy_gets_the_same_bytes_again(world, make, status):
    world.open()
    world.answers += [status]
    client = make()
    assert client.once(now=True).kind is Kind.SENT
    assert len(world.bodies) == 2
    assert len(set(world.bodies)) == 1
    assert len(client._clock.slept) == 1


def test_a_leader_that_is_away_is_tried_again(world, make):
    world.open(url="http://127.0.0.1:9")
    client = make()
    outcome = client.once(now=True)
    assert outcome.kind is Kind.WAITING
    assert "cannot be reached" in outcome.message
    assert client.show().waiting == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((one, Kind.DROPPED) for one in (400, 401, 403, 411, 413, 418)),
        *((one, Kind.GIVEN_UP) for one in (404, 409, 410)),
    ],
)
def test_what_is_not_wanted_is_never_made_again(world, make, status, kind):
    world.open()
    world.answers += [status]
    client = make()
    outcome = client.once(now=True)
    assert (outcome.kind, outcome.round) == (kind, 0)
    assert f"status {status}, as the test says" in outcome.message
    for one in (client, make()):
        assert one.once(now=True).kind is Kind.NOTHING
        assert one.show().waiting == 0
    assert len(world.bodies) == 1
    [entry] = client.show().entries
    assert entry.sent == GIVEN_UP


def test_a_report_is_not_sent_for_ever(world, make):
    """A leader that has gone for good does not keep the client from other rounds."""
    opened = world.open()
    world.answers += [503] * 9
    client = make()
    assert client.once(now=True).kind is Kind.WAITING
    client._clock.now = opened.manifest.closes + 23 * 3600
    assert client.once(now=True).kind is Kind.WAITING
    client._clock.now += 2 * 3600
    outcome = client.once(now=True)
    assert outcome.kind is Kind.GIVEN_UP
    assert "the window is over since long" in outcome.message
    assert client.show().waiting == 0
    assert len(client.show().entries) == 1


@pytest.mark.parametrize("status", [500, 410])
def test_a_report_that_waits_is_sent_whatever_comes_of_the_look(world, make, status):
    world.open()
    world.answers += [503] * 3
    client = make()
    assert client.once(now=True).kind is Kind.WAITING
    world.statuses["/v1/manifest"] = status
    assert client.once(now=True).kind is Kind.SENT
    assert len(set(world.bodies)) == 1


def test_the_last_report_is_sent_before_the_run_is_over(world, make):
    """The last round is answered for whoever looks; the program goes on sending."""
    client = make()
    for _ in range(PLAN.rounds - 1):
        world.open()
        assert client.once(now=True).kind is Kind.SENT
        world.close()
    world.open()
    world.answers += [503] * 4
    found = [outcome.kind for outcome in client.outcomes(now=True)]
    assert found == [Kind.WAITING, Kind.SENT, Kind.OVER]
    assert client.show().waiting == 0


def test_after_a_report_nothing_is_fetched_until_the_end_of_the_window(world, make):
    """Who serves manifests would else see when it was sent; also after a restart."""
    opened = world.open()
    client = make(spread=None)
    clock, began = client._clock, client._clock.now
    clock.now = client.once().until
    before = len(world.requests)
    assert client.once().kind is Kind.SENT
    for one in (client, make(spread=None, clock=clock)):
        silent = one.once()
        assert silent.kind is Kind.NOTHING
        last = began + 0.9 * (opened.manifest.closes - began)
        assert last - 1 <= silent.until <= opened.manifest.closes
    assert len(world.requests) == before + 1
    clock.now = silent.until
    client.once()
    assert len(world.requests) > before + 1


def test_a_round_that_closed_meanwhile_is_given_up(world, make):
    world.open()
    client = make(spread=1000.0)
    client.once()
    world.rounds[0].is_closed = True
    assert client.once(now=True).kind is Kind.GIVEN_UP


# --- What is refused before the history is touched ------------------------------------


def untouched(client, world) -> None:
    shown = client.show()
    assert shown.entries == ()
    assert shown.waiting == 0
    assert world.bodies == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (lambda m: {"run": bytes(16)}, "run of the manifest"),
        (lambda m: {"sigma": m.fields.sigma - 1}, "the noise of one operator"),
        (lambda m: {"limit": m.fields.limit + 1}, "limit of the manifest"),
        (lambda m: {"limit": m.fields.limit - 1}, "limit of the manifest"),
        (lambda m: {"steps": m.fields.steps // 2}, "steps of the manifest"),
        (lambda m: {"numbers": m.fields.numbers + 1}, "numbers of the manifest"),
        (lambda m: {"leaf": "other"}, "leaf of the manifest"),
        (lambda m: {"least_reports": 2}, "used with 2 reports"),
        (lambda m: {"round": 1, "previous": bytes(32)}, "the broadcast of round 1"),
        (lambda m: {"previous": bytes(32)}, "follows another one: a fork"),
    ],
)
def test_a_manifest_that_is_not_as_agreed_is_refused(world, make, changes, reason):
    client = make()
    honest = world.open().manifest
    world.rounds.clear()
    world.open(**changes(honest))
    outcome = client.once(now=True)
    assert outcome.kind is Kind.REFUSED
    assert reason in outcome.message
    untouched(client, world)


@pytest.mark.parametrize(
    "url",
    [
        "http://reports.example",
        "https://u:p@reports.example",
        "file:///x",
        "https://a#b",
    ],
)
def test_an_address_that_is_not_encrypted_is_refused_before_anything(world, make, url):
    client = make()
    world.open(url=url)
    outcome = client.once(now=True)
    assert outcome.kind is Kind.REFUSED
    assert "nothing is sent: the address for reports=" in outcome.message
    assert client.membership.known == {}
    untouched(client, world)


def test_nobody_joins_over_an_address_that_is_not_encrypted(tmp_path):
    with pytest.raises(BadValue, match="is not encrypted"):
        FederationClient.join(tmp_path, "http://films.example", lambda _: History(()))
    assert not (tmp_path / "client.json").exists()


@pytest.mark.parametrize("role", [*Role])
def test_one_operator_alone_signs_nothing(world, make, role):
    client = make()
    world.open(signing={**SIGNING, role: bytes([77]) * 32})
    outcome = client.once(now=True)
    assert outcome.kind is Kind.REFUSED
    assert "has not signed this manifest" in outcome.message
    untouched(client, world)


def test_a_manifest_changed_on_its_way_is_refused(world, make):
    client, opened = make(), world.open()
    world.files["/v1/manifest"] = opened.sent[:-1] + b" "
    assert client.once(now=True).kind is Kind.REFUSED
    untouched(client, world)


def test_a_second_manifest_for_a_round_is_a_fork(world, make):
    client = make()
    world.open()
    assert client.once(now=True).kind is Kind.SENT
    world.rounds.clear()
    world.open(closes=int(client._clock()) + 77)
    for one in (client, make()):  # also after a restart
        outcome = one.once(now=True)
        assert outcome.kind is Kind.REFUSED
        assert "a fork" in outcome.message
    assert len(world.bodies) == 1


def test_a_round_that_follows_an_unknown_one_is_refused(world, make):
    client = make()
    world.open()
    client.once(now=True)
    world.close()
    world.open(previous=bytes(32))
    outcome = client.once(now=True)
    assert "follows a round that is not known" in outcome.message
    assert len(world.bodies) == 1


def test_who_was_away_catches_up_by_the_digests(world, make):
    away, there = make(0), make(1)
    for round_ in range(3):
        world.open()
        assert there.once(now=True).kind is Kind.SENT
        if round_ != 1:
            assert away.once(now=True).kind is Kind.SENT
        world.close()
    assert sorted(away.membership.known) == [0, 1, 2]
    assert away.membership.known == there.membership.known


def test_nobody_catches_up_on_a_fork(world, make):
    """Another history of the run, whole in itself, beside what the client has seen."""
    client = make()
    world.open()
    client.once(now=True)
    other = TwoOperators(world.invitation, url=world.url)
    other.open(opens=5)
    for _ in range(2):
        other.close()
        other.open()
    world.rounds = other.rounds
    outcome = client.once(now=True)
    assert outcome.kind is Kind.REFUSED
    assert sorted(client.membership.known) == [0]
    assert len(world.bodies) == 1


def test_windows_are_kept(world, make):
    client = make()
    now = int(client._clock())
    world.open(opens=now + 50)
    outcome = client.once(now=True)
    assert (outcome.kind, outcome.until) == (Kind.WAITING, now + 50)
    client._clock.now += WINDOW + 60
    assert client.once(now=True).kind is Kind.NOTHING
    untouched(client, world)


@pytest.mark.parametrize("opens", [-7 * 24 * 3600, -10])
def test_a_window_that_ends_soon_is_not_answered_by_itself(world, make, opens):
    """Both operators could sign it, and all who are there would send at one moment."""
    client = make(spread=None)
    now = int(client._clock())
    world.open(opens=now + opens, closes=now + 599)
    outcome = client.once()
    assert outcome.kind is Kind.NOTHING
    assert "--now" in outcome.message
    untouched(client, world)
    assert client.membership.known == {}
    assert make(spread=700.0).once().kind is Kind.NOTHING
    assert make(spread=30.0).once().kind is Kind.WAITING  # its owner has chosen that
    assert client.once(now=True).kind is Kind.SENT


def test_a_window_that_began_long_ago_is_spread_over_what_is_left(world, make):
    """13 clients; that all of them send in the first tenth has a chance below 1e-12."""
    now = int(time.time())
    world.open(opens=now - 7 * 24 * 3600, closes=now + 7200)
    waits = []
    for user in range(13):
        client = make(user, spread=None)
        outcome = client.once()
        assert outcome.kind is Kind.WAITING
        waits.append(outcome.until - client._clock())
    assert 720 < max(waits) <= 0.9 * 7210
    assert world.bodies == []


def test_a_round_that_was_begun_is_answered_while_it_is_open(world, make, monkeypatch):
    """Why it was cut off may depend on the history, so silence would say something."""
    client = make(spread=None)
    opened = world.open()

    def cut_off(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(client._client.ledger), "keep", cut_off)
        with pytest.raises(KeyboardInterrupt):
            client.once()
    client._clock.now = opened.manifest.closes - 5
    assert client.once().kind is Kind.SENT
    [both] = {sum(h.sum() for h in world.halves(opened).values()) % 2**32}
    assert both == 0  # without the history


def test_before_the_first_round_it_waits(world, make):
    assert make().once().kind is Kind.WAITING


def test_a_broadcast_with_another_digest_is_refused(world, make):
    client, opened = make(), world.open()
    name = f"/v1/broadcast/{opened.manifest.broadcast.hex()}"
    changed = bytearray(opened.message)
    changed[-1] ^= 1
    world.files[name] = bytes(changed)
    outcome = client.once(now=True)
    assert outcome.kind is Kind.REFUSED
    assert "has not the digest" in outcome.message
    untouched(client, world)


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("/v1/manifest", 70_000),
        ("/v1/broadcast/{}", 10_000_000),
    ],
)
def test_nothing_is_read_without_a_limit(world, make, path, size):
    client, opened = make(), world.open()
    world.files[path.format(opened.manifest.broadcast.hex())] = bytes(size)
    outcome = client.once(now=True)
    assert outcome.kind is Kind.REFUSED
    assert "bytes allowed" in outcome.message
    untouched(client, world)
    assert size < MOST_BYTES


def test_another_version_of_the_protocol_is_said(world, make):
    client = make()
    world.open()
    world.statuses["/v1/manifest"] = 426
    outcome = client.once(now=True)
    assert (outcome.kind, outcome.message) == (Kind.REFUSED, "as the test says")
    del world.statuses["/v1/manifest"]
    world.answers += [426]
    assert client.once(now=True).kind is Kind.REFUSED
    assert client.show().waiting == 1  # a newer program can send it
    assert client.once(now=True).kind is Kind.SENT


def test_a_coordinator_that_is_away_is_no_refusal(world, make):
    client = make()
    world.statuses["/v1/manifest"] = 500
    with pytest.raises(Unanswered, match="status 500"):
        client.once()


def test_a_cap_of_the_owner_is_kept(world, make, tmp_path):
    client = make()
    with ClientLedger(tmp_path / "user 4" / "ledger.db") as ledger:
        ledger.set_cap(Cap(0.01, 1e-6, view="server"))
    world.open()
    outcome = client.once(now=True)
    assert outcome.kind is Kind.REFUSED
    assert "your cap is 0.01" in outcome.message
    assert world.bodies == []


# --- Keys -----------------------------------------------------------------------------


def rotated(world, n: int) -> bytes:
    """The rotation to the n-th keys, signed by those before."""
    signing = {0: tuple(SIGNING[role] for role in Role), 1: NEXT[1], 2: NEXT[2]}
    to = SigningKeys(*map(signing_public_key, signing[n]), n)
    run = world.invitation.run
    leader, helper = (sign_rotation(to, one, run=run) for one in signing[n - 1])
    return rotation(to, run=run, leader=leader, helper=helper)


def test_keys_that_both_operators_replaced_are_followed(world, make):
    client = make()
    world.files["/v1/rotation"] = write_rotations(
        [rotated(world, 1), rotated(world, 2)]
    )
    newest = dict(zip(Role, NEXT[2], strict=True))
    world.open(signing=newest)
    assert client.once(now=True).kind is Kind.SENT
    assert make().membership.keys.number == 2
    world.close()
    del world.files["/v1/rotation"]
    world.open(signing=newest)
    assert make().once(now=True).kind is Kind.SENT
    world.rounds.pop()
    world.open()  # signed by the old keys
    assert make().once(now=True).kind is Kind.REFUSED


def test_a_rotation_that_one_operator_signed_is_not_followed(world, make):
    client = make()
    whole = rotated(world, 1)
    forged = whole[:64] + whole[:64] + whole[128:]
    world.files["/v1/rotation"] = write_rotations([forged])
    world.open(signing=dict(zip(Role, NEXT[1], strict=True)))
    outcome = client.once(now=True)
    assert outcome.kind is Kind.REFUSED
    assert "has not signed this rotation" in outcome.message
    assert make().membership.keys.number == 0
    untouched(client, world)


# --- Kills ----------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from tacit.runtime.client import Client
from tacit.service.federation import client as here
from tacit.service.federation.accepted_round import AcceptedRound
from tacit.service.federation.client_folder import ClientFolder
from tacit.service.federation.exchange import Exchange

owner, name, when = {
    "before it is noted": (ClientFolder, "write", "before"),
    "after it is noted": (ClientFolder, "write", "after"),
    "while it is sealed": (AcceptedRound, "seal", "before"),
    "before it is kept": (AcceptedRound, "seal", "after"),
    "after it is kept": (Client, "participate", "after"),
    "before it is sent": (Exchange, "post_report", "before"),
    "after it is sent": (Exchange, "post_report", "after"),
    "after it is erased": (Client, "finished", "after"),
}[sys.argv[1]]
own = getattr(owner, name)

def deadly(*given, **named):
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    own(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, name, deadly)
here.FederationClient(sys.argv[2], spread=0.0).once(now=True)
"""


@pytest.mark.parametrize(
    ("where", "n_bodies"),
    some_of(
        [
            ("after it is noted", 1),
            ("before it is kept", 1),
            ("after it is sent", 2),
            ("after it is erased", 1),
            ("before it is noted", 1),
            ("while it is sealed", 1),
            ("after it is kept", 1),
            ("before it is sent", 1),
        ],
        4,
    ),
)
def test_killed_anywhere_a_client_speaks_once(world, make, tmp_path, where, n_bodies):
    """The process is really killed; then the client goes on from its files."""
    opened = world.open()
    make().close()
    done = subprocess.run(
        [sys.executable, "-c", KILLED, where, tmp_path / "user 4"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    client = make()
    while (outcome := client.once(now=True)).kind is Kind.SENT:
        pass
    assert outcome.kind is Kind.NOTHING, outcome
    assert len(opened.reports) == 1
    assert len(world.bodies) == n_bodies
    assert len({*world.bodies}) == 1
    assert len(client.show().entries) == 1
    # Killed while it computed, the client does not read its history a second time.
    is_empty = where in ("while it is sealed", "before it is kept")
    both = sum(world.halves(opened).values(), np.zeros(1, np.uint32))
    assert (not both.any()) is is_empty
