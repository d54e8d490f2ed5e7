from __future__ import annotations

import numpy as np
import pytest

from tacit.reproduction.fmf_ldp.comparing import Judge, budget, difference
from tacit.reproduction.fmf_ldp.trials import (
    POPULARITY,
    RANDOM,
    Judged,
    Paper,
    trial,
)
from tacit.results import Evaluation, Groups


def judged(users: list[int], hits: list[float]) -> Judged:
    values = {"hr@10": np.array(hits, float)}
    everyone = Groups.everyone(len(users))
    made = Evaluation("p", np.array(users), values, everyone)
    return Judged((made,), (made,))


def test_a_difference_is_over_the_people_both_have():
    one, other = judged([0, 1, 2, 5], [1, 1, 0, 1]), judged([1, 2, 3], [0, 0, 1])
    found = difference(one, other)
    assert found.n == 2
    assert found.mean == pytest.approx(0.5)  # people 1 and 2


def test_budgets_are_those_of_the_whole_run():
    """5,000 locally; shuffled among 50,000 at most 2 % above 5.94, the tight figure."""
    assert budget(Paper(), 50_000) == "5,000 local, 6.031 shuffled"


def test_a_claim_can_fail(tiny):
    judge, cell = Judge(tiny), tiny.many
    better = judge.rises("", (RANDOM, cell), (POPULARITY, cell))
    worse = judge.rises("", (POPULARITY, cell), (RANDOM, cell))
    assert (better.ok, worse.ok) == (True, False)
    assert judge.reaches("", (POPULARITY, cell), (RANDOM, cell)).ok
    assert not judge.reaches("", (RANDOM, cell), (POPULARITY, cell)).ok
    assert "95 % interval" in better.evidence


def test_a_row_that_differs_says_why(tiny, cheap):
    judge, cell, paper = Judge(tiny), tiny.few, Paper(1, epochs=1)
    ours = trial(paper, cell, most=tiny.most).hr()
    near = judge.row("near", paper, cell, published=ours + 0.02)
    far = judge.row("far", paper, cell, published=ours + 0.2)
    assert (near.ok, near.reason) == (True, "")
    assert not far.ok
    assert "MovieLens 20M" in far.reason
    assert {"popularity", "MF-NP", "random"} <= {*far.beside}
    assert far.budget == "much"
