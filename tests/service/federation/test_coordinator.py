"""A coordinator with real aggregators: every state, and who may lie to whom."""

import itertools
import json
import threading
import time
from dataclasses import replace

import httpx
import numpy as np
import pytest
from safetensors.numpy import load
from service.federation.rounds import sealed, seed_on_disk, without_noise
from service.federation.services import (
    Place,
    a_run,
    aggregators,
    experiment,
    step_until,
)

from tacit.errors import BadValue, Refused, Unanswered
from tacit.service.federation import coordinator as states
from tacit.service.federation import stepwise_run
from tacit.service.federation.aggregator import Limits
from tacit.service.federation.coordinator import CoordinatorSchedule
from tacit.service.federation.operator_client import Over, Status, Unknown
from tacit.service.federation.public_rounds import OPEN, PLANNED, SIGNED, VOID
from tacit.service.relay.collector import Collector

ITEMS = 15


_epsilons = itertools.count(8000)  # in thousandths: every test has a run of its own


class World:
    """Both aggregators, a coordinator, and whole numbers that clients send."""

    def __init__(self, place, urls, folder) -> None:
        self.place, self.urls, self.folder, self.made = place, urls, folder, []
        self.run = self.another_run()

    def another_run(self, privacy=None, **changes):
        epsilon = {"target_epsilon": next(_epsilons) / 1000}
        made = experiment(privacy={**epsilon, **(privacy or {})}, **changes)
        return a_run(self.place, made)

    def coordinator(self, **schedule):
        clients = [
            self.place.client_of(role, getattr(self.urls, role))
            for role in ("leader", "helper")
        ]
        made = states.Coordinator(
            self.run,
            self.folder,
            leader=clients[0],
            helper=clients[1],
            leader_url=self.urls.reports,
            schedule=CoordinatorSchedule(**{"poll": 0.02, "window": 600, **schedule}),
        )
        self.made.append(made)
        return made

    def send(self, found, reports) -> list[int]:
        manifest = found.rounds()[-1].manifest
        url = f"{self.urls.reports}/v1/rounds/{manifest.round_id.hex()}/reports"
        with httpx.Client(timeout=20) as http:
            return [
                http.post(url, content=sealed(manifest, one).body()).status_code
                for one in reports
            ]

    def close(self) -> None:
        for one in self.made:
            one.close()
            for client in (one.leader, one.helper):
                client.close_connection()


@pytest.fixture
def world(pair, tmp_path):
    found = World(pair.place, pair.urls, tmp_path / "coordinator")
    yield found
    found.close()


def votes(n: int) -> np.ndarray:
    """Honest votes of so many clients, of the largest length."""
    found = np.zeros((n, ITEMS), np.int64)
    found[np.arange(n), np.arange(n) % ITEMS] = 65536
    return found


# --- A round --------------------------------------------------------------------------


def test_a_run_goes_through_all_states_to_its_model(world):
    found, seen = world.coordinator(enough=5), []
    sent = []
    while not found.is_over:
        rounds = found.rounds()
        if rounds and rounds[-1].state not in seen:
            seen.append(rounds[-1].state)
        if rounds and rounds[-1].state == OPEN and not sent:
            sent = world.send(found, votes(5))
        time.sleep(min(found.step(), 0.02))
    assert sent == [200] * 5
    assert found.is_published
    order = [PLANNED, SIGNED, OPEN, states.LEADER_CLOSED]
    order += [states.BOTH_CLOSED, states.DONE, states.DELETED]
    assert seen == order
    names = {one.name for one in found.published_run.iterdir()}
    assert {"model.safetensors", "result.json"} <= names
    [row] = found.rounds()
    for client in (found.leader, found.helper):
        assert client.status(row.manifest.round_id).state == "deleted"
    assert found.step() > 0  # and nothing more happens


