"""What a plan says, on the screen and as JSON.

Also tests `tacit.experiment.planning`.
"""

import json
import re
import shutil
from collections import Counter
from itertools import product
from math import ceil
from pathlib import Path

import pytest

from tacit.api.planning import Planned
from tacit.cli import console
from tacit.cli.plan import _print
from tacit.codes import Code
from tacit.errors import Refused
from tacit.experiment.planning import plan_experiment
from tacit.experiment.privacy_card import draw_card
from tacit.experiment.serve_settings import ServeSettings
from tacit.experiment.settings import check_experiment
from tacit.reporting.privacy_card import render
from tacit.reporting.tables import served
from tacit.runtime.ledger import terms_of
from tacit.service.federation.services import coordinated_run
from tacit.service.federation.settings import CoordinatorSettings, read_settings
from tacit.serving.serving_account import outlook
from tacit.statement import Statement

KEYS = {
    "what",
    "seen_by",
    "group",
    "unit",
    "adjacency",
    "view",
    "delta",
    "horizon",
    "accountant",
    "standing",
    "assumes",
    "epsilon",
}


def test_every_line_has_every_field(tacit, experiment):
    document = tacit("plan", experiment, "--json").json
    assert document["releases"]
    assert document["totals"]
    for line in document["releases"] + document["totals"]:
        assert line.keys() >= KEYS
        assert line["standing"] == "NONE"
        assert line["epsilon"] is None
        assert line["reason"]


EXAMPLE = Path(__file__).parents[2] / "deploy" / "product"


