"""One list for all: the same scores for every user, judged as the model is."""

from __future__ import annotations

import numpy as np

from tacit.experiment.training import Nobody
from tacit.reproduction import one_list
from tacit.reproduction.cells import Cell, Results

EXPERIMENT = """
[data]
source = "synthetic-news"
split = "by-time"
validation_from = "2023-02-04"
test_from = "2023-02-05"
world = { users = 60, news = 80, impressions_per_user = 3, shown = 5, history = 4 }

[method]
name = "privaterec"
model = "plm-nr"
content = ["title"]
interests = 2
basis_length = 4.0

[privacy]
mechanism = "none"
channel = "direct"

[run]
rounds = 1
sampler = { name = "everyone" }

[evaluate]
metrics = ["auc"]
"""


def test_users_differ_by_their_own_vectors_and_not_by_one(tmp_path, monkeypatch):
    path = tmp_path / "small.toml"
    path.write_text(EXPERIMENT)
    cell = Cell(path).but("evaluate.baselines=[]")
    results = Results(tmp_path / "out", [cell], Nobody())
    seen = []
    inner = one_list.mean_vector

    def watched(recommender, users):
        seen.append(inner(recommender, users))
        return seen[-1]

    monkeypatch.setattr(one_list, "mean_vector", watched)
    found = one_list.one_list_for_all(results, cell)
    again = one_list.one_list_for_all(results, cell)
    [scorer] = seen  # the second is read from where it was kept
    scores = scorer(range(3))
    assert (scores == scores[0]).all()
    assert len(np.unique(scores[0])) > 40
    own = results[cell].evaluations[0].values["auc"]
    for one in (found, again):
        assert one.evaluations[0].users.tolist() == [
            *results[cell].evaluations[0].users.tolist()
        ]
        assert (one.evaluations[0].values["auc"] != own).any()
    assert results[cell].cost_of_report()["bytes up"] > 0
