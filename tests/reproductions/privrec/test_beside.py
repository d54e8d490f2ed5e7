"""Contenders that are no experiment: features counted, and in the best order."""

from __future__ import annotations

import numpy as np
import pytest
from tacit_study_privrec.beside import central, counted, foretold, kinds_of
from tacit_study_privrec.contenders import COUNTED, Bench

from tacit.evaluation.ranking import score_matrix
from tacit.experiment.assemble import assemble


@pytest.fixture(scope="module")
def literal():
    """With one feature, so that items tie."""
    [experiment] = Bench("ml1m", "smoke").cell(COUNTED).experiments()
    return assemble(experiment)


def test_counted_features_rank_kinds_by_likes(literal):
    """Items of the same topics tie; the kind with most likes an item is first."""
    split = literal.split
    scores = np.asarray(counted(literal)(split.test.history))[0]
    topics = split.catalog.features["topics"]
    kinds = [tuple(sorted(topics[i])) for i in range(len(split.catalog))]
    liked = split.train.items[split.train.values >= 4]
    for kind in set(kinds):
        own = [i for i, of in enumerate(kinds) if of == kind]
        mean = np.isin(liked, own).sum() / len(own)
        np.testing.assert_allclose(scores[own], mean, rtol=1e-6)


def test_who_knows_the_answers_ranks_items_of_a_kind_alike(literal):
    scores = score_matrix(foretold(literal), literal.split.test)
    kind_of = kinds_of(literal)
    for kind in range(kind_of.max() + 1):
        assert (np.ptp(scores[:, kind_of == kind], axis=1) == 0).all()


def test_one_place_learns_and_clients_adapt_what_it_learnt(films):
    """Its scores are not those of the first weights."""
    pytest.importorskip("torch", reason="PrivRec-CEN needs the extra train")
    from tacit.experiment.evaluate import method_scorer

    users, start = films.split.test, films.simulation.start()
    before = score_matrix(method_scorer(films, start), users)
    after = score_matrix(central(films), users)
    assert np.abs(after - before).max() > 1e-3
