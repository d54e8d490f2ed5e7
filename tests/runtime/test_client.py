"""A real device: the same bytes as in simulation, with its ledger in the loop."""

import shutil
import threading
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from ledger.first_format import first_text
from runtime.chosen import choosing
from safetensors.numpy import load

from tacit.data.catalog import Catalog, Profiles
from tacit.data.features import Category
from tacit.data.strings import Strings
from tacit.errors import BadMessage, BadValue, Refused
from tacit.files import state_folder
from tacit.keys import Key
from tacit.ledger.budget import Cap
from tacit.ledger.decisions import accept
from tacit.ledger.durable import ClientLedger
from tacit.ledger.records import GIVEN_UP, Doubt, Refusal
from tacit.ledger.terms import read_terms, write_terms
from tacit.method import Unmetered, enrol, participate
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.methods.privrec import PrivRec
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.privacy.guarantees import local
from tacit.release import Release, Standing, View
from tacit.runtime.client import Client
from tacit.runtime.ledger import statements
from tacit.runtime.simulate import Simulation
from tacit.sampling import Once
from tacit.testing.contract import mixed_world
from tacit.testing.toy import ToyFactors
from tacit.transport.codec import decode_reports, encode_broadcast, encode_reports
from tacit.tree import Dense, Tree

WORLD = mixed_world()
PLAN = Plan(len(WORLD.shards), rounds=30, delta=1e-6)
HISTORY = WORLD.shards.take([4])
METHODS = [
    ToyFactors(dither=1.0),
    FederatedPopularity(),
    FederatedPopularity(privacy=CentralGaussian(2.0)),
    FederatedPopularity(privacy=LocalPrivUnit(1.0)),
]


@dataclass(frozen=True)
class Noisy(ToyFactors):
    """Its subclasses do other things under one agreement."""

    dither: float = 5.0

    def terms(self, plan):
        return {"plan": plan.digest}

    def releases(self, plan):
        cells = local(plan, GaussianDpEvent(10.0), reason="a test")
        return (Release("noisy gradients", "server", "each round", cells),)


def broadcast_of(method, round_=0, *, seed=0, plan=PLAN):
    server = method.start(plan, WORLD.catalog, Key.from_seed(seed))
    return method.broadcast(replace(server, round=round_))


def asked(method, round_=0, **other) -> bytes:
    return encode_broadcast(broadcast_of(method, round_, **other))


@pytest.fixture
def make(tmp_path):
    """Clients on one file, as after a restart."""
    made = []

    def client(method=None, plan=PLAN, **settings) -> Client:
        path = tmp_path / "ledger.db"
        settings = {"catalog": WORLD.catalog, "history": HISTORY} | settings
        made.append(Client(path, method or Noisy(), plan, **settings))
        return made[-1]

    yield client
    for one in made:
        one.close()


def anchors():
    return (state_folder() / "ledgers").iterdir()


def rounds_in_state(client) -> int:
    """How often the private state was stepped."""
    return int(load(client.ledger.joined(client.run).state)["rounds"][0])


def reasons(client) -> list[str]:
    return [reason for _, reason, _, _ in client.ledger.refusals()]


# --- What it says --------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS, ids=lambda m: str(m)[:60])
def test_it_says_what_a_simulated_device_with_its_key_says(make, method, monkeypatch):
    """Two rounds, state carried along."""
    secret = Key.from_os()
    monkeypatch.setattr(Key, "from_os", lambda: secret)
    client, keys = make(method), secret.alone()
    state = enrol(method, PLAN, WORLD.profiles.take([4]), keys, catalog=WORLD.catalog)
    for round_ in (0, 5):
        broadcast = broadcast_of(method, round_, seed=round_)
        state, reports, _ = participate(
            method, broadcast, state, HISTORY, keys, ledger=Unmetered()
        )
        assert [client.participate(encode_broadcast(broadcast))] == encode_reports(
            broadcast, reports
        )
        layout = method.layout(PLAN, WORLD.catalog, round=round_)
        decode_reports(broadcast, encode_reports(broadcast, reports), layout)


