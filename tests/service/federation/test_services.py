"""All roles as services: exact sums of real methods, and nothing said of anybody."""

import contextlib
import logging
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from service.federation.rounds import without_noise
from service.federation.services import (
    Place,
    a_run,
    aggregators,
    coordinator,
    experiment,
    step_until,
)

from tacit.data.catalog import Profiles
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import Refused
from tacit.experiment.assemble import declared_catalog
from tacit.keys import Key
from tacit.method import Unmetered, enrol, participate
from tacit.service.federation import coordinator as states
from tacit.service.federation.public_rounds import OPEN
from tacit.service.federation.services import serve_aggregator
from tacit.transport.channels import channel
from tacit.transport.messages import Reports
from tacit.transport.shared_sum import modulo, play, signed

ITEMS = 15
GRAM = {
    "method": {"name": "gram", "head": 5, "count_rounds": 1, "load_rounds": 1},
    "run": {"rounds": 3},
}


def histories(n: int) -> Shards:
    random = np.random.default_rng(n)
    held = [random.choice(ITEMS, size=4, replace=False) for _ in range(n)]
    return Shards.of_histories(held, n_items=ITEMS)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def reports_of(run, server, shards: Shards) -> Reports:
    """What all clients of a round say, before it is sealed."""
    method, plan = run.invitation.method, run.invitation.plan
    keys = Key.from_seed(0).each(np.arange(len(shards)))
    who = Profiles(Strings.of(str(user) for user in range(len(shards))))
    clients = enrol(method, plan, who, keys, catalog=run.invitation.catalog)
    broadcast = method.broadcast(server)
    _, reports, _ = participate(
        method, broadcast, clients, shards, keys, ledger=Unmetered()
    )
    return reports


def sealed_reports(reports: Reports, form, manifest) -> list[bytes]:
    """What each client sends."""
    return [form.seal(row, manifest) for row in form.rows(reports.tree)]


def send(http: httpx.Client, urls, manifest, bodies: list[bytes]) -> None:
    url = f"{urls.reports}/v1/rounds/{manifest.round_id.hex()}/reports"
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda body: http.post(url, content=body), bodies)
        assert [one.status_code for one in found] == [200] * len(bodies)


@pytest.mark.parametrize(
    ("changes", "n"),
    [(GRAM, 3), (GRAM, 12), ({"data": {"population": 200}}, 200)],
    ids=["gram of 3", "gram of 12", "popularity of 200"],
)
def test_services_channel_and_plain_sum_agree_in_every_number(place, changes, n):
    """In all rounds: what is published, less both noises, is what clients encoded."""
    run, shards = a_run(place, experiment(**changes)), histories(n)
    with aggregators(place) as urls, httpx.Client(timeout=30) as http:
        found = coordinator(place, urls, run, enough=n)
        for number in range(run.invitation.plan.rounds):
            step_until(found, OPEN)
            row = found.rounds()[-1]
            server = run.after([states._sum_of(one) for one in found.rounds()[:number]])
            form, reports = run.form(server), reports_of(run, server, shards)
            bodies = sealed_reports(reports, form, row.manifest)
            send(http, urls, row.manifest, bodies)
            step_until(found, states.BOTH_CLOSED)
            added = states._sum_of(found.rounds()[-1])
            services = without_noise(row.manifest, [added.leader, added.helper])
            plain, count = form.shared.total([reports.tree])
            assert count == added.reports == n
            assert (services == signed(plain)).all()
            assert (of_the_channel(run, server, reports) == services).all()
            step_until(found, states.DELETED)
        found.step()
        assert found.is_published
        found.close()
        for one in (found.leader, found.helper):
            one.close_connection()


def of_the_channel(run, server, reports) -> np.ndarray:
    """The sum that the simulation's channel publishes, less its noises."""
    method = run.invitation.method
    context = method.context(server, method.broadcast(server), Key.from_seed(5))
    delivered = channel("two_servers").carry([reports], context)
    shared = run.form(server).shared
    steps = np.rint(delivered.total[shared.leaf].ravel() * shared.steps)
    total, _ = shared.total([reports.tree])
    both = play(total, shared, context.key)
    noise = sum(one.published - one.halves for one in both)
    return signed(modulo(steps.astype(np.int64)) - noise)


@contextlib.contextmanager
def everything_noted(monkeypatch, caplog):
    """Every connection of the process, and every record of a log."""
    real, seen = socket.socket.connect, []

    def noted(self, address):
        seen.append(address)
        return real(self, address)

    monkeypatch.setattr(socket.socket, "connect", noted)
    with caplog.at_level(logging.DEBUG):
        yield seen


def test_a_whole_run_stays_on_this_machine_and_names_nobody(place, monkeypatch, caplog):
    """Connections, logs, file names and the coordinator's disk."""
    run, shards = a_run(place), histories(4)
    with (
        everything_noted(monkeypatch, caplog) as seen,
        aggregators(place) as urls,
        httpx.Client(timeout=30) as http,
    ):
        found = coordinator(place, urls, run, enough=4)
        step_until(found, OPEN)
        row = found.rounds()[-1]
        reports = reports_of(run, run.start, shards)
        bodies = sealed_reports(reports, run.form(run.start), row.manifest)
        send(http, urls, row.manifest, bodies)
        step_until(found, states.DELETED)
        found.step()
        assert found.is_published
        found.close()
        for one in (found.leader, found.helper):
            one.close_connection()
    assert seen
    assert {host for host, *_ in seen} == {"127.0.0.1"}
    own = [r for r in caplog.records if r.name.startswith(("tacit", "uvicorn"))]
    texts = [f"{one.getMessage()} {one.exc_info}" for one in own]
    texts += [str(one.relative_to(place.folder)) for one in place.folder.rglob("*")]
    for body in bodies:
        assert not [one for one in texts if body[32:48].hex() in one]
    assert not [one for one in texts if "127.0.0.1:" in one or "item " in one]
    disk = [one.read_bytes() for one in place.folder.rglob("*") if one.is_file()]
    for body in bodies:  # ids, both seals
        for part in (body[32:48], body[48:128], body[128:]):
            assert not [one for one in disk if part in one]


def test_a_port_in_use_is_told_before_anything_is_opened(place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        private = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Refused, match="is in use"):
            serve_aggregator(place.aggregator("helper", private=private))
    assert not (place.folder / "helper" / "aggregator.db").exists()


def test_items_that_are_not_declared_are_refused():
    with pytest.raises(Refused, match="the items are not declared"):
        declared_catalog(experiment())
