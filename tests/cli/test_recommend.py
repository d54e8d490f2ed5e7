import json
import subprocess
import sys
from math import ceil, exp, log

import pytest
from cli.conftest import EXPERIMENT
from service.worlds import trained

from tacit import load
from tacit.cli.recommend import _cost
from tacit.ledger.terms import Terms
from tacit.privacy.guarantees import unprotected
from tacit.release import Release
from tacit.runtime.ledger import statements_of


@pytest.fixture
def run(tacit, experiment, tmp_path):
    path = tmp_path / "run"
    assert tacit("train", experiment, "--out", path).code == 0
    return path


def test_nobody_is_recommended_what_they_have(tacit, run):
    listed = tacit("recommend", run, "--history", "item 1,item 2", "--json").json
    ids = {line["id"] for line in listed["items"]}
    assert ids
    assert not ids & {"item 1", "item 2"}


def test_an_empty_history_gets_the_popular_items(tacit, run):
    assert len(tacit("recommend", run, "--history", "", "--json").json["items"]) == 10


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "either --user ID or --history"),
        (("--user", "user 3", "--history", "x"), "either --user ID or --history"),
        (("--user", "usr 3"), "did you mean 'user 3'"),
        (("--history", "item 99"), "'item 99' is not known"),
    ],
)
def test_bad_input(tacit, run, arguments, problem):
    answer = tacit("recommend", run, *arguments)
    assert answer.code == 2
    assert problem in answer.err


def test_a_run_that_is_not_there(tacit, tmp_path):
    answer = tacit("recommend", tmp_path / "nowhere", "--user", "x")
    assert answer.code == 2
    assert "train it first" in answer.err


