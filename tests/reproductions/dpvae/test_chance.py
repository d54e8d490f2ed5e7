"""Random lists for everybody, and claims that chance explains."""

from __future__ import annotations

import numpy as np
import pytest
from tacit_study_dpvae import chance
from tacit_study_dpvae.benches import smoke

from tacit.experiment.assemble import assemble
from tacit.reproduction.cells import Found, Results
from tacit.reproduction.study import Nobody
from tacit.reproduction.tables import Claim
from tacit.results import Evaluation, Groups

BENCH = smoke("ML-100K")


def found(mean: float) -> Found:
    """One seed of two users who have the same NDCG@100."""
    values = {"ndcg@100": np.full(2, mean)}
    return Found((Evaluation("full", np.arange(2), values, Groups.everyone(2)),), ())


def test_random_lists_differ_and_are_made_once(tmp_path):
    results = Results(tmp_path, (), Nobody())
    best = chance.best_by_chance(results, BENCH)
    assert chance.best_by_chance(results, BENCH) == best
    [one] = BENCH.beside("random").experiments()
    lists = chance._random_lists(one)
    assert len({*lists}) == chance.LISTS
    assert max(lists) == best


def test_everybody_gets_the_same_list():
    [one] = BENCH.beside("random").experiments()
    history = assemble(one).split.test.history
    scores = np.array([3.0, 1.0, 2.0], np.float32)
    shown = chance._for_all(scores)(history)
    assert shown.shape == (len(history), 3)
    assert (shown == scores).all()


@pytest.mark.parametrize(
    ("is_shown", "mean", "holds"),
    [(True, 0.3, True), (True, 0.1, False), (False, 0.3, False)],
)
def test_a_claim_holds_if_chance_does_not_explain_it(is_shown, mean, holds):
    claim = Claim("one beats another", is_shown, "by a little")
    judged = chance.is_learnt(claim, found(mean), 0.2)
    assert judged.ok is holds
    assert judged.evidence.startswith("by a little; ")
    assert ("not above" in judged.evidence) is (mean < 0.2)
