"""Six kinds of table as people have them, each from file to report in three commands.

They have the faults of published ones: quotation marks after a backslash, lines
without an id, no header, titles in a second table, a matrix, and 390,000 users. Nobody
edits the experiment in between.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.init_table import COLUMNS, write_table

USERS, ITEMS = 60, 12
EVENTS = [(u, (u + i * i) % ITEMS, 1 + i % 5) for u in range(USERS) for i in range(8)]


def escaped(place: Path) -> tuple[object, ...]:
    r"""Titles such as "The \"best\" lamp, ever"."""
    lines = [f'u{u},{i},"The \\"best\\" lamp, no. {i}"\n' for u, i, _ in EVENTS]
    (place / "t.csv").write_text("".join(["user,item,name\n", *lines]))
    return (
        *("t.csv", "--user", "user", "--item", "item", "--title", "name"),
        *("--escape", "\\"),
    )


def blank_ids(place: Path) -> tuple[object, ...]:
    """Two lines without an id: one of the user, one of the item."""
    lines = [f"u{u};i{i}\n" for u, i, _ in EVENTS]
    lines[7], lines[90] = ";i3\n", "u11;\n"
    (place / "t.csv").write_text("".join(["user;item\n", *lines]))
    return "t.csv", "--user", "user", "--item", "item", "--skip-bad"


def no_header(place: Path) -> tuple[object, ...]:
    lines = [f"{u}\t{i}\t{s}\t{1_600_000_000 + u}\n" for u, i, s in EVENTS]
    (place / "t.data").write_text("".join(lines))
    return (
        *("t.data", "--no-header", "--user", 1, "--item", 2, "--value", 3),
        *("--time", 4, "--min-value", 3),
    )


def separate_titles(place: Path) -> tuple[object, ...]:
    """The id has another name there, and one item has no event."""
    lines = [f"u{u},{i}\n" for u, i, _ in EVENTS]
    (place / "t.csv").write_text("".join(["user,movie\n", *lines]))
    titles = [f"{i},Film no. {i},drama|war\n" for i in range(ITEMS + 1)]
    (place / "films.csv").write_text("".join(["id,title,genres\n", *titles]))
    return (
        *("t.csv", "--user", "user", "--item", "movie", "--items", "films.csv"),
        *("--items-id", "id", "--title", "title"),
    )


def matrix(place: Path) -> tuple[object, ...]:
    held = {(u, i): s for u, i, s in EVENTS}
    rows = [
        ",".join([f"u{u}", *(str(held.get((u, i), "")) for i in range(ITEMS))]) + "\n"
        for u in range(USERS)
    ]
    head = ",".join(["user", *(f"item {i}" for i in range(ITEMS))]) + "\n"
    (place / "t.csv").write_text("".join([head, *rows]))
    return "t.csv", "--user", "user", "--matrix"


def many_users(place: Path) -> tuple[object, ...]:
    write_table(place / "t.csv", users=390_000, lines=1_000_000, items=2_000)
    return "t.csv", *COLUMNS


def from_file_to_report(tacit, place: Path, options: tuple[object, ...]) -> str:
    """The three commands; gives what init has said on its error stream."""
    made = tacit("init", *options)
    assert made.code == 0, made.err
    trained = tacit("train", "exp.toml", "--out", "run")
    assert trained.code == 0, trained.err
    shown = tacit("report", "run")
    assert shown.code == 0, shown.err
    page = (place / shown.out.strip()).read_text(encoding="utf-8")
    assert re.search(r"<h1|<title", page)
    assert "gram" in page
    return made.err


@pytest.mark.parametrize(
    "kind", [escaped, blank_ids, no_header, separate_titles, matrix]
)
def test_a_small_table_of_each_kind(tacit, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    from_file_to_report(tacit, tmp_path, kind(tmp_path))


def test_what_each_fault_became(tacit, tmp_path, monkeypatch):
    """Titles without their backslashes, bad lines counted and listed."""
    monkeypatch.chdir(tmp_path)
    said = tacit("init", *blank_ids(tmp_path)).err
    assert "left out: line 9: column 'user' is blank" in said
    assert "left out: line 92: column 'item' is blank" in said
    assert "2 bad lines were left out" in said
    tacit("init", *escaped(tmp_path), "--force")
    assert tacit("train", "exp.toml", "--out", "run").code == 0
    listed = tacit("recommend", "run", "--user", "u7", "--json").json["items"]
    assert listed[0]["title"].startswith('The "best" lamp, no. ')
    found = tacit("init", *no_header(tmp_path), "--force", "--json").json
    kept = [1 for _, _, stars in EVENTS if stars >= 3]
    assert found["interactions"] == len(kept)
    found = tacit("init", *separate_titles(tmp_path), "--force", "--json").json
    assert found["items"] == ITEMS + 1


@pytest.mark.slow
def test_390_000_users(tacit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = from_file_to_report(tacit, tmp_path, many_users(tmp_path))
    assert "of 390,000 users have fewer than 2 items that count" in said
    assert re.search(r"delta = [1-9.]+e-08", (tmp_path / "exp.toml").read_text())
