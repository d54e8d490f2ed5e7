"""Clients, a relay and a collector over HTTP: what comes out is the simulation's.

`played` computes the same reports again, from the clients' keys, and carries them over
the simulated channel `shuffle`. Votes are whole numbers, so the models are equal bit
for bit. A sum of floats depends on the order in its last bits, so there the collector's
model is that of the same messages in the collector's order, bit for bit, and that of
the simulation but for rounding.

Also `tacit.service.form`: the same clients speak over either channel.
"""

import itertools
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import httpx
import numpy as np
import pytest
from methods.test_privaterec import described, shown_news
from quick import slow
from service.relay.places import (
    GRAM,
    ITEMS,
    Clock,
    Place,
    both,
    experiment,
    patiently,
    shards,
)

from tacit.codes import Code
from tacit.data.catalog import Profiles
from tacit.data.federated_data import FederatedData
from tacit.data.splits import everyone_trains
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.experiment.assemble import assemble, load_dataset
from tacit.experiment.saved_run import SavedRun
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import Unmetered, enrol, participate
from tacit.sampling import Draw
from tacit.service.federation import client as client_module
from tacit.service.federation.client import FederationClient, Kind
from tacit.service.federation.exchange import Answered, Exchange, Fate
from tacit.service.federation.history import History, Slate, history_of
from tacit.service.federation.simulated_clients import SimulatedClients
from tacit.service.relay.messages import in_order
from tacit.service.relay.relay_store import FILE_NAME, upload_counts
from tacit.service.relay.services import run_of
from tacit.transport.channels import Shuffle, Unlinked
from tacit.transport.messages import Reports
from tacit.tree import Tree

ONCE = {"run": {"rounds": 2, "sampler": {"name": "once"}}}
AS_PRINTED = {  # Minto et al. 2021, whose second contribution the relay is
    "method": {"name": "fmf_ldp", "mode": "paper", "factors": 2},
    "privacy": {"mechanism": "published"},
    "run": {"rounds": 2},
}
POPULARITY = {
    "method": {"name": "federated_popularity"},
    "privacy": {"mechanism": "local", "epsilon": 4.0, "votes": None},
}


def test_votes_of_everybody_become_a_published_model(tmp_path):
    place = Place(tmp_path)
    run = place.run()
    with both(place, run) as urls:
        many = SimulatedClients(urls.public, run.invitation, shards(12), Key.from_os())
        counts = patiently(many.answer)
        assert (counts.delivered, counts.clients) == (12, 12)
        patiently(lambda: httpx.get(f"{urls.public}/v1/model").status_code == 200)
    found = SavedRun.at(tmp_path / "collector" / "run")
    assert found.experiment.privacy.channel == "shuffle"


def answered(place, run, held, key, *, window=600, clock=None):
    """What the collector has learnt after each epoch, from clients with this key.

    With a clock, every window is over as soon as all have reported.
    """
    found, write = [], run.to_bytes

    def kept(server):
        found.append(write(server))
        return found[-1]

    object.__setattr__(run, "to_bytes", kept)  # it keeps the last one only
    with both(place, run, window=window) as urls:
        many = SimulatedClients(urls.public, run.invitation, held, key)
        for _ in range(run.invitation.plan.rounds):
            counts = patiently(many.answer, seconds=600)
            assert counts.delivered == counts.clients
            if clock is not None:
                clock.ahead += window
        model = f"{urls.public}/v1/model"
        patiently(lambda: httpx.get(model).status_code == 200, seconds=600)
    with closing(sqlite3.connect(place.folder / "collector" / "collector.db")) as file:
        rows = [*file.execute("SELECT learnt FROM epochs ORDER BY number")]
    last = run.without_memory(found[-1])  # the model is published
    assert rows == [(None,)] * (len(found) - 1) + [(last,)]
    return found


