"""Real clients and simulated ones with real services: from a join to a list.

Every role listens on a port of its own; nothing is shared but HTTP.
"""

import time
from typing import get_args

import httpx
import numpy as np
import pytest
from service.federation.rounds import sealed
from service.federation.services import (
    Place,
    a_run,
    aggregators,
    experiment,
    in_thread,
)

from tacit.data.shards import Shards
from tacit.keys import Key
from tacit.models.histories import ListFor
from tacit.service.client import Connection
from tacit.service.federation.client import FederationClient, Kind
from tacit.service.federation.coordinator import CoordinatorSchedule
from tacit.service.federation.history import History
from tacit.service.federation.sealing import SumFields
from tacit.service.federation.services import serve_coordinator
from tacit.service.federation.simulated_clients import SimulatedClients
from tacit.service.manifest import read_document

MANY, REAL = 9, 3
GRAM = {
    "method": {"name": "gram", "head": 5, "count_rounds": 1, "load_rounds": 1},
    "run": {"rounds": 3},
}


@pytest.fixture
def services(tmp_path):
    """The coordinator's URL and its run; a round closes with the eleventh report."""
    place = Place(tmp_path)
    with aggregators(place) as urls:
        schedule = CoordinatorSchedule(poll=0.02, window=600, enough=MANY + REAL - 1)
        settings = place.coordinator(
            leader_url=urls.leader,
            helper_url=urls.helper,
            reports_url=urls.reports,
            schedule=schedule,
        )
        run = a_run(place, experiment(**GRAM))
        with in_thread(serve_coordinator, settings, run) as own:
            yield own["public"], run


def histories(n: int) -> list[list[int]]:
    return [[(user * 7 + i * i) % 15 for i in range(5)] for user in range(n)]


def patiently(look, *, seconds: float = 60.0):
    """What `look` gives, once it gives something."""
    until = time.monotonic() + seconds
    while (found := look()) is None:
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def test_everybody_takes_part_and_one_is_away_for_a_round(services, tmp_path):
    url, run = services
    every = histories(MANY + REAL)
    for user in range(REAL):
        items = tuple(f"item {n}" for n in every[user])
        FederationClient.join(tmp_path / f"{user}", url, lambda _, i=items: History(i))
    held = [np.array(one) for one in every[REAL:]]
    shards = Shards.of_histories(held, n_items=15)
    many = SimulatedClients(url, run.invitation, shards, Key.from_seed(0))
    for round_ in range(3):
        counts = patiently(many.answer)
        assert (counts.round, counts.delivered) == (round_, MANY)
        # The first is away in the second round, and another one in the others.
        for user in range(REAL - 1) if round_ != 1 else range(1, REAL):
            with FederationClient(tmp_path / f"{user}") as client:
                outcome = client.once(now=True)
                assert (outcome.kind, outcome.round) == (Kind.SENT, round_), outcome
    with FederationClient(tmp_path / "0") as client:
        assert sorted(client.membership.known) == [0, 1, 2]
        patiently(lambda: client._over())
        history = [f"item {n}" for n in every[0]]
        with Connection(url, tmp_path / "model") as server:
            model = server.recommender
        # Noise of twelve clients leaves no taste in one model of twenty or so: then the
        # lists are equal. So each is compared with the model's own.
        for list_for in get_args(ListFor):
            ranked = client.recommend(3, list_for=list_for)
            assert ranked == model.ranking_for(list_for).recommend(history, 3)
            assert not {row.id for row in ranked} & set(history)
        assert [one.round for one in client.show().entries] == [0, 2]


def test_a_void_round_is_spent_and_the_clients_go_on_without_it(tmp_path):
    """A stranger sends garbage into the first of two rounds."""
    place, reporting = Place(tmp_path), MANY + 2
    with aggregators(place) as urls:
        settings = place.coordinator(
            leader_url=urls.leader,
            helper_url=urls.helper,
            reports_url=urls.reports,
            schedule=CoordinatorSchedule(poll=0.02, window=600, enough=reporting),
        )
        run = a_run(place, experiment(run={"rounds": 2}))
        with in_thread(serve_coordinator, settings, run) as own:
            url, stranger = own["public"], np.random.default_rng(0)
            every = histories(MANY + 1)
            items = tuple(f"item {n}" for n in every[0])
            FederationClient.join(tmp_path / "0", url, lambda _: History(items))
            held = [np.array(one) for one in every[1:]]
            many = SimulatedClients(
                *(url, run.invitation, Shards.of_histories(held, n_items=15)),
                Key.from_seed(0),
            )
            for number, largest in enumerate((2**31, 1)):
                counts = patiently(many.answer)
                assert (counts.round, counts.delivered) == (number, MANY)
                sent = httpx.get(f"{url}/v1/manifest").content
                manifest = read_document(sent[128:], SumFields)
                report = stranger.integers(-largest, largest, 15)
                where = f"{urls.reports}/v1/rounds/{manifest.round_id.hex()}/reports"
                body = sealed(manifest, report).body()
                assert httpx.post(where, content=body).status_code == 200
                with FederationClient(tmp_path / "0") as client:
                    outcome = client.once(now=True)
                    assert (outcome.kind, outcome.round) == (Kind.SENT, number)
            with FederationClient(tmp_path / "0") as client:
                patiently(lambda: client._over())
                assert [one.round for one in client.show().entries] == [0, 1]
                assert client.recommend(3)
            status = httpx.get(f"{url}/v1/model")
            assert status.status_code == 200
