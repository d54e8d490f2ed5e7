"""A saved model, and what the client of a simulated user holds."""

import json
import tomllib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tomli_w

from tacit import train
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category
from tacit.data.interactions import Interactions
from tacit.data.strings import Strings
from tacit.data.synthetic.news_world import NewsWorld
from tacit.documents import write_document
from tacit.errors import BadRun, BadValue, Damaged
from tacit.experiment import assemble
from tacit.experiment.saved_run import SavedRun, holding_of, load
from tacit.experiment.serve_settings import ServeSettings
from tacit.experiment.settings import check_experiment, digest_of
from tacit.experiment.training import train as train_into
from tacit.keys import Key
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.privrec import PrivRec
from tacit.plans import Plan
from tacit.privacy import (
    CentralGaussian,
    LocalBits,
    LocalFlips,
    LocalItem,
    LocalPrivUnit,
    PublishedVotes,
)
from tacit.runtime.run import RunDirectory
from tacit.serving.model_file import Model, save_model
from tacit.serving.recommender import Recommender

ON_DEVICE = SimpleNamespace(serve=ServeSettings())  # all that is read
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
USERS = Profiles(Strings.of(["ann", "bob"]), {"side": Category.of(["left", "right"])})


@pytest.fixture
def data(monkeypatch):
    dataset = Dataset("fruit", LOG, CATALOG, USERS)
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
    held = holding_of(recommender(turned), ON_DEVICE, "bob")
    assert held.shard.items.tolist() == [0, 2, 0]
    assert held.shard.values.tolist() == [2, 4, 1]
    assert [held.shard.contexts["weather"][i] for i in range(3)] == [
        "wet",
        "dry",
        "wet",
    ]
    assert held.profile.features["side"][0] == "right"
    assert held.ids(turned) == ["plum", "fig"]


def popular(catalog):
    method = FederatedPopularity()
    server = method.start(Plan(2), catalog, Key.from_seed(0))
    return Recommender(method, method.broadcast(server), catalog)


def test_impressions_come_with_the_history(monkeypatch):
    """The model knows other items in another order, as after training on a part."""
    news = NewsWorld(users=9, news=60, shown=5, history=4, topics=3).dataset()
    monkeypatch.setattr(assemble, "load_dataset", lambda experiment: news)
    turned = news.catalog.take(np.arange(60)[::-1])
    user = news.profiles.ids[4]
    held = holding_of(popular(turned), ON_DEVICE, user).shard
    own = news.impressions.take_users([4])
    assert held.impressions.slates.n_items == 60
    np.testing.assert_array_equal(
        59 - held.impressions.slates.shown.values, own.slates.shown.values
    )
    np.testing.assert_array_equal(held.impressions.clicked, own.clicked)
    np.testing.assert_array_equal(
        59 - held.items, news.interactions.take_users([4]).items
    )
    lacking = turned.take(np.arange(30))
    with pytest.raises(BadValue, match="items the model does not know"):
        holding_of(popular(lacking), ON_DEVICE, user)


@pytest.mark.usefixtures("data")
def test_stars_and_profile_reach_the_list():
    """Somebody who dislikes plums is not taken for one who likes them."""
    model = recommender(adapt_epochs=20, adapt_rate=0.5)
    held = holding_of(model, ON_DEVICE, "bob")
    own = model.recommend(held, n=2)
    assert {line.id for line in own} == {"apple", "pear"}  # not what bob has
    named = model.recommend(held.ids(CATALOG), n=2)
    assert own[0].score != pytest.approx(named[0].score)
    nobody = replace(held, profile=Profiles(Strings.of(["x"])))
    without = replace(model.method, adapt_epochs=0)
    still = Recommender(without, model.broadcast, CATALOG)
    scores = [still.recommend(h, n=1)[0].score for h in (held, nobody)]
    assert scores[0] != pytest.approx(scores[1])


