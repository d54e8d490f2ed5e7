"""Relay and collector as processes: from settings to listeners that answer.

relay       public: uploads                       private: epochs
collector   public: invitation, manifest, model   private: batches, status
both        page: the operator's own
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from starlette.types import ASGIApp

from tacit.data.catalog import Catalog
from tacit.experiment.assemble import assemble_public
from tacit.experiment.settings import Experiment
from tacit.service.federation.coordinator_endpoints import PublicEndpoints
from tacit.service.federation.operator_page import OperatorPage
from tacit.service.federation.services import (
    GREETINGS,
    Listening,
    Passing,
    as_agreed,
    beside,
    declared_run,
    greeting,
    serve_listeners,
)
from tacit.service.federation.settings import (
    address,
    public_signing_key,
    read_secret,
    read_signing_key,
)
from tacit.service.http import Endpoints
from tacit.service.relay.collected_run import CollectedRun
from tacit.service.relay.collector import Collector
from tacit.service.relay.collector_endpoints import CollectorEndpoints
from tacit.service.relay.forwarding import CollectorClient, Forwarding
from tacit.service.relay.overview import of_collector, of_relay
from tacit.service.relay.relay import Relay
from tacit.service.relay.relay_client import RelayClient
from tacit.service.relay.relay_endpoints import RelayEndpoints
from tacit.service.relay.relay_intake import RelayIntake
from tacit.service.relay.relay_store import RelayStore
from tacit.service.relay.settings import CollectorSettings, RelaySettings
from tacit.service.server import Server, listen
from tacit.service.signing import Signer


def serve_relay(
    settings: RelaySettings,
    *,
    is_restored: bool = False,
    started: Callable[[Listening, Server], None] | None = None,
    passing: Passing | None = None,
    greetings: float = GREETINGS,
) -> None:
    """Run a relay until SIGTERM or Ctrl-C."""
    # The ports first: what is in use is told before anything is opened.
    listening = [
        (name, listen(address(getattr(settings, name), name)))
        for name in ("public", "private", "page")
    ]
    store = RelayStore(settings.folder, is_restored=is_restored)
    secret = read_secret(settings.pair_secret)
    # One thread has the file: uploads, epochs and decisions come one after another.
    with ThreadPoolExecutor(1, thread_name_prefix="relay") as worker:
        relay = Relay(
            store, _signer(settings), settings.limits, url=settings.url, passing=passing
        )
        collector = CollectorClient("collector", settings.collector_url, secret)
        forwarding = Forwarding(relay, collector, worker, poll=settings.poll)
        intake = RelayIntake(relay, worker, settings.intake)
        look = partial(of_relay, relay, forwarding, queued=lambda: intake.room.bytes)
        applications: dict[str, ASGIApp] = {
            "public": intake,
            "private": RelayEndpoints(relay, worker, collector=secret).application,
            "page": OperatorPage(look, settings.plain_http_hosts).application,
        }
        playing = beside(forwarding.play, "forwarding")
        with playing, greeting([collector], greetings):
            serve_listeners(applications, listening, started)
        collector.close_connection()
    store.close()


def serve_collector(
    settings: CollectorSettings,
    run: CollectedRun | None = None,
    *,
    started: Callable[[Listening, Server], None] | None = None,
    passing: Passing | None = None,
    greetings: float = GREETINGS,
) -> None:
    """Run a collector until SIGTERM or Ctrl-C; it goes on with its run."""
    listening = [
        (name, listen(address(getattr(settings, name), name)))
        for name in ("public", "private", "page")
    ]
    secret = read_secret(settings.pair_secret)
    relay = RelayClient("relay", settings.relay_url, secret)
    collector = Collector(
        run or collected_run(settings),
        settings.folder,
        relay=relay,
        relay_url=settings.reports_url,
        signer=_signer(settings),
        schedule=settings.schedule,
        processes=settings.processes,
        free_bytes=settings.free_bytes,
        passing=passing,
    )
    own = read_secret(settings.secret)
    private = CollectorEndpoints(collector, relay=secret, own=own)
    applications: dict[str, ASGIApp] = {
        "public": PublicEndpoints(collector, rotation=settings.rotation),
        "private": Endpoints(private.endpoints),
        "page": OperatorPage(
            partial(of_collector, collector), settings.plain_http_hosts
        ).application,
    }
    with beside(collector.play, "epochs"), greeting([relay], greetings):
        serve_listeners(applications, listening, started)
    relay.close_connection()
    collector.close()


def _signer(settings: RelaySettings | CollectorSettings) -> Signer:
    return Signer(
        read_signing_key(settings.signing_key),
        {
            "relay": public_signing_key(settings.relay_key, "relay_key"),
            "collector": public_signing_key(settings.collector_key, "collector_key"),
        },
    )


def collected_run(settings: CollectorSettings) -> CollectedRun:
    """The run of a collector's experiment, from declared items and population."""
    return declared_run(settings, partial(run_of, settings=settings))


def run_of(
    experiment: Experiment,
    catalog: Catalog,
    settings: CollectorSettings,
    *,
    population: int | None = None,
) -> CollectedRun:
    """The run of an experiment over these public items."""
    found = CollectedRun.of(
        assemble_public(experiment, catalog, population=population),
        relay=public_signing_key(settings.relay_key, "relay_key"),
        collector=public_signing_key(settings.collector_key, "collector_key"),
        title=settings.title,
        contact=settings.contact,
        edition=settings.edition,
        one_machine=settings.one_machine,
    )
    return as_agreed(found)
