"""Figures 3 to 5 and the frontier: what stands in them, from runs that are invented."""

from dataclasses import replace

import numpy as np
import pytest
from reproduction.privrec.test_accuracy import judged

from tacit.method import Unprotected
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.release import View
from tacit.reproduction.privrec import accuracy, noise, trials
from tacit.reproduction.privrec.courses import METRICS
from tacit.results import Evaluation, Groups
from tacit.statement import account

LEVELS = {
    "PrivRec": 0.2,
    "DP-PrivRec, noise off": 0.25,
    "DP-PrivRec": 0.23,
    "PrivRec, as published": 0.02,
    "DP-PrivRec, as published": 0.01,
    "popularity": 0.15,
}


@pytest.fixture
def runs(monkeypatch, tiny):
    """Every run that is asked for; Hits@20 falls with S, and with less epsilon."""
    asked = []

    def after(method, plan, bench):
        asked.append((method, plan, bench))
        clip = method.privacy.clip or 100.0
        found = 0.3 - clip / 1000 - 0.01 / (plan.target_epsilon or 1.0)
        values = {name: found + np.linspace(-1e-4, 1e-4, 20) for name in METRICS}
        return Evaluation("alone", np.arange(20), values, Groups.everyone(20))

    monkeypatch.setattr(noise, "after", after)
    for module in (accuracy, noise):
        monkeypatch.setattr(module, "trials", lambda who, _: judged(LEVELS[who]))
    return asked


def test_figures_3_and_4_set_noise_beside_none(runs):
    found = noise.figures_3_and_4("quick")
    assert len(found.charts) == 2
    for chart in found.charts:
        assert {*chart.lines} == {*LEVELS} - {"popularity"}
    assert [claim.ok for claim in found.claims] == [False, True] * 2


def test_figure_5_has_every_gamma_and_bound_of_the_paper(runs):
    found = noise.figure_5("full")
    grid = {(m.privacy.quantile, m.privacy.clip) for m, _, _ in runs}
    assert grid == {(g, s) for g in noise.GAMMAS for s in noise.BOUNDS}
    assert {method.mode for method, _, _ in runs} == {"paper"}
    holds = {claim.text: claim.ok for claim in found.claims}
    assert holds == {
        "Figure 5: a larger gamma is better": False,  # invented alike
        "Figure 5: the largest first S is worse": True,
    }


def test_the_frontier_spends_what_it_says(runs):
    found = noise.frontier("quick")
    assert [row.budget for row in found.tables[0].rows] == ["1", "2", "4", "8"] * 2
    for row in found.tables[0].rows:
        assert row.beside["popularity"] == pytest.approx(0.15)
    assert [plan.target_epsilon for _, plan, _ in runs[:4]] == [1, 2, 4, 8]
    method, plan, _ = runs[1]
    releases = method.calibrated(plan).releases(plan)
    assert 1.9 < account(plan, releases).worst(view=View.RELEASE) <= 2.0


def test_popularity_beside_the_frontier_has_the_same_budget(runs):
    noise.frontier("quick")
    method, plan, _ = runs[5]
    assert isinstance(method, FederatedPopularity)
    assert (plan.rounds, plan.target_epsilon) == (1, 2.0)
    releases = method.calibrated(plan).releases(plan)
    assert 1.9 < account(plan, releases).worst(view=View.RELEASE) <= 2.0


def test_noise_is_judged_by_itself(monkeypatch, tiny):
    """The twin with noise off differs in nothing else."""
    asked = {}
    monkeypatch.setattr(
        trials, "federated", lambda *run: asked.update({len(asked): run})
    )
    for who in ("DP-PrivRec", trials.QUIET):
        trials.CONTENDERS[who](tiny)
    (noisy, plan, _), (quiet, bare, _) = asked.values()
    assert quiet == replace(noisy, privacy=Unprotected())
    assert bare == replace(plan, target_epsilon=None)


def test_full_has_three_seeds(runs):
    noise.frontier("full")
    assert {bench.seed for _, _, bench in runs} == {0, 1, 2}
