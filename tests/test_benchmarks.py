"""Every program in benchmarks/ has a tiny run, and a broken one is noticed."""

import json
import sys
from argparse import Namespace
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import how_many, next_items, scripts
from benchmarks.__main__ import tried
from benchmarks.bar import Bar
from benchmarks.gram_floor import Cell, below, cells, told_apart
from benchmarks.kept_values import KeptValues
from benchmarks.news_fedrec import summed_noise
from benchmarks.visit_worlds import VisitWorld
from tacit.privacy import PublishedGradientNoise
from tacit.results import Metric


def test_every_script_has_a_tiny_run():
    assert scripts.found() == sorted(scripts.TINY)
    assert all(scripts.TINY.values())


def test_a_renamed_argument_is_noticed(monkeypatch):
    monkeypatch.setattr(scripts, "TINY", {"release_gram": (("--seedz", "2"),)})
    (line,) = scripts.broken()
    assert line.startswith("release_gram --seedz 2 does not run:")
    assert "unrecognized arguments" in line


def test_a_bar_and_a_script_that_stop_are_both_told(monkeypatch):
    monkeypatch.setattr(scripts, "TINY", {"release_gram": (("--seedz", "2"),)})
    stops = Bar(99, "a toy that stops", 1.0, lambda quick: [][0])
    of_bar, of_script = tried([stops], with_scripts=True)
    assert of_bar == "bar 99 does not run: IndexError: list index out of range"
    assert of_script.startswith("release_gram --seedz 2 does not run:")
    assert tried([stops], with_scripts=False) == [of_bar]


def floor_cell(length: str, apart: float) -> Cell:
    """A cell whose method is that far from popularity, give or take .001 a user."""
    users = apart + 0.001 * np.array([-1.0, 0.0, 1.0, 0.0])
    found = {"gram": 0.2 + users, "popularity": np.full(4, 0.2)}
    return Cell("few", 1.0, length, "gram", found, found, "counts", "")


def test_a_cell_is_below_by_a_band_that_holds_for_all_cells():
    """.0031 below is p = .005 alone, and no more than that among eleven like it."""
    cells = [floor_cell("1", -0.0031), floor_cell("2", 0.01), floor_cell("3", -0.02)]
    assert [cell.length for cell in below(cells)] == ["1", "3"]
    many = [cells[0], *(floor_cell(str(n), 0.0) for n in range(20))]
    assert below(many) == []


@pytest.mark.parametrize("seed", range(20))
def test_holm_rejects_at_most_what_single_tests_do_and_at_least_bonferroni(seed):
    chances = np.random.default_rng(seed).uniform(0, 0.06, 9)
    apart = np.array(told_apart(chances))
    assert (chances[apart] <= 0.05).all()
    assert apart[chances <= 0.05 / 9].all()
    assert chances[apart].max(initial=0) <= chances[~apart].min(initial=1)


def test_a_list_for_a_query_without_noise_is_that_of_the_device():
    """At epsilon 4 for the query it is another one; a length cuts both alike."""
    lengths, against = ["1", "all"], ["popularity", "gram"]
    asked = Namespace(method="vdp", against=against, lengths=lengths, query=1e10)
    asked.__dict__ |= {"epsilons": [32.0], "seeds": 1, "draws": 1, "part": "test"}
    for cell in cells("few", asked):
        np.testing.assert_allclose(cell.found["vdp"], cell.found["gram"])
        assert (cell.found["gram"] != cell.found["popularity"]).any()
    asked.query = 4.0
    for cell in cells("few", asked):
        assert (cell.found["vdp"] != cell.found["gram"]).any()


def test_a_study_goes_on_where_it_was(tmp_path):
    kept, run = tmp_path / "kept.jsonl", {"line": "groups", "seed": 0}
    values = {"validation": np.array([0.1, 1 / 3])}
    KeptValues(kept).of(run, lambda: values)
    again = KeptValues(kept)
    found = again.of({"seed": 0, "line": "groups"}, lambda: pytest.fail("run twice"))
    np.testing.assert_array_equal(found["validation"], values["validation"])
    again.of({**run, "seed": 1}, lambda: values)
    lines = [json.loads(line)["run"]["seed"] for line in kept.read_text().splitlines()]
    assert lines == [0, 1]