@pytest.mark.usefixtures("data")
def test_items_that_the_model_does_not_know():
    with pytest.raises(BadValue, match="items the model does not know, such as plum"):
        holding_of(
            recommender(CATALOG.take([0, 1, 2])),
            ON_DEVICE,
            "bob",
        )


@pytest.mark.usefixtures("data")
def test_nobody_of_this_name():
    with pytest.raises(BadValue, match="bob"):
        holding_of(recommender(), ON_DEVICE, "bop")


def saved(model, path, **settings):
    """A model of PrivRec in a directory, under these settings."""
    files = RunDirectory(path)
    named = {"name": "privrec", "items": ["color"], "people": {"side": 2}}
    shape = {"widths": [4], "adapt_epochs": 0}
    kept = Model({**named, **shape, **settings}, {}, model.broadcast, CATALOG)
    save_model(kept, files.model, files.model_facts)
    return files


def test_a_model_that_names_a_setting_of_an_older_version_is_of_use(tmp_path):
    """Models of `privrec` once named the cohort, which says nothing of ranking."""
    model = recommender(adapt_epochs=0)
    saved(model, tmp_path, cohort=30)
    assert load(tmp_path).recommend(["fig"], n=3) == model.recommend(["fig"], n=3)


def test_the_protection_stands_beside_the_methods_own_settings(tmp_path):
    files = trained(
        tmp_path,
        method={"name": "gram", "head": 6},
        privacy={"mechanism": "central", "noise_multiplier": 5.0},
    )
    facts = json.loads(files.model_facts.read_text())
    assert facts["format"] == 3
    assert facts["privacy"]["mechanism"] == "central"
    assert "privacy" not in facts["method"]
    assert load(files.path).method.privacy == CentralGaussian(5.0)


def trained(tmp_path, *, method, privacy):
    world = {"users": 60, "items": 12, "rank": 2, "events_per_user": 5}
    table = {
        "data": {"source": "synthetic", "world": world},
        "method": method,
        "privacy": {"delta": 1e-6, **privacy},
        "run": {"rounds": 2},
        "evaluate": {"metrics": ["ndcg@10"], "baselines": []},
    }
    return RunDirectory(train(table, out=tmp_path / "run").path)


def in_first_format(files, privacy):
    """What version 1 wrote: one table for the method and what protected it."""
    facts = json.loads(files.model_facts.read_text())
    facts["format"] = 1
    for later in ("privacy", "arrays", "digest", "checksum"):
        del facts[later]
    facts["method"] |= privacy
    files.model_facts.write_text(json.dumps(facts))


NOISE = {"noise_multiplier": 1.5}


@pytest.mark.parametrize(
    ("method", "now", "then", "kind"),
    [
        (
            {"name": "gram", "head": 6},
            {"mechanism": "central", **NOISE},
            {"privacy": "central", "count_noise": 1.5, "relate_noise": 1.5},
            CentralGaussian,
        ),
        (
            {"name": "gram", "head": 6},
            {"mechanism": "local", "epsilon": 4.0},
            {"privacy": "local", "epsilon": 4.0},
            LocalPrivUnit,
        ),
        (
            {"name": "fedvae", "hidden": [4], "latent": 2, "count_rounds": 1},
            {"mechanism": "central", "clip_quantile": 0.5, **NOISE},
            {
                "privacy": "central",
                "clip": 0.1,
                "clip_quantile": 0.5,
                "noise_multiplier": 1.5,
                "count_noise": 1.5,
                "bit_noise": 2.2,
            },
            CentralGaussian,
        ),
        (
            {"name": "federated_popularity"},
            {"mechanism": "local_item", "epsilon": 3.0},
            {"privacy": "local_item", "epsilon": 3.0},
            LocalItem,
        ),
        (
            {"name": "fmf_ldp"},
            {"mechanism": "local", "epsilon": 1.0},
            {"privacy": "local", "clip": 1.0, "epsilon": 1.0},
            LocalPrivUnit,
        ),
        (
            {"name": "fmf_ldp"},
            {"mechanism": "local_bits", "epsilon": 1.0, "votes": 5},
            {
                "privacy": "local",
                "report": "one_bit",
                "clip": 1.0,
                "votes": 5,
                "epsilon": 1.0,
            },
            LocalBits,
        ),
        (
            {"name": "fmf_ldp", "mode": "paper"},
            {"mechanism": "published", "epsilon": 1.0, "votes": 5},
            {"privacy": "local", "clip": 1.0, "votes": 5, "epsilon": 1.0},
            PublishedVotes,
        ),
        (
            {"name": "dplcf"},
            {"mechanism": "local", "epsilon": 30.0},
            {"privacy": "local", "epsilon": 30.0},
            LocalFlips,
        ),
    ],
)
def test_a_model_of_the_first_format_recommends_as_it_did(
    method, now, then, kind, tmp_path
):
    files = trained(tmp_path, method=method, privacy=now)
    model = load(files.path)
    history = model.catalog.ids[:2]
    before = model.recommend(history, n=5)
    in_first_format(files, then)
    again = load(files.path)
    assert again.recommend(history, n=5) == before
    assert type(again.method.privacy) is kind


