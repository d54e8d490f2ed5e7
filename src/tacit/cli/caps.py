"""Caps on the command line, of a ledger file and of a client that has joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import console
from tacit.errors import BadValue

if TYPE_CHECKING:
    from tacit.ledger.budget import Cap
    from tacit.ledger.durable import ClientLedger

Epsilon = Annotated[
    float | None,
    typer.Option(
        help="The largest epsilon to allow.",
        show_default="none: what is set is shown",
    ),
]
Delta = Annotated[float, typer.Option(help="The delta of the cap; 0 is pure privacy.")]
ProtectedUnit = Annotated[
    str, typer.Option(help="What is protected: user, or item for one interaction.")
]
Looker = Annotated[str, typer.Option(help="Who looks: release, server or collusion.")]
Remove = Annotated[
    bool, typer.Option("--remove", help="Remove the cap of this unit and view.")
]


def change(
    ledger: ClientLedger,
    epsilon: float | None,
    *,
    delta: float,
    unit: str,
    view: str,
    remove: bool,
) -> None:
    """Set or remove the cap of one unit and view; neither if none is asked for."""
    from tacit.ledger.budget import Cap
    from tacit.release import cell_name

    if epsilon is not None and remove:
        raise BadValue("give --epsilon to set a cap, or --remove to take it away")
    if epsilon is not None:
        ledger.set_cap(Cap(epsilon, delta, *cell_name(unit, view)))
    elif remove and not ledger.remove_cap(cell_name(unit, view)):
        raise BadValue(f"there is no cap for unit '{unit}' and view '{view}'")


def show(caps: Sequence[Cap]) -> None:
    """Print the caps that are set, one per line."""
    for one in caps:
        console.out().print(
            f"cap: epsilon {one.epsilon:g} (delta {one.delta:g}, unit {one.unit}, "
            f"view {one.view})"
        )
    if not caps:
        console.out().print("no cap is set: the client answers as was agreed")
