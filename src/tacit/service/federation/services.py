"""The three services as processes: from settings to listeners that answer.

leader        public: reports   private: rounds   page: the operator's
helper                          private: rounds   page: the operator's
coordinator   public: invitation, manifest, model   private: status, rounds by hand
                                                page: the operator's
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from socket import socket
from typing import Protocol, TypeVar

from starlette.types import ASGIApp

from tacit.data.catalog import Catalog
from tacit.errors import Refused
from tacit.experiment.assemble import assemble_public, declared_catalog
from tacit.experiment.needs import refuse_few_rounds
from tacit.experiment.settings import Experiment, read_experiment
from tacit.service.federation.aggregator import Aggregator
from tacit.service.federation.coordinated_run import CoordinatedRun
from tacit.service.federation.coordinator import Coordinator
from tacit.service.federation.coordinator_endpoints import (
    CoordinatorsOwn,
    PublicEndpoints,
)
from tacit.service.federation.intake import Intake
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.invited_run import InvitedRun
from tacit.service.federation.new_items import new_items_of
from tacit.service.federation.operator_client import OperatorClient, Persistent
from tacit.service.federation.operator_endpoints import OperatorEndpoints
from tacit.service.federation.operator_page import OperatorPage
from tacit.service.federation.overview import of_aggregator, of_coordinator
from tacit.service.federation.sealing import Role
from tacit.service.federation.settings import (
    AggregatorSettings,
    CoordinatorSettings,
    address,
    public_signing_key,
    read_secret,
    read_signing_key,
)
from tacit.service.federation.store import AggregatorStore
from tacit.service.http import Endpoints
from tacit.service.server import Server, listen, serve_all
from tacit.service.signing import Signer
from tacit.system_errors import explained

Passing = Callable[[str], None]
Listening = Sequence[tuple[str, socket]]  # the name of each listener, and its socket
_HOUR = 3600.0  # seconds
GREETINGS = 30.0  # seconds between two questions whether another service is there
_AGAIN = 5.0  # and the same where one was not there: it may just be starting
_PATIENCE = 60  # seconds for a thread to end what it has begun
AnyRun = TypeVar("AnyRun", bound=InvitedRun)


def serve_aggregator(
    settings: AggregatorSettings,
    *,
    is_restored: bool = False,
    started: Callable[[Listening, Server], None] | None = None,
    passing: Passing | None = None,
    clock: Callable[[], float] = time.time,
    greetings: float = GREETINGS,
) -> None:
    """Run a leader or a helper until SIGTERM or Ctrl-C."""
    role = Role.LEADER if settings.role == "leader" else Role.HELPER
    names = ["private", "page"]
    if role is Role.LEADER:
        names.insert(0, "public")
    # The ports first: what is in use is told before anything is opened.
    listening = [
        (name, listen(address(getattr(settings, name), name))) for name in names
    ]
    store = AggregatorStore(settings.folder, settings.role, is_restored=is_restored)
    # One thread has the file: batches, rounds and closings come one after another.
    with (
        ThreadPoolExecutor(1, thread_name_prefix="aggregator") as worker,
        contextlib.ExitStack() as closing,
    ):
        helper = None
        if role is Role.LEADER:
            secret = read_secret(settings.pair_secret)
            helper = OperatorClient("helper", settings.helper_url, secret)
            closing.callback(helper.close_connection)
            closing.enter_context(greeting([helper], greetings))
        pass_on = None if helper is None else Persistent(helper)
        aggregator = _aggregator(settings, role, store, pass_on, passing, clock)
        private = OperatorEndpoints(
            aggregator,
            worker,
            coordinator=read_secret(settings.coordinator_secret),
            leader=read_secret(settings.pair_secret),
        )
        applications: dict[str, ASGIApp] = {"private": private.application}
        look = partial(of_aggregator, aggregator, helper)
        if role is Role.LEADER:
            intake = Intake(aggregator, worker, settings.intake)
            applications["public"] = intake
            look = partial(look, queued=lambda: intake.room.bytes)
        applications["page"] = OperatorPage(look, settings.plain_http_hosts).application
        over = threading.Event()
        closing.callback(over.set)
        _repeatedly(lambda: worker.submit(aggregator.expire), over)
        serve_listeners(applications, listening, started)
    store.close()


def _repeatedly(work: Callable[[], object], over: threading.Event) -> None:
    """Do something every hour, beside everything else, until it is over."""

    def wait_and_work() -> None:
        while not over.wait(_HOUR):
            work()

    threading.Thread(target=wait_and_work, name="expiry", daemon=True).start()


def _aggregator(
    settings: AggregatorSettings,
    role: Role,
    store: AggregatorStore,
    pass_on: Persistent | None,
    passing: Passing | None,
    clock: Callable[[], float],
) -> Aggregator:
    signer = Signer(
        read_signing_key(settings.signing_key),
        {
            "leader": public_signing_key(settings.leader_key, "leader_key"),
            "helper": public_signing_key(settings.helper_key, "helper_key"),
        },
    )
    return Aggregator(
        role,
        store,
        signer,
        settings.limits,
        url=settings.url,
        pass_on=pass_on,
        passing=passing,
        clock=clock,
    )


def serve_coordinator(
    settings: CoordinatorSettings,
    run: CoordinatedRun | None = None,
    *,
    started: Callable[[Listening, Server], None] | None = None,
    passing: Passing | None = None,
    greetings: float = GREETINGS,
) -> None:
    """Run a coordinator until SIGTERM or Ctrl-C; it goes on serving when it is over."""
    listening = [
        (name, listen(address(getattr(settings, name), name)))
        for name in ("public", "private", "page")
    ]
    found = coordinated_run(settings) if run is None else run
    new_items = new_items_of(
        settings.new_items, found.assembled.experiment, found.assembled.learner
    )
    coordinator = Coordinator(
        found,
        settings.folder,
        leader=OperatorClient(
            "leader", settings.leader_url, read_secret(settings.leader_secret)
        ),
        helper=OperatorClient(
            "helper", settings.helper_url, read_secret(settings.helper_secret)
        ),
        leader_url=settings.reports_url,
        schedule=settings.schedule,
        passing=passing,
    )
    own = CoordinatorsOwn(coordinator, secret=read_secret(settings.secret))
    applications: dict[str, ASGIApp] = {
        "public": PublicEndpoints(
            coordinator, rotation=settings.rotation, new_items=new_items
        ),
        "private": Endpoints(own.endpoints),
        "page": OperatorPage(
            partial(of_coordinator, coordinator), settings.plain_http_hosts
        ).application,
    }
    peers = coordinator.leader, coordinator.helper
    try:
        with beside(coordinator.play, "rounds"), greeting(peers, greetings):
            serve_listeners(applications, listening, started)
    finally:
        coordinator.close()


def greeting(
    peers: Sequence[OperatorClient], every: float
) -> contextlib.AbstractContextManager[None]:
    """Ask other services every so many seconds whether they are there, beside all else.

    Where one does not answer, it is asked again sooner.

    An operator's page shows when they last answered, also while nothing else is asked
    of them.
    """

    def greet(*, stop: threading.Event) -> None:
        while not stop.is_set():
            for one in peers:
                one.greet()
            are_there = all(one.peer.answers for one in peers)
            stop.wait(every if are_there else min(every, _AGAIN))

    return beside(greet, "greetings")


@contextlib.contextmanager
def beside(play: Callable[..., None], name: str) -> Iterator[None]:
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


def serve_listeners(
    applications: dict[str, ASGIApp],
    listening: Listening,
    started: Callable[[Listening, Server], None] | None,
) -> None:
    """Serve each application on the listener of its name, until it is stopped."""
    pairs = [(applications[name], own) for name, own in listening]

    def tell(server: Server) -> None:
        if started is not None:
            started(listening, server)

    serve_all(pairs, started=tell)


def coordinated_run(settings: CoordinatorSettings) -> CoordinatedRun:
    """The run of a coordinator's experiment, from declared items and population."""
    return declared_run(settings, partial(run_of, settings=settings))


