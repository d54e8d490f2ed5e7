"""Batches drawn from impressions: who is compared with whom, and what was read."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.published import PublishedLabels
from tacit.models.news_encoders.batch import NO_NEWS, NO_SLATE, Batch
from tacit.models.news_encoders.drawn_batch import Draws, TrueLabels, click_and_others

SLATES = [  # user, shown, clicked, history
    (0, [1, 2, 3, 4, 5], [3], [7, 8, 9]),
    (0, [4, 5], [4], [7, 8, 9]),
    (0, [1, 2], [], [7, 8, 9]),  # nothing clicked: teaches nothing
    (2, [5, 6, 7, 8], [5, 7], [1]),
    (3, [5, 6], [5, 6], [2]),  # everything clicked: neither
]
KEYS = Key.from_seed(0).each(np.arange(4))


def ragged(rows: list[list[int]]) -> Ragged:
    return Ragged.of_lengths([*map(len, rows)], np.concatenate(rows).astype(np.int32))


def impressions() -> Impressions:
    users, shown, clicks, read = zip(*SLATES, strict=True)
    return Impressions.of_columns(
        users,
        ragged(shown),
        clicked=np.concatenate(
            [np.isin(s, c) for s, c in zip(shown, clicks, strict=True)]
        ),
        histories=ragged(read),
        history_of=np.arange(len(SLATES)),
        times=np.arange(len(SLATES)),
        n_users=4,
        n_items=10,
    )


def batch(padding: float = 0.0) -> Batch:
    return Draws(TrueLabels(2), 3, 2, padding).batch(impressions(), KEYS)


def test_a_click_stands_first_among_others_that_were_not_clicked():
    found = batch()
    assert found.candidates.shape == (4, 3, 3)
    assert (found.labels == 0).sum(axis=1).tolist() == [2, 0, 1, 0]
    assert found.labels[1].tolist() == [NO_SLATE] * 3
    first = {tuple(sorted(row[row >= 0])) for row in found.candidates[0] if row[0] >= 0}
    assert (4, 5) in first  # a short slate has all it has
    [long] = first - {(4, 5)}
    assert 3 in long
    assert len(long) == 3
    click, *others = found.candidates[2, 0]
    assert click in (5, 7)
    assert sorted(others) == [6, 8]  # the other click is left out


def test_a_history_is_that_of_the_first_slate_and_its_last_news():
    assert batch().histories.tolist() == [[8, 9], [NO_NEWS] * 2, [1, NO_NEWS], [-1, -1]]


def test_padding_replaces_news_by_the_number_after_the_last():
    padded = batch(padding=0.999).histories
    assert padded.tolist() == [[10, 10], [-1, -1], [10, -1], [-1, -1]]


def test_permuted_labels_stay_among_the_candidates():
    """At a tiny epsilon the label is nearly any of the candidates."""
    labels = PublishedLabels(1e-3, 3)
    firsts = set()
    for seed in range(40):
        keys = Key.from_seed(seed).each(np.arange(4))
        drawn = Draws(labels, 3, 2).batch(impressions(), keys)
        rows = [set(row[row >= 0]) for row in drawn.candidates[0] if row[0] >= 0]
        firsts |= {int(row[0]) for row in drawn.candidates[0] if row[0] >= 0}
        assert all(3 in row or row == {4, 5} for row in rows)  # the click is there
    assert firsts == {1, 2, 3, 4, 5}


def test_a_client_draws_the_same_in_any_cohort():
    """Rows depend on the client's own key alone."""
    alone = Draws(TrueLabels(2), 3, 2, 0.5).batch(
        impressions().take_users([2]), KEYS[np.array([2])]
    )
    among = batch(padding=0.5)
    assert alone.candidates[0].tolist() == among.candidates[2].tolist()
    assert alone.histories[0].tolist() == among.histories[2].tolist()


def test_every_click_is_drawn_equally_often():
    """Of two clicks of one slate, 200 draws; 60 of one is 5.7 deviations off."""
    shown = impressions()
    own = Key.from_seed(1).each(np.arange(200))
    pools = [click_and_others(shown, np.array([3]), own[[i]])[0] for i in range(200)]
    assert all(sorted(pool[1:]) == [6, 8] for pool in pools)
    assert 60 < sum(pool[0] == 5 for pool in pools) < 140


def test_refuses():
    with pytest.raises(BadValue, match="negatives"):
        TrueLabels(0)
    with pytest.raises(BadValue, match="most_read"):
        Draws(TrueLabels(1), 1, 0)