def played(run, held, key, *, chunk=None):
    """For each round the servers that the two orders of its messages give."""
    made, own = run.invitation, key.each(np.arange(len(held)))
    names = SimulatedClients("https://a.invalid", made, held, key)._clients
    clients = enrol(
        made.method,
        made.plan,
        _profiles(len(held)),
        own,
        catalog=made.catalog,
    )
    assert len(names) == len(clients)
    server = run.start
    for number in range(made.plan.rounds):
        broadcast = made.method.broadcast(server)
        draw = Draw(own.at("cohort"), clients.groups, number)
        rows = made.plan.sampler.cohort(draw, made.plan)
        step = chunk or len(rows)
        trees = []
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            after, reports, _ = participate(
                made.method,
                broadcast,
                clients.take(some),
                held.take(some),
                own[some],
                ledger=Unmetered(),
            )
            clients = clients.with_state(some, after.state)
            trees.append(reports.tree)
        tree = Tree.concatenate(trees)
        context = made.method.context(server, broadcast, Key.from_seed(1))
        delivery = Shuffle().carry([Reports(tree)], context)
        by_shuffle = made.method.aggregate(server, delivery, context)
        form = run.form(server)
        rows = form.rows(tree).reshape(-1, form.message_bytes)
        sorted_ = form.tree(in_order(rows))
        exact = made.method.aggregate(server, Unlinked(sorted_, len(tree)), context)
        server = exact
        yield exact, by_shuffle


def _profiles(n):
    return Profiles(Strings.of(str(row) for row in range(n)))


def assert_equal(run, found, held, key, *, chunk=None, is_whole):
    rounds = played(run, held, key, chunk=chunk)
    for number, (exact, shuffled) in enumerate(rounds):
        server = run.from_bytes(found[number], round=number + 1)
        for name, value in exact.weights.items():
            np.testing.assert_array_equal(server.weights[name], value)
            if is_whole:
                np.testing.assert_array_equal(
                    server.weights[name], shuffled.weights[name]
                )
            else:
                np.testing.assert_allclose(
                    server.weights[name], shuffled.weights[name], rtol=1e-6, atol=1e-9
                )


@pytest.mark.parametrize(
    ("changes", "is_whole"),
    [
        ({"run": {"rounds": 2}}, True),
        (AS_PRINTED, True),
        (GRAM, False),
        (POPULARITY, False),
        (
            {
                "method": {"name": "federated_popularity"},
                "privacy": {"mechanism": "local_item", "epsilon": 4.0, "votes": None},
            },
            True,
        ),
    ],
    ids=["fmf_ldp", "fmf_ldp, paper", "gram", "popularity", "popularity_item"],
)
def test_what_is_learnt_is_what_the_simulated_channel_gives(
    tmp_path, changes, is_whole
):
    place, held, key = Place(tmp_path), shards(12), Key.from_seed(3)
    run = place.run(experiment(**changes))
    found = answered(place, run, held, key)
    assert_equal(run, found, held, key, is_whole=is_whole)


def test_clients_that_report_once_draw_their_round_by_themselves(tmp_path, monkeypatch):
    """Neither round is full, so both wait for the end of their windows."""
    place, held, key = Place(tmp_path), shards(12), Key.from_seed(3)
    privacy = {"min_contributors": 2}
    run = place.run(
        experiment(**POPULARITY | ONCE | {"privacy": POPULARITY["privacy"] | privacy})
    )
    found = answered(place, run, held, key, clock=Clock(monkeypatch))
    assert_equal(run, found, held, key, is_whole=False)


