from __future__ import annotations

import numpy as np
import pytest

from tacit.data.splits import Heldout
from tacit.errors import BadValue
from tacit.evaluation.candidate_sets import (
    EachTargetAlone,
    FullRanking,
    SampledCandidates,
)
from tacit.evaluation.ranking import rank
from tacit.keys import Key

KEY = Key.from_seed(1)


def test_a_full_ranking_leaves_out_the_history_only(heldout_of):
    heldout = heldout_of([[3, 1, 3], []], [[0], [2]], 5)
    excluded = FullRanking().excluded(heldout)
    assert [set(row.tolist()) for row in excluded] == [{1, 3}, set()]


def test_each_target_alone_leaves_out_all_that_was_touched(heldout_of):
    heldout = heldout_of([[3, 1, 3], [4]], [[0], [2]], 5, [[2], []])
    excluded = EachTargetAlone().excluded(heldout)
    assert [sorted(row.tolist()) for row in excluded] == [[1, 2, 3, 3], [4]]
    excluded = EachTargetAlone().excluded(heldout_of([[3, 1], [4]], [[0], [2]], 5))
    assert [sorted(row.tolist()) for row in excluded] == [[1, 3], [4]]


def test_a_full_ranking_does_not_know_what_is_disliked(heldout_of):
    heldout = heldout_of([[0]], [[1]], 4, [[2]])
    assert [row.tolist() for row in FullRanking().excluded(heldout)] == [[0]]


def test_sampled_candidates_are_new_distinct_and_as_many_as_asked(crowd):
    heldout = crowd(60, 40, 8)
    drawn = SampledCandidates(20, KEY).draw(heldout)
    for row, held, wanted in zip(
        drawn, heldout.history.histories, heldout.targets.histories, strict=True
    ):
        assert len(set(row.tolist())) == 20
        assert not set(row.tolist()) & {*held.tolist(), *wanted.tolist()}
        assert 0 <= row.min() <= row.max() < 40


def test_all_that_is_free_can_be_drawn(heldout_of):
    heldout = heldout_of([[0, 5]], [[2]], 6)
    drawn = SampledCandidates(3, KEY).draw(heldout)
    assert sorted(drawn[0].tolist()) == [1, 3, 4]


def test_a_draw_does_not_depend_on_the_others(crowd):
    heldout = crowd(30, 50, 9)
    sampled = SampledCandidates(10, KEY)
    history, targets = heldout.history.take([17]), heldout.targets.take([17])
    alone = Heldout(heldout.users[17:18], history, targets)
    np.testing.assert_array_equal(sampled.draw(heldout)[17], sampled.draw(alone)[0])


def test_every_free_item_is_drawn_equally_often(heldout_of):
    """4,000 users draw 3 of 8: a count is Binomial(4000, 3/8), so no count strays by
    6.2 standard deviations; false alarm below 1e-8, sees a share 8% off."""
    heldout = heldout_of([[1]] * 4000, [[4]] * 4000, 10)
    drawn = SampledCandidates(3, KEY).draw(heldout)
    counts = np.bincount(drawn.reshape(-1), minlength=10)[[0, 2, 3, 5, 6, 7, 8, 9]]
    spread = np.sqrt(4000 * 3 / 8 * 5 / 8)
    assert np.abs(counts - 1500).max() < 6.2 * spread


def test_targets_are_ranked_among_the_drawn(heldout_of):
    heldout = heldout_of([[0]], [[1, 2]], 30)
    sampled = SampledCandidates(5, KEY)
    scores = -np.arange(30.0)[None]  # the two targets are the best of all
    ranks = rank(lambda _: scores, heldout, candidates=sampled)
    assert ranks.n_candidates.tolist() == [7]
    assert ranks.above.tolist() == [0, 1]
    worst = rank(lambda _: -scores, heldout, candidates=sampled)
    assert worst.above.tolist() == [6, 5]


def test_its_name_says_sampled():
    assert SampledCandidates(99, KEY).name == "sampled 99 candidates"
    assert FullRanking().name == "full ranking"
    assert EachTargetAlone().name == "each target alone"


def test_more_candidates_than_items_are_refused(heldout_of):
    heldout = heldout_of([[0]], [[1]], 5)
    with pytest.raises(BadValue, match="n=4 must be <= 3, the items that user 100"):
        SampledCandidates(4, KEY).draw(heldout)
    with pytest.raises(BadValue, match="n=0 must be >= 1"):
        SampledCandidates(0, KEY)
