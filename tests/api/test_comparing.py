"""A comparison from Python."""

import math

import pytest

import tacit
from tacit.errors import BadValue

HOW = {
    "user": "customer",
    "item": "product",
    "methods": ["gram", "federated_popularity"],
    "epsilons": [4, math.inf],
    "baselines": ["popularity"],
    "seeds": 1,
}


@pytest.fixture(scope="module")
def compared(shop):
    return tacit.compare(shop, **HOW)


def test_every_method_meets_every_target(compared):
    labels = {row["label"] for row in compared.rows()}
    assert labels >= {
        "gram, epsilon 4",
        "gram, no privacy",
        "federated_popularity, epsilon 4",
        "popularity",
    }
    frame = compared.rows().to_dicts()
    assert {"mean", "se", "epsilon", "metric"} <= frame[0].keys()


def test_two_tastes_are_told_apart_by_gram_alone(compared):
    rows = compared.rows()
    first = rows[0]["metric"]
    found = {row["label"]: row["mean"] for row in rows if row["metric"] == first}
    assert found["gram, no privacy"] > found["popularity"]
    assert any(pair.has("popularity") for pair in compared.differences())


def test_it_shows_itself_and_is_saved(compared, tmp_path):
    assert "gram, epsilon 4" in str(compared)
    assert compared.verdict.startswith("On this table, at epsilon 4 ")
    assert str(compared).startswith(compared.verdict)
    assert repr(compared) == f"Compared({str(compared.path)!r})"
    assert "<svg" in compared._repr_html_()
    saved = compared.save(tmp_path / "kept")
    assert compared.to_dict()["words"] == compared.verdict.splitlines()
    assert (saved.path / "comparison.html").exists()
    written = saved.path / "experiments" / "gram.toml"
    assert "target_epsilon" in written.read_text()
    assert tacit.Run.open(saved.path / "gram-epsilon-4" / "seed-0").method == "gram"


def test_the_same_call_goes_on_with_what_is_finished(shop, compared, monkeypatch):
    def train(*_, **__):
        raise AssertionError("everything is finished")

    monkeypatch.setattr("tacit.experiment.comparison.train", train)
    again = tacit.compare(shop, **HOW, out=compared.path)
    same = ("label", "metric", "mean", "epsilon")
    assert [[row[k] for k in same] for row in again.rows()] == [
        [row[k] for k in same] for row in compared.rows()
    ]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"methods": "gram"}, "methods='gram' must be a list"),
        ({"methods": []}, "at least one name"),
        ({"methods": ["gramm"]}, "did you mean 'gram'"),
        ({"epsilons": [0]}, "epsilon=0 must be > 0"),
        ({"epsilons": [1, 1]}, "name each once"),
        ({"seeds": 0}, "seeds=0 must be >= 1"),
        ({"baselines": ["popular"]}, "did you mean 'popularity'"),
    ],
)
def test_bad_values_say_what_is_allowed(shop, how, said):
    with pytest.raises(BadValue, match=said):
        tacit.compare(shop, user="customer", item="product", **how)


def test_no_experiment_at_all():
    with pytest.raises(BadValue, match=r"data=\[\] has no experiment"):
        tacit.compare([])
