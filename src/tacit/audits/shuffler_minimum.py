"""A relay that mixes too few delivers nothing: played through the runtime.

Of two aggregators neither publishes a sum of too few, by the same rounds.

Amplification by shuffling counts on a least number of contributors. Here fewer take
part, by one and by all; the plan, the method's own context and the relay are those of a
real run, so whoever forgets to tell the relay is caught.

Nothing is left to chance: an honest method never fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tacit.audits.canaries import Only
from tacit.audits.checks import Check
from tacit.audits.small_world import in_one_group, small_data
from tacit.data.federated_data import FederatedData
from tacit.errors import Refused
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.sampling import Everyone
from tacit.transport.channels import Unlinked

_FEW = 20  # items, where any number does
_LEAST = 6  # contributors that the plan promises
_USERS = 9  # more than the minimum, so that fewer can take part


def check_minimum(
    method: Method, plan: Plan, *, key: Key, data: FederatedData | None = None
) -> Iterator[Check]:
    """Below its minimum the relay delivers nothing; none if no relay can be used."""
    data = (data or small_data(_FEW)).repeated(_USERS)
    mixed = replace(
        in_one_group(plan, _USERS),
        sampler=Everyone(),
        channel="shuffle",
        min_contributors=_LEAST,
    )
    readers = method.aggregators(mixed)
    if not all(Unlinked in reader.accepts for reader in readers):
        return
    yield _check(method, mixed, key, data, who="a relay delivers")


def check_closing(method: Method, plan: Plan, *, key: Key) -> Check:
    """Below its minimum neither of two aggregators publishes anything."""
    few = replace(in_one_group(plan, _USERS), min_contributors=_LEAST)
    data = small_data(_FEW).repeated(_USERS)
    return _check(method, few, key, data, who="two aggregators publish")


def _check(
    method: Method, plan: Plan, key: Key, data: FederatedData, *, who: str
) -> Check:
    passed = [n for n in (0, 1, _LEAST - 1) if _delivers(method, plan, n, key, data)]
    enough = _delivers(method, plan, _LEAST, key, data)
    return Check(
        f"contributors from which {who}, at least",
        float(_LEAST),
        float(min([*passed, _LEAST] if enough else [*passed, np.inf])),
        enough and not passed,
        f"rounds of 0, 1, {_LEAST - 1} and {_LEAST} contributors, through the runtime",
    )


def _delivers(
    method: Method, plan: Plan, contributors: int, key: Key, data: FederatedData
) -> bool:
    code = int(np.argmax([*plan.groups.values()]))
    simulation = Simulation(
        method,
        plan,
        data.catalog,
        data.profiles,
        data.shards,
        key,
        groups=np.full(_USERS, code, np.int64),
        ledger=Only(np.arange(_USERS) < contributors),
    )
    try:
        simulation.step(simulation.start())
    except Refused:
        return False
    return True
