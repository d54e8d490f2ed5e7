from __future__ import annotations

import gzip
import io
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from tacit.data.dataset import Dataset
from tacit.data.parsing import csv_rows, timestamps
from tacit.data.sources.listed_tables import ItemsTable, UsersTable
from tacit.data.sources.table import EventsTable
from tacit.data.strings import Strings
from tacit.errors import BadData, BadValue, MissingData

SHOP = """who,what,when,how much,name,kind
ann,7,1600000000,5,Lamp,light
bob,x,1600000001,2.5,"Chair, ""old"" one",
ann,x,1599999999,1e1,ignored,seat
ann,7,1600000002,-1,Other lamp,heavy
"""


def table(place: Path, text: str | bytes = SHOP, **columns) -> EventsTable:
    path = place / columns.pop("file", "shop.csv")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return EventsTable(path, **({"user": "who", "item": "what"} | columns))


def events(dataset: Dataset) -> list[tuple[str, str]]:
    log = dataset.interactions
    users, items = dataset.profiles.ids, dataset.catalog.ids
    return [(users[u], items[i]) for u, i in zip(log.users, log.items, strict=True)]


def test_user_and_item_are_enough(tmp_path):
    found = table(tmp_path).parse()
    assert found.name == "shop"
    assert events(found) == [("ann", "7"), ("ann", "x"), ("ann", "7"), ("bob", "x")]
    assert found.interactions.times is None
    assert found.interactions.values.tolist() == [1.0] * 4
    assert list(found.catalog.titles) == ["7", "x"]


def test_every_column(tmp_path):
    found = table(
        tmp_path, time="when", value="how much", title="name", item_columns=("kind",)
    ).parse()
    log = found.interactions
    assert events(found) == [("ann", "x"), ("ann", "7"), ("ann", "7"), ("bob", "x")]
    assert log.times.tolist() == [1599999999, 1600000000, 1600000002, 1600000001]
    assert log.values.tolist() == [10.0, 5.0, -1.0, 2.5]
    assert list(found.catalog.titles) == [
        "Lamp",
        'Chair, "old" one',
    ]  # the first counts
    kind = found.catalog.features["kind"]
    assert [kind[0], kind[1]] == ["light", "seat"]  # the first that is not blank


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\nbob", "\n\n\nbob"),  # blank lines are skipped
        lambda text: gzip.compress(text.encode()),
    ],
)
def test_the_same_table_written_otherwise(tmp_path, change):
    options = {"time": "when", "value": "how much", "title": "name"}
    plain = table(tmp_path, **options).parse()
    found = table(tmp_path, change(SHOP), file="other.csv", **options).parse()
    assert events(found) == events(plain)
    assert found.catalog.titles == plain.catalog.titles
    assert found.interactions.times.tolist() == plain.interactions.times.tolist()


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_or_given(tmp_path, mark):
    text = SHOP.replace("Chair, ", "Chair ").replace(",", mark)
    for given in (None, mark):
        assert len(events(table(tmp_path, text, delimiter=given).parse())) == 4


def test_the_delimiter_is_the_one_that_yields_the_columns(tmp_path):
    text = "who;what;a, b, c, d, e\nann;1;x\n"
    assert events(table(tmp_path, text).parse()) == [("ann", "1")]


def test_other_delimiters_must_be_given(tmp_path):
    text = "who what\nann 1\n"
    assert events(table(tmp_path, text, delimiter=" ").parse()) == [("ann", "1")]
    for mark in ("::", "<->"):
        assert (
            len(
                events(
                    table(
                        tmp_path, SHOP.replace(",", mark), delimiter=mark, file="m.csv"
                    ).parse()
                )
            )
            == 4
        )
    for mark in ("", "x" * 9):
        with pytest.raises(BadValue, match="one to 8 characters"):
            table(tmp_path, delimiter=mark)


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("0", 0),
        ("1600000000", 1600000000),
        ("1600000000.9", 1600000000),
        ("1.6e9", 1600000000),
        ("99999999999", 99999999999),
        ("1600000000999", 1600000000),
        ("2020-09-13", 1599955200),
        ("2020-09-13T12:26:40", 1600000000),
        ("2020-09-13 12:26:40.5", 1600000000),
        ("2020-09-13T12:26:40Z", 1600000000),
        ("2020-09-13T14:26:40+02:00", 1600000000),
    ],
)
def test_times_as_people_write_them(tmp_path, text, second):
    for others in ("", "a,b,5\n", "a,b,1970-01-01\n"):  # columns may mix
        shop = table(tmp_path, f"who,what,when\n{others}ann,7,{text}\n", time="when")
        assert shop.parse().interactions.times[-1] == second