class Watched:
    """A client with a clock of its own, and the collector's log of what it fetches."""

    def __init__(self, monkeypatch, folder, url, *, own):
        monkeypatch.setattr(client_module, "_own_round", lambda _: own)
        held = History(("item 1", "item 4"))
        FederationClient.join(folder, url, lambda _: held)
        self.folder, self.began = folder, time.time()
        self.now, self.fetched, self.sent = self.began, [], []
        self.takes: float | None = None  # seconds until a relay has not answered

    def client(self, **settings):
        made = FederationClient(
            self.folder, clock=lambda: self.now, sleep=self.sleep, **settings
        )
        get, post = made._get, made._exchange.post_report

        def fetch(path, *, most):
            self.fetched.append((path.split("/")[2], self.now - self.began))
            return get(path, most=most)

        def send(*given, **named):
            self.sent.append(self.now - self.began)
            if self.takes is None:
                return post(*given, **named)
            self.now += self.takes
            return Answered(Fate.AGAIN, "nobody answers")

        made._get, made._exchange.post_report = fetch, send
        return made

    def sleep(self, seconds):
        self.now += seconds

    @property
    def paths(self):
        return [path for path, _ in self.fetched]

    @property
    def looks(self):
        """When a manifest was fetched."""
        return [at for path, at in self.fetched if path == "manifest"]


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Clients of an epoch of ten minutes: one that reports in it, and one of later."""
    place = Place(tmp_path)
    run = place.run(experiment(**POPULARITY | ONCE))
    with both(place, run) as urls:
        patiently(lambda: httpx.get(f"{urls.public}/v1/manifest").status_code == 200)
        yield [
            Watched(monkeypatch, tmp_path / f"client {own}", urls.public, own=own)
            for own in (0, 1)
        ]


SPREAD = 300.0  # seconds; less than ten minutes are left of the window
FIRST = ["manifest", "broadcast"]


@pytest.mark.parametrize("now", [False, True])
def test_what_is_fetched_does_not_tell_who_reports(watched, now):
    """A client whose round it is and one whose round it is not ask for the same.

    They ask for it once, and are silent until after a report would have been sent.
    """
    for own, one in enumerate(watched):
        with one.client(spread=SPREAD) as client:
            first = client.once(now=now)
            assert one.paths == FIRST
            if now:
                assert first.kind is (Kind.NOTHING if own else Kind.SENT)
                continue
            assert first.kind is (Kind.NOTHING if own else Kind.WAITING)
            again = client.once()
            assert (again.kind, again.until) == (first.kind, first.until)
            one.now = one.began + SPREAD
            assert client.once().kind is (Kind.NOTHING if own else Kind.SENT)
            assert client.once().kind is Kind.NOTHING
            assert one.paths == FIRST
            one.now += SPREAD / 9
            client.once()
            assert one.paths == [*FIRST, "manifest", "model"]
            entries = [one.round for one in client.show().entries]
            assert entries == ([] if own else [0])


def until(one, client, end):
    """What comes of looking again and again for so many seconds."""
    found = []
    for outcome in client.outcomes(every=5.0):
        found.append(outcome)
        if one.now - one.began > end:
            return found
    raise AssertionError(found[-1])


def test_when_it_is_fetched_does_not_tell_when_a_report_is_sent(watched):
    """The next look is after all moments at which the report may be sent."""
    for own, one in enumerate(watched):
        with one.client(spread=SPREAD) as client:
            kinds = {outcome.kind for outcome in until(one, client, 500.0)}
        assert (Kind.SENT in kinds) is not bool(own)
        assert len(one.sent) == (0 if own else 1)
        first, second, *later = one.looks
        assert (first, SPREAD <= second <= SPREAD * 10 / 9 + 6) == (0.0, True)
        gaps = np.diff([second, *later])
        assert ((gaps >= 60) & (gaps <= 60 * 1.2 * 1.2)).all(), gaps
        assert len(gaps) >= 1


@pytest.mark.parametrize("takes", [0.0, 30.0])
def test_while_a_relay_is_away_those_with_a_report_fetch_like_all_others(
    watched, takes
):
    """Whether the relay refuses at once, or lets every request run out of time."""
    for own, one in enumerate(watched):
        one.takes = takes
        with one.client(spread=SPREAD) as client:
            until(one, client, 1000.0)
            assert client.show().waiting == 1 - own
            first, second, *later = one.looks
            assert (first, SPREAD <= second <= SPREAD * 10 / 9 + 6) == (0.0, True)
            gaps = np.diff([second, *later])
            assert ((gaps >= 60) & (gaps <= 60 * 1.2 * 1.2)).all(), gaps
            assert len(gaps) >= 6
            assert one.paths == [*FIRST, *len(one.looks[1:]) * ["manifest", "model"]]
            if own:
                assert one.sent == []
                continue
            assert len(one.sent) > 10  # it goes on sending, the same bytes each time
            one.takes = None
            last = until(one, client, 1100.0)
        assert [outcome.kind for outcome in last].count(Kind.SENT) == 1


def test_a_real_client_joins_reports_ranks_and_has_it_in_its_ledger(tmp_path):
    place = Place(tmp_path)
    run = place.run()
    with both(place, run) as urls:
        items = ("item 1", "item 4", "item 9")
        FederationClient.join(tmp_path / "me", urls.public, lambda _: History(items))
        held = shards(11)
        many = SimulatedClients(urls.public, run.invitation, held, Key.from_os())
        assert patiently(many.answer).delivered == 11
        with FederationClient(tmp_path / "me") as client:
            outcome = client.once(now=True)
            assert (outcome.kind, outcome.round) == (Kind.SENT, 0), outcome
            assert "the relay keeps it; it counts if enough others come" in str(outcome)
            assert client.once(now=True).kind in (Kind.OVER, Kind.WAITING)
            patiently(client._over)
            assert not {one.id for one in client.recommend(3)} & {*items}
            shown = client.show()
            assert [one.round for one in shown.entries] == [0]
            assert shown.waiting == 0


class LosesAnswers:
    """A client whose reports all arrive, and that hears of it at the last try only."""

    def __init__(self, folder, *, lost):
        self.folder, self.lost, self.bodies = folder, lost, []

    def look(self, *, tries):
        """What comes of looking for a round, by a process of its own."""
        settings = {"tries": tries, "sleep": lambda _: None}
        with FederationClient(self.folder, **settings) as client:
            post = client._exchange.post_report

            def send(url, body, **named):
                self.bodies.append(body)
                answer = post(url, body, **named)
                assert answer.fate is Fate.DELIVERED, answer
                is_lost = len(self.bodies) <= self.lost
                return Answered(Fate.AGAIN, "nobody answers") if is_lost else answer

            client._exchange.post_report = send
            return client.once(now=True).kind


def counted_with_lost_answers(folder):
    """How many uploads a relay counts of one client, three of whose answers are lost.

    It tries three times, and once more after a restart.
    """
    place = Place(folder)
    with both(place, place.run()) as urls:
        patiently(lambda: httpx.get(f"{urls.public}/v1/manifest").status_code == 200)
        held = History(("item 1", "item 4"))
        FederationClient.join(folder / "me", urls.public, lambda _: held)
        client = LosesAnswers(folder / "me", lost=3)
        assert client.look(tries=3) is Kind.WAITING
        assert client.look(tries=1) is Kind.SENT
        assert len(client.bodies) == 4
        with closing(sqlite3.connect(folder / "relay" / FILE_NAME)) as file:
            [n] = upload_counts(file).values()
    return n


def test_a_client_whose_answers_are_lost_is_counted_once(tmp_path):
    """Else one client alone would pass for the minimum that all others rely on."""
    assert counted_with_lost_answers(tmp_path) == 1


@slow
def test_a_client_that_draws_the_order_anew_is_seen(tmp_path, monkeypatch):
    """The mutant: the same messages, in another order at each try."""
    post, orders = Exchange.post_report, itertools.count(1)

    def reordered(self, url, body, **named):
        # Six messages between a head of 38 bytes and an end of two.
        size = (len(body) - 38 - 2) // 6
        sealed = [body[at : at + size] for at in range(38, len(body) - 2, size)]
        turn = next(orders)
        mixed = [*sealed[turn:], *sealed[:turn]]
        return post(self, url, body[:38] + b"".join(mixed) + body[-2:], **named)

    monkeypatch.setattr(Exchange, "post_report", reordered)
    assert counted_with_lost_answers(tmp_path) == 4


def reporting_at_once(folder):
    """Of six clients that report once, how many do so in the first of two rounds."""
    place = Place(folder)
    with both(place, place.run(experiment(**POPULARITY | ONCE))) as urls:
        patiently(lambda: httpx.get(f"{urls.public}/v1/manifest").status_code == 200)
        kinds = []
        for user in range(6):
            name, held = folder / f"client {user}", History(("item 1", "item 4"))
            FederationClient.join(name, urls.public, lambda _, held=held: held)
            with FederationClient(name) as client:
                kinds.append(client.once(now=True).kind)
                assert len(client.show().entries) == (kinds[-1] is Kind.SENT)
    assert {*kinds} <= {Kind.SENT, Kind.NOTHING}
    return kinds.count(Kind.SENT)


def test_clients_that_report_once_take_rounds_of_their_own(tmp_path, monkeypatch):
    """No false alarm: the draws are those of a seed."""
    monkeypatch.setattr(client_module, "_chance", random.Random(7))
    assert 1 <= reporting_at_once(tmp_path) <= 5


@slow
@pytest.mark.parametrize(("own", "n"), [(None, 6), (0, 6), (1, 0)])
def test_clients_that_take_no_round_of_their_own_are_seen(
    tmp_path, monkeypatch, own, n
):
    """The mutants: all answer the first round, or all the second."""
    monkeypatch.setattr(client_module, "_own_round", lambda _: own)
    assert reporting_at_once(tmp_path) == n


NEWS = {
    "method": {
        "name": "privaterec_local",
        "dimensions": None,
        "interests": 2,
        "most_impressions": 2,
        "most_shown": 15,
        "negatives": 3,
    },
    "privacy": {"mechanism": "local", "epsilon": 4.0, "votes": None},
    "run": {"rounds": 2},
}


def shown_slates(n):
    """So many clients that were shown three slates each, and clicked what they have."""
    bare = FederatedData(described(ITEMS), _profiles(n), shards(n))
    return shown_news(bare).shards


def test_clicks_in_slates_give_what_the_simulated_channel_gives(tmp_path):
    """Reports are kept in an order of their own, so that floats are equal, too."""
    place, held, key = Place(tmp_path), shown_slates(12), Key.from_seed(3)
    run = run_of(experiment(**NEWS), described(ITEMS), place.collector())
    found = answered(place, run, held, key)
    assert_equal(run, found, held, key, is_whole=True)
    start = run.start.weights["effects"]
    learnt = run.from_bytes(found[-1], round=2).weights["effects"]
    assert not np.array_equal(learnt, start)


def test_a_published_model_leaves_no_report_on_the_collectors_disk(tmp_path):
    """PrivateRec learns from all reports at the end; until then its memory has them."""
    place, held, key = Place(tmp_path), shown_slates(12), Key.from_seed(3)
    run = run_of(experiment(**NEWS), described(ITEMS), place.collector())
    kept = answered(place, run, held, key)[-1]
    memory = run.from_bytes(kept, round=2).memory
    reports = [one.tobytes() for one in memory["candidates"] if one.any()]
    assert len(reports) == 24
    assert all(one in kept for one in reports)  # as it was before the publication
    files = [one for one in (tmp_path / "collector").rglob("*") if one.is_file()]
    assert {"collector.db", "model.safetensors"} <= {one.name for one in files}
    for file in files:
        content = file.read_bytes()
        assert not any(one in content for one in reports), file


def test_a_relay_mixes_slates_and_earns_nothing_by_it(tmp_path):
    """Whoever has shown a slate may know to whom: the local epsilon in every view."""
    run = run_of(experiment(**NEWS), described(ITEMS), Place(tmp_path).collector())
    totals = run.assembled.simulation.account.totals
    assert [one.epsilon for one in totals] == pytest.approx([8.0] * len(totals))
    assert all(str(Code("public_slates")) in one.assumes for one in totals)


def test_a_real_client_reports_clicks_and_none_by_bodies_of_one_length(
    tmp_path, monkeypatch
):
    place = Place(tmp_path)
    run = run_of(experiment(**NEWS), described(ITEMS), place.collector())
    clicked = (Slate(("N1", "N2", "N3"), ("N2",)), Slate(("N4", "N5")))
    cases = {
        "clicks": (["N7"], clicked),
        "other clicks": (["N8", "N9"], (Slate(("N1", "N2", "N3"), ("N1", "N3")),)),
        "shown nothing": (["N7"], ()),
        "nobody": ([], ()),
    }
    bodies = []
    with both(place, run) as urls:
        patiently(lambda: httpx.get(f"{urls.public}/v1/manifest").status_code == 200)
        for name, (ids, slates) in cases.items():
            folder = tmp_path / name
            FederationClient.join(
                folder,
                urls.public,
                lambda one, ids=ids, slates=slates: history_of(
                    ids, one.catalog, slates
                ),
            )
            with FederationClient(folder) as client:
                real = client._exchange.post_report
                monkeypatch.setattr(
                    client._exchange,
                    "post_report",
                    lambda to, body, real=real, **how: (
                        bodies.append(body) or real(to, body, **how)
                    ),
                )
                outcome = client.once(now=True)
                assert outcome.kind is Kind.SENT, outcome
                assert [one.round for one in client.show().entries] == [0, 0]
        with pytest.raises(BadValue, match="--impressions"):
            FederationClient.join(
                tmp_path / "none", urls.public, lambda _: History(("N1",))
            )
        assert not (tmp_path / "none").exists()
    assert len({len(body) for body in bodies}) == 1
    assert len({*bodies}) == len(cases)


@pytest.mark.slow
def test_mind_through_relay_and_collector_is_the_simulation(tmp_path, real_data):
    """All 2,916 users who were shown something until 12 November."""
    path = Path(__file__).parents[3] / "experiments" / "mind-privaterec-local.toml"
    archive = real_data / "MINDsmall_train_sample.zip"
    changes = [
        f"data.archive={archive}",
        "privacy.channel=shuffle",
        "privacy.delta=1e-6",
        "privacy.min_contributors=1000",
    ]
    made = assemble(read_experiment(path, changes))
    place, key, held = Place(tmp_path), Key.from_seed(5), made.simulation.shards
    run = run_of(
        made.experiment, made.split.catalog, place.collector(), population=len(held)
    )
    found = answered(place, run, held, key, window=3600)
    assert_equal(run, found, held, key, chunk=256, is_whole=True)


ML_1M = {
    "data": {"source": "movielens-1m", "min_value": 0.0, "population": 6040},
    "privacy": {"min_contributors": 1000},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "is_whole"),
    [
        (
            {
                "method": {"name": "fmf_ldp"},
                "privacy": {"mechanism": "local_bits", "epsilon": 2.0, "votes": 10},
                "run": {"rounds": 2},
            },
            True,
        ),
        (
            {
                "method": {"name": "gram", "head": 60},
                "privacy": {"mechanism": "local", "epsilon": 4.0, "votes": None},
                "run": {"rounds": 2},
            },
            False,
        ),
    ],
    ids=["fmf_ldp", "gram"],
)
def test_ml_1m_through_relay_and_collector_is_the_simulation(
    tmp_path, real_data, changes, is_whole
):
    """All 6,040 users; about a minute each on one core."""
    archive = {"archive": str(real_data / "ml-1m.zip")}
    wanted = {
        **changes,
        "data": {**ML_1M["data"], **archive},
        "privacy": {**changes["privacy"], **ML_1M["privacy"]},
    }
    made = experiment(**wanted)
    dataset = load_dataset(made)
    held = everyone_trains(dataset).train
    place, key = Place(tmp_path), Key.from_seed(5)
    run = run_of(made, dataset.catalog, place.collector(), population=len(held))
    found = answered(place, run, held, key, window=3600)
    assert_equal(run, found, held, key, chunk=256, is_whole=is_whole)
