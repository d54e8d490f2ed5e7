"""Items that nobody had when the model was learnt, to be found by their features.

Drawn among items that some training people like, so that there is something to find.
The catalog knows them, so that their words and labels have embeddings; training does
not meet them, not even as negatives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from jaxtyping import Bool

from tacit.data import features
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.splits import Heldout, Split
from tacit.evaluation.ranking import Personal, Scorer, Users, score_matrix
from tacit.method import Scores
from tacit.reproduction.privrec.benches import Bench
from tacit.reproduction.privrec.settings import AsWeWould

FEWEST_LIKES = 3  # by training people, of an item that may be drawn
SHARE = 0.1  # of those items

Mask = Bool[np.ndarray, "items"]


@dataclass(frozen=True)
class UnseenItems(Bench):
    """The same people without a tenth of the items; those are what is to be found."""

    def split(self) -> Split:
        """Histories without the unseen items; targets are those a person liked."""
        return _split(self)

    def training(self) -> Shards:
        """Histories as if the unseen items were not in the catalog yet.

        Everyone has touched all of them and likes none: with dislikes unused, none is
        an example, and none is drawn.
        """
        return _touching(self.split().train, self.is_unseen())

    def is_unseen(self) -> Mask:
        """Which items nobody has."""
        return _is_unseen(self)


def among(score: Scorer, items: Mask) -> Personal:
    """The same scorer with only these items as candidates.

    The others stand below all of them at minus infinity, so they move no metric of a
    target's place; protocols need not know.
    """

    def limited(users: Users, history: Shards) -> Scores:
        scores = score_matrix(score, Heldout(users, history, history))
        return np.where(items, scores, -np.inf)

    return Personal(limited)


def some(people: Heldout, rows: Bool[np.ndarray, "people"]) -> Heldout:
    """Only the people in `rows`."""
    disliked = None if people.disliked is None else people.disliked.take(rows)
    shards = people.history.take(rows), people.targets.take(rows), disliked
    return Heldout(people.users[rows], *shards)


@lru_cache(maxsize=2)
def _is_unseen(bench: UnseenItems) -> Mask:
    log = _whole(bench).train.log
    likes = log.keep(log.values >= _liked(bench)).distinct().per_item
    known = np.flatnonzero(likes >= FEWEST_LIKES)
    order = bench.key.at("unseen items").generator().permutation(known)
    mask = np.zeros(log.n_items, bool)
    mask[order[: max(1, int(SHARE * len(known)))]] = True
    return mask


@lru_cache(maxsize=2)
def _split(bench: UnseenItems) -> Split:
    whole, is_unseen, liked = _whole(bench), bench.is_unseen(), _liked(bench)
    return replace(
        whole,
        train=_cut(whole.train, ~is_unseen),
        validation=_heldout(whole.validation, is_unseen, liked=liked),
        test=_heldout(whole.test, is_unseen, liked=liked),
    )


def _whole(bench: UnseenItems) -> Split:
    return Bench(bench.source, bench.scale, bench.seed).split()


def _liked(bench: Bench) -> float:
    return AsWeWould(bench).privrec.liked


def _heldout(people: Heldout, is_unseen: Mask, *, liked: float) -> Heldout:
    """All unseen items of a person are hidden, those of the history as well."""
    touched = _joined(people)
    hidden = touched.keep(is_unseen[touched.items])
    is_liked = hidden.values >= liked  # films are rated once, and all apps are liked
    found = Heldout(
        people.users,
        _cut(people.history, ~is_unseen),
        Shards.of(hidden.keep(is_liked)),
        Shards.of(hidden.keep(~is_liked)),
    )
    return some(found, found.targets.lengths > 0)


def _joined(people: Heldout) -> Interactions:
    """Everything that each person ever touched."""
    parts = [people.history, people.targets]
    parts += [] if people.disliked is None else [people.disliked]
    return Interactions.of_columns(
        np.concatenate([part.owners for part in parts]),
        np.concatenate([part.items for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        n_users=len(people.users),
        n_items=people.history.n_items,
    )


def _touching(shards: Shards, items: Mask) -> Shards:
    """With all these items in every history, of value 0, in whatever situation."""
    n, added = len(shards), np.flatnonzero(items)
    n_added = n * len(added)
    places = np.concatenate([np.arange(len(shards.items)), np.zeros(n_added, np.int64)])
    return Shards.of(
        Interactions.of_columns(
            np.concatenate([shards.owners, np.repeat(np.arange(n), len(added))]),
            np.concatenate([shards.items, np.tile(added, n)]),
            values=np.concatenate([shards.values, np.zeros(n_added)]),
            contexts=features.take(shards.contexts, places),
            n_users=n,
            n_items=shards.n_items,
        )
    )


def _cut(shards: Shards, items: Mask) -> Shards:
    """Only the events with these items."""
    return Shards.of(shards.log.keep(items[shards.items]))