def test_keys_come_from_the_operating_system(make, tmp_path):
    """Another client says something else; nothing is derived from the plan."""
    one = make()
    other = Client(
        tmp_path / "other.db", Noisy(), PLAN, catalog=WORLD.catalog, history=HISTORY
    )
    message = asked(Noisy())
    assert one.participate(message) != other.participate(message)
    other.close()


def test_no_secret_of_the_noise_is_on_the_disk(make, tmp_path, monkeypatch):
    """Joining, contributing and contributing nothing draw one each, and keep none."""
    drawn, draw = [], Key.from_os

    def watched():
        drawn.append(draw())
        return drawn[-1]

    monkeypatch.setattr(Key, "from_os", watched)
    make().participate(asked(Noisy()))
    assert len({key.secret for key in drawn}) == len(drawn) == 3
    kept = (tmp_path / "ledger.db").read_bytes()
    kept += b"".join(path.read_bytes() for path in anchors())
    for key in drawn:
        assert key.secret not in kept
        assert key.secret.hex().encode() not in kept


def test_two_runs_never_share_noise(make):
    first, second = make(run="monday"), make(run="tuesday")
    assert first.participate(asked(Noisy())) != second.participate(asked(Noisy()))
    assert [rounds for _, rounds in first.ledger.taken()] == [[0], [0]]


def test_state_is_kept_and_asked_again_it_is_not_stepped(make):
    client = make()
    for round_ in (0, 0, 1, 1, 0):
        client.participate(asked(Noisy(), round_))
    assert rounds_in_state(client) == 2


# --- Once a round --------------------------------------------------------------------


def test_asked_the_same_it_gives_the_same_bytes_even_with_another_history(make):
    said = make().participate(asked(Noisy()))
    again = make(history=WORLD.shards.take([7])).participate(asked(Noisy()))
    assert said == again
    assert len(make().ledger.entries()) == 1


def test_a_second_question_for_the_same_round_is_refused(make):
    """One report a round; two would be charged as one."""
    client = make()
    first = client.participate(asked(Noisy(), seed=0))
    assert client.participate(asked(Noisy(), seed=1)) is None
    assert make().participate(asked(Noisy(), seed=1)) is None
    assert reasons(client) == [Refusal.OTHER_QUESTION]
    assert client.participate(asked(Noisy(), seed=0)) == first
    assert len(client.ledger.entries()) == 1


def test_what_did_not_arrive_is_sent_again(make):
    client = make()
    said = client.participate(asked(Noisy(), 2))
    [parcel] = make().pending()
    assert (parcel.round, parcel.report) == (2, said)
    client.delivered(2)
    assert make().pending() == []


def test_pending_reports_of_other_runs_are_theirs(make):
    make(run="other").participate(asked(Noisy()))
    assert make().pending() == []


# --- No ------------------------------------------------------------------------------


def test_another_plan(make):
    client = make()
    other = replace(PLAN, rounds=99)
    assert client.participate(asked(Noisy(), plan=other)) is None
    assert reasons(client) == [Refusal.OTHER_PLAN]
    assert client.ledger.entries() == []


def test_a_round_that_was_never_planned(make):
    client, broadcast = make(), broadcast_of(Noisy())
    for round_ in (30, 2**64 - 1):
        assert (
            client.participate(encode_broadcast(replace(broadcast, round=round_)))
            is None
        )
    assert reasons(client) == [Refusal.TOO_LATE]


def test_a_sampler_that_promises_one_round_is_held_to_it(make):
    """The account of `Once` is that of one report; a server may still ask for more."""
    method = FederatedPopularity(privacy=LocalPrivUnit(1.0))
    plan = replace(PLAN, sampler=Once())
    client = make(method, plan)
    said = [client.participate(asked(method, r, plan=plan)) for r in range(3)]
    assert [one is None for one in said] == [False, True, True]
    assert reasons(client) == [Refusal.TOO_OFTEN]


