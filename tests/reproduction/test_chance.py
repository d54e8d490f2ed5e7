"""Random lists for everybody, and claims that chance explains."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from reproduction.test_cells import EXPERIMENT

from tacit.experiment.assemble import assemble, root_key
from tacit.experiment.evaluate import evaluate_scores
from tacit.experiment.training import Nobody
from tacit.keys import Key
from tacit.reproduction import chance, claims
from tacit.reproduction.cells import Cell, Results
from tacit.reproduction.claims import is_above, is_above_for_seeds, is_close, is_learnt
from tacit.reproduction.tables import Claim
from tacit.results import Evaluation, Groups


def found(mean: float, spread: float = 0.0) -> Evaluation:
    values = {"ndcg@10": mean + spread * np.linspace(-1, 1, 20)}
    return Evaluation("full", np.arange(20), values, Groups.everyone(20))


@pytest.fixture
def cell(tmp_path) -> Cell:
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return Cell(path)


def test_the_bar_is_the_best_of_twenty_lists_by_each_metric(cell, tmp_path):
    bar = chance.best_by_chance(Results(tmp_path / "out", (), Nobody()), cell)
    assert {*bar} == {"ndcg@10", "recall@5"}
    [one] = cell.experiments()
    assembled = assemble(one)
    split = assembled.split
    judged = [
        evaluate_scores(assembled, scorer, split.test)
        for scorer in chance.random_lists(len(split.catalog), key=root_key(one))
    ]
    for metric, best in bar.items():
        means = [float(judgement.values[metric].mean()) for judgement in judged]
        assert len({*means}) > 1
        assert max(means) == best


def test_lists_are_judged_once_for_all_contenders_on_the_same_data(
    cell, tmp_path, monkeypatch
):
    results = Results(tmp_path / "out", (), Nobody())
    bar = chance.best_by_chance(results, cell)
    monkeypatch.setattr(chance, "assemble", None)  # a second time it would be called
    for other in (cell.beside("popularity"), cell.but("run.rounds=1"), cell):
        assert chance.best_by_chance(results, other) == bar


def test_everybody_gets_the_same_list():
    history = np.zeros(3)  # a list does not read it
    for scorer in chance.random_lists(5, key=Key.from_seed(0)):
        shown = scorer(history)
        assert shown.shape == (3, 5)
        assert (shown == shown[0]).all()
        assert sorted(shown[0]) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("is_shown", "mean", "holds"),
    [(True, 0.3, True), (True, 0.2, False), (True, 0.1, False), (False, 0.3, False)],
)
def test_a_claim_holds_if_chance_does_not_explain_it(is_shown, mean, holds):
    claim = Claim("one beats another", is_shown, "by a little")
    judged = is_learnt(claim, mean, 0.2)
    assert judged.ok is holds
    where = "above" if mean > 0.2 else "not above"
    assert judged.evidence == (
        f"by a little; {mean:g} is {where} the best of 20 random lists, 0.2"
    )


@pytest.mark.parametrize("level", [0.1, 0.3])
def test_of_two_random_lists_none_is_better_nor_as_good(level):
    """Whatever an interval over users says: everyone gets the same list."""
    bar = {"ndcg@10": 0.2}
    more, less = found(level + 0.01), found(level)
    for claim in (
        is_above("better", more, less, metric="ndcg@10", chance=bar),
        is_above_for_seeds("better", [more], [less], metric="ndcg@10", chance=bar),
        is_close("as good", less, more, metric="ndcg@10", within=0.02, chance=bar),
    ):
        assert claim.ok is (level > 0.2)


def test_no_claim_about_a_metric_can_be_made_without_its_chance():
    made = {
        name: inspect.signature(function).parameters
        for name, function in inspect.getmembers(claims, inspect.isfunction)
        if inspect.signature(function).return_annotation == "Claim"
        and name != "is_learnt"
    }
    assert {*made} == {"is_above", "is_above_for_seeds", "is_close"}
    for parameters in made.values():
        assert parameters["chance"].default is inspect.Parameter.empty
