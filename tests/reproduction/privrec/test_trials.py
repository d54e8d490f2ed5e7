"""Contenders on a tiny world: they are trained and judged, not how well."""

import numpy as np
import pytest
from reproduction.privrec.conftest import films

from tacit.data.features import Categories
from tacit.errors import MissingData
from tacit.evaluation.ranking import score_matrix
from tacit.reproduction import reproduce
from tacit.reproduction.privrec import trials
from tacit.reproduction.privrec.benches import some_people
from tacit.reproduction.privrec.settings import AsPublished
from tacit.reproduction.privrec.trials import CONTENDERS, COUNTED, FORETOLD


@pytest.mark.parametrize(
    "name",
    [n for n in CONTENDERS if n not in ("EASE", "iALS", "item-kNN", "popularity")],
)
def test_every_contender_is_trained_and_judged(name, tiny, monkeypatch):
    if name.startswith("DP-PrivRec,"):  # 4.87 on every weight; few weights will do
        monkeypatch.setattr(trials, "_published", _narrow(trials._published))
    score = CONTENDERS[name](tiny)
    people = tiny.split().test
    found = trials.evaluate(
        score, people, metrics=("hr_each@5",), protocol=trials.EachTargetAlone()
    )
    assert 0 <= found.metrics()["hr_each@5"].mean <= 1


def _narrow(published):
    from dataclasses import replace

    return lambda bench, method: published(bench, replace(method, widths=(4,)))


def test_counted_features_rank_kinds_by_likes(tiny):
    """Films of the same genres tie; the kind with most likes a film is first."""
    split = tiny.split()
    scores = np.asarray(CONTENDERS[COUNTED](tiny)(split.test.history))[0]
    genres = split.catalog.features["genres"]
    assert isinstance(genres, Categories)
    kinds = [genres[i] for i in range(20)]
    liked = split.train.items[split.train.values >= 4]
    for kind in set(kinds):
        own = [i for i in range(20) if kinds[i] == kind]
        mean = np.isin(liked, own).sum() / len(own)
        np.testing.assert_allclose(scores[own], mean, rtol=1e-6)


def test_who_knows_the_answers_ranks_kinds_best(tiny):
    """Above any other order of the same kinds; films of a kind tie all the same."""
    found = {n: trials.trial(n, tiny).mean("hr", 5) for n in (COUNTED, FORETOLD)}
    assert found[FORETOLD] > found[COUNTED]
    people = tiny.split().test
    scores = score_matrix(CONTENDERS[FORETOLD](tiny), people)
    kind_of = trials.kinds_of(AsPublished(tiny).privrec, tiny)
    for kind in range(kind_of.max() + 1):
        assert (np.ptp(scores[:, kind_of == kind], axis=1) == 0).all()


def test_a_share_of_the_people_with_all_items(tiny):
    part = some_people(films(), 0.25, tiny.key)
    assert (part.interactions.n_users, part.interactions.n_items) == (10, 20)
    assert len(part.profiles) == 10


def test_without_the_data_it_says_where_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MissingData, match="frappe"):
        reproduce("privrec", table=2)