FOUR = Plan(len(WORLD.shards), rounds=4, channel="secure_sum", delta=1e-6)


def test_a_phase_that_the_plan_does_not_have_in_that_round(make):
    """A bound and a noise other than agreed would be charged as if they were those."""
    method = Gram(head=5, privacy=CentralGaussian({"counts": 2.0, "relations": 3.0}))
    client = make(method, FOUR)
    broadcast = broadcast_of(method, plan=FOUR)
    assert broadcast.phase == 0
    for phase in (1, 2):
        assert (
            client.participate(encode_broadcast(replace(broadcast, phase=phase)))
            is None
        )
    assert reasons(client) == [Refusal.OTHER_PHASE]
    assert client.ledger.entries() == []
    assert client.participate(encode_broadcast(broadcast)) is not None


def test_an_entry_names_what_left_in_its_round(make):
    """Where one guarantee is for several phases, by the phase of the round."""
    method = choosing("dear", "cheap", "cheap")
    client = make(method, FOUR)
    for round_ in range(2):
        client.participate(asked(method, round_, plan=FOUR))
    [release] = client.terms.releases
    parts = [part.what for part in release.leaving()]
    assert [one.what for one in client.ledger.entries()] == parts
    assert ["cheap" in what for what in parts] == [False, True]
    assert [part.when for part in release.leaving()] == [
        "in rounds 1 to 2, if the method chooses it",
        "in every round, if the method chooses it",
    ]


def test_a_run_that_was_joined_without_words_for_its_phases_goes_on(make):
    """An entry names the release as a whole then, as it was agreed."""
    method = choosing("dear", "cheap", "cheap")
    client = make(method, FOUR)
    [release] = client.terms.releases
    before = replace(client.terms, releases=(replace(release, parts=()),))
    with client.ledger.transaction():
        row = client.ledger._runs()[client.run]
        old = replace(row, terms=write_terms(before))
        client.ledger._put_run(client.run, old)
    again = make(method, FOUR)
    assert again.participate(asked(method, 0, plan=FOUR)) is not None
    assert [one.what for one in again.ledger.entries()] == [release.what]


def test_a_phase_that_is_chosen_too_often(make):
    """Two rounds of half the budget each; whatever the server says, no third."""
    method = choosing("dear", "dear", "cheap")
    client = make(method, FOUR)
    said = [client.participate(asked(method, r, plan=FOUR)) for r in range(3)]
    assert [one is None for one in said] == [False, False, True]
    assert reasons(client) == [Refusal.BUDGET]
    assert make(method, FOUR).participate(asked(method, 2, plan=FOUR)) is None
    noises = [client.ledger.answer(client.run, r).multiplier for r in range(2)]
    assert noises == pytest.approx([2.0 * 2**0.5] * 2)


@pytest.mark.parametrize(
    ("privacy", "changed", "answers"),
    [
        (CentralGaussian(1.0), {}, 0),  # 9.3 for whoever is in the run at all
        (CentralGaussian(20.0), {}, 4),
        (LocalPrivUnit(0.25), {"channel": "direct"}, 4),
        (LocalPrivUnit(0.4), {"channel": "direct"}, 2),
    ],
)
def test_the_target_of_the_plan_as_simulated_devices_keep_it(
    make, privacy, changed, answers
):
    """One after the other in rounds whose noise was given, whatever the target says."""
    plan = replace(FOUR, target_epsilon=1.0, **changed)
    method = FederatedPopularity(privacy=privacy)
    data = WORLD.catalog, WORLD.profiles, WORLD.shards
    simulated = Simulation(method, plan, *data, Key.from_seed(0))
    *_, (state, _) = simulated.run(simulated.start())
    assert state.taken.sum(axis=1).tolist() == [answers] * len(WORLD.shards)
    client = make(method, plan)
    said = [client.participate(asked(method, r, plan=plan)) for r in range(4)]
    assert [one is None for one in said] == [False] * answers + [True] * (4 - answers)
    assert reasons(client) == [Refusal.TARGET] * (answers < 4)