def test_what_the_coordinator_adds_up_is_the_plain_sum_and_two_noises(world):
    found, reports = world.coordinator(enough=7), votes(7)
    step_until(found, OPEN)
    world.send(found, reports)
    step_until(found, states.BOTH_CLOSED)
    [row] = found.rounds()
    added = states._sum_of(row)
    arrays = [added.leader, added.helper]
    plain = without_noise(row.manifest, arrays)
    assert (plain == reports.sum(axis=0)).all()
    assert added.reports == 7


@pytest.mark.parametrize("state", [PLANNED, OPEN, states.LEADER_CLOSED, states.DONE])
def test_started_again_in_any_state_it_goes_on(world, state):
    first = world.coordinator(enough=3)
    if state == PLANNED:
        first.step()
    else:
        step_until(first, OPEN)
        world.send(first, votes(3))
        step_until(first, state)
    before = first.rounds()[-1]
    first.close()
    second = world.coordinator(enough=3)
    assert second.rounds()[-1] == before
    if state == PLANNED:
        step_until(second, OPEN)
        world.send(second, votes(3))
    while not second.is_over:
        time.sleep(min(second.step(), 0.02))
    assert second.is_published


def test_the_folder_of_another_run_is_refused(world):
    world.coordinator()
    world.run = world.another_run()
    with pytest.raises(Refused, match="is the folder of another run"):
        world.coordinator()


# --- By hand --------------------------------------------------------------------------


def test_by_hand_nothing_happens_until_it_is_wanted(world):
    found = world.coordinator(by_hand=True, enough=1)
    for _ in range(3):
        found.step()
    assert found.rounds() == []
    found.want("open")
    step_until(found, OPEN)
    world.send(found, votes(2))
    for _ in range(3):
        found.step()
    assert found.rounds()[-1].state == OPEN
    found.want("close")
    step_until(found, states.DELETED)
    for _ in range(3):
        found.step()
    assert not found.is_published
    found.want("publish")
    found.step()
    assert found.is_published
    with pytest.raises(BadValue):
        found.want("dance")


@pytest.mark.parametrize("when", ["nothing", "planned", "open", "leader closed"])
def test_a_retired_run_publishes_nothing_and_opens_nothing(world, when):
    found = world.coordinator(enough=2)
    if when == "planned":
        found.step()
    elif when != "nothing":
        step_until(found, OPEN)
        world.send(found, votes(2))
        step_until(found, when)
    found.retire()
    for _ in range(3):
        found.step()
    assert found.is_over
    assert not found.is_published
    assert [row.state for row in found.rounds()] == [VOID] * (when != "nothing")
    assert found.public.open is None


def test_a_step_under_way_does_not_undo_a_retirement(world, monkeypatch):
    """The helper's sum arrives after somebody has retired the run."""
    found = world.coordinator(enough=2)
    step_until(found, OPEN)
    world.send(found, votes(2))
    step_until(found, states.LEADER_CLOSED)
    real = found.helper.close

    def meanwhile(*args):
        answer = real(*args)
        if answer is not None:
            found.retire()
        return answer

    monkeypatch.setattr(found.helper, "close", meanwhile)
    step_until(found, VOID)
    assert found.rounds()[-1].why == "the run was retired"
    assert found.is_over


def test_a_round_is_not_planned_once_the_run_is_retired(world, monkeypatch):
    found = world.coordinator()
    real = found.helper.round_key

    def meanwhile(*args):
        found.retire()
        return real(*args)

    monkeypatch.setattr(found.helper, "round_key", meanwhile)
    found.step()
    assert found.rounds() == []
    assert found.is_over


# --- What voids a round, and what does not --------------------------------------------


def test_garbage_of_one_client_voids_the_round_and_no_model_is_published(world):
    found = world.coordinator(enough=6)
    step_until(found, OPEN)
    assert world.send(found, np.concatenate([votes(5), garbage(1)])) == [200] * 6
    step_until(found, VOID)
    assert "a client has lied, or an aggregator" in found.rounds()[-1].why
    assert found.is_over
    assert not found.is_published
    assert not (found.published_run / "model.safetensors").exists()


