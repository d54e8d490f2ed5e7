"""What being served costs a user: the release of one query, and many over time.

release_of(mechanism, times)    the release, as plans, ledgers and cards read it
serving_terms(mechanism, times) what a client agrees to: so many fresh queries
"""

from __future__ import annotations

from tacit import check
from tacit.ledger.terms import Terms
from tacit.release import CELLS, Adjacency, Cell, Release, Standing
from tacit.sampling import composed
from tacit.serving.query_mechanism import QueryMechanism


def release_of(mechanism: QueryMechanism, times: int = 1) -> Release:
    """The release of so many fresh queries, with its six cells.

    Every client protects its own query, so whoever looks sees the same.
    """
    check.count(times=times)
    cells = {}
    for unit, view in CELLS:
        each = mechanism.event(unit)
        cells[unit, view] = Cell(
            Standing.PROVEN,
            f"{mechanism.reason} (docs/serving.md)",
            composed(each, times),
            Adjacency.REPLACE_ONE,
            each=each,
            is_local=True,
        )
    return Release(
        f"query for a list ({mechanism.mode})",
        "the server that ranks",
        "once per refresh period",
        cells,
    )


def serving_terms(mechanism: QueryMechanism, times: int) -> Terms:
    """What a client agrees to that is served with so many fresh queries at the most."""
    return Terms((release_of(mechanism, times),), rounds=times, most=times)
