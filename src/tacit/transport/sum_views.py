"""Who sees what of a noisy sum over one channel: the cells, but for their events.

A channel declares it once. Statements, budgets and calibration read it from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.codes import Code
from tacit.release import Adjacency, Cell, Cells, Standing, Unit, View

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


@dataclass(frozen=True)
class SumViews:
    """What the promise in each view of a noisy sum assumes, or why there is none."""

    release: tuple[Code, ...]  # assumptions in the view of what is published
    server: tuple[Code, ...] = ()  # in the server's; empty: nothing is promised there
    without: str = "bare_at_server"  # the code of the cells that promise nothing
    detail: str = ""  # the same in more words
    how: str = ""  # how the noise is added, for the reason of the promises

    def cells(
        self,
        published: DpEvent,
        seen: DpEvent,
        *,
        each: DpEvent | None,
        adjacency: Adjacency,
        reason: str,
    ) -> Cells:
        """The six cells, from the event of what is published and that of the server.

        The server has a promise only if another operator adds the noise. Operators who
        collude with it undo it.
        """
        said = f"{reason}; {self.how}" if self.how else reason
        none = Cell.none(self.without, self.detail)
        server = none
        if self.server:
            proven = Standing.PROVEN
            server = Cell(proven, said, seen, adjacency, self.server, each=each)
        release = Cell(Standing.PROVEN, said, published, adjacency, self.release)
        views = {View.RELEASE: release, View.SERVER: server, View.COLLUSION: none}
        return {(unit, view): cell for unit in Unit for view, cell in views.items()}


def bare(channel: str) -> SumViews:
    """The views of a sum that the server itself makes, of reports that it sees."""
    return SumViews(
        (Code("server_adds_noise"),),
        detail=f"over the channel '{channel}' the server sees every report without "
        "noise",
    )