def garbage(n: int) -> np.ndarray:
    """What a client that lies can send instead of votes; honest clients never do."""
    draws = np.random.default_rng(0)
    return draws.integers(-(2**31), 2**31, (n, ITEMS))


def play(found, world, reports) -> None:
    """Play rounds up to the end, with these reports in each."""
    sent = set()
    while not found.is_over:
        rounds = found.rounds()
        if rounds and rounds[-1].state == OPEN and rounds[-1].number not in sent:
            sent.add(rounds[-1].number)
            world.send(found, reports[rounds[-1].number])
        time.sleep(min(found.step(), 0.02))


@pytest.mark.parametrize("void", [0, 1, 2])
def test_a_run_of_many_rounds_goes_on_without_a_void_one(world, void):
    world.run = world.another_run(run={"rounds": 3})
    honest = [votes(5), votes(6)[1:], votes(4)]
    reports = [garbage(1) if n == void else one for n, one in enumerate(honest)]
    found = world.coordinator(enough=1)
    play(found, world, reports)
    assert found.is_published
    assert found.public.ended == ""
    rounds = found.rounds()
    assert [row.state == VOID for row in rounds] == [n == void for n in range(3)]
    assert f"without round {void}, " in found.state.text
    assert found.state.is_well
    # Every round was entered in the ledger, and each follows the one before.
    ledger = json.loads((found.published_run / "ledger.json").read_text())
    assert (ledger["rounds_begun"], ledger["most_participations"]) == (3, 3)
    assert rounds[2].manifest.previous == rounds[1].manifest.round_id
    sums = [None if row.number == void else states._sum_of(row) for row in rounds]
    server = world.run.after(sums)
    weights = load((found.published_run / "model.safetensors").read_bytes())
    share = server.weights["share"].astype(np.float32)
    np.testing.assert_array_equal(weights["weights/share"].astype(np.float32), share)


def test_a_run_goes_on_after_a_void_round_when_it_is_started_again(world):
    world.run = world.another_run(run={"rounds": 2})
    first = world.coordinator(enough=1)
    step_until(first, OPEN)
    world.send(first, garbage(1))
    step_until(first, VOID)
    assert not first.is_over
    assert "waits for the next round" in first.state.text
    first.close()
    second = world.coordinator(enough=1)
    play(second, world, [[], votes(3)])
    assert second.is_published


def test_a_run_ends_where_no_round_of_a_phase_is_left(world):
    world.run = world.another_run(run={"rounds": 2})
    found = world.coordinator(enough=1)
    play(found, world, [garbage(1), garbage(1)])
    assert [row.state for row in found.rounds()] == [VOID, VOID]
    assert found.is_over
    assert not found.is_published
    assert "ended without a model" in found.state.text
    assert found.public.ended == "round 2 is void"


def test_a_run_ends_with_a_round_that_an_operator_has_lost(world, monkeypatch):
    """It signs no round that follows one which it does not know."""
    world.run = world.another_run(run={"rounds": 3})
    found = world.coordinator(enough=1)
    step_until(found, OPEN)

    def lost(*_):
        raise Unknown("404")

    monkeypatch.setattr(found.leader, "status", lost)
    step_until(found, VOID)
    assert found.is_over
    assert "the leader has lost its file" in found.state.text


def test_too_few_reports_void_the_round(world):
    world.run = world.another_run({"min_contributors": 3})
    found = world.coordinator(by_hand=True)
    found.want("open")
    step_until(found, OPEN)
    world.send(found, votes(2))
    found.want("close")
    step_until(found, VOID)
    assert "fewer than 3 reports" in found.rounds()[-1].why


