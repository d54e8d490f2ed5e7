"""Protocols: among which candidates a user's targets are ranked.

`FullRanking` is the main number. The others are here because papers used them; their
numbers are larger and cannot be compared with a full ranking's, so each protocol's name
stands beside every number made with it. `SampledCandidates` can even order two rankers
differently (Krichene and Rendle 2020).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from tacit import check
from tacit.data.ragged import Ragged, skip_taken
from tacit.data.splits import Heldout
from tacit.errors import BadValue
from tacit.evaluation.heldout_users import distinct
from tacit.keys import Key, Keys


@dataclass(frozen=True)
class FullRanking:
    """Every item of the catalog that is not in the user's history."""

    @property
    def name(self) -> str:
        """The name that stands beside every number made with this protocol."""
        return "full ranking"

    def excluded(self, heldout: Heldout) -> Ragged:
        """Each user's history: what a user has is not recommended again."""
        return heldout.history.histories


@dataclass(frozen=True)
class ShownCandidates:
    """The candidates of an impression: what its user was shown, and nothing else."""

    @property
    def name(self) -> str:
        """The name that stands beside every number made with this protocol."""
        return "shown candidates"


@dataclass(frozen=True)
class EachTargetAlone:
    """Each target by itself among the items that the user never touched.

    Not among the candidates of a target: the history, what the user touched and
    disliked, and the user's other targets. The first two are excluded here; other
    targets are taken out by the metrics that belong to this protocol (`hr_each@k`,
    `ndcg_each@k`), so that one count serves all targets of a user.
    Source: PrivRec, Section 3.3.
    """

    @property
    def name(self) -> str:
        """The name that stands beside every number made with this protocol."""
        return "each target alone"

    def excluded(self, heldout: Heldout) -> Ragged:
        """The items that the user touched, other than targets."""
        if heldout.disliked is None:
            return heldout.history.histories
        return _joined(heldout.history.histories, heldout.disliked.histories)


@dataclass(frozen=True)
class SampledCandidates:
    """The user's targets and `n` other items, drawn without replacement.

    None of the drawn is in the history or a target. All targets of a user stand in
    one list. A draw depends on the key and the user's number, not on who else is there.
    """

    n: int
    key: Key

    def __post_init__(self) -> None:
        check.count(n=self.n)

    @property
    def name(self) -> str:
        """The name that stands beside every number made with this protocol."""
        return f"sampled {self.n} candidates"

    def excluded(self, heldout: Heldout) -> Ragged:
        """Every item except the drawn ones and the targets."""
        n_items = heldout.history.n_items
        history, targets = heldout.history.histories, heldout.targets.histories
        out = np.ones((len(heldout.users), n_items), bool)
        out[np.arange(len(out))[:, None], self.draw(heldout)] = False
        out[targets.owners, targets.values] = False
        out[history.owners, history.values] = True  # last: a target here is refused
        items = np.nonzero(out)[1].astype(np.int32)
        return Ragged.of_lengths(out.sum(axis=1), items)

    def free(self, heldout: Heldout) -> Int64[np.ndarray, "users"]:
        """How many items each user neither has nor shall find."""
        return heldout.history.n_items - _taken(heldout).lengths

    def draw(self, heldout: Heldout) -> Int64[np.ndarray, "users n"]:
        """The drawn items, distinct within a user."""
        taken = _taken(heldout)
        free = heldout.history.n_items - taken.lengths
        if (free < self.n).any():
            row = int(np.flatnonzero(free < self.n)[0])
            raise BadValue(
                f"n={self.n} must be <= {free[row]}, the items that user "
                f"{heldout.users[row]} neither has nor shall find; sample fewer"
            )
        keys = self.key.at("sampled candidates").each(heldout.users)
        numbers = _distinct_integers(keys, self.n, below=free)
        rows = np.broadcast_to(np.arange(len(numbers))[:, None], numbers.shape)
        # Numbers among the free items become items by stepping over taken ones.
        return skip_taken(numbers, rows, taken)


def _taken(heldout: Heldout) -> Ragged:
    """History and targets of each user together, sorted and distinct."""
    both = _joined(heldout.history.histories, heldout.targets.histories)
    return distinct(both, heldout.history.n_items)


def _joined(one: Ragged, other: Ragged) -> Ragged:
    """Each user's row of `one`, followed by that user's row of `other`."""
    owners = np.concatenate([one.owners, other.owners])
    items = np.concatenate([one.values, other.values])
    order = np.argsort(owners, kind="stable")
    return Ragged.of_lengths(one.lengths + other.lengths, items[order])


def _distinct_integers(
    keys: Keys, n: int, *, below: Int64[np.ndarray, "users"]
) -> Int64[np.ndarray, "users n"]:
    """`n` different integers in [0, below) per user, every set equally likely.

    Floyd's algorithm: draw from one more number each time; a repeat takes the new one.
    """
    chosen = np.full((len(keys), n), -1, np.int64)
    uniform = keys.uniform(n)
    for i in range(n):
        newest = below - n + i
        drawn = (uniform[:, i] * (newest + 1)).astype(np.int64)
        is_repeat = (chosen == drawn[:, None]).any(axis=1)
        chosen[:, i] = np.where(is_repeat, newest, drawn)
    return chosen
