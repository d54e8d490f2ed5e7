"""A report is the same whoever else is asked: no kernel may look at the cohort.

What a client says alone is held against what it says among others. If it differed, the
presence of one user would move what all others say, before any noise. Products of
many clients' rows at once are rounded by the library that makes them, which may differ
by a few last bits of single precision.

Nothing is left to chance: an honest method never fails.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from tacit.audits.checks import Check
from tacit.audits.small_world import in_one_group, small_data
from tacit.keys import Key
from tacit.method import Clients, Method, Unmetered, enrol, participate
from tacit.plans import Plan
from tacit.transport.messages import Broadcast

_FEW, _USERS = 20, 12  # items and users, where any number does
_SAME = 1e-4  # of the largest number of a report, or of 1


def check_alone(method: Method, plan: Plan, *, key: Key) -> Check:
    """Hold reports of a whole cohort against those of clients alone."""
    stage = _Stage(method, in_one_group(plan, _USERS), key)
    together = stage.said(np.arange(_USERS))
    alone = [stage.said(np.array([row])) for row in range(_USERS)]
    gap = np.abs(together - np.concatenate(alone)).max(initial=0.0)
    return Check.at_most(
        "change of a report by who else is asked",
        float(gap) / max(1.0, float(np.abs(together).max(initial=0.0))),
        claimed=0.0,
        slack=_SAME,
        detail=f"relative, {_USERS} clients together and one by one, the first round",
    )


class _Stage:
    def __init__(self, method: Method, plan: Plan, key: Key) -> None:
        self.method, self.keys = method, key.at("clients").each(np.arange(_USERS))
        self.data = small_data(_FEW).repeated(_USERS)
        server = method.start(plan, self.data.catalog, key.at("start"))
        self.broadcast: Broadcast = method.broadcast(server)
        # All in the one group that has members.
        codes = np.full(_USERS, np.argmax([*plan.groups.values()]), np.int64)
        profiles, catalog = self.data.profiles, self.data.catalog
        self.clients: Clients = enrol(
            method, plan, profiles, self.keys, catalog=catalog, groups=codes
        )

    def said(self, rows: np.ndarray) -> Float64[np.ndarray, "rows numbers"]:
        _, reports, _ = participate(
            self.method,
            self.broadcast,
            self.clients.take(rows),
            self.data.shards.take(rows),
            self.keys[rows],
            ledger=Unmetered(),
        )
        leaves = reports.tree.leaves.values()
        parts = [part for leaf in leaves for part in leaf.parts.values()]
        flat = [part.reshape(len(rows), -1).astype(np.float64) for part in parts]
        return np.concatenate(flat, axis=1)
