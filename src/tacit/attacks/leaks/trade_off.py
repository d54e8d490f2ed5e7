"""What no attack can pass, from the event of a release.

A guarantee of (e, d(e)) for every e bounds the share of right alarms at a share a of
wrong ones (Kairouz, Oh and Viswanath 2015):

    right(a) <= min over e of  e^e a + d(e)  and  1 - e^-e (1 - a - d(e))

Where everyone is in or out by a coin of their own this holds for the mean over users
as well, since the bound is concave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from tacit.accounting.decomposition import take_apart
from tacit.accounting.pld import loss
from tacit.errors import BadValue
from tacit.release import Cell

_GRID = 1e-3  # of the losses; a coarser one gives larger bounds that hold as well
_EPSILONS = np.linspace(0.0, 30.0, 1501)  # any set of them gives a bound
_SHARES = np.linspace(0.0, 1.0, 2001)  # of wrong alarms

Shares = Float64[np.ndarray, "shares"]


@dataclass(frozen=True, eq=False)
class TradeOff:
    """The best that can be told of a user from one release, by any attack."""

    deltas: Float64[np.ndarray, "epsilons"]

    @classmethod
    def of(cls, cell: Cell) -> TradeOff:
        """The trade-off of a cell's event; refused where it has none."""
        releases = [] if cell.event is None else [(cell.event, str(cell.adjacency))]
        parts = take_apart(releases)
        if not parts:
            raise BadValue(f"nothing bounds an attack where {cell.reason}")
        return cls(np.asarray(loss(parts, grid=_GRID).get_delta_for_epsilon(_EPSILONS)))

    def found(self, false_alarms: float) -> float:
        """The largest share of members found at this share of false alarms."""
        return float(self._found(np.array([false_alarms]))[0])

    @property
    def auc(self) -> float:
        """The largest area under the curve; at most 5e-4 too large."""
        return float(self._found(_SHARES[1:]).mean())  # at right ends: it never falls

    def _found(self, shares: Shares) -> Shares:
        a, d, growth = shares[:, None], self.deltas, np.exp(_EPSILONS)
        most = np.minimum(growth * a + d, 1.0 - (1.0 - a - d) / growth)
        return np.minimum(most.min(axis=1), 1.0)