def run_of(
    experiment: Experiment,
    catalog: Catalog,
    settings: CoordinatorSettings,
    *,
    population: int | None = None,
) -> CoordinatedRun:
    """The run of an experiment over these public items."""
    found = CoordinatedRun.of(
        assemble_public(experiment, catalog, population=population),
        leader=public_signing_key(settings.leader_key, "leader_key"),
        helper=public_signing_key(settings.helper_key, "helper_key"),
        title=settings.title,
        contact=settings.contact,
        edition=settings.edition,
        one_machine=settings.one_machine,
    )
    return as_agreed(found)


class Declared(Protocol):
    """Settings with an experiment and, if one was made before, its invitation."""

    @property
    def experiment(self) -> Path: ...  # noqa: D102
    @property
    def invitation(self) -> Path | None: ...  # noqa: D102


def declared_run(settings: Declared, run_of: Callable[..., AnyRun]) -> AnyRun:
    """The run of an experiment, from declared items and population.

    They stand in the experiment, or in an invitation that was made before. Rounds that
    are too few for the method are refused here, at each start of a service.
    """
    experiment = read_experiment(settings.experiment)
    refuse_few_rounds(experiment)
    if settings.invitation is None:
        return run_of(experiment, declared_catalog(experiment))
    with explained():
        invited = Invitation.decode(settings.invitation.read_bytes())
    population = invited.plan.population
    found = run_of(experiment, invited.catalog, population=population)
    if found.invitation.digest != invited.digest:
        raise Refused(
            f"{settings.invitation} invites to another run than {settings.experiment} "
            "and these operators make; make the invitation anew"
        )
    return found


def as_agreed(run: AnyRun) -> AnyRun:
    """The run, saying of itself what clients agreed to: that one machine runs it."""
    said, simulation = run.invitation.one_operator, run.assembled.simulation
    if not said:
        return run
    simulation = replace(simulation, one_operator=said)
    return replace(run, assembled=replace(run.assembled, simulation=simulation))