def test_an_operator_plans_without_events(tacit, tmp_path, monkeypatch):
    """The first command of docs/operators.md, in a folder with nothing else.

    It says what the coordinator of the same files promises to clients.
    """
    for name in ("experiment.toml", "films.csv"):
        shutil.copy(EXAMPLE / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    answer = tacit("plan", "experiment.toml")
    assert answer.code == 0, answer.err
    assert "no event is read: no-events.csv is not here" in answer.out
    found = tacit("plan", "experiment.toml", "--json").json
    assert found["absent_events"] == "no-events.csv"
    assert found["cost"]["population"] == 20_000
    settings = read_settings(EXAMPLE / "coordinator.toml", CoordinatorSettings)
    promised = coordinated_run(settings).assembled.simulation.account.totals
    assert [Statement.from_json(one) for one in found["totals"]] == [*promised]


def test_a_coordinator_refuses_rounds_that_the_plan_refuses(tmp_path):
    """At each of its starts; the plan is asked once."""
    shutil.copytree(EXAMPLE, tmp_path / "own")
    path = tmp_path / "own" / "experiment.toml"
    path.write_text(path.read_text().replace("rounds = 4", "rounds = 2"))
    settings = read_settings(tmp_path / "own" / "coordinator.toml", CoordinatorSettings)
    with pytest.raises(Refused, match=r"run\.rounds=2 is too few"):
        coordinated_run(settings)


@pytest.mark.parametrize("what", ["data.population", "data.table.items"])
def test_events_are_missed_where_something_is_not_declared(tacit, tmp_path, what):
    text = (EXAMPLE / "experiment.toml").read_text()
    shutil.copy(EXAMPLE / "films.csv", tmp_path)
    if what == "data.population":
        text = text.replace("population = 20000\n", "")
    else:
        text = re.sub(r"\[data\.table\.items\].*?\n\n", "", text, flags=re.DOTALL)
    (tmp_path / "experiment.toml").write_text(text)
    answer = tacit("plan", tmp_path / "experiment.toml")
    assert answer.code == 2
    assert "no-events.csv is not a file" in answer.err


def test_the_cost_is_what_a_run_sends(tacit, experiment, tmp_path):
    cost = tacit("plan", experiment, "--json").json["cost"]
    trained = tacit("train", experiment, "--out", tmp_path / "run", "--json").json
    result = trained["simulation_only"]
    assert cost["rounds_a_device_at_most"] == 1
    assert result["bytes_up"] == cost["bytes_up_a_round"] * cost["population"]
    assert result["bytes_down"] == cost["bytes_down_a_round"] * cost["population"]


def test_people_are_told_that_nothing_is_promised(tacit, experiment):
    answer = tacit("plan", experiment)
    assert "no promise" in answer.out
    assert str(Code("bare_reports")) in answer.out


def test_nothing_is_written(tacit, experiment, tmp_path):
    before = sorted(p for p in tmp_path.iterdir() if p.name != "cache")
    tacit("plan", experiment)
    assert sorted(p for p in tmp_path.iterdir() if p.name != "cache") == before


def test_all_problems_at_once(tacit, experiment):
    answer = tacit(
        "plan", experiment, "--set", "run.rounds=0", "--set", "method.max_vote=1"
    )
    assert answer.code == 2
    assert "2 problems" in answer.err
    assert "did you mean 'max_votes'" in answer.err


CENTRAL = (
    *("--set", "privacy.mechanism=central"),
    *("--set", "privacy.channel=secure_sum"),
)
DELTA = ("--set", "privacy.delta=1e-6")


def by_view(document):
    return {s["view"]: s for s in document["totals"] if s["unit"] == "user"}


def test_noise_for_a_target(tacit, experiment):
    asked = ("plan", experiment, *CENTRAL, *DELTA, "--target-epsilon", 2, "--json")
    document = tacit(*asked).json
    found = by_view(document)
    assert 1.99 < found["release"]["epsilon"] <= 2.0
    assert found["release"]["standing"] == "PROVEN"
    assert found["release"]["assumes"] == str(Code("trusted_aggregator"))
    assert found["release"]["channel"] == "secure_sum"
    assert found["collusion"]["epsilon"] is None
    assert document["privacy"]["mechanism"] == "central"
    assert abs(document["privacy"]["noise_multiplier"]["votes"] - 2.2305) < 1e-3
    assert "privacy" not in document["method"]
    assert "that a person took part" in document["words"][0]
    assert "from 50 % to 89.1 %" in document["words"][0]


def test_retraining_is_composed(tacit, experiment):
    asked = ("plan", experiment, *CENTRAL, *DELTA, "--target-epsilon", 1, "--json")
    once, four = tacit(*asked).json, tacit(*asked, "--runs", 4).json
    assert by_view(four)["release"]["epsilon"] > 2 * by_view(once)["release"]["epsilon"]
    assert "4 runs" in by_view(four)["release"]["horizon"]


def test_the_server_sees_everything_over_direct(tacit, experiment):
    direct = (*CENTRAL, "--set", "privacy.channel=direct")
    answer = tacit("plan", experiment, *direct, *DELTA, "--target-epsilon", 1, "--json")
    found = by_view(answer.json)
    assert found["server"]["standing"] == "NONE"
    assert "every report without noise" in found["server"]["reason"]
    assert found["release"]["standing"] == "PROVEN"


def test_a_delta_that_is_no_guarantee(tacit, experiment):
    large = ("--set", "privacy.delta=0.01", "--set", "privacy.noise_multiplier=1.0")
    found = by_view(tacit("plan", experiment, *CENTRAL, *large, "--json").json)
    assert found["release"]["epsilon"] is None
    assert "delta=0.01 is more than" in found["release"]["reason"]


BUDGETS = (
    *("--set", "privacy.groups={strict = 2, open = 1}"),
    *("--set", "privacy.target_epsilon={strict = 1.0, open = 8.0}"),
)


def test_every_group_has_its_epsilon_and_all_are_worth_one(tacit, experiment):
    asked = ("plan", experiment, *CENTRAL, *DELTA, *BUDGETS)
    document = tacit(*asked, "--json").json
    found = {
        line["group"]: line["epsilon"]
        for line in document["totals"]
        if (line["unit"], line["view"]) == ("user", "release")
    }
    assert 0.999 < found["strict"] <= 1.0
    assert 7.99 < found["open"] <= 8.0
    assert sum(document["groups"].values()) == document["cost"]["population"]
    assert 2 < document["as_one_epsilon"] < 5
    assert "about group 'strict'" in document["words"][0]
    shown = " ".join(tacit(*asked).out.split())
    assert "sums are as clear as with everyone at epsilon" in shown


FEW_USERS = """
[data]
source = "synthetic"
world = { users = 60, items = 40, events_per_user = 8 }

[method]
name = "gram"

[privacy]
mechanism = "central"
channel = "secure_sum"
delta = 1e-6
target_epsilon = 1.0

[run]
rounds = 3
"""


def test_a_run_that_can_only_count_has_one_round(tacit, tmp_path):
    """With 60 users at epsilon 1 Gram spends its whole budget on counts."""
    (tmp_path / "few.toml").write_text(FEW_USERS)
    answer = tacit("plan", tmp_path / "few.toml", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["cost"]["rounds"] == 1
    assert len({line["what"] for line in answer.json["releases"]}) == 1


SHARED = FEW_USERS.replace("secure_sum", "two_servers").replace(
    '"gram"', '"federated_popularity"'
)


@pytest.mark.parametrize(
    ("view", "other", "least"),
    [("server", "release", 0.688), ("release", "server", 1.454)],
)
def test_a_target_in_either_view_of_two_servers(tacit, tmp_path, view, other, least):
    (tmp_path / "shared.toml").write_text(SHARED)
    chosen = ("--set", f"privacy.target_view={view}")
    document = tacit("plan", tmp_path / "shared.toml", *chosen, "--json").json
    found = by_view(document)
    assert 0.999 < found[view]["epsilon"] <= 1.0
    assert least < found[other]["epsilon"] < least + 0.002
    assert {found[one]["standing"] for one in (view, other)} == {"PROVEN"}
    assert "one of the two aggregators" in found["server"]["assumes"]
    assert found["collusion"]["standing"] == "NONE"
    assert document["cost"]["bytes_up_a_round"] == 176 + 4 * 40


EVERYONE = "run.sampler={ name = 'everyone' }"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (["method.name=fedvae", EVERYONE], "one array per round"),
        (
            ["run.sampler={ name = 'poisson', rate = 0.1 }"],
            "an operator sees who reports",
        ),
        (["privacy.target_view=collusion"], "target_view"),
    ],
)
def test_two_servers_refuse_with_the_reason(tacit, tmp_path, changed, reason):
    (tmp_path / "shared.toml").write_text(SHARED)
    sets = (word for change in changed for word in ("--set", change))
    answer = tacit("plan", tmp_path / "shared.toml", *sets)
    assert answer.code == 2
    assert reason in " ".join(answer.err.split())


