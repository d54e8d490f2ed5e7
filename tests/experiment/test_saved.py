"""What the device of a simulated person holds."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category
from tacit.data.interactions import Interactions
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.experiment import assemble
from tacit.experiment.saved import holding_of, load
from tacit.keys import Key
from tacit.methods.privrec import PrivRec
from tacit.plan import Plan
from tacit.runtime.run import RunDirectory
from tacit.serving.device import Recommender
from tacit.serving.model import Model, save_model

FRUIT = Strings.of(["apple", "fig", "pear", "plum"])
CATALOG = Catalog(FRUIT, FRUIT, {"color": Category.of(["red", "blue", "red", "blue"])})
LOG = Interactions.of_columns(
    [0, 1, 1, 1],
    [0, 3, 1, 3],
    values=[5, 2, 4, 1],
    contexts={"weather": Category.of(["dry", "wet", "dry", "wet"])},
    n_users=2,
    n_items=4,
)
PEOPLE = Profiles(Strings.of(["ann", "bob"]), {"side": Category.of(["left", "right"])})


@pytest.fixture
def data(monkeypatch):
    dataset = Dataset("fruit", LOG, CATALOG, PEOPLE)
    monkeypatch.setattr(assemble, "load_dataset", lambda experiment: dataset)
    return dataset


def recommender(catalog=CATALOG, **settings):
    method = PrivRec(
        items=("color",), people={"side": 2}, positive_from=3.0, widths=(4,), **settings
    )
    server = method.start(Plan(2), catalog, Key.from_seed(0))
    return Recommender(method, method.broadcast(server), catalog)


@pytest.mark.usefixtures("data")
def test_events_with_their_values_and_the_profile():
    """Over the model's catalog, which may stand in another order."""
    turned = CATALOG.take([3, 2, 1, 0])
    held = holding_of(recommender(turned), SimpleNamespace(), "bob")
    assert held.shard.items.tolist() == [0, 2, 0]
    assert held.shard.values.tolist() == [2, 4, 1]
    assert [held.shard.contexts["weather"][i] for i in range(3)] == [
        "wet",
        "dry",
        "wet",
    ]
    assert held.profile.features["side"][0] == "right"
    assert held.ids(turned) == ["plum", "fig"]


@pytest.mark.usefixtures("data")
def test_stars_and_profile_reach_the_list():
    """Somebody who dislikes plums is not taken for one who likes them."""
    model = recommender(adapt_epochs=20, adapt_rate=0.5)
    held = holding_of(model, SimpleNamespace(), "bob")
    own = model.recommend(held, k=2)
    assert {line.id for line in own} == {"apple", "pear"}  # not what bob has
    named = model.recommend(held.ids(CATALOG), k=2)
    assert own[0].score != pytest.approx(named[0].score)
    nobody = replace(held, profile=Profiles(Strings.of(["x"])))
    without = replace(model.method, adapt_epochs=0)
    still = Recommender(without, model.cast, CATALOG)
    scores = [still.recommend(h, k=1)[0].score for h in (held, nobody)]
    assert scores[0] != pytest.approx(scores[1])


@pytest.mark.usefixtures("data")
def test_items_that_the_model_does_not_know():
    with pytest.raises(BadValue, match="items the model does not know, such as plum"):
        holding_of(recommender(CATALOG.take([0, 1, 2])), SimpleNamespace(), "bob")


@pytest.mark.usefixtures("data")
def test_nobody_of_this_name():
    with pytest.raises(BadValue, match="bob"):
        holding_of(recommender(), SimpleNamespace(), "bop")


def test_a_model_that_names_a_setting_of_an_older_version_is_of_use(tmp_path):
    """Models of `privrec` once named the cohort, which says nothing of ranking."""
    model, files = recommender(), RunDirectory(tmp_path)
    settings = {"items": ["color"], "people": {"side": 2}, "widths": [4], "cohort": 30}
    saved = Model({"name": "privrec", **settings}, model.cast, CATALOG)
    save_model(saved, files.model, files.model_facts)
    assert load(tmp_path).recommend(["fig"], k=1)[0].id == "plum"
