"""A run from Python: what it promises, how well it ranks, where it is kept."""

import gc
import math

import pytest

import tacit
from tacit.errors import BadRun, BadValue


def test_a_run_says_what_it_promises_and_how_well_it_ranks(run):
    assert run.method == "gram"
    assert run.statement.epsilon == pytest.approx(4.0, rel=1e-6)
    rows = run.rows()
    assert next(iter(run.metrics)).startswith("ndcg@")
    assert {row["method"] for row in rows} == {"gram", "random", "popularity", "ease"}
    own = {r["metric"]: r["mean"] for r in rows if r["method"] == "gram"}
    assert own == run.metrics
    assert "epsilon 4.00  PROVEN" in str(run)
    assert "<caption>Methods compared</caption>" in run._repr_html_()
    assert repr(run) == f"Run({str(run.path)!r})"


def test_its_recommender_knows_the_two_tastes(run):
    best = run.recommender.recommend(["p1", "p2"], n=5)
    assert all(int(line.id[1:]) < 12 for line in best)
    assert best[0].title.startswith("Product ")
    assert run.recommender.why(["p1", "p2"], best[0].id)[0].id in {"p1", "p2"}


def test_a_run_is_saved_and_opened_again(run, tmp_path):
    place = tmp_path / "kept"
    saved = run.save(place)
    assert saved.path == place
    again = tacit.Run.open(place)
    assert again.metrics == run.metrics
    assert again.statement == run.statement
    assert tacit.load(place).recommend(["p1"]) == run.recommender.recommend(["p1"])
    assert again.report().name == "report.html"
    assert not (place / ".lock").exists() or saved.path != run.path
    with pytest.raises(BadValue, match="is there already, and not empty"):
        run.save(place)


def test_a_run_without_a_place_goes_with_its_object(shop):
    settings = {"run": {"rounds": 1}, "evaluate": {"baselines": []}}
    made = tacit.train(
        shop,
        user="customer",
        item="product",
        method="federated_popularity",
        epsilon=math.inf,
        settings=settings,
    )
    place = made.path
    assert made.statement.epsilon is None
    assert "no promise" in str(made.statement)
    del made
    gc.collect()
    assert not place.exists()


def test_a_place_of_ones_own_has_every_file(shop, tmp_path):
    how = {
        "user": "customer",
        "item": "product",
        "method": "federated_popularity",
        "settings": {"evaluate": {"baselines": []}},
        "out": tmp_path / "run",
    }
    made = tacit.train(shop, **how)
    assert (tmp_path / "run" / "report.html").exists()
    with pytest.raises(BadRun, match="holds a run already"):
        tacit.train(shop, **how)
    assert tacit.train(shop, **how, resume=True).metrics == made.metrics
