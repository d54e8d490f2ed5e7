"""Items that nobody had when the model was learnt, to be found by their features.

Drawn among items that some training users like, so that there is something to find. The
catalog knows them, so that their words and labels have embeddings; training does not
meet them, not even as negatives.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from tacit.data import features
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.evaluation.ranking import Personal, Scorer, Users, score_matrix
from tacit.experiment.assemble import Assembled
from tacit.keys import Key
from tacit.method import Scores

FEWEST_LIKES = 3  # by training users, of an item that may be drawn
SHARE = 0.1  # of those items

Mask = Bool[np.ndarray, "items"]


def drawn(train: Shards, *, liked: float, key: Key) -> Mask:
    """Which items nobody shall have."""
    log = train.log
    likes = log.keep(log.values >= liked).distinct().per_item
    known = np.flatnonzero(likes >= FEWEST_LIKES)
    order = key.at("unseen items").generator().permutation(known)
    mask = np.zeros(log.n_items, bool)
    mask[order[: max(1, int(SHARE * len(known)))]] = True
    return mask


def without(assembled: Assembled, is_unseen: Mask, *, liked: float) -> Assembled:
    """The same users without these items; targets are those that a user liked."""
    split = assembled.split
    train = cut(split.train, ~is_unseen)
    assert isinstance(split.validation, Heldout)
    assert isinstance(split.test, Heldout)
    split = replace(
        split,
        train=train,
        validation=_heldout(split.validation, is_unseen, liked=liked),
        test=_heldout(split.test, is_unseen, liked=liked),
    )
    simulation = replace(assembled.simulation, shards=train)
    return replace(assembled, split=split, simulation=simulation)


def never_drawn(assembled: Assembled, is_unseen: Mask) -> Assembled:
    """Training as if the unseen items were not in the catalog yet.

    Everyone has touched all of them and likes none: with dislikes unused, none is an
    example, and none is drawn as a negative.
    """
    simulation = assembled.simulation
    shards = touching(simulation.shards, is_unseen)
    return replace(assembled, simulation=replace(simulation, shards=shards))


def among(score: Scorer, items: Mask) -> Personal:
    """The same scorer with only these items as candidates.

    The others stand below all of them at minus infinity, so they move no metric of a
    target's place; protocols need not know.
    """

    def limited(users: Users, history: Shards) -> Scores:
        scores = score_matrix(score, Heldout(users, history, history))
        return np.where(items, scores, -np.inf)

    return Personal(limited)


def cut(shards: Shards, items: Mask) -> Shards:
    """Only the events with these items."""
    return Shards.of(shards.log.keep(items[shards.items]))


def touching(shards: Shards, items: Mask) -> Shards:
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


def _heldout(heldout: Heldout, is_unseen: Mask, *, liked: float) -> Heldout:
    """All unseen items of a user are hidden, those of the history as well."""
    touched = joined(heldout)
    hidden = touched.keep(is_unseen[touched.items])
    is_liked = hidden.values >= liked  # films are rated once, and all apps are liked
    found = Heldout(
        heldout.users,
        cut(heldout.history, ~is_unseen),
        Shards.of(hidden.keep(is_liked)),
        Shards.of(hidden.keep(~is_liked)),
    )
    return found.take(np.flatnonzero(found.targets.lengths > 0))


def joined(heldout: Heldout) -> Interactions:
    """Everything that each user ever touched."""
    parts = [heldout.history, heldout.targets]
    parts += [] if heldout.disliked is None else [heldout.disliked]
    return Interactions.of_columns(
        np.concatenate([part.owners for part in parts]),
        np.concatenate([part.items for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        n_users=len(heldout.users),
        n_items=heldout.history.n_items,
    )