@pytest.mark.parametrize(
    ("column", "text"),
    [
        *(("when", t) for t in ("-1", "nan", "inf", "1e14", "soon", "", "1969-12-31")),
        *(("when", t) for t in ("2020-13-01", "1,5", "0001-01-01T00:00:00+23:00")),
        *(("how much", t) for t in ("nan", "inf", "1e39", "", "x", "1,5")),
        *(("who", t) for t in ("",)),
        *(("what", t) for t in ("",)),
    ],
)
@pytest.mark.parametrize("batch", [2, 1 << 16])
def test_a_bad_field_is_named_with_its_line(tmp_path, column, text, batch, monkeypatch):
    monkeypatch.setattr(csv_rows, "_BATCH", batch)
    good = {
        "who": "ann",
        "what": "7",
        "when": "5",
        "how much": "1",
        "note": "two\nlines",
    }
    line = lambda row: ",".join(f'"{field}"' for field in row) + "\n"  # noqa: E731
    lines = [line(good), line(good.values()), "\n", line(good.values())]
    lines += [line((good | {column: text}).values()), line(good.values())]
    shop = table(tmp_path, "".join(lines), time="when", value="how much")
    with pytest.raises(BadData) as caught:
        shop.parse()
    # The header, two lines of text, a blank line, two lines of text.
    assert caught.value.line == 7
    assert column in str(caught.value)
    if text:
        assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", None, "is empty; it needs a line for each event"),
        ("\nwho,what\n", 1, "must name the columns"),
        ("who,what\n", None, "no lines after it"),
        ("who,what\n\n\n", None, "no lines after it"),
        ("who,what\nann,7\nann\n", 3, "1 fields, the header has 2"),
        ("who,what\nann,7\nann,7,8\n", 3, "3 fields, the header has 2"),
        ("who,what,who\nann,7,bob\n", 1, "two columns 'who'"),
        (
            "user;item\nann;7\n",
            1,
            "no columns 'who', 'what'; the columns are 'user', 'it",
        ),
        ("who,item\nann,7\n", 1, "no column 'what'; the columns are 'who', 'item'"),
        ('who,what\nann,7\nann,"7"8\n', 3, "check its quotation marks"),
        ('who,what\nann,7\nann,"7\nbob,8\n', 3, "check its quotation marks"),
        ("who,what\nann,7\nann," + "x" * 200_000 + "\n", 3, "larger than field limit"),
        (b"who,what\nann,7\nann,\xff\n", 3, "is not UTF-8"),
        ("who,what\nann,7\n".encode("utf-16"), 1, "is not UTF-8"),
        (gzip.compress(SHOP.encode())[:-12], None, "not a sound gzip file"),
        (b"\x1f\x8bnonsense", None, "not a sound gzip file"),
    ],
)
def test_a_malformed_table_is_named_with_its_line(tmp_path, text, line, problem):
    with pytest.raises(BadData) as caught:
        table(tmp_path, text).parse()
    assert caught.value.line == line
    assert problem in str(caught.value)


def test_batches_join(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_rows, "_BATCH", 3)
    lines = [f"u{n % 4},i{n % 5},{n},{'' if n < 5 else n}\n" for n in range(20)]
    text = "who,what,when,name\n" + "".join(lines)
    found = table(tmp_path, text, time="when", title="name").parse()
    assert list(found.catalog.titles) == ["5", "6", "7", "8", "9"]
    assert list(found.profiles.ids) == ["u0", "u1", "u2", "u3"]
    expected = sorted((n % 4, n) for n in range(20))
    assert events(found) == [(f"u{u}", f"i{n % 5}") for u, n in expected]


