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
    made = tacit("init", table, *NAMES, "--time", "Zeitpunkt")
    assert made.code == 0, made.err
    assert "tacit train exp.toml" in made.out
    trained = tacit("train", "exp.toml", "--out", "run")
    assert trained.code == 0, trained.err
    listed = tacit("recommend", "run", "--user", "Käufer 7", "--json").json
    assert listed["items"][0]["title"].startswith("Ding Nr. ")
    assert listed["items"][0]["id"].startswith("Produkt ")


def test_the_file_explains_itself(tacit, table):
    tacit("init", table, *NAMES, "--value", "Sterne", "--min-value", 3)
    text = table.with_name("exp.toml").read_text(encoding="utf-8")
    assert "min_value = 3" in text
    assert 'path = "kauf.csv"' in text
    assert "240 lines, 60 users, 12 items" in text


def test_a_column_that_is_not_there_lists_those_that_are(tacit, table):
    answer = tacit("init", table, "--user", "customer", "--item", "Artikel")
    assert answer.code == 2
    assert "Kunde" in answer.err
    assert not table.with_name("exp.toml").exists()


def test_a_file_that_is_there_is_kept(tacit, table):
    table.with_name("exp.toml").write_text("mine")
    answer = tacit("init", table, *NAMES)
    assert answer.code == 2
    assert "--force" in answer.err
    assert table.with_name("exp.toml").read_text() == "mine"
    assert tacit("init", table, *NAMES, "--force", "--json").json["users"] == 60


def test_baselines_fit_the_catalog(tacit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"u{i % 7},i{i}\n" for i in range(10_050))
    (tmp_path / "t.csv").write_text("user,item\n" + lines)
    named = ("--user", "user", "--item", "item")
    made = tacit("init", "t.csv", *named)
    assert made.code == 0, made.err
    text = (tmp_path / "exp.toml").read_text()
    assert 'baselines = ["random", "popularity", "item_knn"]  # EASE is dense' in text


def test_numbers_are_those_after_the_filter(tacit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    many = "".join(f"u{i},i{i % 7},5\nu{i},i{i % 5},5\n" for i in range(600))
    once = "".join(f"once{i},i1,5\n" for i in range(40_000))
    (tmp_path / "t.csv").write_text("user,item,stars\n" + many + once)
    made = tacit("init", "t.csv", "--user", "user", "--item", "item", "--json")
    found = made.json
    assert found["users"] < 600  # who has one item twice is left out, too
    assert any("have fewer than 2 items" in note for note in found["notes"])
    assert "delta = 1e-06" in (tmp_path / "exp.toml").read_text()


def test_a_scale_without_a_threshold_is_told(tacit, table):
    made = tacit("init", table, *NAMES, "--value", "Sterne")
    assert made.code == 0, made.err
    told = made.err.replace("\n", " ")
    assert "every line counts as liking, also one with Sterne = 1" in told
    assert "--min-value 3 would keep 50% of the lines" in told
    assert "# min_value = 3 " in table.with_name("exp.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--min-value", "3"), "--min-value 3 needs --value"),
        (("--group", "plan"), "--group names a column of --users"),
        (("--encoding", "klingon"), "encoding='klingon' is not known"),
        (("--delimiter", ""), "delimiter='' must be"),
        (("--time", "zeitpunkt"), "did you mean 'Zeitpunkt'?"),
        (("--items", "nowhere.csv"), "nowhere.csv is not a file"),
    ],
)
def test_bad_options_write_nothing(tacit, table, options, problem):
    made = tacit("init", table, *NAMES, *options)
    assert made.code == 2
    assert problem in made.err.replace("\n", " ")
    assert not table.with_name("exp.toml").exists()


def test_user_and_item_must_differ(tacit, table):
    made = tacit("init", table, "--user", "Kunde", "--item", "Kunde")
    assert made.code == 2
    assert "are one column; name two" in made.err


def test_bad_lines_are_shown_by_init_and_by_train(tacit, table):
    with table.open("a", encoding="utf-8") as file:
        file.write(";Produkt 1;x;1;2024-03-01\n")
    refused = tacit("init", table, *NAMES)
    assert refused.code == 2
    assert "line 482: column 'Kunde' is blank" in refused.err
    made = tacit("init", table, *NAMES, "--skip-bad", "--json")
    assert made.code == 0, made.err
    told = "1 bad line was left out, the first: line 482: column 'Kunde' is blank"
    assert made.json["notes"][0] == told
    assert made.json["bad_lines"] == ["line 482: column 'Kunde' is blank"]
    assert "skip_bad = true" in table.with_name("exp.toml").read_text("utf-8")
    assert told in tacit("train", "exp.toml", "--out", "run").err.replace("\n", " ")


def test_bad_lines_are_counted_and_listed(tacit, table):
    with table.open("a", encoding="utf-8") as file:
        file.write(";Produkt 1;x;1;2024-03-01\n" * 25)
    said = tacit("init", table, *NAMES, "--skip-bad").err.splitlines()
    left_out = [line for line in said if line.startswith("left out: ")]
    assert left_out[0] == "left out: line 482: column 'Kunde' is blank"
    assert len(left_out) == 21
    assert left_out[-1] == "left out: … and 5 more"
    assert any("25 bad lines were left out" in line for line in said)


@pytest.mark.parametrize("given", [(), ("--user", "Kunde"), ("--item", "Artikel")])
def test_columns_that_are_not_named_are_listed(tacit, table, given):
    answer = tacit("init", table, *given)
    assert answer.code == 2
    assert "is missing" in answer.err
    assert "the columns are 'Kunde', 'Artikel', 'Bezeichnung'" in answer.err


def test_a_matrix_from_file_to_report(tacit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    items = [f"film {i}" for i in range(9)]
    lines = [
        ",".join([f"u{u}", *("5" if (u + i) % 3 else "" for i in range(9))])
        for u in range(60)
    ]
    (tmp_path / "m.csv").write_text("\n".join([",".join(["who", *items]), *lines]))
    made = tacit("init", "m.csv", "--user", "who", "--matrix")
    assert made.code == 0, made.err
    assert "360 lines, 60 users, 9 items" in made.out
    assert tacit("train", "exp.toml", "--out", "run").code == 0
    assert (tmp_path / "run" / "report.html").exists()


def test_impressions_from_file_to_report(tacit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        f"u{u},n{(u + 3 * k + i) % 11},{u}-{k},{int(i == 0)},{1_600_000_000 + 3600 * k}"
        for u in range(40)
        for k in range(10)
        for i in range(4)
    ]
    text = "\n".join(["who,what,slate,clicked,when", *lines])
    (tmp_path / "shown.csv").write_text(text)
    named = ("--user", "who", "--item", "what", "--value", "clicked")
    shown = ("--impression", "slate", "--time", "when")
    refused = tacit("init", "shown.csv", *named, *shown[:2])
    assert refused.code == 2
    assert "needs the column with the time" in refused.err
    made = tacit("init", "shown.csv", *named, *shown)
    assert made.code == 0, made.err
    assert "400 impressions, 40 users, 11 items" in made.out
    trained = tacit("train", "exp.toml", "--out", "run")
    assert trained.code == 0, trained.err
    assert "auc" in trained.out