def test_a_target_is_of_one_run_and_a_cap_of_all(make):
    plan = replace(FOUR, target_epsilon=1.0, channel="direct")
    method = FederatedPopularity(privacy=LocalPrivUnit(0.5))
    for run in ("monday", "tuesday"):
        client = make(method, plan, run=run)
        said = [client.participate(asked(method, r, plan=plan)) for r in range(4)]
        assert [one is None for one in said] == [False, False, True, True]
    client.ledger.set_cap(Cap(2.0, 0.0))
    third = make(method, plan, run="wednesday")
    assert third.participate(asked(method, plan=plan)) is None
    assert reasons(third)[-1] == Refusal.CAP


def test_every_group_has_the_target_of_its_own(make):
    groups = {"careful": 3, "open": len(WORLD.shards) - 3}
    targets = {"careful": 0.5, "open": 1.0}
    plan = replace(FOUR, groups=groups, target_epsilon=targets, channel="direct")
    method = FederatedPopularity(privacy=LocalPrivUnit(0.25))
    for group, answers in {"careful": 2, "open": 4}.items():
        client = make(method, plan, group=group, run=group)
        said = [client.participate(asked(method, r, plan=plan)) for r in range(4)]
        assert sum(one is not None for one in said) == answers


def test_the_cap_of_the_owner(make):
    """Noise 10 under an exchange is noise 5 under a removal: 17 participations."""
    client = make()
    client.ledger.set_cap(Cap(4.0, 1e-6))
    said = [client.participate(asked(Noisy(), r)) for r in range(20)]
    assert [one is None for one in said] == [False] * 17 + [True] * 3
    assert reasons(client) == [Refusal.CAP]
    assert client.participate(asked(Noisy(), 16)) == said[16]  # a retry is free


def test_where_nothing_is_promised_a_cap_lets_nothing_out(make):
    client = make(FederatedPopularity())
    client.ledger.set_cap(Cap(1000.0, view=View.RELEASE))
    assert client.participate(asked(FederatedPopularity())) is None


def test_a_forgotten_run_is_not_answered_again(make):
    """Not even a round that was answered: its bytes are gone, fresh ones are worse."""
    client = make()
    client.participate(asked(Noisy(), 0))
    client.ledger.forget(keep_ledger=True)
    again = make()
    assert again.participate(asked(Noisy(), 0)) is None
    assert again.participate(asked(Noisy(), 1)) is None
    assert reasons(again) == [Refusal.LEFT]
    assert len(again.ledger.entries()) == 1


def test_damaged_bytes_cost_nothing(make):
    client = make()
    with pytest.raises(BadMessage):
        client.participate(asked(Noisy())[:-1])
    assert client.ledger.refusals() == []


# --- What silence would say ----------------------------------------------------------


@dataclass(frozen=True)
class Quiet(Noisy):
    """Without noise, so that a contribution of nothing can be told from another."""

    dither: float = 0.0


class Crash(BaseException):
    """What a computation dies of; not even an Exception."""


@dataclass(frozen=True)
class Fails(Quiet):
    """Cannot be computed, as a hostile Broadcast would have it for some histories."""

    def local_update(self, broadcast, clients, shards, keys):
        raise Crash


@dataclass(frozen=True)
class Slow(Quiet):
    """Waits for whoever lets it go, then steps the state."""

    gate: threading.Event = field(default_factory=threading.Event)

    def local_update(self, broadcast, clients, shards, keys):
        self.gate.wait()
        return super().local_update(broadcast, clients, shards, keys)


@dataclass(frozen=True)
class Watched(Quiet):
    """Writes down whenever the history is touched; to raise would be to be silent."""

    touched: list[int] = field(default_factory=list)

    def local_update(self, broadcast, clients, shards, keys):
        self.touched.append(broadcast.round)
        return super().local_update(broadcast, clients, shards, keys)


