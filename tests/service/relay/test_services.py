"""The services with their listeners: pages and metrics of both operators.

Also `tacit.service.relay.overview`, `tacit.service.relay.relay_endpoints`,
`tacit.service.relay.relay_client`, `tacit.service.relay.collector_endpoints` and
`tacit.service.relay.forwarding`: both roles know each other over HTTP alone.
"""

from hashlib import sha256
from types import SimpleNamespace

import httpx
import pytest
from service.federation.services import in_thread
from service.ports import free_ports
from service.relay.places import (
    QUICK,
    Place,
    a_manifest,
    both,
    patiently,
    shards,
)

from tacit.errors import Refused
from tacit.keys import Key
from tacit.service.federation.operator_client import Peer
from tacit.service.federation.operator_page import operator_page
from tacit.service.federation.settings import read_secret
from tacit.service.federation.simulated_clients import SimulatedClients
from tacit.service.relay.forwarding import CollectorClient
from tacit.service.relay.overview import of_relay
from tacit.service.relay.relay import Relay
from tacit.service.relay.relay_client import RelayClient
from tacit.service.relay.relay_store import RelayStore
from tacit.service.relay.services import _signer, serve_collector, serve_relay


def test_pages_metrics_and_status_say_nothing_of_too_few(tmp_path):
    place, pages = Place(tmp_path), free_ports(2)
    run = place.run()
    with both(
        place,
        run,
        relay={"page": f"127.0.0.1:{pages[0]}"},
        collector={"page": f"127.0.0.1:{pages[1]}"},
    ) as urls:
        clients = SimulatedClients(
            urls.public, run.invitation, shards(4), Key.from_os()
        )
        assert patiently(clients.answer).delivered == 4
        for port in pages:
            page = httpx.get(f"http://127.0.0.1:{port}/")
            assert page.status_code == 200
            assert "127.0.0.1" not in page.text
            metrics = httpx.get(f"http://127.0.0.1:{port}/metrics")
            assert metrics.status_code == 200
            assert "tacit_" in metrics.text
        own = read_secret(tmp_path / "own.secret").decode()
        headers = {"authorization": f"Bearer {own}"}
        told = httpx.get(f"{urls.collector}/v1/status", headers=headers).json()
        assert [one["state"] for one in told["rounds"]] == ["open"]
        assert told["rounds"][0]["reports"] is None
        assert told["state"].startswith("Epoch 1 of at most ")
        pair = read_secret(place.relay().pair_secret)
        for kind, url in ((RelayClient, urls.relay), (CollectorClient, urls.collector)):
            peer = kind("peer", url, pair)
            peer.greet()
            assert peer.peer.answers
            peer.close_connection()
        assert httpx.post(f"{urls.collector}/v1/retire", headers=headers).is_success
        ended = f"{urls.public}/v1/manifest"
        patiently(lambda: httpx.get(ended).status_code == 410)


@pytest.mark.parametrize("why", [None, "its hit rate is below that of the old one"])
def test_the_collectors_page_says_what_was_released_or_why_not(tmp_path, why):
    place, [port] = Place(tmp_path), free_ports(1)
    run, page = place.run(), f"http://127.0.0.1:{port}"
    object.__setattr__(run, "shortfall", lambda _: why)
    with both(place, run, collector={"page": f"127.0.0.1:{port}"}) as urls:
        before = httpx.get(f"{page}/metrics").text
        assert "\ntacit_released_models 0\n" in before
        many = SimulatedClients(urls.public, run.invitation, shards(12), Key.from_os())
        assert patiently(many.answer).delivered == 12
        name = "tacit_released_models" if why is None else "tacit_withheld_models"
        patiently(lambda: f"\n{name} 1\n" in httpx.get(f"{page}/metrics").text)
        text = httpx.get(page).text
    if why is None:
        model = tmp_path / "collector" / "run" / "model.safetensors"
        assert sha256(model.read_bytes()).hexdigest() in text
    else:
        assert f"The model is not published: {why}" in text


def test_the_relays_page_words_refusals_as_a_relay_answers(tmp_path):
    place, [port] = Place(tmp_path), free_ports(1)
    with in_thread(serve_relay, place.relay(page=f"127.0.0.1:{port}")):
        text = httpx.get(f"http://127.0.0.1:{port}/").text
    assert "a ticket that another upload has used" in text
    assert "queue full, disk full, or too early" in text
    assert "the service waits for the collector" in text
    for word in ("half", "helper"):
        assert word not in text


@pytest.mark.parametrize(("votes", "step"), [(6, 16), (60_000, 176)])
def test_the_queue_moves_with_fifty_uploads_however_large(tmp_path, votes, step):
    """60,000 votes are 3.4 MB in one upload."""
    place, store = Place(tmp_path), RelayStore(tmp_path / "relay")
    relay = Relay(store, _signer(place.relay()), QUICK, url="https://relay.invalid")
    relay.sign(a_manifest(reports_per_user=votes).document())
    forwarding = SimpleNamespace(collector=SimpleNamespace(peer=Peer()), trouble="")
    few = of_relay(relay, forwarding, queued=lambda: step * 2**20 - 1)
    many = of_relay(relay, forwarding, queued=lambda: step * 2**20)
    store.close()
    assert few.traffic.queue_bytes == 0
    assert many.traffic.queue_bytes == many.traffic.queue_step == step * 2**20
    assert f"queue, down to {step} MiB" in operator_page(many)


def test_a_port_in_use_is_told_before_anything_is_opened(tmp_path):
    place = Place(tmp_path)
    with in_thread(serve_relay, place.relay()) as urls:
        taken = urls["public"].removeprefix("http://")
        with pytest.raises(Refused, match="in use"):
            serve_collector(place.collector(public=taken), place.run())
    assert not (tmp_path / "collector" / "collector.db").exists()


def test_while_the_collector_is_away_the_relay_takes_and_keeps(tmp_path):
    """It tries again; nothing is lost, and its operator sees why."""
    place = Place(tmp_path)
    run = place.run()
    ports = free_ports(4)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    reports, private, public, own = (f"http://{one}" for one in addresses)
    relay = place.relay(
        public=addresses[0], private=addresses[1], url=reports, collector_url=own
    )
    collector = place.collector(
        public=addresses[2],
        private=addresses[3],
        relay_url=private,
        reports_url=reports,
    )
    with in_thread(serve_relay, relay):
        with in_thread(serve_collector, collector, run):
            many = SimulatedClients(public, run.invitation, shards(12), Key.from_os())
            found = patiently(many._round)
        rows = many._computed(found, range(12))
        body = [found.form.seal(row, found.manifest) for row in rows]
        for one in body:
            assert httpx.post(f"{reports}/v1/reports", content=one).status_code == 202
        with in_thread(serve_collector, collector, run):
            patiently(lambda: httpx.get(f"{public}/v1/model").status_code == 200)