def test_a_user_is_served_without_torch(run):
    code = (
        "import sys, tacit\n"
        f"best = tacit.load({str(run)!r}).recommend(['item 1'], n=3)\n"
        "assert len(best) == 3\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_only_the_two_model_files_are_needed(tacit, run, tmp_path):
    client = tmp_path / "device"
    client.mkdir()
    for name in ("model.safetensors", "model.json"):
        (client / name).write_bytes((run / name).read_bytes())
    answer = tacit("recommend", client, "--history", "item 3", "--json")
    assert len(answer.json["items"]) == 10


def test_why(tacit, experiment, tmp_path):
    out = tmp_path / "gram"
    gram = ("--set", "method.name=gram", "--set", "run.rounds=2")
    everyone = ("--set", 'run.sampler={name="everyone"}')
    trained = tacit("train", experiment, "--out", out, *gram, *everyone)
    assert trained.code == 0, trained.err
    listed = tacit("recommend", out, "--user", "user 3", "--why", "--json").json
    assert all(len(line["because"]) <= 3 for line in listed["items"])
    assert any(line["because"] for line in listed["items"])
    said = tacit("recommend", out, "--user", "user 3", "--why").out
    assert "because of" in said


@pytest.fixture
def timed(tacit, tmp_path):
    """A run of Gram on a table with times, whose lists are for the next session."""
    lines = [
        f"user {p},item {(p * 7 + i * i) % 15},{i * 86_400 * 9}"
        for p in range(40)
        for i in range(9)
    ]
    (tmp_path / "table.csv").write_text("who,what,when\n" + "\n".join(lines) + "\n")
    text = EXPERIMENT.replace('item = "what"', 'item = "what"\ntime = "when"')
    text = text.replace("federated_popularity", "gram").replace('"once"', '"everyone"')
    (tmp_path / "exp.toml").write_text(text + '\n[serve]\nlist_for = "session"\n')
    answer = tacit("train", tmp_path / "exp.toml", "--out", tmp_path / "run")
    assert answer.code == 0, answer.err
    return tmp_path / "run"


def ids(answer):
    return [line["id"] for line in answer.json["items"]]


def test_one_model_lists_for_what_is_asked(tacit, timed):
    """By default for what the experiment says, on the device and in the API."""
    asked = ("recommend", timed, "--json", "--history")
    oldest, newest = "item 1,item 2,item 9", "item 9,item 2,item 1"
    lists = {one: tacit(*asked, oldest, "--for", one) for one in ("any", "session")}
    assert ids(tacit(*asked, oldest)) == ids(lists["session"])
    assert ids(lists["session"]) != ids(tacit(*asked, newest))
    assert ids(lists["any"]) == ids(tacit(*asked, newest, "--for", "any"))
    model = load(timed, list_for="visit")
    expected = [line.id for line in model.recommend(newest.split(","))]
    assert ids(tacit(*asked, newest, "--for", "visit")) == expected
    who = ("recommend", timed, "--user", "user 3", "--why", "--json")
    assert ids(tacit(*who, "--for", "visit"))


def test_one_model_is_measured_for_each_purpose(tacit, timed):
    kept = json.loads((timed / "result.json").read_text())["simulation_only"]
    found = {
        one: tacit("evaluate", timed, "--for", one, "--json").json
        for one in ("any", "session", "visit")
    }
    assert {one["list_for"] for one in found.values()} == found.keys()
    own = kept["evaluations"]["gram"]["metrics"]
    assert found["session"]["metrics"] == own != found["any"]["metrics"]
    assert tacit("evaluate", timed, "--json").json["list_for"] == "session"


def test_a_table_without_times_and_a_method_without_weights_refuse(
    tacit, vectors, run, experiment
):
    asked = ("--set", 'serve.list_for="visit"', "--set", "method.name=gram")
    answers = [
        tacit("evaluate", vectors, "--for", "session"),
        tacit("recommend", vectors, "--user", "user 3", "--for", "visit"),
        tacit("plan", experiment, *asked),
    ]
    assert {answer.code for answer in answers} == {2}
    assert all("needs the times of events" in answer.err for answer in answers)
    refused = tacit("recommend", run, "--history", "item 1", "--for", "session")
    assert refused.code == 2
    assert "cannot weigh a history" in refused.err
    by_order = tacit("recommend", vectors, "--history", "item 1", "--for", "session")
    assert by_order.code == 0


@pytest.fixture
def vectors(tacit, experiment, tmp_path):
    """A run of a method that a server can rank for."""
    out = tmp_path / "gram"
    gram = ("--set", "method.name=gram", "--set", "run.rounds=2")
    everyone = ("--set", 'run.sampler={name="everyone"}')
    assert tacit("train", experiment, "--out", out, *gram, *everyone).code == 0
    return out


def test_on_the_device_nothing_is_sent(tacit, run):
    answer = tacit("recommend", run, "--history", "item 1")
    assert "on_device: nothing is sent: epsilon 0" in answer.out


@pytest.mark.parametrize(
    "mode",
    [
        ("krr",),
        ("dpa", "--interests", "4", "--padding", "0.5"),
        ("dpa", "--delta", "1e-6"),
        ("vdp",),
        ("vdp", "--axes", "2"),
    ],
    ids=" ".join,
)
def test_each_mode_shows_its_list_and_what_it_costs(tacit, vectors, mode):
    ask = ("recommend", vectors, "--history", "item 1", "-k", "3", "--epsilon", "2")
    answer = tacit(*ask, "--serve", *mode)
    assert answer.code == 0, answer.err
    said = " ".join(answer.out.split())
    standing = "PROVEN" if mode[0] == "krr" else "ASSUMED"  # noise in floating point
    assert f"one query: epsilon 2.00, {standing} against the server" in said
    assert "compared with any other history" in said
    assert "a moderate promise" in said
    # A year of Gaussian queries is beyond what the cipher of a device can carry.
    year = "no promise" if "--delta" in mode else "epsilon"
    assert f"365 queries: {year}" in answer.out
    assert "a trial" in answer.out
    listed = tacit(*ask, "--serve", *mode, "--json").json
    assert len(listed["items"]) == 3
    [first] = [
        line["epsilon"]
        for line in listed["privacy"]["statements"]
        if (line["what"], line["unit"], line["view"]) == ("one query", "user", "server")
    ]
    assert first == pytest.approx(2.0, abs=5e-3)


def test_a_query_is_entered_once_a_day_and_a_cap_is_kept(tacit, vectors, tmp_path):
    ledger = tmp_path / "ledger"
    ask = ("recommend", vectors, "--history", "item 1", "--serve", "krr")
    for _ in range(2):
        answer = tacit(*ask, "--epsilon", "2", "--ledger", ledger)
        assert "entered in" in answer.out, answer.err
    assert tacit("ledger", "cap", ledger, "--epsilon", "2.5").code == 0
    refused = tacit(*ask, "--epsilon", "1", "--ledger", ledger, "--json").json
    assert refused["privacy"]["ranked_by"] == "client"
    assert "cap" in refused["privacy"]["why"]
    assert refused["items"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--epsilon", "1"), "on_device sends nothing"),
        (("--serve", "krr"), "needs --epsilon"),
        (("--serve", "krr", "--epsilon", "1", "--axes", "2"), "axes=2 is for vdp"),
        (("--serve", "krr", "--epsilon", "0"), "epsilon=0"),
    ],
)
def test_settings_of_serving_that_do_not_fit(tacit, vectors, arguments, problem):
    answer = tacit("recommend", vectors, "--history", "item 1", *arguments)
    assert answer.code == 2
    assert problem in answer.err


