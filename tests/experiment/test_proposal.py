from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tacit.data.sources.table import EventsTable
from tacit.errors import BadValue
from tacit.experiment.proposal import Proposal


def proposal(place: Path, values: str, **options) -> Proposal:
    """Three users with one event of each value, on different items."""
    lines = [
        f"u{u},i{i},{value}"
        for u in (1, 2, 3)
        for i, value in enumerate(values.split())
    ]
    (place / "t.csv").write_text("\n".join(["user,item,stars", *lines, ""]))
    column = options.pop("value", "stars")
    table = EventsTable(place / "t.csv", "user", "item", value=column)
    return Proposal(table, table.parse(), **options)


@pytest.mark.parametrize(
    ("values", "threshold"),
    [
        ("1 2 3 4 5", 3.0),
        ("1 5 5 5 5", 5.0),
        ("1 1 1 1 5", 5.0),
        ("7 7 7", None),  # one value: nothing to choose
        (" ".join(map(str, range(40))), None),  # amounts, not a scale
    ],
)
def test_a_threshold_keeps_the_better_half(tmp_path, values, threshold):
    assert proposal(tmp_path, values).threshold == threshold


def test_no_values_have_no_threshold(tmp_path):
    made = proposal(tmp_path, "1 2", value=None)
    assert made.threshold is None
    assert made.notes() == []


def test_a_threshold_needs_values(tmp_path):
    with pytest.raises(BadValue, match="min_value=3 needs the column"):
        proposal(tmp_path, "1 2", value=None, min_value=3)


def test_numbers_follow_the_filter(tmp_path):
    made = proposal(tmp_path, "1 2 3 4 5", min_value=4)
    assert made.found() == "6 lines, 3 users, 2 items"
    assert made.planned == 3
    assert proposal(tmp_path, "1 2", population=9000).planned == 9000


@pytest.mark.parametrize(
    ("user", "shown"),
    [("u7", "u7"), ("Ann O'Hara", r"'Ann O'\''Hara'"), ("-x", "'-x'")],
)
def test_the_user_of_the_example_can_be_pasted(tmp_path, user, shown):
    lines = [f"{one},{item}\n" for one in (user, "b", "c") for item in (1, 2)]
    (tmp_path / "t.csv").write_text("".join(["user,item\n", *lines]))
    table = EventsTable(tmp_path / "t.csv", "user", "item")
    text = Proposal(table, table.parse()).toml(tmp_path / "exp.toml")
    assert f"--user {shown}\n" in text


@pytest.mark.parametrize(("items", "first"), [(9, 5), (60, 20), (600, 100)])
def test_lists_are_no_longer_than_the_catalog_warrants(tmp_path, items, first):
    made = proposal(tmp_path, " ".join(["5"] * items))
    assert f'metrics = ["ndcg@{first}", ' in made.toml(tmp_path / "exp.toml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_value": float("nan")}, "min_value=nan must be a finite number"),
        ({"population": 2}, "population=2 is less than the 3 users of t.csv"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(tmp_path, options, message):
    with pytest.raises(BadValue, match=message):
        proposal(tmp_path, "1 2", **options)


def test_too_few_users_to_hold_any_out_are_refused(tmp_path):
    proposal(tmp_path, "1 2").refuse_few()
    with pytest.raises(BadValue, match="0 of 3 users have 2 different items of 9 or"):
        proposal(tmp_path, "1 2", min_value=9).refuse_few()


def test_of_many_users_no_more_are_held_out_than_needed(tmp_path):
    lines = "".join(f"u{u},i{u % 9}\nu{u},j{u % 7}\n" for u in range(51_000))
    (tmp_path / "t.csv").write_text("user,item\n" + lines)
    table = EventsTable(tmp_path / "t.csv", "user", "item")
    text = Proposal(table, table.parse()).toml(tmp_path / "exp.toml")
    assert "validation = 2000 " in text
    assert "test = 5000 " in text
    assert "validation = 0.1  " in proposal(tmp_path, "1 2").toml(tmp_path / "e.toml")


@pytest.mark.parametrize(("liked", "usual"), [(3, 5), (12, 10), (70, 50), (400, 100)])
def test_a_rounded_usual_history_is_a_comment_and_not_declared(tmp_path, liked, usual):
    """In a release it would be public, so nothing of it is taken from the table."""
    made = proposal(tmp_path, " ".join(["5"] * liked))
    text = made.toml(tmp_path / "exp.toml")
    assert f"\n# usual_history = {usual} " in text
    assert "usual_history" not in made.settings()["method"]
    declared = tomllib.loads(text.replace("# usual_history", "usual_history"))
    assert declared["method"]["usual_history"] == usual