# --- Groups with budgets of their own, who are served --------------------------------

SIZES = {"F": 900, "M": 800, "X": 100}
EACH = {"F": 1.0, "M": 8.0, "X": 4.0}
KRR = {"mode": "krr", "epsilon": 0.05}


def planned_for(groups: str):
    """Three groups in this order, whose training costs 1, 8 and 4."""
    world = {"users": 60, "items": 30, "events_per_user": 8.0}
    return plan_experiment(
        check_experiment(
            {
                "data": {
                    **{"source": "synthetic", "world": world},
                    **{"validation": 5, "test": 5},
                    "population": {name: SIZES[name] for name in groups},
                },
                "method": {"name": "federated_popularity"},
                "privacy": {
                    **{"mechanism": "central", "channel": "secure_sum"},
                    **{"delta": 1e-6, "groups": "gender"},
                    "target_epsilon": {name: EACH[name] for name in groups},
                },
                "run": {"rounds": 3, "sampler": {"name": "everyone"}},
                "serve": KRR,
            }
        )
    )


@pytest.fixture(scope="module")
def in_order():
    return planned_for("FMX")


def printed(planned, capsys) -> dict[str, str]:
    """All that a reader is given of a plan: card and plan, as data and as text."""
    texts = {}
    _print(planned, long=True)
    texts["plan in a terminal"] = capsys.readouterr().out
    console.print_json(planned.document())
    texts["plan as JSON"] = capsys.readouterr().out
    texts["plan in Python"] = str(Planned.of(planned))
    texts["a notebook's table"] = Planned.of(planned)._repr_html_()
    card = draw_card(planned.assembled) | {
        **{"rounds_begun": 0, "audit": None, "contact": None},
        "plan": "",  # the digest says in which order codes count groups
    }
    texts["card as JSON"] = json.dumps(card)
    texts["card as a page"] = render(card)
    return texts