def is_empty(report: bytes, round_=0) -> bool:
    """Whether a report without noise has nothing in it."""
    layout = Quiet().layout(PLAN, WORLD.catalog, round=round_)
    tree = decode_reports(broadcast_of(Quiet(), round_), [report], layout).tree
    return not tree["b"].any()


def test_a_computation_that_fails_contributes_nothing(make):
    """It is charged, and looks to everybody else like any report."""
    whole = make(Quiet(), run="other").participate(asked(Quiet()))
    client = make(Fails())
    said = client.participate(asked(Quiet()))
    assert is_empty(said)
    assert not is_empty(whole)
    assert len(said) == len(whole)
    assert rounds_in_state(client) == 0
    assert [entry.round for entry in make(Quiet()).ledger.entries()] == [0, 0]
    assert make(Quiet()).participate(asked(Quiet())) == said


def test_the_ledger_is_charged_before_the_history_is_touched(make):
    """Also for another process, which sees what is on the disk."""
    seen = []

    class Looks(Quiet):
        def local_update(self, broadcast, clients, shards, keys):
            with ClientLedger(path, create=False) as ledger:
                assert ledger.doubt is None
                seen.append([entry.round for entry in ledger.entries()])
            assert not list(path.parent.glob("*-journal"))
            return super().local_update(broadcast, clients, shards, keys)

    client = make(Looks())
    path = client.ledger.path
    assert not is_empty(client.participate(asked(Quiet())))
    assert seen == [[0]]


def test_a_round_that_a_crash_cut_short_is_answered_with_nothing(make, monkeypatch):
    """The crash may depend on the history: it is not looked at a second time."""
    client = make(Quiet())

    def die(*_):
        raise Crash

    monkeypatch.setattr(client, "_contribution", die)
    with pytest.raises(Crash):
        client.participate(asked(Quiet()))
    assert [entry.round for entry in client.ledger.entries()] == [0]
    assert client.pending() == []
    method = Watched()
    said = make(method).participate(asked(Quiet()))
    assert is_empty(said)
    assert rounds_in_state(client) == 0
    assert make(method).participate(asked(Quiet())) == said
    assert method.touched == []
    assert make().participate(asked(Quiet(), seed=1)) is None


def test_a_computation_that_is_late_contributes_nothing(make):
    """What it gives after its deadline is dropped, with the state."""
    method = Slow()
    client = make(method, deadline=0.05)
    said = client.participate(asked(Quiet()))
    assert is_empty(said)
    second = client.participate(asked(Quiet(), 1))  # the first one still runs
    assert is_empty(second, 1)
    method.gate.set()
    client._work._thread.join()
    assert client.participate(asked(Quiet())) == said
    assert rounds_in_state(client) == 0
    assert not is_empty(client.participate(asked(Quiet(), 2)), 2)
    assert rounds_in_state(client) == 1


def test_a_second_process_gives_the_bytes_of_the_first_that_keeps_some(make):
    """It cannot know whether the first lives; one report leaves, whoever is first."""
    method = Slow()
    first, said = make(method), []
    other = Client(
        first.ledger.path, Quiet(), PLAN, catalog=WORLD.catalog, history=HISTORY
    )

    class Overtaken(Quiet):
        def local_update(self, broadcast, clients, shards, keys):
            second = Client(
                first.ledger.path, Quiet(), PLAN, catalog=WORLD.catalog, history=HISTORY
            )
            said.append(second.participate(asked(Quiet())))
            second.close()
            return super().local_update(broadcast, clients, shards, keys)

    first.method = Overtaken()
    assert first.participate(asked(Quiet())) == said[0]
    assert is_empty(said[0])
    assert other.participate(asked(Quiet())) == said[0]
    assert rounds_in_state(first) == 0
    other.close()


# --- Ledgers in doubt ----------------------------------------------------------------


