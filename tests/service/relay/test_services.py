"""The services with their listeners: pages and metrics of both operators.

Also `tacit.service.relay.overview`, `tacit.service.relay.relay_endpoints`,
`tacit.service.relay.relay_client`, `tacit.service.relay.collector_endpoints` and
`tacit.service.relay.forwarding`: both roles know each other over HTTP alone.
"""

import httpx
import pytest
from service.federation.services import in_thread
from service.relay.places import Place, both, free_ports, patiently, shards

from tacit.errors import Refused
from tacit.keys import Key
from tacit.service.federation.settings import read_secret
from tacit.service.federation.simulated_clients import SimulatedClients
from tacit.service.relay.services import serve_collector, serve_relay


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
        assert httpx.post(f"{urls.collector}/v1/retire", headers=headers).is_success
        ended = f"{urls.public}/v1/manifest"
        patiently(lambda: httpx.get(ended).status_code == 410)


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
        body = [found.sealed(row) for row in many._computed(found, range(12))]
        for one in body:
            assert httpx.post(f"{reports}/v1/reports", content=one).status_code == 202
        with in_thread(serve_collector, collector, run):
            patiently(lambda: httpx.get(f"{public}/v1/model").status_code == 200)