def unordered(value: object) -> object:
    """The same where the order of lists and tables does not matter."""
    if isinstance(value, dict):
        return {name: unordered(one) for name, one in value.items()}
    if isinstance(value, list):
        return sorted(json.dumps(unordered(one), sort_keys=True) for one in value)
    return value


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[\w.'%]*\w", text))


def test_the_order_of_groups_changes_no_figure(in_order, capsys):
    """Not one that is printed: what is said to a group is that group's own."""
    texts, lines = printed(in_order, capsys), in_order.serving["statements"]
    figures = {one["epsilon"] for one in lines} - {None}
    assert len(figures) == 2 * len(SIZES)  # for a month, and for a year
    for name, other in printed(planned_for("XMF"), capsys).items():
        if "JSON" in name:
            one, two = (unordered(json.loads(text)) for text in (texts[name], other))
            assert one == two, name
        assert words(texts[name]) == words(other), name
        if "JSON" not in name:
            n = 2 if "plan in" in name else 4
            shown = {f"{ceil(e * 10**n) / 10**n:.{n}f}" for e in figures}
            assert shown <= words(other).keys(), name


def test_every_group_reads_what_training_and_being_served_cost_it(in_order, capsys):
    """Thirty queries beside 1, 8 or 4: it was the first group's figure for all."""
    method, plan = in_order.assembled.method, in_order.assembled.plan
    expected = {}
    for group in SIZES:
        terms = terms_of(method, plan, group=group)
        before = [(terms, range(3))]
        for line in outlook(
            ServeSettings(**KRR).queries, before=before, horizons=(30, 365)
        ):
            expected[group, line.what, line.unit, line.view] = line.epsilon
    document = in_order.document()["serving"]
    lines = document["statements"]
    assert {
        (one["group"], one["what"], one["unit"], one["view"]): one["epsilon"]
        for one in lines
    } == expected
    assert draw_card(in_order.assembled)["serving"] == document
    assert len(lines) == len(expected) == 3 * 2 * 6
    of_user = [one for one in lines if (one["days"], one["view"]) == (30, "release")]
    figures = {one["group"]: one["epsilon"] for one in of_user if one["unit"] == "user"}
    assert figures == {group: pytest.approx(e, abs=0.5) for group, e in EACH.items()}
    header, *rows = served(document).header, *served(document).rows
    assert header[:2] == ("days", "group")
    assert {row[:2] for row in rows} == {*product(("30", "365"), SIZES)}


@pytest.mark.parametrize(
    ("changes", "query"),
    [
        (["serve.noise=paper"], "prints it for a claimed 2, accounted for as it is"),
        ([], "Laplace noise on attention over 2 basis vectors that training made"),
    ],
    ids=["as printed", "sound"],
)
def test_a_plan_says_which_basis_and_whose_noise_a_query_has(
    changes, query, tacit, tmp_path
):
    """Of PrivateRec's own basis; a claim is never printed as an epsilon."""
    file = tmp_path / "news.toml"
    file.write_text(_NEWS)
    asked = [part for change in changes for part in ("--set", change)]
    said = tacit("plan", file, *asked)
    assert query in " ".join(said.out.split())
    found = tacit("plan", file, "--json", *asked).json["serving"]
    assert query in found["query"]
    assert "basis vectors that training made" in found["query"]
    assert {line["epsilon"] for line in found["statements"]} == {None}  # as in training


_NEWS = """
[data]
source = "synthetic-news"
split = "by-time"
validation_from = "2023-02-04"
test_from = "2023-02-05"
world = { users = 60, news = 40, shown = 6, history = 5 }
[method]
name = "privaterec"
mode = "paper"
model = "plm-nr"
content = ["title"]
interests = 2
[privacy]
mechanism = "published"
delta = 1e-6
[run]
rounds = 2
sampler = { name = "fixed_size", size = 20 }
[serve]
mode = "dpa"
epsilon = 2.0
padding = 0.5
"""


def test_a_plan_says_that_padding_leaves_lists_for_any(tacit, experiment):
    """The table has no times: lists for any need none, those for a session do."""
    changes = ("method.name=gram", 'run.sampler={name="everyone"}', 'serve.mode="dpa"')
    changes = (*changes, "serve.epsilon=1.0", 'serve.list_for="session"')
    asked = ("plan", experiment, *(part for one in changes for part in ("--set", one)))
    said = " ".join(tacit(*asked, "--set", "serve.padding=0.5").out.split())
    assert "serving: lists are for any, not for a session: padding=0.5" in said
    assert "needs the times of events" in tacit(*asked).err


def test_where_nobody_is_served_by_a_server_nothing_is_said_of_it(tacit, experiment):
    found = tacit("plan", experiment, "--json").json["serving"]
    assert found == {"mode": "on_device", "delta": 0, "padding": 0} | {
        **{"refresh_days": 1, "noise": "sound", "list_for": "any", "statements": []}
    }
    assert "being served" not in tacit("plan", experiment).out