def test_a_method_without_vectors_is_served_on_the_device_only(tacit, run):
    ask = ("--history", "item 1", "--serve", "krr", "--epsilon", "1")
    answer = tacit("recommend", run, *ask)
    assert answer.code == 2
    assert "serve it on_device" in answer.err


def test_marks_need_categories_that_the_catalog_has(tacit, vectors):
    ask = ("recommend", vectors, "--history", "item 1", "--serve", "krr")
    answer = tacit(*ask, "--epsilon", "1", "--sensitive", "genre=Horror")
    assert answer.code == 2
    assert "have no categories" in answer.err
    answer = tacit(*ask, "--epsilon", "1", "--protection", "leave_out")
    assert answer.code == 2
    assert "needs --sensitive" in answer.err


BARE = Release("query", "server", "once", unprotected("bare_reports", "sent as it is"))


def test_a_query_without_a_proof_has_no_figure():
    [line, *_] = statements_of([(Terms((BARE,)), [0])], what="one query")
    assert _cost(line) == "one query: no promise (sent as it is)"


def test_the_papers_claim_stands_beside_what_is_proven_of_it(tacit, tmp_path):
    """Claimed 2 at p = .5; proven twice ε0 = log(2 e² - 1) for a user."""
    method = {"name": "privaterec", "mode": "paper", "model": "plm-nr", "interests": 2}
    served = {"mode": "dpa", "epsilon": 2.0, "padding": 0.5, "noise": "paper"}
    news = {**method, "content": ["title"]}
    run = trained(tmp_path, news, rounds=1, serve=served)
    ask = (
        "recommend",
        run,
        "--history",
        "item 1",
        "--serve",
        "dpa",
        "--noise",
        "paper",
    )
    answer = tacit(*ask, "--epsilon", "2", "--padding", "0.5", "-k", "3")
    assert answer.code == 0, answer.err
    said = " ".join(answer.out.split())
    proven = 2 * log(2 * exp(2.0) - 1)
    assert f"one query: epsilon {ceil(100 * proven) / 100:.2f}, ASSUMED against" in said
    assert "the paper's own figure is 2, for one interaction" in said
    [page] = run.glob("privacy-card.html")
    card = " ".join(page.read_text().split())
    assert "of a claimed epsilon 2: Laplace noise as the paper prints it" in card
    assert "2 basis vectors that training made" in card
    other = tacit(*ask[:-2], "--epsilon", "2", "--theta", "0.1")
    assert other.code == 2
    assert "theta=0.1 is for noise='paper'" in other.err
