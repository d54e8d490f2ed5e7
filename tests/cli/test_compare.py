"""Methods, targets and baselines side by side; what is finished is not made again.

Also tests `tacit.experiment.comparison`, `tacit.experiment.comparison_report`,
`tacit.experiment.finished_comparison` and `tacit.experiment.pairs`.
"""

import csv
import json
import re

import pytest
from quick import some_of

from tacit import memory
from tacit.experiment import needs

PRIVATE = """
[privacy]
mechanism = "central"
channel = "secure_sum"
delta = 1e-6
"""


@pytest.fixture
def private(experiment):
    experiment.write_text(experiment.read_text() + PRIVATE)
    return experiment


def cell(document, label, metric):
    found = [
        c for c in document["cells"] if (c["label"], c["metric"]) == (label, metric)
    ]
    assert len(found) == 1, (label, metric)
    return found[0]


def test_a_sweep_gives_a_line_a_target_and_a_line_a_baseline(tacit, private, tmp_path):
    out = tmp_path / "comparison"
    call = ("compare", private, "--epsilons", "0.5,4,inf", "--seeds", "2", "--out", out)
    answer = tacit(*call, "--json")
    assert answer.code == 0, answer.err
    document = answer.json
    assert {c["label"] for c in document["cells"]} == {
        "federated_popularity, epsilon 0.5",
        "federated_popularity, epsilon 4",
        "federated_popularity, no privacy",
        "popularity",
        "ease",
    }
    swept = cell(document, "federated_popularity, epsilon 4", "ndcg@10")
    assert swept["epsilon"] == 4
    assert 3.9 < swept["provable_epsilon"] <= 4
    assert (swept["n_seeds"], swept["se_over"]) == (2, "seeds")
    open_line = cell(document, "federated_popularity, no privacy", "ndcg@10")
    assert open_line["epsilon"] is None
    assert open_line["provable_epsilon"] is None
    exact = cell(document, "popularity", "ndcg@10")
    assert open_line["mean"] == pytest.approx(exact["mean"])  # it counts, too
    assert json.loads((out / "comparison.json").read_text()) == document
    rows = list(csv.DictReader((out / "comparison.csv").read_text().splitlines()))
    assert len(rows) == len(document["cells"])
    assert float(rows[0]["mean"]) == document["cells"][0]["mean"]
    page = (out / "comparison.html").read_text()
    assert "What privacy costs" in page
    assert "tacit compare exp.toml --epsilons 0.5,4,inf --seeds 2" in page


def test_draws_of_a_seed_have_the_same_users_and_other_noise(tacit, private, tmp_path):
    out = tmp_path / "comparison"
    call = ("compare", private, "--epsilons", "0.5", "--seeds", "1", "--out", out)
    assert tacit(*call, "--draws", "2", "--baselines", "none").code == 0
    first, second = (
        json.loads(
            (out / "federated_popularity-epsilon-0.5" / n / "result.json").read_text()
        )
        for n in ("seed-0", "seed-0-draw-1")
    )
    one, two = (
        d["simulation_only"]["evaluations"]["federated_popularity"]["people"]
        for d in (first, second)
    )
    assert one["users"] == two["users"]
    assert one["values"] != two["values"]


def test_the_same_command_continues_and_makes_nothing_twice(tacit, private, tmp_path):
    out = tmp_path / "comparison"
    call = ("compare", private, "--epsilons", "1,2", "--seeds", "2", "--out", out)
    whole = tacit(*call, "--json").json
    kept = out / "federated_popularity-epsilon-1" / "seed-0" / "result.json"
    lost = out / "federated_popularity-epsilon-2" / "seed-1" / "result.json"
    unfitted = out / "baselines" / "ease" / "seed-1.json"
    before = kept.stat().st_mtime_ns
    lost.unlink()
    unfitted.unlink()
    answer = tacit(*call, "--json")
    # Times and memory are measured anew; all else is the same.
    assert {**answer.json, "costs": None} == {**whole, "costs": None}
    assert kept.stat().st_mtime_ns == before
    assert lost.exists()
    assert unfitted.exists()
    said = [line for line in answer.err.splitlines() if "seed" in line]
    assert said == [
        "compare: federated_popularity-epsilon-2, seed 1",
        "compare: ease, seed 1",
    ]