def test_a_ledger_that_is_put_back_from_a_backup_says_no(make, tmp_path):
    """It would answer the round again; the key that made both noises equal is gone."""
    path = make().ledger.path
    shutil.copy(path, tmp_path / "backup")
    client = make()
    client.participate(asked(Noisy()))
    client.close()
    (tmp_path / "backup").replace(path)
    method = Watched()
    restored = make(method, history=WORLD.shards.take([7]))
    assert restored.participate(asked(Noisy())) is None
    assert restored.participate(asked(Noisy(), 1)) is None
    assert restored.pending() == []
    assert method.touched == []
    assert reasons(restored) == [Refusal.DOUBT]
    assert restored.ledger.doubt is Doubt.OTHER_COPY
    lines = statements(restored.ledger)
    assert {(one.standing, one.epsilon) for one in lines} == {(Standing.NONE, None)}


def test_a_ledger_without_its_anchor_says_no(make):
    client = make()
    client.participate(asked(Noisy()))
    for path in anchors():
        path.unlink()
    method = Watched()
    assert make(method).participate(asked(Noisy(), 1)) is None
    assert method.touched == []
    assert client.participate(asked(Noisy())) is None  # not even what it said before
    assert reasons(client) == [Refusal.DOUBT]
    assert client.ledger.doubt is Doubt.NO_ANCHOR


def test_a_ledger_that_is_put_back_while_it_computes_says_nothing(make, tmp_path):
    class Restored(Quiet):
        def local_update(self, broadcast, clients, shards, keys):
            shutil.copy(tmp_path / "backup", tmp_path / "ledger.db")
            return super().local_update(broadcast, clients, shards, keys)

    client = make(Restored())
    shutil.copy(client.ledger.path, tmp_path / "backup")
    assert client.participate(asked(Quiet())) is None
    assert client.ledger.doubt is Doubt.OTHER_COPY


def test_a_fork_says_no(make, tmp_path):
    """Two copies of one file on one machine: the one that goes on first goes on."""
    client = make()
    client.participate(asked(Noisy()))
    fork = tmp_path / "fork.db"
    shutil.copy(client.ledger.path, fork)
    assert client.participate(asked(Noisy(), 1)) is not None
    other = Client(fork, Noisy(), PLAN, catalog=WORLD.catalog, history=HISTORY)
    assert other.participate(asked(Noisy(), 2)) is None
    assert other.ledger.doubt is Doubt.OTHER_COPY
    assert client.participate(asked(Noisy(), 2)) is not None
    other.close()


def test_another_ledger_in_its_place_says_no(make, tmp_path):
    """A fresh one moved there would have no caps and nothing spent."""
    client = make()
    client.ledger.set_cap(Cap(1.0, 1e-6))
    said = client.participate(asked(Noisy()))
    assert said is not None
    client.close()
    other = tmp_path / "other.db"
    Client(other, Noisy(), PLAN, catalog=WORLD.catalog, history=HISTORY).close()
    other.replace(client.ledger.path)
    moved = make()
    assert moved.ledger.doubt is Doubt.DISPLACED
    assert moved.participate(asked(Noisy())) is None
    accepted = accept(moved.ledger.path)
    assert set(accepted.closed) == {moved.run, f"{moved.run} (ledger 2)"}
    with ClientLedger(moved.ledger.path) as ledger:
        assert ledger.doubt is None
        assert [cap.epsilon for cap in ledger.caps()] == [1.0]
        counted = [len(rounds) for _, rounds in ledger.taken()]
        assert counted == [PLAN.rounds] * 2
    assert moved.participate(asked(Noisy(), 1)) is None
    assert make().participate(asked(Noisy(), 1)) is None


def test_a_ledger_may_be_moved_to_a_free_place(make, tmp_path):
    client = make()
    said = client.participate(asked(Noisy()))
    client.close()
    client.ledger.path.rename(tmp_path / "new.db")
    known = {"catalog": WORLD.catalog, "history": HISTORY}
    again = Client(tmp_path / "new.db", Noisy(), PLAN, **known)
    assert again.participate(asked(Noisy())) == said
    again.close()