def test_a_table_is_kept_until_it_or_the_question_changes(tmp_path, monkeypatch):
    parsed, parse = [], EventsTable.parse
    monkeypatch.setattr(
        EventsTable, "parse", lambda t, **told: (parsed.append(t), parse(t, **told))[1]
    )
    cache = tmp_path / "cache"
    for _ in range(2):
        assert len(table(tmp_path).load(cache=cache).interactions) == 4
        os.utime(tmp_path / "shop.csv", ns=(1, 1))  # touched, which is no change
    assert len(parsed) == 1
    for _ in range(2):
        EventsTable(tmp_path / "shop.csv", user="who", item="what").load(cache=cache)
    assert len(parsed) == 1
    with (tmp_path / "shop.csv").open("a") as file:
        file.write("\n")  # a blank line, which is skipped: but it is another file
    os.utime(tmp_path / "shop.csv", ns=(1, 1))
    for _ in range(2):
        EventsTable(tmp_path / "shop.csv", user="who", item="what").load(cache=cache)
    assert len(parsed) == 2
    found = EventsTable(tmp_path / "shop.csv", user="who", item="kind", time="when")
    with pytest.raises(BadData, match="line 3: column 'kind' is blank"):
        found.load(cache=cache)


def test_a_missing_table_is_missing_data(tmp_path):
    for ask in (EventsTable.parse, EventsTable.load):
        with pytest.raises(MissingData, match="is not a file"):
            ask(EventsTable(tmp_path, user="a", item="b"))


# A declared catalog

LIST = """id,label,kind
x,Chair,seat
new,,light
7,Lamp,
"""


def declared(place: Path, text: str = LIST, **columns) -> EventsTable:
    (place / "items.csv").write_text(text)
    named = {"item": "id", "title": "label", "columns": ("kind",)} | columns
    return table(place, items=ItemsTable(place / "items.csv", **named))


def test_the_rows_of_an_items_table_are_the_catalog(tmp_path):
    found = declared(tmp_path).parse()
    assert list(found.catalog.ids) == ["x", "new", "7"]  # of the file, not of events
    assert list(found.catalog.titles) == ["Chair", "new", "Lamp"]
    kind = found.catalog.features["kind"]
    assert [kind[0], kind[1], kind[2]] == ["seat", "light", ""]
    assert events(found) == [("ann", "7"), ("ann", "x"), ("ann", "7"), ("bob", "x")]
    assert found.listed is found.catalog


def test_an_event_with_an_item_that_is_not_listed_is_left_out(tmp_path):
    """The item's id is nowhere in the data set, and everything else is as without."""
    without = table(tmp_path, time="when", value="how much").parse()
    shop = declared(tmp_path)
    letter = SHOP + "ann,letter 4711,1600000003,5,My own words,secret\n"
    (tmp_path / "shop.csv").write_text(letter)
    found = replace(shop, time="when", value="how much").parse()
    assert "letter 4711" not in list(found.catalog.ids)
    assert events(found) == events(without)
    log, same = found.interactions, without.interactions
    assert log.values.tolist() == same.values.tolist()
    assert log.times.tolist() == same.times.tolist()
    assert list(found.profiles.ids) == ["ann", "bob"]


def test_someone_with_nothing_that_is_listed_stays_with_no_event(tmp_path):
    found = declared(tmp_path, "id,label,kind\n7,Lamp,\n").parse()
    assert found.interactions.per_user.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("id,label,kind\nx,,\n\n7,,\nx,,\n", 5, "id='x' occurs twice"),
        ("id,label,kind\nx,,\n,Lamp,\n", 3, "column 'id' is blank"),
        ("id,label,kind\n", None, "no lines after it"),
        ("id,label\nx,Lamp\n", 1, "there is no column 'kind'"),
    ],
)
def test_a_bad_items_table_is_named_with_its_line(tmp_path, text, line, problem):
    with pytest.raises(BadData) as caught:
        declared(tmp_path, text).parse()
    assert caught.value.line == line
    assert "items.csv" in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize("batch", [2, 1 << 16])
