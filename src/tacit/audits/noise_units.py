"""Reports and totals in units of the noise, as the object that adds it states it."""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float64

from tacit.errors import Refused
from tacit.mechanisms.sum_mechanism import SumMechanism
from tacit.method import Method
from tacit.plans import Plan
from tacit.transport.messages import Broadcast, Layout, Reports
from tacit.tree import Arrays

Flat = Float64[np.ndarray, "coordinates"]  # the leaves of a total, laid end to end


@dataclass(frozen=True, eq=False)
class Units:
    """The noise of one round: its multiplier, and its scale on every coordinate."""

    layout: Layout
    noise: SumMechanism
    multiplier: float

    @classmethod
    def of(
        cls,
        method: Method,
        broadcast: Broadcast,
        layout: Layout,
        *,
        plan: Plan,
        group: str,
    ) -> Units:
        """The units of one round, as the object that adds the noise states them."""
        noise = stated_noise(method, broadcast, plan)
        return cls(layout, noise, stated_multiplier(noise, group))

    @property
    def scales(self) -> Flat:
        """The standard deviation of the noise on every coordinate."""
        slots = self.layout.slots.items()
        sizes = [(name, math.prod(slot.shape)) for name, slot in slots]
        return np.repeat([self.noise.scale(n) for n, _ in sizes], [s for _, s in sizes])

    def limit(self, leaf: str) -> float:
        """The largest L2 norm that one client may add to a leaf."""
        return self.noise.scale(leaf) / self.multiplier

    def of_reports(self, reports: Reports) -> sp.csr_array:
        """Each report with its leaves laid end to end; nearly all of it is zero."""
        dense, n = reports.tree.to_dense(), len(reports)
        leaves = [sp.csr_array(dense[s].reshape(n, -1)) for s in self.layout.slots]
        side_by_side = sp.hstack(leaves, format="csr").astype(np.float64)
        return sp.csr_array(side_by_side @ sp.diags_array(1 / self.scales))

    def of_total(self, total: Arrays) -> Flat:
        """A total with its leaves laid end to end, in units of the noise."""
        leaves = [np.ravel(total[name]) for name in self.layout.slots]
        return np.concatenate(leaves) / self.scales


def stated_noise(method: Method, broadcast: Broadcast, plan: Plan) -> SumMechanism:
    """The object that adds the noise; refuses one that does not know its own scale."""
    noise = method.noise(broadcast, plan)
    if not hasattr(noise, "scale") or not hasattr(noise, "event"):
        raise Refused(
            f"{type(method).__name__} has its noise from {type(noise).__name__}, which "
            "states no scale or event; an audit of sums needs a SumMechanism"
        )
    return typing.cast(SumMechanism, noise)


def stated_multiplier(noise: SumMechanism, group: str) -> float:
    """The noise multiplier in the object's own event, for a member of the group."""
    # Personal budgets: a mechanism with groups has an event for each of them.
    own: typing.Any = getattr(noise, "event_of", None)
    event: typing.Any = noise.event if own is None else own(group)
    if not hasattr(event, "noise_multiplier"):
        raise Refused(
            f"{type(noise).__name__} has a {type(event).__name__}; sums with Gaussian "
            "noise can be audited, others not yet"
        )
    return float(event.noise_multiplier)
