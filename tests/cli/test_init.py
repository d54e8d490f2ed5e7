"""Three commands, as a new user would, on a table with foreign column names."""

import pytest


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        f"Käufer {p};Produkt {(p + i * i) % 12};Ding Nr. {(p + i * i) % 12};"
        f"{1 + i % 5};"
        f"2024-03-{1 + i:02}T10:00:00"
        for p in range(60)
        for i in range(8)
    ]
    head = "Kunde;Artikel;Bezeichnung;Sterne;Zeitpunkt\n"
    (tmp_path / "kauf.csv").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "kauf.csv"


NAMES = ("--user", "Kunde", "--item", "Artikel", "--title", "Bezeichnung")


def test_three_commands(tacit, table):
    made = tacit("init", "--csv", table, *NAMES, "--time", "Zeitpunkt")
    assert made.code == 0, made.err
    assert "tacit train exp.toml" in made.out
    trained = tacit("train", "exp.toml", "--out", "run")
    assert trained.code == 0, trained.err
    listed = tacit("recommend", "run", "--user", "Käufer 7", "--json").json
    assert listed["items"][0]["title"].startswith("Ding Nr. ")
    assert listed["items"][0]["id"].startswith("Produkt ")


def test_the_file_explains_itself(tacit, table):
    tacit("init", "--csv", table, *NAMES, "--value", "Sterne", "--min-value", 3)
    text = table.with_name("exp.toml").read_text(encoding="utf-8")
    assert "min_value = 3" in text
    assert 'path = "kauf.csv"' in text
    assert "480 lines, 60 users, 12 items" in text


def test_a_column_that_is_not_there_lists_those_that_are(tacit, table):
    answer = tacit("init", "--csv", table, "--user", "customer", "--item", "Artikel")
    assert answer.code == 2
    assert "Kunde" in answer.err
    assert not table.with_name("exp.toml").exists()


def test_a_file_that_is_there_is_kept(tacit, table):
    table.with_name("exp.toml").write_text("mine")
    answer = tacit("init", "--csv", table, *NAMES)
    assert answer.code == 2
    assert "--force" in answer.err
    assert table.with_name("exp.toml").read_text() == "mine"
    assert (
        tacit("init", "--csv", table, *NAMES, "--force", "--json").json["users"] == 60
    )


def test_baselines_fit_the_catalog(tacit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"u{i % 7},i{i}\n" for i in range(10_050))
    (tmp_path / "t.csv").write_text("user,item\n" + lines)
    named = ("--user", "user", "--item", "item")
    made = tacit("init", "--csv", "t.csv", *named)
    assert made.code == 0, made.err
    text = (tmp_path / "exp.toml").read_text()
    assert 'baselines = ["random", "popularity", "item_knn"]  # EASE is dense' in text