def test_twins_are_found_across_batches(tmp_path, batch, monkeypatch):
    monkeypatch.setattr(csv_rows, "_BATCH", batch)
    text = "id,label,kind\n" + "".join(f"{i},,\n" for i in (0, 1, 2, 3, 1, 4))
    with pytest.raises(BadData, match="line 6: id='1' occurs twice"):
        declared(tmp_path, text).parse()


@pytest.mark.parametrize("twice", [{"title": "name"}, {"item_columns": ("kind",)}])
def test_two_sources_for_one_fact_are_refused(tmp_path, twice):
    with pytest.raises(BadValue, match="two sources for one fact"):
        replace(declared(tmp_path), **twice)


def test_a_change_of_the_items_table_makes_the_data_set_anew(tmp_path):
    cache, shop = tmp_path / "cache", declared(tmp_path)
    assert len(shop.load(cache=cache).catalog) == 3
    (tmp_path / "items.csv").write_text(LIST + "z,,\n")
    found = shop.load(cache=cache)
    assert list(found.catalog.ids) == ["x", "new", "7", "z"]
    assert list(found.listed.ids) == ["x", "new", "7", "z"]
    (tmp_path / "items.csv").unlink()
    with pytest.raises(MissingData, match=r"items\.csv is not a file"):
        shop.load(cache=cache)


ODD = """who,what,when
ann,7,1
,7,2
ann,,3
bob,x,soon
bob,x
bob,"x" y,4
"bob",x,5
"""


def test_bad_lines_are_left_out_and_counted_if_asked_for(tmp_path):
    found = table(tmp_path, ODD, time="when", skip_bad=True).parse()
    assert events(found) == [("ann", "7"), ("bob", "x")]
    assert found.interactions.times.tolist() == [1, 5]
    assert found.left_out.bad_lines == 5
    assert sorted(found.left_out.first) == [
        "line 3: column 'who' is blank",
        "line 4: column 'what' is blank",
        f"line 5: when='soon' must be {timestamps.EXPECTED}",
        "line 6: 2 fields, the header has 3",
        "line 7: ',' expected after '\"'; check its quotation marks",
    ]


def test_the_cache_knows_what_was_left_out(tmp_path):
    odd = table(tmp_path, ODD, time="when", skip_bad=True)
    first = odd.load(cache=tmp_path / "cache")
    again = odd.load(cache=tmp_path / "cache")
    assert list(again.left_out.first) == list(first.left_out.first)
    assert again.filtered(min_interactions=1).left_out.bad_lines == 5


def test_a_quotation_mark_that_is_never_closed_is_never_skipped(tmp_path):
    text = 'who,what\nann,7\nbob,"x\nann,8\nann,9\n'
    with pytest.raises(BadData, match="unexpected end of data") as caught:
        table(tmp_path, text, skip_bad=True).parse()
    assert caught.value.line == 3


def test_lines_that_are_all_bad_are_no_table(tmp_path):
    with pytest.raises(BadData, match=r"no line that can be used; .* line 2"):
        table(tmp_path, "who,what\n,7\n", skip_bad=True).parse()


def test_without_a_header_columns_have_numbers(tmp_path):
    text = "ann;7;Lamp, old\nbob;x;\n"
    options = {"user": "1", "item": "2", "title": "3", "header": False}
    found = table(tmp_path, text, **options).parse()
    assert events(found) == [("ann", "7"), ("bob", "x")]
    assert list(found.catalog.titles) == ["Lamp, old", "x"]
    with pytest.raises(BadData, match=r"there is no column '4'; .* called 1 to 3"):
        table(tmp_path, text, **(options | {"title": "4"})).parse()
    with pytest.raises(BadData, match="2 fields, the first line has 3") as caught:
        table(tmp_path, text + "bob;y\n", **options).parse()
    assert caught.value.line == 3


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "latin-1"])
def test_another_encoding_is_read_if_it_is_named(tmp_path, encoding):
    text = "who,what\nKäufer,Übung\n"
    found = table(tmp_path, text.encode(encoding), encoding=encoding).parse()
    assert events(found) == [("Käufer", "Übung")]
    with pytest.raises(BadData, match=r"line [12]"):
        table(tmp_path, text.encode(encoding)).parse()
    with pytest.raises(BadData, match="is not UTF-16"):
        table(tmp_path, text, encoding="utf-16").parse()