def test_what_failed_is_kept_as_text_and_not_for_ever(make):
    """An exception holds on to the history and to the key of the noise."""

    class Breaks(Quiet):
        def local_update(self, broadcast, clients, shards, keys):
            raise ArithmeticError(broadcast.round)

    client = make(Breaks())
    for round_ in range(20):
        assert is_empty(client.participate(asked(Quiet(), round_)), round_)
    assert list(client.failures) == [f"ArithmeticError: {r}" for r in range(4, 20)]


# --- Joining -------------------------------------------------------------------------


def test_what_was_agreed_cannot_change(make):
    make(FederatedPopularity(privacy=LocalPrivUnit(1.0)), run="one")
    with pytest.raises(Refused, match="was joined under other terms"):
        make(FederatedPopularity(privacy=LocalPrivUnit(2.0)), run="one")
    make(FederatedPopularity(privacy=LocalPrivUnit(2.0)), run="another")


def test_a_named_run_remembers_its_agreement(make):
    """Other settings cost the same, and are something else all the same."""
    make(FederatedPopularity(privacy=LocalPrivUnit(1.0)), run="one")
    other = FederatedPopularity(privacy=LocalPrivUnit(1.0), max_votes=7)
    with pytest.raises(Refused, match="was joined under other terms"):
        make(other, run="one")


def test_a_profile_that_does_not_fit_is_as_none(make):
    """Who does not join tells what the profile lists; the owner can read why."""
    method = PrivRec(people={"sex": 2}, embedding=2, widths=(3,), count_rounds=1)
    known = Catalog(
        WORLD.catalog.ids,
        WORLD.catalog.titles,
        {"kind": Category.of([str(i % 3) for i in range(len(WORLD.catalog))])},
    )
    profile = Profiles(Strings.of(["me"]), {"sex": Category.of(["f"])})
    client = make(method, catalog=known, profile=profile)
    [failure] = client.failures
    assert "1 labels, 2 were agreed on" in failure
    server = method.start(PLAN, known, Key.from_seed(0))
    assert client.participate(encode_broadcast(method.broadcast(server))) is not None


@dataclass(frozen=True)
class InTurn(Noisy):
    """Two rounds of one thing, then others."""

    def releases(self, plan):
        cells = local(plan, GaussianDpEvent(10.0), reason="a test")
        return tuple(
            Release(what, "server", "some rounds", cells, rounds=rounds)
            for what, rounds in {"counts": range(2), "gradients": range(2, 30)}.items()
        )


@dataclass(frozen=True)
class Unsaid(InTurn):
    """The same, before releases said in which rounds they are made."""

    def releases(self, plan):
        return tuple(replace(one, rounds=None) for one in super().releases(plan))


@pytest.mark.parametrize(("joined", "entries"), [(InTurn, 1), (Unsaid, 2)])
def test_a_run_goes_on_as_it_was_agreed(make, joined, entries):
    """Whoever told no rounds is charged for everything in each of them."""
    make(joined()).participate(asked(Noisy(), 0))
    client = make(joined())
    client.participate(asked(Noisy(), 5))
    assert [e.round for e in client.ledger.entries()] == sorted([0, 5] * entries)


@pytest.mark.parametrize(
    ("joined", "now", "entries"), [(InTurn, Unsaid, 1), (Unsaid, InTurn, 2)]
)
def test_terms_do_not_change_within_a_run(make, joined, now, entries):
    """With rounds told, every round for everything is something else."""
    make(joined()).participate(asked(Noisy(), 0))
    with pytest.raises(Refused, match="was joined under other terms"):
        make(now())
    assert len(make(joined()).ledger.entries()) == entries


def test_a_run_that_an_earlier_version_began_is_finished_with_it(make):
    """Its terms are told in other words; what it said counts, and goes on counting."""
    client = make(InTurn())
    client.participate(asked(Noisy(), 5))
    old = first_text(client.terms)
    with client.ledger.transaction():
        row = client.ledger._runs()[client.run]
        client.ledger._put_run(client.run, replace(row, terms=old))
    with pytest.raises(Refused, match="an earlier version began is finished with it"):
        make(InTurn())
    again = make(Noisy(), run="another")
    [(terms, rounds)] = again.ledger.taken()
    assert (terms, rounds) == (read_terms(old), [5])