def test_a_first_privrec_with_every_setting_it_had(tmp_path):
    """Verbatim what a model of DP-PrivRec said; only what ranks is asked for."""
    model = recommender(adapt_epochs=0)
    files = saved(model, tmp_path)
    protection = {
        "privacy": "central",
        "clip": 1.0,
        "is_adaptive": True,
        "quantile": 0.5,
        "clip_rate": 0.2,
        "least_clip": 0.001,
        "most_clip": 1000.0,
        "balance": 0.7,
        "noise_multiplier": 0.23,
        "bit_noise": 2.2,
        "count_noise": 0.5,
    }
    in_first_format(files, protection)
    found = load(tmp_path)
    assert found.recommend(["fig"], n=3) == model.recommend(["fig"], n=3)
    assert type(found.method.privacy) is CentralGaussian


SMALL = {
    "data": {
        "source": "synthetic",
        "world": {"users": 40, "items": 12, "rank": 2, "events_per_user": 5},
    },
    "method": {"name": "federated_popularity"},
    "evaluate": {"metrics": ["ndcg@5"], "baselines": []},
}


@pytest.fixture
def run(tmp_path):
    """A finished run of the present version."""
    train_into(check_experiment(SMALL), tmp_path / "run", page=False)
    return tmp_path / "run"


def with_table(run, change):
    """Rewrites the run's experiment and its digests, as another version would have."""
    path = run / "experiment.toml"
    table = tomllib.loads(path.read_text())
    change(table)
    path.write_text(tomli_w.dumps(table))
    return table


def belongs(run, digest):
    ledger = json.loads((run / "ledger.json").read_text())
    ledger.pop("checksum")
    write_document(run / "ledger.json", ledger | {"experiment": digest})


def test_a_run_of_before_a_setting_existed_is_read(run):
    """Its file lacks what is a default today, and its ledger has the digest of that."""
    table = with_table(run, lambda t: t["evaluate"].pop("too_few_candidates"))
    belongs(run, digest_of(table, with_baselines=True))
    found = SavedRun.at(run).experiment
    assert found.evaluate.too_few_candidates == "refuse"
    assert found.digest == found.known_as == digest_of(table, with_baselines=True)


def test_a_run_with_settings_of_another_version_says_so(run):
    table = with_table(run, lambda t: t["run"].update(hovering=True))
    belongs(run, digest_of(table))
    with pytest.raises(BadRun, match="another version of Tacit made the run") as error:
        _ = SavedRun.at(run).experiment
    assert "'hovering' is not known" in str(error.value)


def test_a_changed_setting_is_still_found(run):
    with_table(run, lambda t: t["run"].update(rounds=7))
    with pytest.raises(Damaged, match="it is not the experiment that"):
        _ = SavedRun.at(run).experiment