@pytest.mark.parametrize("encoding", ["", "klingon", "rot13", "zip"])
def test_an_encoding_that_is_none_is_refused(tmp_path, encoding):
    with pytest.raises(BadValue, match=r"encoding=.* is not known; use 'utf-8'"):
        table(tmp_path, encoding=encoding)


def test_quotation_marks_may_be_escaped(tmp_path):
    text = 'who,what,name\nann,7,"A \\"good\\" lamp"\n'
    with pytest.raises(BadData, match="quotation marks"):
        table(tmp_path, text, title="name").parse()
    found = table(tmp_path, text, title="name", escape="\\").parse()
    assert list(found.catalog.titles) == ['A "good" lamp']
    with pytest.raises(BadValue, match="must be one character"):
        table(tmp_path, escape="ab")


def test_a_zip_with_one_table_is_read(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("shop/events.csv", SHOP)
    assert len(events(table(tmp_path, packed.getvalue()).parse())) == 4


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("Who", "who"), (" who", "who"), ("howmuch", "how much"), ("hwo", "who")],
)
def test_a_wrong_column_gets_one_suggestion(tmp_path, asked, meant):
    with pytest.raises(BadData, match=f"did you mean '{meant}'. the columns are"):
        table(tmp_path, user=asked).parse()


def test_user_and_item_are_two_columns(tmp_path):
    with pytest.raises(BadValue, match="are one column; name two"):
        table(tmp_path, item="who")


def test_items_may_have_lists_and_texts(tmp_path):
    (tmp_path / "items.csv").write_text(
        "id,genres,story\n7,light|old ,A lamp.\nx,,\n", encoding="utf-8"
    )
    listed = ItemsTable(
        tmp_path / "items.csv", "id", lists=("genres",), texts=("story",)
    )
    features = table(tmp_path, items=listed).parse().catalog.features
    assert [features["genres"][0], features["genres"][1]] == [("light", "old"), ()]
    assert list(features["story"].texts) == ["A lamp.", ""]
    with pytest.raises(BadValue, match="'genres' is named twice"):
        replace(listed, columns=("genres",))
    with pytest.raises(BadValue, match="separator='' must be"):
        replace(listed, separator="")


def test_events_with_unlisted_items_are_counted(tmp_path):
    (tmp_path / "items.csv").write_text("id\n7\n")
    listed = ItemsTable(tmp_path / "items.csv", "id")
    found = table(tmp_path, items=listed).parse()
    assert found.left_out.unlisted == 2
    assert not found.left_out.bad_lines


def test_users_may_have_a_table(tmp_path):
    (tmp_path / "users.csv").write_text("id,plan\nbob,free\nzoe,paid\n")
    known = UsersTable(tmp_path / "users.csv", "id", columns=("plan",))
    shop = table(tmp_path, users=known)
    profiles = shop.parse().profiles
    plan = profiles.features["plan"]
    rows = {name: plan[row] for row, name in enumerate(profiles.ids)}
    assert rows == {"ann": "", "bob": "free"}
    before = shop.load(cache=tmp_path / "cache")
    (tmp_path / "users.csv").write_text("id,plan\nbob,paid\n")
    after = shop.load(cache=tmp_path / "cache")
    assert before.profiles.features["plan"][1] == "free"
    assert after.profiles.features["plan"][1] == "paid"