def test_two_experiments_stand_side_by_side(tacit, experiment, private, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(private.read_text().replace("rounds = 3", "rounds = 1"))
    call = ("compare", private, other, "--seeds", "1", "--epsilons", "8")
    answer = tacit(*call, "--out", tmp_path / "c", "--against", "ease", "--json")
    assert answer.code == 0, answer.err
    pairs = [{d["method"], d["against"]} for d in answer.json["differences"]]
    beside = set().union(*(pair for pair in pairs if "ease" in pair)) - {"ease"}
    assert beside == {"exp, epsilon 8", "other, epsilon 8", "popularity"}
    assert answer.json["against"] == "ease"


@pytest.mark.slow
def test_baselines_are_chosen_on_validation_users(tacit, experiment, tmp_path):
    call = ("compare", experiment, "--seeds", "1", "--baselines", "ease")
    plain = tacit(*call, "--budget", "0", "--out", tmp_path / "a", "--json").json
    tuned = tacit(*call, "--out", tmp_path / "b", "--json").json
    one, two = (cell(d, "ease", "ndcg@10")["mean"] for d in (plain, tuned))
    assert one != two
    assert plain["verdict"]["chosen"] == {}
    told = tuned["verdict"]["chosen"]["ease"]
    assert "the best of 7" in told
    assert f"Chosen on validation users for ease: {told}." in tuned["words"]
    answer = tacit(*call, "--budget", "3", "--out", tmp_path / "b")
    assert answer.code == 2
    assert "made by another comparison" in answer.err


def test_people_get_tables(tacit, experiment, tmp_path):
    answer = tacit("compare", experiment, "--seeds", "2", "--out", tmp_path / "c")
    assert answer.code == 0, answer.err
    assert "Methods compared" in answer.out
    assert "ndcg@10 in pairs" in answer.out
    assert answer.out.index("What to use") < answer.out.index("95 % interval")
    assert "hold together with 95 % for all 3 pairs" in answer.out
    assert "What a client sends, receives and computes" in answer.out
    assert "What privacy costs" not in (tmp_path / "c" / "comparison.html").read_text()


def test_a_pair_has_one_set_of_figures_wherever_it_stands(tacit, private, tmp_path):
    """Text, page, JSON and CSV: the same interval, and the better line first."""
    out = tmp_path / "c"
    call = ("compare", private, "--epsilons", "1,8,inf", "--seeds", "2", "--out", out)
    answer = tacit(*call, "--against", "ease", "--json")
    assert answer.code == 0, answer.err
    document = answer.json
    choices, prices = (document["verdict"][part] for part in ("choices", "prices"))
    pairs = [
        *document["differences"],
        *(pair for choice in choices for pair in choice["rivals"]),
        *(price["pair"] for price in prices),
    ]
    figures = {}
    for pair in pairs:
        assert pair["mean"] >= 0
        place = frozenset((pair["method"], pair["against"])), pair["metric"]
        assert figures.setdefault(place, pair) == pair
    assert len(figures) < len(pairs)
    words = " ".join(document["words"])
    shown = re.findall(r"by (\S+) \((\S+) to ([^;)]+)", words)
    known = {
        tuple(f"{pair[key]:.4f}" for key in ("mean", "low", "high")) for pair in pairs
    }
    assert shown
    assert set(shown) <= known
    page = (out / "comparison.html").read_text()
    for pair in document["differences"]:
        assert f"{pair['low']:.4f} to {pair['high']:.4f}" in page
    rows = csv.DictReader((out / "comparison.csv").read_text().splitlines())
    for row in rows:
        if row["label"] == "ease":
            assert row["difference_mean"] == ""
            continue
        pair = figures[frozenset((row["label"], "ease")), row["metric"]]
        sign = 1 if pair["method"] == row["label"] else -1
        assert row["against"] == "ease"
        assert float(row["difference_mean"]) == sign * pair["mean"]
        ends = sorted(sign * pair[end] for end in ("low", "high"))
        found = [float(row[f"difference_{end}"]) for end in ("low", "high")]
        assert found == ends


def test_what_cannot_be_compared_is_refused(tacit, private, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(private.read_text().replace("ndcg@10", "ndcg@5"))
    out = ("--out", tmp_path / "c")
    answer = tacit("compare", private, other, "--epsilons", "1", *out)
    assert answer.code == 2
    assert "exp and other differ in evaluate.metrics" in answer.err
    answer = tacit("compare", private, "--epsilons", "one", *out)
    assert answer.code == 2
    assert "must be numbers with commas between" in answer.err
    answer = tacit("compare", private, "--epsilons", "1", "--baselines", "eas", *out)
    assert answer.code == 2
    assert "ease" in answer.err
    assert not (tmp_path / "c").exists()


def test_another_comparison_in_the_same_place_is_refused(tacit, private, tmp_path):
    out = ("--seeds", "1", "--epsilons", "1", "--out", tmp_path / "c")
    assert tacit("compare", private, *out).code == 0
    answer = tacit("compare", private, *out, "--set", "run.rounds=2")
    assert answer.code == 2
    assert "run.rounds (3, now 2)" in answer.err
    answer = tacit("compare", private, *out, "--set", "data.target_share=0.5")
    assert answer.code == 2


BY_GROUP = """
[data]
source = "synthetic"
world = { users = 120, items = 12, rank = 2, events_per_user = 5 }

[method]
name = "federated_popularity"

[privacy]
mechanism = "central"
channel = "secure_sum"
delta = 1e-6
groups = "gender"
budgets = "sample"
target_epsilon = { F = 4.0, M = 2.0, X = 1.0 }

[run]
rounds = 2
sampler = { name = "poisson", rate = 0.5 }

[evaluate]
metrics = ["ndcg@10"]
baselines = []
"""


CHOSEN = BY_GROUP.replace('groups = "gender"', "groups = { strict = 2, open = 1 }")
CHOSEN = CHOSEN.replace('budgets = "sample"\n', "")
CHOSEN = CHOSEN.replace("F = 4.0, M = 2.0, X = 1.0", "strict = 1.0, open = 8.0")
CHOSEN = CHOSEN.replace('name = "poisson", rate = 0.5', 'name = "everyone"')


def test_every_group_is_told_with_its_epsilon_and_its_accuracy(tacit, tmp_path):
    file = tmp_path / "budgets.toml"
    file.write_text(CHOSEN)
    call = ("compare", file, "--seeds", "2", "--out", tmp_path / "c")
    answer = tacit(*call, "--json")
    assert answer.code == 0, answer.err
    found = {one["group"]: one for one in answer.json["budgets"]}
    assert found.keys() == {"strict", "open"}
    for group, target in {"strict": 1.0, "open": 8.0}.items():
        assert 0.99 * target < found[group]["epsilon"] <= target
    whole = cell(answer.json, "federated_popularity", "ndcg@10")
    assert sum(one["n"] for one in found.values()) == whole["n_users"]
    mean = sum(one["n"] * one["mean"] for one in found.values()) / whole["n_users"]
    assert mean == pytest.approx(whole["mean"])
    assert whole["provable_epsilon"] == found["open"]["epsilon"]
    assert "by public group" in tacit(*call).out
    run = tmp_path / "c" / "federated_popularity" / "seed-0"
    assert "For those of each budget" in (run / "report.html").read_text()
    card = (run / "privacy-card.html").read_text()
    assert "sums are as clear as with everyone at epsilon" in card
    assert "1.0 for &#x27;strict&#x27;, 8.0 for &#x27;open&#x27;" in card
    spent = json.loads((run / "ledger.json").read_text())["spent"]
    assert {line["group"] for line in spent} == {"strict", "open"}


@pytest.mark.slow
def test_the_files_budgets_stand_beside_one_target_for_everyone(tacit, tmp_path):
    """The word `own` is the file as it is; a number is the target of every group."""
    file = tmp_path / "budgets.toml"
    file.write_text(CHOSEN)
    call = ("compare", file, "--epsilons", "own,1,inf", "--seeds", "1")
    answer = tacit(*call, "--out", tmp_path / "c", "--json")
    assert answer.code == 0, answer.err
    name = "federated_popularity"
    everyone = f"{name}, everyone at epsilon 1"
    assert {c["label"] for c in answer.json["cells"]} == {
        *(name, everyone, f"{name}, no privacy")
    }
    found = {
        (one["label"], one["group"]): one
        for one in answer.json["budgets"]
        if one["metric"] == "ndcg@10"
    }
    epsilons = {key: one["epsilon"] for key, one in found.items()}
    assert 0.99 < epsilons[name, "strict"] <= 1 < 7.9 < epsilons[name, "open"] <= 8
    for group in ("strict", "open"):
        assert 0.99 < epsilons[everyone, group] <= 1
        assert epsilons[f"{name}, no privacy", group] is None
        # The same held-out users of the group, whatever the target is.
        sizes = {found[label, group]["n"] for label, g in found if g == group}
        assert len(sizes) == 1
    shown = tacit(*call, "--out", tmp_path / "c")
    assert "everyone at epsilon 1" in shown.out
    page = (tmp_path / "c" / "comparison.html").read_text()
    assert "--epsilons own,1,inf" in page


def test_several_tables_of_budgets_are_compared_by_several_files(tacit, tmp_path):
    thirds = CHOSEN.replace("strict = 2, open = 1", "strict = 1, open = 1")
    (tmp_path / "many-strict.toml").write_text(CHOSEN)
    (tmp_path / "halves.toml").write_text(thirds)
    files = (tmp_path / "many-strict.toml", tmp_path / "halves.toml")
    answer = tacit("compare", *files, "--seeds", "1", "--out", tmp_path / "c", "--json")
    assert answer.code == 0, answer.err
    told = {(one["label"], one["group"]) for one in answer.json["budgets"]}
    assert told == {
        (file, group)
        for file in ("many-strict", "halves")
        for group in ("strict", "open")
    }


def test_words_that_are_no_target_are_refused(tacit, private, tmp_path):
    for word in ("own,own", "mine", "1,1"):
        answer = tacit("compare", private, "--epsilons", word, "--out", tmp_path / "c")
        assert answer.code == 2
        assert "epsilons" in answer.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", ['budgets = "sample"', "scale = { F = 1.0, M = 0.5, X = 0.2 }"]
)
def test_a_target_for_each_group_becomes_one_for_all(tacit, tmp_path, how):
    """Rates or scales that give groups budgets of their own go with those budgets."""
    file = tmp_path / "by_group.toml"
    text = BY_GROUP.replace('budgets = "sample"', how)
    if "scale" in how:
        text = text.replace("{ F = 4.0, M = 2.0, X = 1.0 }", "4.0")
    file.write_text(text)
    call = ("compare", file, "--epsilons", "3,inf", "--seeds", "1")
    answer = tacit(*call, "--out", tmp_path / "c", "--json")
    assert answer.code == 0, answer.err
    label = "federated_popularity, everyone at epsilon 3"
    swept = cell(answer.json, label, "ndcg@10")
    assert 2.9 < swept["provable_epsilon"] <= 3
    for one in answer.json["budgets"]:
        assert one["epsilon"] == (
            swept["provable_epsilon"] if one["label"] == label else None
        )


def everything(place):
    return {path for path in place.rglob("*") if "cache" not in path.parts}


@pytest.mark.parametrize(
    "name", some_of(["...toml", "..toml", " .toml", "baselines.toml"], 1)
)
def test_nothing_is_written_outside_of_out(tacit, experiment, tmp_path, name):
    """The stem of `...toml` is `..`: runs stood beside --out, and could be anywhere."""
    odd = tmp_path / name
    odd.write_text(experiment.read_text())
    place = tmp_path / "deep" / "comparison"
    place.parent.mkdir()
    before = everything(tmp_path)
    call = ("compare", experiment, odd, "--seeds", 1, "--baselines", "none")
    answer = tacit(*call, "--out", place)
    assert answer.code == 0, answer.err
    made = everything(tmp_path) - before
    assert made
    assert all(path == place or place in path.parents for path in made)
    again = tacit(*call, "--out", place)  # continues, and makes nothing anew
    assert again.code == 0
    assert everything(tmp_path) - before == made


def test_two_experiments_of_one_name_are_refused(tacit, experiment, tmp_path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "exp.toml"
    other.write_text(experiment.read_text())
    answer = tacit("compare", experiment, other, "--out", tmp_path / "comparison")
    assert answer.code == 2
    assert "the same method and file name; rename one" in answer.err
    assert not (tmp_path / "comparison").exists()


def test_no_link_in_out_is_followed(tacit, experiment, tmp_path):
    victim, out = tmp_path / "victim", tmp_path / "comparison"
    victim.mkdir()
    out.mkdir()
    (out / "federated_popularity").symlink_to(victim)
    answer = tacit("compare", experiment, "--seeds", 1, "--out", out)
    assert answer.code == 2
    assert "is a link to another place" in answer.err
    assert [*victim.iterdir()] == []


def test_a_flipped_bit_is_not_compared(tacit, experiment, tmp_path):
    call = ("compare", experiment, "--seeds", 1, "--out", tmp_path / "comparison")
    assert tacit(*call).code == 0
    for name in ("federated_popularity/seed-0/result", "baselines/ease/seed-0"):
        file = tmp_path / "comparison" / f"{name}.json"
        whole = file.read_bytes()
        at = whole.index(b"0.", len(whole) // 2) + 2
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        answer = tacit(*call)
        assert answer.code == 2
        assert f"{file} is damaged" in answer.err
        file.write_bytes(whole)


GRAM = """
[data]
source = "synthetic"
world = { users = 120, items = 12, rank = 2, events_per_user = 5 }

[method]
name = "METHOD"

[evaluate]
metrics = ["ndcg@10"]
baselines = ["popularity"]
"""


@pytest.fixture
def bare(tmp_path):
    """An experiment without privacy."""
    path = tmp_path / "bare.toml"
    path.write_text(GRAM.replace("METHOD", "gram"))
    return path


def test_a_target_turns_privacy_on_where_a_file_has_none(tacit, bare, tmp_path):
    out = tmp_path / "c"
    call = ("compare", bare, "--epsilons", "2,inf", "--seeds", "1", "--out", out)
    answer = tacit(*call, "--json")
    assert answer.code == 0, answer.err
    assert "bare.toml has no privacy; for each epsilon its mechanism" in answer.err
    assert {c["label"] for c in answer.json["cells"]} == {
        *("gram, epsilon 2", "gram, no privacy", "popularity"),
        "private_popularity, epsilon 2",
    }
    for label in ("gram, epsilon 2", "private_popularity, epsilon 2"):
        assert 1.9 < cell(answer.json, label, "ndcg@10")["provable_epsilon"] <= 2
    settings = (out / "gram-epsilon-2" / "seed-0" / "experiment.toml").read_text()
    assert 'channel = "secure_sum"' in settings
    assert "delta = 1e-06" in settings
    levels = [choice["epsilon"] for choice in answer.json["verdict"]["choices"]]
    assert levels == [2, None]
    assert answer.json["words"][0].startswith("On this table, at epsilon 2 ")
    costs = {one["label"]: one for one in answer.json["costs"]}
    assert costs["gram, epsilon 2"]["bytes_up"] > 0
    assert costs["popularity"]["bytes_up"] is None
    assert costs["popularity"]["seconds"] > 0


def test_a_method_that_can_keep_no_epsilon_is_said_at_once(tacit, tmp_path):
    file, out = tmp_path / "open.toml", tmp_path / "c"
    file.write_text(GRAM.replace("METHOD", "fofl"))
    answer = tacit("compare", file, "--epsilons", "2", "--out", out)
    assert answer.code == 2
    assert "fofl offers no mechanism that keeps an epsilon, only none" in answer.err
    assert not out.exists()


def test_other_baselines_later_make_nothing_twice(tacit, bare, tmp_path):
    """A baseline that fails leaves the others, and the runs, as they are."""
    out = tmp_path / "c"
    call = ("compare", bare, "--epsilons", "2", "--seeds", "1", "--out", out)
    table = tmp_path / "results.csv"
    assert tacit(*call, "--baselines", "popularity", "--csv", table).code == 0
    assert table.read_text() == (out / "comparison.csv").read_text()
    rows = {row["label"]: row for row in csv.DictReader(table.read_text().splitlines())}
    assert rows["gram, epsilon 2"]["difference_mean"] == ""  # the line compared with
    low, high = (rows["popularity"][f"difference_{end}"] for end in ("low", "high"))
    assert float(low) <= float(rows["popularity"]["difference_mean"]) <= float(high)
    assert float(rows["gram, epsilon 2"]["bytes_up"]) > 0
    run = out / "gram-epsilon-2" / "seed-0" / "result.json"
    before = run.stat().st_mtime_ns
    answer = tacit(*call, "--baselines", "popularity,item_knn,private_popularity")
    assert answer.code == 0, answer.err
    said = [line for line in answer.err.splitlines() if "seed" in line]
    assert said == [
        "compare: private_popularity-epsilon-2, seed 0",
        "compare: item_knn, seed 0",
    ]
    assert run.stat().st_mtime_ns == before


def test_what_is_missing_is_said_before_anything_is_trained(
    tacit, bare, tmp_path, monkeypatch
):
    out = tmp_path / "c"
    call = ("compare", bare, "--seeds", "1", "--out", out, "--baselines")
    monkeypatch.setattr(needs, "find_spec", lambda module: None)
    answer = tacit(*call, "popularity,bpr")
    assert answer.code == 2
    assert "implicit, which bpr needs, is not installed" in answer.err
    monkeypatch.undo()
    monkeypatch.setattr(memory, "available", lambda: 500)
    answer = tacit(*call, "popularity,ease")
    assert answer.code == 2
    assert "ease needs 1.1 KiB for 12 items, and 500 B are free" in answer.err
    assert "leave ease out with --baselines popularity" in answer.err
    assert not out.exists()


def test_a_line_that_diverges_ends_no_comparison(tacit, experiment, tmp_path):
    """Its label says how, in the words and in every file; resuming does not retry."""
    other = tmp_path / "diverging.toml"
    text = experiment.read_text()
    other.write_text(
        text.replace('"federated_popularity"', '"fmf_ldp"\nlearning_rate = 1e9')
    )
    call = ("compare", experiment, other, "--seeds", "1", "--out", tmp_path / "out")
    call += ("--set", "run.rounds=12", "--set", 'run.sampler={name = "everyone"}')
    answer = tacit(*call, "--json")
    assert answer.code == 0, answer.err
    labels = {cell["label"] for cell in answer.json["cells"]}
    assert "federated_popularity" in labels
    assert "fmf_ldp" not in labels
    assert "learning_rate" in answer.json["verdict"]["diverged"]["fmf_ldp"]
    assert "fmf_ldp has no figures" in (tmp_path / "out/comparison.html").read_text()
    again = tacit(*call, "--json")
    assert again.json["verdict"] == answer.json["verdict"]
    assert "fmf_ldp, seed 0" not in again.err
    retried = tacit(*call, "--json", "--retry-diverged")
    assert "fmf_ldp, seed 0" in retried.err
    refused = tacit(*call, "--against", "fmf_ldp")
    assert refused.code == 2
    assert "has no figures" in refused.err