def test_a_device_has_one_owner(make):
    with pytest.raises(BadValue, match="history of 2 users"):
        make(history=WORLD.shards.take([1, 2]))


def test_groups_are_named_where_there_are_several(make):
    plan = replace(PLAN, groups={"free": 3, "paying": len(WORLD.shards) - 3})
    with pytest.raises(BadValue, match="known: free, paying"):
        make(plan=plan)
    assert make(plan=plan, group="paying").group == 1


@dataclass(frozen=True)
class Keeps(Noisy):
    """A state of every kind of leaf that messages have."""

    def enrol(self, profiles, keys):
        return Tree(
            {**super().enrol(profiles, keys).leaves, "x": Dense(np.ones((1, 0)))}
        )

    def local_update(self, broadcast, clients, shards, keys):
        state, updates = super().local_update(broadcast, clients, shards, keys)
        return Tree({**state.leaves, "x": clients.state.leaves["x"]}), updates


def test_empty_state_survives(make):
    client = make(Keeps())
    assert client.participate(asked(Noisy(), 0)) is not None
    assert make(Keeps()).participate(asked(Noisy(), 1)) is not None


# --- Envelopes ------------------------------------------------------------------------


@dataclass(frozen=True)
class Boxed:
    """An envelope that shows what it was given."""

    question: bytes = b"a round"
    sealed: list = field(default_factory=list, compare=False)

    def seal(self, broadcast, reports):
        [report] = encode_reports(broadcast, reports)
        self.sealed.append(report)
        return b"sealed " + report


def test_what_is_kept_and_sent_is_in_the_envelope(make):
    box = Boxed()
    client = make(METHODS[2])
    report = client.participate(asked(METHODS[2]), envelope=box)
    # Both the empty report and the real one pass through it, the empty one first.
    assert len(box.sealed) == 2
    assert report == b"sealed " + box.sealed[1]
    assert [one.report for one in client.pending()] == [report]
    assert client.participate(asked(METHODS[2]), envelope=box) == report
    assert len(box.sealed) == 2


def test_another_question_of_the_envelope_is_another_question(make):
    client = make(METHODS[2])
    assert client.participate(asked(METHODS[2]), envelope=Boxed()) is not None
    assert client.participate(asked(METHODS[2]), envelope=Boxed(b"other")) is None
    assert client.participate(asked(METHODS[2])) is None
    assert reasons(client) == [Refusal.OTHER_QUESTION]


def test_after_a_crash_the_empty_report_is_in_the_envelope(make, monkeypatch):
    """Killed between the charge and the report."""
    client, box = make(METHODS[2]), Boxed()
    with monkeypatch.context() as broken:
        broken.setattr(ClientLedger, "keep", lambda *_, **__: None)
        assert client.participate(asked(METHODS[2]), envelope=box) is None
    again = make(METHODS[2])
    assert again.participate(asked(METHODS[2]), envelope=box) == (
        b"sealed " + box.sealed[2]
    )
    assert len(box.sealed) == 3  # the history was not read a second time


@pytest.mark.parametrize("arrived", [True, False])
def test_a_report_that_ended_is_erased_and_never_made_again(make, arrived):
    client = make(METHODS[2])
    assert client.participate(asked(METHODS[2]), envelope=Boxed()) is not None
    client.finished(0, arrived=arrived)
    for one in (client, make(METHODS[2])):
        assert one.pending() == []
        assert one.participate(asked(METHODS[2]), envelope=Boxed()) is None
        assert one.ledger.answer(one.run, 0).report is None
    assert reasons(client) == [Refusal.ENDED]
    [entry] = client.ledger.entries()
    assert (entry.sent == GIVEN_UP) is not arrived
    assert client.ledger.taken() != []  # it counts all the same
