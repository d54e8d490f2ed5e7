"""Items that nobody had: hidden everywhere, never drawn, ranked among themselves."""

from __future__ import annotations

import numpy as np
import pytest
from tacit_study_privrec.contenders import Bench
from tacit_study_privrec.telling import with_unseen_items
from tacit_study_privrec.unseen_items import FEWEST_LIKES, among, drawn, never_drawn

from tacit.data.shards import Shards
from tacit.evaluation.ranking import score_matrix
from tacit.experiment.evaluate import baseline_scorer, evaluate_scores
from tacit.keys import Key
from tacit.models.feature_mlp import Labelling

LIKED = 4.0


@pytest.fixture(scope="module")
def both():
    [experiment] = Bench("ml1m", "smoke").cell("PrivRec").experiments()
    return with_unseen_items(experiment)


def events(shards: Shards) -> list[set[int]]:
    return [set(row.tolist()) for row in shards.histories]


def test_nobody_is_told_of_an_unseen_item(both):
    assembled, is_unseen = both
    split = assembled.split
    histories = split.train, split.test.history, split.validation.history
    for shards in (*histories, assembled.simulation.shards):
        assert len(shards.items)
        assert not is_unseen[shards.items].any()


def test_a_tenth_of_the_liked_items_is_unseen(both, films):
    train, (_, is_unseen) = films.split.train, both
    n_items = len(films.split.catalog)
    likes = np.bincount(train.items[train.values >= LIKED], minlength=n_items)
    assert (likes[is_unseen] >= FEWEST_LIKES).all()
    assert is_unseen.sum() == (likes >= FEWEST_LIKES).sum() // 10
    other = drawn(train, liked=LIKED, key=Key.from_seed(12))
    assert (other != is_unseen).any()


def test_targets_are_all_unseen_items_that_a_user_likes(both, films):
    """Whichever half of the user's items they were in."""
    assembled, is_unseen = both
    log, heldout = films.dataset.interactions, assembled.split.test
    expected = {}
    for user in films.split.test.users.tolist():
        own = slice(*log.offsets[user : user + 2])
        items, stars = log.items[own], log.values[own]
        liked = {*items[is_unseen[items] & (stars >= LIKED)].tolist()}
        disliked = {*items[is_unseen[items] & (stars < LIKED)].tolist()}
        if liked:
            expected[user] = liked, disliked
    found = zip(events(heldout.targets), events(heldout.disliked), strict=True)
    assert dict(zip(heldout.users.tolist(), found, strict=True)) == expected


def test_training_never_meets_an_unseen_item(both):
    """Neither as liked nor as drawn; what is liked is as before."""
    assembled, is_unseen = both
    method = assembled.method
    labelling = Labelling(
        positive_from=method.positive_from,
        negatives=method.negatives,
        dislikes=method.dislikes,
    )
    training = never_drawn(assembled, is_unseen).simulation.shards
    keys = Key.from_seed(2).each(np.arange(len(training)))
    found = labelling.of(training, keys)
    assert found.is_drawn.any()
    assert not is_unseen[found.items].any()
    before = labelling.of(assembled.split.train, keys)
    liked = found.items[~found.is_drawn], before.items[~before.is_drawn]
    np.testing.assert_array_equal(*liked)
    assert is_unseen[before.items].any()


def test_apps_are_never_drawn_either():
    """Every use of an app is liked, and an unseen one is touched with value 0."""
    from tacit_study_privrec.telling import _LIKED

    [one] = Bench("frappe", "smoke").cell("PrivRec", *_LIKED["frappe"]).experiments()
    assembled, is_unseen = with_unseen_items(one)
    own = assembled.method
    shards = never_drawn(assembled, is_unseen).simulation.shards
    labelling = Labelling(own.positive_from, own.negatives, own.dislikes)
    found = labelling.of(shards, Key.from_seed(2).each(np.arange(len(shards))))
    assert not is_unseen[found.items[~found.is_drawn]].any()
    assert own.dislikes == "unused"


def test_chance_is_five_of_the_candidates(both):
    """Of a target alone: all unseen items but those that the user knows."""
    assembled, is_unseen = both
    heldout, n = assembled.split.test, int(is_unseen.sum())
    known = heldout.disliked.lengths + heldout.targets.lengths - 1
    popular, _ = baseline_scorer(assembled, "popularity")
    chance = among(popular, is_unseen)
    found = evaluate_scores(assembled, chance, heldout).values["hr_each@5"]
    np.testing.assert_allclose(found, np.minimum(1, 5 / (n - known)))


def test_only_unseen_items_are_candidates(both):
    assembled, is_unseen = both
    heldout = assembled.split.test

    def ones(history):
        return np.ones((len(history), len(is_unseen)))

    scores = score_matrix(among(ones, is_unseen), heldout)
    assert (scores[:, is_unseen] == 1).all()
    assert (scores[:, ~is_unseen] == -np.inf).all()
