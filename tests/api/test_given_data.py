"""What a caller gives becomes an experiment, or an error that says what to do."""

import math
import re

import numpy as np
import pytest
import tomli_w

from tacit.api.given_data import Columns, given_data
from tacit.data.sources.frame import read_frame
from tacit.errors import BadData, BadExperiment, BadValue, MissingData

NAMED = Columns(user="customer", item="product")


def test_a_table_becomes_what_init_would_propose(shop):
    found = given_data(shop, NAMED).experiment()
    assert found.method_name == "gram"
    assert found.privacy.target_epsilon == 4.0
    assert found.table.path.exists()


def test_the_usual_names_need_not_be_said(shop):
    usual = {"user": shop["customer"], "item": shop["product"]}
    assert given_data(usual, Columns()).experiment().table.user == "user"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_every_kind_are_the_same(shop, library):
    frame = pytest.importorskip(library).DataFrame(shop)
    found, plain = (given_data(one, NAMED).experiment() for one in (frame, shop))
    ours, theirs = found.table.load(), plain.table.load()
    assert [*ours.catalog.ids] == [*theirs.catalog.ids]
    assert ours.interactions.items.tolist() == theirs.interactions.items.tolist()
    assert found.resolved()["run"] == plain.resolved()["run"]


def test_a_matrix_has_no_columns_to_name():
    matrix = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]] * 3)
    found = given_data(matrix, Columns()).experiment()
    assert (found.table.user, found.table.item) == ("user", "item")
    with pytest.raises(BadValue, match="names a column"):
        given_data(matrix, NAMED)


def test_a_file_is_read_where_it_is(shop, tmp_path):
    pairs = zip(shop["customer"], shop["product"], strict=True)
    lines = ["customer,product", *(f"{user},{item}" for user, item in pairs)]
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    (tmp_path / "list.csv").write_text(
        "product,name\n" + "".join(f"p{n},Tea {n}\n" for n in range(24))
    )
    found = given_data(tmp_path / "shop.csv", NAMED).experiment()
    assert found.table.path == (tmp_path / "shop.csv").resolve()
    listed = Columns("customer", "product", title="name", items=tmp_path / "list.csv")
    found = given_data(str(tmp_path / "shop.csv"), listed).experiment()
    assert found.table.items.title == "name"
    with pytest.raises(BadValue, match="a frame for both"):
        given_data(tmp_path / "shop.csv", Columns(items=shop))


def test_a_table_that_was_read_with_more_options_is_taken(shop):
    table = read_frame(shop, user="customer", item="product", title="name")
    assert given_data(table, Columns()).experiment().table.title == "name"
    with pytest.raises(BadValue, match="user='x' belongs to a table"):
        given_data(table, Columns(user="x"))


def test_an_experiment_keeps_its_paths_wherever_it_is_read(tmp_path, monkeypatch):
    (tmp_path / "table.csv").write_text("who,what\na,x\na,y\n")
    table = {"path": "table.csv", "user": "who", "item": "what"}
    sections = {
        "data": {"source": "table", "table": table},
        "method": {"name": "gram"},
    }
    (tmp_path / "exp.toml").write_text(tomli_w.dumps(sections))
    monkeypatch.chdir("/")
    found = given_data(tmp_path / "exp.toml", Columns())
    assert found.table["data"]["table"]["path"] == str(tmp_path / "table.csv")
    assert found.experiment().table.path == tmp_path / "table.csv"
    with pytest.raises(BadValue, match="item='x' belongs to a table"):
        given_data(tmp_path / "exp.toml", Columns(item="x"))


def test_method_target_and_sections_are_changed(shop):
    given = given_data(shop, NAMED)
    found = given.changed(
        method={"name": "dpals", "factors": 4},
        epsilon=1,
        settings={"run": {"rounds": 2}},
    ).experiment()
    assert (found.method_name, found.method.factors) == ("dpals", 4)
    assert (found.privacy.target_epsilon, found.run.rounds) == (1.0, 2)
    assert given.experiment().method_name == "gram"
    assert given.changed(epsilon=math.inf).experiment().privacy.mechanism == "none"


def test_a_target_turns_privacy_on_where_a_few_users_have_none():
    few = {"user": [*"aabbcc"], "item": [*"xyxzyz"]}
    given = given_data(few, Columns())
    assert given.experiment().privacy.mechanism == "none"
    found = given.changed(epsilon=2).experiment()
    assert (found.privacy.mechanism, found.privacy.target_epsilon) == ("central", 2.0)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, -math.inf, "4", True])
def test_a_target_that_is_none_says_what_is_allowed(shop, epsilon):
    with pytest.raises(BadValue, match=r"epsilon=.* must be .*math\.inf"):
        given_data(shop, NAMED).changed(epsilon=epsilon)


@pytest.mark.parametrize(
    ("data", "columns", "kind", "said"),
    [
        (3, NAMED, BadValue, "events is of type int; needed is a pandas"),
        (None, NAMED, BadValue, "type NoneType"),
        ([1, 2], NAMED, BadValue, "type list"),
        ("nowhere.csv", NAMED, MissingData, "is not a file"),
        ("nowhere.toml", Columns(), BadExperiment, "no such file"),
        ({"who": ["a"]}, Columns(user="whom", item="x"), BadData, "whom"),
        ({"data": {"source": "table"}}, NAMED, BadValue, "leave it out"),
    ],
)
def test_what_cannot_be_data_says_what_to_do(data, columns, kind, said):
    pytest.importorskip("pyarrow")
    with pytest.raises(kind, match=said):
        given_data(data, columns)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"run": 5}, "settings['run']=5 must be a table"),
        ({"runs": {"rounds": 5}}, "did you mean 'run'"),
        ({"run": {"round": 5}}, "did you mean 'rounds'"),
    ],
)
def test_settings_are_checked(shop, settings, said):
    with pytest.raises(BadValue, match=re.escape(said)):
        given_data(shop, NAMED).changed(settings=settings).experiment()