@pytest.mark.parametrize("error", [Unanswered("502"), Refused("401"), Refused("404")])
@pytest.mark.parametrize("role", ["leader", "helper"])
def test_a_closing_that_is_not_answered_is_asked_again(world, monkeypatch, role, error):
    """A proxy without its service, a wrong secret: no reason to give a round up."""
    found = world.coordinator(enough=2)
    step_until(found, OPEN)
    world.send(found, votes(2))
    client, state = getattr(found, role), OPEN
    if role == "helper":
        step_until(found, states.LEADER_CLOSED)
        state = states.LEADER_CLOSED

    def fails(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(client, "close", fails)
        with pytest.raises(type(error)):
            found.step()
        assert found.rounds()[-1].state == state
    step_until(found, states.DELETED)


@pytest.mark.parametrize("role", ["leader", "helper"])
def test_an_operator_that_says_never_voids_the_round(world, monkeypatch, role):
    found = world.coordinator(enough=2)
    step_until(found, OPEN)
    world.send(found, votes(2))

    def never(*_):
        raise Over("it was restored")

    monkeypatch.setattr(getattr(found, role), "close", never)
    step_until(found, VOID)
    assert found.rounds()[-1].why == "it was restored"


def test_a_restored_leader_is_told_by_its_count(world, monkeypatch):
    """It has fewer reports than before: acknowledged ones are lost."""
    found = world.coordinator()
    step_until(found, OPEN)
    world.send(found, votes(4))
    found.step()
    monkeypatch.setattr(found.leader, "status", lambda _: Status("open", 3))
    found.step()
    step_until(found, VOID)
    assert "fewer reports than before" in found.rounds()[-1].why


@pytest.mark.parametrize("name", ["leader", "helper"])
def test_a_round_that_an_operator_has_lost_is_void(world, monkeypatch, name):
    """Its file was deleted, and it was started again with an empty one."""
    found = world.coordinator()
    step_until(found, OPEN)
    world.send(found, votes(4))
    found.step()

    def lost(*_):
        raise Unknown("404")

    if name == "helper":
        found.want("close")
        step_until(found, states.LEADER_CLOSED)
    monkeypatch.setattr(getattr(found, name), "status", lost)
    monkeypatch.setattr(getattr(found, name), "close", lost)
    step_until(found, VOID)
    assert f"the {name} has lost its file" in found.rounds()[-1].why
    assert not found.state.is_well


def test_limits_that_refuse_are_told_to_the_operator_and_tried_again(tmp_path):
    limits, place = Limits(1e6, free_bytes=0), Place(tmp_path)
    with aggregators(place, helper={"limits": limits}) as urls:
        world = World(place, urls, tmp_path / "coordinator")
        found, stop = world.coordinator(), threading.Event()
        thread = threading.Thread(target=found.play, kwargs={"stop": stop})
        thread.start()
        until = time.monotonic() + 20
        while "sigma over the root" not in found.trouble:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert thread.is_alive()
        assert found.rounds()[-1].state == PLANNED
        assert found.public.open is None  # nobody hears of a round that is not signed
        found.retire()  # forgets a round that the helper has never heard of
        thread.join(20)
        assert not thread.is_alive()
        assert found.rounds()[-1].state == VOID
        stop.set()
        world.close()


def test_a_window_that_passed_before_both_signed_is_planned_anew(world):
    found = world.coordinator()
    found.step()
    first = found.rounds()[-1].manifest
    found.leader.sign(first.document())
    found.clock = lambda: first.closes + 1
    found.step()
    assert found.rounds() == []


def test_a_leader_that_lies_about_its_batches_voids_the_round(world, monkeypatch):
    """The helper does not know a batch, so it publishes nothing at all."""
    found = world.coordinator(enough=2)
    step_until(found, OPEN)
    world.send(found, votes(2))
    step_until(found, states.LEADER_CLOSED)
    row = found.rounds()[-1]
    n = int.from_bytes(row.closing[:4], "little") + 1
    lie = n.to_bytes(4, "little") + bytes(16) + row.closing[4:]
    with found._writing() as file:
        file.execute("UPDATE rounds SET closing = ?", (lie,))
    step_until(found, VOID)
    assert "is not known here" in found.rounds()[-1].why
    seed = seed_on_disk(world.place.folder / "helper", row.manifest.round_id)
    assert seed is None


def test_a_window_that_went_by_before_anybody_opened_is_planned_again(world):
    """Nobody was shown that manifest, so nothing is lost."""
    found = world.coordinator(window=60)  # the clock is the test's
    step_until(found, SIGNED)
    [first] = found.rounds()
    found.clock = lambda: first.manifest.closes + 1.0
    found.step()
    assert found.rounds() == []


def test_an_operator_that_has_lost_a_signed_round_signs_another(world, monkeypatch):
    found = world.coordinator(window=60)  # the clock is the test's
    step_until(found, SIGNED)
    [first] = found.rounds()

    def unknown(_):
        raise Unknown("404")

    monkeypatch.setattr(found.helper, "status", unknown)
    found.clock = lambda: first.manifest.closes + 1.0
    found.step()
    assert found.rounds() == []


def test_a_window_that_went_by_with_one_of_both_open_voids_the_run(world):
    """The one that has opened it signs no other manifest for that round."""
    found = world.coordinator(window=60)  # the clock is the test's
    step_until(found, SIGNED)
    [first] = found.rounds()
    found.leader.open(first.signed)
    found.clock = lambda: first.manifest.closes + 1.0
    step_until(found, VOID)
    assert "its window went by" in found.rounds()[-1].why


def test_a_bug_in_a_step_is_told_to_the_operator_and_tried_again(
    world, caplog, monkeypatch
):
    """Its message is not: it may hold what somebody sent."""
    found, stop, steps = world.coordinator(), threading.Event(), []

    def fails():
        steps.append(found.trouble)
        if len(steps) == 2:
            stop.set()
        raise OverflowError("canary")

    found.step = fails
    monkeypatch.setattr(stepwise_run, "LATER", 0.01)
    found.play(stop=stop)
    assert steps == ["", "a failure: OverflowError"]
    assert "canary" not in caplog.text + found.trouble


def test_a_run_that_was_retired_while_it_was_published_is_not_published(
    world, monkeypatch
):
    found = world.coordinator(enough=5)
    step_until(found, OPEN)
    world.send(found, votes(5))
    step_until(found, states.DELETED)
    publish = type(found.run).publish

    def retired(self, *args):
        found.retire()
        return publish(self, *args)

    monkeypatch.setattr(type(found.run), "publish", retired)
    found.step()
    assert found.is_retired
    assert not found.is_published


@pytest.mark.parametrize(
    "changes", [{"window": 0}, {"pause": -1.0}, {"poll": 0.0}, {"enough": 0}]
)
def test_a_schedule_that_cannot_be_is_refused(changes):
    with pytest.raises(BadValue):
        CoordinatorSchedule(**changes)


def test_a_round_closes_when_its_window_is_over(world):
    found = world.coordinator()
    step_until(found, OPEN)
    world.send(found, votes(1))
    manifest = found.rounds()[-1].manifest
    found.step()
    assert found.rounds()[-1].state == OPEN
    found.clock = lambda: manifest.closes
    step_until(found, states.DELETED)


def test_between_two_rounds_there_is_a_pause(world):
    world.run = world.another_run(run={"rounds": 2})
    found = world.coordinator(enough=1, pause=500.0)
    step_until(found, OPEN)
    world.send(found, votes(1))
    step_until(found, states.DELETED)
    found.step()
    assert len(found.rounds()) == 1
    later = time.time() + 501
    found.clock = lambda: later
    step_until(found, OPEN)
    first, second = (row.manifest for row in found.rounds())
    assert (second.round, second.previous) == (1, first.round_id)
    assert replace(second, round=0).run == first.run


@pytest.mark.parametrize("role", [states.Coordinator, Collector])
def test_every_state_of_a_round_has_words(role):
    assert role.meanings.keys() == role.waits.keys() | {OPEN, role.over, VOID}
