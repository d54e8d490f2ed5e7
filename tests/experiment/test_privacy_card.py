from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import BadRun
from tacit.experiment.assemble import assemble
from tacit.experiment.privacy_card import current_card, draw_card, write_card
from tacit.experiment.settings import check_experiment
from tacit.experiment.training import train
from tacit.release import Unit, View
from tacit.runtime.run import RunDirectory
from tacit.statement import account


def experiment(table: Path) -> dict[str, Any]:
    return {
        "data": {
            "source": "table",
            "table": {"path": str(table), "user": "who", "item": "what"},
            "validation": 8,
            "test": 8,
        },
        "method": {"name": "federated_popularity"},
        "privacy": {
            "mechanism": "central",
            "channel": "secure_sum",
            "target_epsilon": 2.0,
            "delta": 1e-6,
        },
        "run": {"rounds": 2, "sampler": {"name": "once"}},
        "evaluate": {"metrics": ["ndcg@10"], "baselines": []},
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = [f"p{p},i{(p * 7 + i * i) % 15}" for p in range(40) for i in range(9)]
    path = tmp_path_factory.mktemp("data") / "table.csv"
    path.write_text("who,what\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def run(table: Path, tmp_path: Path) -> RunDirectory:
    outcome = train(check_experiment(experiment(table)), tmp_path / "run")
    return outcome.directory


def test_training_leaves_a_card_and_its_page(run: RunDirectory) -> None:
    card = json.loads(run.privacy_card.read_text())
    assert card["simulation"] is True
    assert card["audit"] is None
    assert card["contact"] is None
    page = run.privacy_card.with_suffix(".html").read_text()
    assert "Not audited. To test it: tacit audit RUN" in page
    assert "No contact was given" in page


def test_every_unit_and_view_has_its_cell(run: RunDirectory) -> None:
    card = json.loads(run.privacy_card.read_text())
    pairs = {(unit, view) for unit in Unit for view in View}
    for told in (card["totals"], card["releases"]):
        assert {(line["unit"], line["view"]) for line in told} == pairs
    needed = {"standing", "epsilon", "adjacency", "delta", "horizon", "accountant"}
    assert all(line.keys() >= needed | {"assumes"} for line in card["totals"])


def test_the_card_says_what_the_account_says(table: Path) -> None:
    assembled = assemble(check_experiment(experiment(table)))
    card, plan = draw_card(assembled), assembled.plan
    releases = assembled.method.releases(plan)
    worst = account(plan, releases).worst(view=View.RELEASE)
    [total] = [
        line["epsilon"]
        for line in card["totals"]
        if (line["unit"], line["view"]) == (Unit.USER, View.RELEASE)
    ]
    assert total == worst
    twice = account(plan, releases, runs=2).worst(view=View.RELEASE)
    again = card["budget"]["retraining"]
    [shown] = [
        line["epsilon"]
        for line in again
        if (line["runs"], line["view"]) == (2, View.RELEASE)
    ]
    assert shown == twice > total
    assert [kind["what"] for kind in card["data"]["kinds"]] == [
        "items a user chose",
        "items: titles",
    ]


def test_what_happened_since_is_read_anew(run: RunDirectory) -> None:
    checks = [
        {
            "name": "noise",
            "claimed": 2.0,
            "measured": 0.4,
            "ok": True,
            "subject": "votes",
        },
        {"name": "clip", "claimed": 1.0, "measured": 1.5, "ok": False},
    ]
    lacking = [{"subject": "votes", "kind": "serving", "name": "krr"}]
    told = {"checks": checks, "not_looked_at": lacking}
    (run.path / "audit.json").write_text(json.dumps(told))
    page = write_card(run).read_text()
    assert "not looked at: votes: serving: krr" in page
    card = json.loads(run.privacy_card.read_text())
    assert card["rounds_begun"] == 2
    assert card["audit"]["ok"] is False
    assert [(c["subject"], c["name"]) for c in card["audit"]["checks"]] == [
        ("votes", "noise"),
        (None, "clip"),
    ]
    assert "1 of 2 checks failed" in page


def test_a_contact_is_shown(run: RunDirectory) -> None:
    """It may be added to the file of a run that has been trained."""
    settings = run.experiment.read_text()
    asked = '[privacy]\ncontact = "privacy@example.org"\n'
    run.experiment.write_text(settings.replace("[privacy]\n", asked))
    assert current_card(run)["contact"] == "privacy@example.org"
    assert "privacy@example.org" in write_card(run).read_text()


@pytest.mark.parametrize(
    "text",
    [
        *('{"checks": 3}', '{"checks": [{"name": "x"}]}', "{}"),
        '{"checks": [], "not_looked_at": [{"kind": "channel"}]}',
    ],
)
def test_a_damaged_audit_is_not_taken_for_none(run: RunDirectory, text: str) -> None:
    (run.path / "audit.json").write_text(text)
    with pytest.raises(BadRun, match=r"audit\.json is damaged"):
        write_card(run)


def test_a_directory_without_a_card_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRun, match=r"privacy-card\.json cannot be read"):
        current_card(RunDirectory(tmp_path))


def test_the_card_adds_being_served_to_taking_part(table: Path) -> None:
    settings = experiment(table) | {
        "serve": {"mode": "dpa", "epsilon": 1.0, "delta": 1e-6, "refresh_days": 10}
    }
    card = draw_card(assemble(check_experiment(settings)))
    serving = card["serving"]
    mine = [
        line
        for line in serving["statements"]
        if (line["unit"], line["view"]) == ("user", "server")
    ]
    assert [(line["days"], line["what"]) for line in mine] == [
        (30, "training and 3 queries"),
        (365, "training and 37 queries"),
    ]
    assert mine[0]["epsilon"] < mine[1]["epsilon"]


def test_what_one_machine_undoes_is_not_added_up(table: Path) -> None:
    """Being served is added to what the run promises, not to what two would."""
    settings = experiment(table) | {"run": {"rounds": 2}, "serve": {"mode": "krr"}}
    settings["serve"]["epsilon"] = 0.1
    settings["privacy"]["channel"] = "two_servers"
    made = assemble(check_experiment(settings))
    alone = replace(made.simulation, one_operator="one_machine")
    standings = [
        {
            (line["view"], line["standing"])
            for line in draw_card(one)["serving"]["statements"]
        }
        for one in (made, replace(made, simulation=alone))
    ]
    assert ("server", "PROVEN") in standings[0]
    assert standings[1] == {
        *[("release", "PROVEN"), ("server", "NONE"), ("collusion", "NONE")]
    }


def test_without_queries_the_card_says_that_nothing_leaves(run: RunDirectory) -> None:
    page = run.privacy_card.with_suffix(".html").read_text()
    assert "being served sends nothing" in page