def test_labels_of_users_may_be_declared(tmp_path):
    """They are sorted as those that occur are, and a value must be one of them."""
    (tmp_path / "users.csv").write_text("id,plan\nbob,free\nzoe,paid\n")
    known = UsersTable(tmp_path / "users.csv", "id", columns=("plan",))
    labels = {"plan": ("trial", "paid", "free")}
    found = replace(known, labels=labels).parse(Strings.of(["bob", "ann"]))["plan"]
    assert [*found.labels] == ["free", "paid", "trial"]
    assert found.codes.tolist() == [0, -1]
    assert len(replace(known, labels=labels).nobody()["plan"]) == 0
    with pytest.raises(BadData, match="'plan' has 'free', and its labels are paid"):
        replace(known, labels={"plan": ("paid",)}).parse(Strings.of(["bob"]))
    with pytest.raises(BadValue, match="labels='plam'"):
        replace(known, labels={"plam": ("paid",)})
    for wrong in ((), ("",), ("paid", "paid")):
        with pytest.raises(BadValue, match="labels of 'plan' must be"):
            replace(known, labels={"plan": wrong})


def test_what_is_known_of_other_users_is_not_kept(tmp_path):
    """Whoever is not asked for may be listed twice: nobody remembers the first time."""
    (tmp_path / "users.csv").write_text("id,plan\nzoe,free\nbob,free\nzoe,paid\n")
    known = UsersTable(tmp_path / "users.csv", "id", columns=("plan",))
    ids = Strings.of(["bob"])
    found = known.parse(ids, keep=lambda user: user == "bob")
    assert found["plan"][0] == "free"
    with pytest.raises(BadData, match="'zoe' occurs twice"):
        known.parse(ids)
    assert known.parse(ids, keep=lambda user: False)["plan"][0] == ""
    shop = table(tmp_path, users=known)
    kept = shop.parse(keep=lambda user: user == "bob").profiles
    assert [*kept.ids] == ["bob"]


def test_a_matrix_is_a_table(tmp_path):
    text = "who,Lamp,Chair\nann,1,2\nbob,0,3\n"
    found = table(tmp_path, text, item="", matrix=True).parse()
    assert events(found) == [("ann", "Lamp"), ("ann", "Chair"), ("bob", "Chair")]
    assert found.interactions.values.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(BadData, match="line 3: column 'Lamp': 'x' must be a finite"):
        table(tmp_path, text.replace("0", "x"), item="", matrix=True).parse()
    with pytest.raises(BadValue, match="leave out item, time, value, title"):
        table(tmp_path, matrix=True)
    with pytest.raises(BadValue, match="item is missing"):
        table(tmp_path, item="")


def test_parquet_and_csv_are_the_same_data(tmp_path):
    options = {"time": "when", "value": "how much", "title": "name"}
    plain = table(tmp_path, **options).parse()
    read = pyarrow.csv.read_csv(tmp_path / "shop.csv")
    pyarrow.parquet.write_table(read, tmp_path / "shop.parquet")
    found = EventsTable(tmp_path / "shop.parquet", "who", "what", **options).parse()
    assert events(found) == events(plain)
    assert found.catalog.titles == plain.catalog.titles
    assert found.interactions.times.tolist() == plain.interactions.times.tolist()
    assert found.interactions.values.tolist() == plain.interactions.values.tolist()


SHOWN = """who,what,slate,clicked,when
ann,a,1,0,5
ann,b,1,1,5
bob,a,1,1,6
ann,c,2,1,9
ann,b,2,0,9
"""


def test_a_table_may_tell_what_was_shown(tmp_path):
    options = {"impression": "slate", "value": "clicked", "time": "when"}
    found = table(tmp_path, SHOWN, **options).parse()
    assert events(found) == [("ann", "b"), ("ann", "c"), ("bob", "a")]
    shown, ids = found.impressions, found.catalog.ids
    rows = [[ids[i] for i in row] for row in shown.slates.shown]
    assert rows == [["a", "b"], ["c", "b"], ["a"]]
    assert shown.clicked.tolist() == [False, True, True, False, True]
    assert shown.slates.times.tolist() == [5, 9, 6]
    with pytest.raises(BadData, match="line 2: column 'slate' is blank"):
        table(tmp_path, SHOWN.replace("ann,a,1", "ann,a,"), **options).parse()
    with pytest.raises(BadValue, match="impression='slate' needs value"):
        table(tmp_path, SHOWN, impression="slate")
