from __future__ import annotations

from pathlib import Path

import pytest

from tacit.data.sources.table import EventsTable
from tacit.errors import BadValue
from tacit.experiment.proposal import Proposal


def proposal(place: Path, values: str, **options) -> Proposal:
    """Two users with one event of each value, on different items."""
    lines = [
        f"u{u},i{i},{value}" for u in (1, 2) for i, value in enumerate(values.split())
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
    assert made.found() == "4 lines, 2 users, 2 items"
    assert made.planned == 2
    assert proposal(tmp_path, "1 2", population=9000).planned == 9000


@pytest.mark.parametrize(
    ("user", "shown"),
    [("u7", "u7"), ("Ann O'Hara", r"'Ann O'\''Hara'"), ("-x", "'-x'")],
)
def test_the_user_of_the_example_can_be_pasted(tmp_path, user, shown):
    (tmp_path / "t.csv").write_text(f"user,item\n{user},1\n{user},2\n")
    table = EventsTable(tmp_path / "t.csv", "user", "item")
    text = Proposal(table, table.parse()).toml(tmp_path / "exp.toml")
    assert f"--user {shown}\n" in text


@pytest.mark.parametrize(("items", "first"), [(9, 5), (60, 20), (600, 100)])
def test_lists_are_no_longer_than_the_catalog_warrants(tmp_path, items, first):
    made = proposal(tmp_path, " ".join(["5"] * items))
    assert f'metrics = ["ndcg@{first}", ' in made.toml(tmp_path / "exp.toml")
