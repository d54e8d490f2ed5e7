"""Table 5 on a tiny world, and who stays."""

from __future__ import annotations

import numpy as np
import pytest
from tacit_study_dpvae.benches import PUBLISHED, smoke
from tacit_study_dpvae.construction import _of_the_same, who_stay

from tacit.experiment.assemble import load_dataset
from tacit.reproduction.cells import Found, Results
from tacit.reproduction.study import Nobody
from tacit.results import Evaluation, Groups

BENCH = smoke("ML-20M")


def test_users_who_stay_are_those_of_the_constructed_data(tmp_path):
    stay = who_stay(Results(tmp_path, (), Nobody()), BENCH)
    before, after = (
        load_dataset(BENCH.paper(data).experiments()[0]).profiles.ids
        for data in ("OL", "PD")
    )
    assert 0 < len(stay) < len(before)
    assert [before[user] for user in stay] == [*after]


def evaluation(users: list[int], values: list[float]) -> Evaluation:
    return Evaluation(
        "full",
        np.array(users),
        {"ndcg@100": np.array(values)},
        Groups.everyone(len(users)),
    )


def test_gains_are_those_of_the_same_users():
    """Users 1 and 3 stay as 0 and 1; of 0 and 2, who are dropped, nothing counts."""
    before = Found((evaluation([0, 1, 2, 3], [0.9, 0.1, 0.9, 0.2]),), ())
    after = Found((evaluation([0, 1], [0.3, 0.4]),), ())
    stay, by = np.array([1, 3]), {"ndcg@100": 0.3}
    claim = _of_the_same("helps", BENCH, after, before, stay, by=by)
    assert claim.ok
    by = {"ndcg@100": 0.4}
    assert not _of_the_same("helps", BENCH, after, before, stay, by=by).ok
    assert "+0.200" in claim.evidence
    assert "2 users" in claim.evidence


@pytest.mark.slow
def test_every_published_figure_has_a_row(reproduced):
    found = reproduced("5")
    rows = [row for table in found.tables for row in table.rows]
    assert sorted(row.published for row in rows) == sorted(
        PUBLISHED["table-5"].numbers()
    )
    assert found.unexplained == ()
    assert all(row.paper is not None for row in rows if "LightFM" not in row.label)


@pytest.mark.slow
def test_popularity_shows_what_other_users_and_items_do(reproduced):
    texts = " ".join(claim.text for claim in reproduced("5").claims)
    for said in ("popularity is better on PD", "PD helps DP-VAE, of users who stay"):
        assert said in texts
    assert all(claim.text.startswith("RQ1") for claim in reproduced("5").claims)
