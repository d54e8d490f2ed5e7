"""`tacit serve`: a finished run, or a service of a federation, over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tacit.cli import console, federation, relay, rotation
from tacit.cli.options import (
    UNSET,
    Axes,
    Delta,
    Interests,
    Json,
    Noise,
    PaddingShare,
    RunPath,
    Theta,
)
from tacit.errors import BadValue, MissingExtra

if TYPE_CHECKING:
    from tacit.service.offer import Offer
    from tacit.serving.settings import ServingSettings

app = typer.Typer(
    help="Serve a finished run, or be a service of a federation, over HTTP.",
    no_args_is_help=True,
)
Sends = Literal["on_device", "krr", "dpa", "vdp"]
_LOCAL = ("127.0.0.1", "::1", "localhost")


@app.command("recommendations")
def recommendations(
    run: RunPath,
    mode: Annotated[
        Sends | None,
        typer.Option(
            show_default="[serve] of the experiment",
            help="What clients send. on_device: nothing, they fetch the candidates and "
            "rank. krr: their strongest interest by randomised response. dpa: noisy "
            "attention over interests. vdp: the noisy user vector.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="What one query costs a user; a --mode but on_device needs it.",
            show_default=False,
        ),
    ] = None,
    delta: Delta = 0.0,
    interests: Interests = None,
    padding: PaddingShare = 0.0,
    axes: Axes = None,
    noise: Noise = "sound",
    theta: Theta = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 is all of them.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port to listen on; 0 chooses a free one.")
    ] = 8000,
    json: Json = False,
) -> None:
    """Serve a finished run's recommendations until Ctrl-C or SIGTERM.

    On the device, every client fetches model and candidates and ranks by
    itself: nothing of a user is sent. With a mode and an epsilon, clients may
    send a private query of a few bytes instead, and the server ranks. It
    stores and logs no query. Without --mode, the section `serve` of the run's
    experiment decides.

    Example: tacit serve recommendations run --mode krr --epsilon 2

    Then: curl http://127.0.0.1:8000/v1/model; in Python: tacit.service.client

    There is no TLS here: put a proxy in front before anybody else may connect.
    """
    settings = _settings(
        run,
        mode,
        epsilon,
        {
            "delta": delta,
            "interests": interests,
            "padding": padding,
            "axes": axes,
            "noise": noise,
            "theta": theta,
        },
    )
    try:
        from tacit.service.application import application
        from tacit.service.run_offer import run_offer
        from tacit.service.server import Address, listen, serve
    except ImportError as error:
        raise MissingExtra(error.name or "starlette", "serve") from error

    # The port first: what is in use is told before anything is computed.
    with listen(Address(host, port)) as listening:
        url = Address(host, listening.getsockname()[1]).url
        offer = run_offer(run, settings)
        _tell(url, offer, json=json)
        if host not in _LOCAL:
            console.note("note: there is no TLS here; put a proxy in front")
        sys.stdout.flush()  # a pipe would show the address at the end only
        serve(application(offer), listening)
    console.note("stopped; open requests were answered")


def _settings(
    run: Path,
    mode: Sends | None,
    epsilon: float | None,
    how: dict[str, Any],
) -> ServingSettings | None:
    """How the server ranks; None where every client ranks by itself."""
    from tacit.experiment.saved_run import SavedRun
    from tacit.experiment.serve_settings import ServeSettings

    if mode is not None:
        return ServeSettings(mode, epsilon=epsilon, **how).queries
    if epsilon or any(value not in UNSET for value in how.values()):
        raise BadValue(
            "settings of a query need --mode krr, dpa or vdp; leave them out to serve "
            "as the section [serve] of the experiment says"
        )
    return SavedRun.at(run).experiment.serve.queries


def _tell(url: str, offer: Offer, *, json: bool) -> None:
    """Print where the server is and what it serves, before the first request."""
    from tacit.service.model_document import ModelDocument

    document = ModelDocument.decode(offer.model.content)
    queries = document.queries
    mode = "on_device" if queries is None else queries.mode
    if json:
        told: dict[str, Any] = {
            "url": url,
            "mode": mode,
            "items": document.items,
            "candidates": document.candidates.sha256,
            "simulation": document.simulation,
            "query_bytes": None if queries is None else queries.bytes,
            "version": None if queries is None else queries.version,
        }
        console.print_json(told)
    else:
        lines = [f"{url}: {document.items:,} items, {mode}"]
        lines.append(f"candidates: {document.candidates.bytes:,} bytes, fetched once")
        if queries is not None:
            lines.append(f"queries: {queries.bytes} bytes, for {queries.most} items")
        for line in lines:
            console.out().print(line, markup=False)
    if document.simulation:
        console.note(
            "note: this run is a simulation, whose noise follows from its seed; serve "
            "others a model of `tacit release`"
        )


for _command in (
    federation.keys,
    federation.coordinator,
    federation.leader,
    federation.helper,
    federation.status,
    federation.tickets,
    rotation.sign_rotation,
    rotation.add_rotation,
    relay.relay,
    relay.collector,
    relay.relay_tickets,
    relay.relay_destroy,
):
    app.command()(_command)
