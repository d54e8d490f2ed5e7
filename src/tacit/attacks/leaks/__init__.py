"""Attacks that show why a mechanism is there, each with the mechanism off and on.

    data set -> histories -> Leak.attack -> Attempts (off first, then on) -> Finding

    found = run(["membership_by_loss"], source="movielens-100k", seed=0)
    document = {"leaks": [finding.to_json() for finding in found]}

An attack that succeeds shows that something is not protected. One that fails shows
nothing: what holds against every attack is the guarantee printed beside it.

What belongs here: the harness and the attacks that need no method. An attack on one
method comes with it, through the entry points `tacit.leaks`. What does not: bounds on
an epsilon (`audit`), plots (`reporting.leaks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import UInt8

from tacit import check
from tacit.attacks.leaks.finding import Attempt, Finding, Score
from tacit.data import sources
from tacit.errors import BadValue, Refused
from tacit.keys import Key

__all__ = ["Attempt", "Finding", "Histories", "Leak", "Score", "known", "run"]

Histories = UInt8[np.ndarray, "users items"]  # 1 where a user has the item

FORBIDDEN = {"frappe": "its terms forbid to find out who is in it"}

_OWN = {
    "item_gradient": "tacit.attacks.leaks.item_gradient:ItemGradient",
    "membership_by_loss": "tacit.attacks.leaks.membership:MembershipByLoss",
}


class Leak(Protocol):
    """An attack; a frozen dataclass whose defaults are what `run` uses."""

    @property
    def name(self) -> str:
        """The name by which `run` and the command line ask for the attack."""
        ...

    @property
    def question(self) -> str:
        """What the attacker wants to know, and who the attacker is."""
        ...

    @property
    def method(self) -> str | None:
        """The registered name of the method it attacks; None if it needs no method."""
        ...

    def attack(self, histories: Histories, key: Key) -> tuple[Attempt, ...]:
        """Attack what leaves without the mechanism, then with it."""
        ...


def known() -> tuple[str, ...]:
    """The names of all attacks: our own, and those of installed packages."""
    return tuple(_found())


def run(
    names: Sequence[str] | None = None,
    *,
    method: str | None = None,
    source: str = "synthetic",
    seed: int = 0,
    n_users: int = 600,
    where: Path | None = None,
) -> tuple[Finding, ...]:
    """Run attacks on at most `n_users` of a data set's users.

    If none is named: all that need no method, and those on `method` if it is given.
    `where` is the archive, as for `sources.load`. Frappe is refused: its terms.
    """
    leaks = _chosen(names, method)
    key = Key.from_seed(seed)
    histories = _histories(source, n_users=n_users, where=where, key=key.at("people"))
    return tuple(
        Finding(
            name=leak.name,
            question=leak.question,
            source=source,
            users=histories.shape[0],
            items=histories.shape[1],
            seed=seed,
            attempts=leak.attack(histories, key.at(leak.name)),
        )
        for leak in leaks
    )


def _chosen(names: Sequence[str] | None, method: str | None) -> list[Leak]:
    found = _found()
    for name in names or ():
        check.one_of(found, leak=name)
    leaks: list[Leak] = [found[n].load()() for n in (found if names is None else names)]
    if names is not None:
        return leaks
    return [leak for leak in leaks if leak.method in (None, method)]


def _found() -> dict[str, EntryPoint]:
    group = "tacit.leaks"
    own = [EntryPoint(name, value, group) for name, value in _OWN.items()]
    return {entry.name: entry for entry in (*own, *entry_points(group=group))}


def _histories(source: str, *, n_users: int, where: Path | None, key: Key) -> Histories:
    """Some users who have at least two items, drawn without replacement."""
    check.count(n_users=n_users)
    for name, reason in FORBIDDEN.items():
        if source.lower().startswith(name):
            raise Refused(f"no attack runs on {source}: {reason}; use 'synthetic'")
    log = sources.load(source, where=where).interactions.distinct()
    users = np.flatnonzero(log.per_user >= 2)
    if not len(users):
        raise BadValue(f"{source}: nobody has two items; there is nobody to attack")
    order = key.generator().permutation(len(users))[:n_users]
    log = log.take_users(users[np.sort(order)])
    histories = np.zeros((log.n_users, log.n_items), np.uint8)
    histories[log.users, log.items] = 1
    # Without items that none of these users has: an attacker ranks them last.
    return histories[:, histories.any(axis=0)]
