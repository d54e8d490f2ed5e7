"""Relay and collector as processes: from settings to listeners that answer.

relay       public: uploads                       private: epochs
collector   public: invitation, manifest, model   private: batches, status
both        page: the operator's own
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from starlette.types import ASGIApp

from tacit.data.catalog import Catalog
from tacit.errors import Refused
from tacit.experiment.assemble import assemble_public
from tacit.experiment.settings import Experiment, read_experiment
from tacit.service.federation.coordinator_endpoints import PublicEndpoints
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.operator_page import OperatorPage
from tacit.service.federation.services import (
    Listening,
    Passing,
    declared_catalog,
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
from tacit.service.relay.relay import EpochSigner, Relay
from tacit.service.relay.relay_client import RelayClient
from tacit.service.relay.relay_endpoints import RelayEndpoints
from tacit.service.relay.relay_intake import RelayIntake
from tacit.service.relay.relay_store import RelayStore
from tacit.service.relay.settings import CollectorSettings, RelaySettings
from tacit.service.server import Server, listen
from tacit.system_errors import explained

_PATIENCE = 60  # seconds for a thread to end what it has begun


def serve_relay(
    settings: RelaySettings,
    *,
    is_restored: bool = False,
    started: Callable[[Listening, Server], None] | None = None,
    passing: Passing | None = None,
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
        look = partial(of_relay, relay, forwarding, queued=lambda: intake.queued_bytes)
        applications: dict[str, ASGIApp] = {
            "public": intake,
            "private": RelayEndpoints(relay, worker, collector=secret).application,
            "page": OperatorPage(look).application,
        }
        with _beside(forwarding.play, "forwarding"):
            serve_listeners(applications, listening, started)
        collector.close_connection()
    store.close()


def serve_collector(
    settings: CollectorSettings,
    run: CollectedRun | None = None,
    *,
    started: Callable[[Listening, Server], None] | None = None,
    passing: Passing | None = None,
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
        "page": OperatorPage(partial(of_collector, collector)).application,
    }
    with _beside(collector.play, "epochs"):
        serve_listeners(applications, listening, started)
    relay.close_connection()
    collector.close()


@contextlib.contextmanager
def _beside(play: Callable[..., None], name: str) -> Iterator[None]:
    """A thread that plays while listeners answer, and ends with them."""
    stop = threading.Event()
    thread = threading.Thread(
        target=play, kwargs={"stop": stop}, name=name, daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_PATIENCE)


def _signer(settings: RelaySettings | CollectorSettings) -> EpochSigner:
    return EpochSigner(
        read_signing_key(settings.signing_key),
        public_signing_key(settings.relay_key, "relay_key"),
        public_signing_key(settings.collector_key, "collector_key"),
    )


def collected_run(settings: CollectorSettings) -> CollectedRun:
    """The run of a collector's experiment, from declared items and population.

    They stand in the experiment, or in an invitation that was made before.
    """
    experiment = read_experiment(settings.experiment)
    if settings.invitation is None:
        return run_of(experiment, declared_catalog(experiment), settings)
    with explained():
        invited = Invitation.decode(settings.invitation.read_bytes())
    population = invited.plan.population
    found = run_of(experiment, invited.catalog, settings, population=population)
    if found.invitation.digest != invited.digest:
        raise Refused(
            f"{settings.invitation} invites to another run than {settings.experiment} "
            "and these operators make; make the invitation anew"
        )
    return found


def run_of(
    experiment: Experiment,
    catalog: Catalog,
    settings: CollectorSettings,
    *,
    population: int | None = None,
) -> CollectedRun:
    """The run of an experiment over these public items."""
    assembled = assemble_public(experiment, catalog, population=population)
    found = CollectedRun.of(
        assembled,
        relay=public_signing_key(settings.relay_key, "relay_key"),
        collector=public_signing_key(settings.collector_key, "collector_key"),
        title=settings.title,
        contact=settings.contact,
        edition=settings.edition,
        one_machine=settings.one_machine,
    )
    if not settings.one_machine:
        return found
    # What is said of the run is what clients agreed to: that one machine ran it.
    said = found.invitation.one_operator
    simulation = replace(assembled.simulation, one_operator=said)
    return replace(found, assembled=replace(assembled, simulation=simulation))