def test_noise_costs_what_the_same_users_lose(monkeypatch):
    """Users differ by .2, what noise takes by .02: the error is of the latter."""
    users = 0.3 + 0.1 * np.array([-1.0, 1.0, -1.0, 1.0])
    lost = 0.05 + 0.01 * np.array([-1.0, -1.0, 1.0, 1.0])
    place = SimpleNamespace(split=SimpleNamespace(users=range(400)))
    monkeypatch.setattr(how_many, "_assembled", lambda name, seed: place)
    monkeypatch.setattr(
        *(how_many, "_kept"),
        lambda kept, name, line, *_: users - (0 if line.epsilon is None else lost),
    )
    asked = ("--seeds", "2", "--people", "100", "400", "--epsilons", "1")
    monkeypatch.setattr(sys, "argv", ["how_many", *asked])
    found = how_many.study("world-400", how_many._options())
    assert found["cost"].keys() == {"100, epsilon 1", "400, epsilon 1"}
    cost = found["cost"]["100, epsilon 1"]
    assert cost["mean"] == pytest.approx(0.05)
    assert cost["se"] == pytest.approx(np.std([lost, lost], ddof=1) / 8**0.5)
    assert found["means"]["100, epsilon 1"]["se"] > 5 * cost["se"]


def test_without_a_file_everything_runs_again():
    times = []
    for _ in range(2):
        kept = KeptValues(None)
        kept.of({}, lambda: times.append(1) or {})
    assert len(times) == 2


def test_noise_of_a_sum_has_the_law_of_the_sum():
    """Variance and fourth moment of 3 Laplace noises; each within 5 %, of 10^6 draws.

    Its standard error is 0.2 % for the variance and 1 % for the fourth moment.
    """
    draw = np.random.default_rng(0)
    privacy, scale = PublishedGradientNoise(epsilon=2.0), 0.005
    variance = 3 * 2 * scale**2
    found = summed_noise(privacy, draw, (1_000_000,), 3, variance)
    assert found.var() == pytest.approx(variance, rel=0.05)
    fourth = 3 * 24 * scale**4 + 3 * 3 * 2 * (2 * scale**2) ** 2
    assert (found**4).mean() == pytest.approx(fourth, rel=0.05)


def test_a_session_of_an_invented_person_stays_with_its_topic(tmp_path):
    """With certainty; visits are two days apart or more, and no item comes twice."""
    world = VisitWorld(memory=1.0, stay=1.0, users=20, items=300)
    world.write(tmp_path / "world.csv")
    first, *lines = (tmp_path / "world.csv").read_text().splitlines()
    assert first == "user,item,time"
    people: dict[str, list[tuple[int, int]]] = {}
    for user, item, time in (line.split(",") for line in lines):
        people.setdefault(user, []).append((int(item[1:]), int(time)))
    assert len(people) == 20
    for events in people.values():
        items, times = np.array(events).T
        gaps = np.diff(times)
        begins = gaps >= 2 * 86_400
        assert (gaps[~begins] % 60 == 0).all()
        assert begins.sum() >= 1
        assert len({*items}) == len(items)
        same = np.diff(world.item_topics[items]) == 0
        assert same[~begins].all()


@pytest.mark.slow
def test_weights_for_a_visit_lose_where_tastes_stay(tmp_path):
    """By more than where a taste is another one on every visit; without noise.

    Two worlds of 800 people each with the same seed. The difference of both gains is
    seen at 15 of its errors, so that four are no luck (false alarm below 1e-4).
    """
    gains = []
    for name in ("memory-0", "memory-1"):
        study = next_items.Study(name, "visit", "test", tmp_path)
        lines = (next_items.Line("gram", way) for way in ("visit", "any"))
        visit, usual = (study.values(one, 0, KeptValues(None)) for one in lines)
        gains.append(Metric.of(visit["ndcg@100"] - usual["ndcg@100"]))
    moving, staying = gains
    error = np.hypot(moving.se, staying.se)
    assert moving.mean - staying.mean > 4 * error
    assert staying.mean < -4 * staying.se
