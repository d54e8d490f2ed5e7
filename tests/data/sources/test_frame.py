from __future__ import annotations

import sys
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from tacit.data import cache as cached
from tacit.data.sources.frame import read_frame
from tacit.data.sources.table import EventsTable
from tacit.errors import BadData, BadValue, MissingData, MissingExtra
from tacit.experiment.proposal import Proposal
from tacit.experiment.settings import check_experiment, read_experiment
from tacit.experiment.training import train

SHOP = {
    "who": ["ann", "bob", "ann"],
    "what": [7, 9, 9],
    "when": [datetime(2024, 3, day, tzinfo=UTC) for day in (2, 1, 1)],
    "stars": [5.0, 2.5, 1.0],
    "name": ["Lamp", "Chair", None],
}
ITEMS = {"sku": [9, 8], "label": ["Chair", "Desk"], "room": ["office", "office"]}
USERS = {"who": ["bob", "ann"], "plan": ["free", "paid"]}
COLUMNS = {"user": "who", "item": "what", "time": "when", "value": "stars"}


class Interchanged:
    """A frame that speaks the older interchange only."""

    def __init__(self, columns):
        self._frame = pa.table(columns)

    def __dataframe__(self, **options):
        return self._frame.__dataframe__(**options)


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "mapping": dict,
}


def told(dataset):
    log = dataset.interactions
    users, items = dataset.profiles.ids, dataset.catalog.ids
    return [(users[u], items[i]) for u, i in zip(log.users, log.items, strict=True)]


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_is_what_its_file_would_be(tmp_path, frame):
    path = tmp_path / "shop.csv"
    pd.DataFrame(SHOP).to_csv(path, index=False)
    file = EventsTable(path, title="name", **COLUMNS).load()
    found = read_frame(frame(SHOP), title="name", name="shop", **COLUMNS).load()
    assert found.name == file.name == "shop"
    assert told(found) == told(file)
    assert found.interactions.times.tolist() == file.interactions.times.tolist()
    assert found.interactions.values.tolist() == file.interactions.values.tolist()
    assert [*found.catalog.titles] == [*file.catalog.titles] == ["Lamp", "Chair"]


def test_equal_frames_of_any_kind_are_one_table():
    """A run that was begun with one can be resumed with the other."""
    numbers = {"who": [1, 2, 3], "what": [4, 5, 6]}
    paths = {
        read_frame(frame(numbers), user="who", item="what").path
        for frame in FRAMES.values()
    }
    assert len(paths) == 1


def test_the_older_interchange_is_read_as_well():
    kept = {name: SHOP[name] for name in ("who", "what", "stars")}
    found = read_frame(Interchanged(kept), user="who", item="what", value="stars")
    assert len(found.load().interactions) == 3


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames_of_items_and_users(frame):
    found = read_frame(
        frame(SHOP),
        user="who",
        item="what",
        items=frame(ITEMS),
        items_id="sku",
        title="label",
        item_columns=["room"],
        users=frame(USERS),
        groups=["plan"],
    ).load()
    assert [*found.catalog.titles] == ["Chair", "Desk"]
    assert found.catalog.features["room"][1] == "office"
    assert [found.profiles.features["plan"][row] for row in (0, 1)] == ["paid", "free"]
    assert found.left_out.unlisted == 1  # the lamp is not in the list


def test_categories_and_texts_of_polars():
    frame = pl.DataFrame(SHOP).with_columns(pl.col("who").cast(pl.Categorical))
    assert told(read_frame(frame, user="who", item="what").load())[0] == ("ann", "7")


def test_a_frame_that_is_a_matrix():
    frame = pd.DataFrame({"who": ["ann", "bob"], "lamp": [1, 0], "chair": [3, np.nan]})
    found = read_frame(frame, user="who", matrix=True).load()
    assert told(found) == [("ann", "lamp"), ("ann", "chair")]
    assert found.interactions.values.tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_array]
)
def test_a_matrix_of_scipy_or_numpy(kind):
    dense = np.array([[0, 2.5, 0], [1, 0, 4]])
    found = read_frame(kind(dense)).load()
    assert told(found) == [("0", "1"), ("1", "0"), ("1", "2")]
    assert found.interactions.values.tolist() == [2.5, 1.0, 4.0]
    named = read_frame(kind(dense), user_ids=["ann", "bob"], item_ids=["a", "b", "c"])
    assert told(named.load()) == [("ann", "b"), ("bob", "a"), ("bob", "c")]


def test_entries_of_a_matrix_that_repeat_are_one_event():
    twice = sp.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    found = read_frame(twice).load()
    assert told(found) == [("0", "1")]
    assert found.interactions.values.tolist() == [3.0]
    assert twice.nnz == 3  # the caller's matrix stays as it was


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"user": "Who ", "item": "what"}, "no column 'Who '; did you mean 'who'?"),
        ({"user": "who", "item": "who"}, "are one column; name two"),
        ({"user": "who"}, "user and item are missing"),
        ({"user": "who", "item": "what", "name": "a/b"}, "name='a/b' must be a word"),
        ({"user": "who", "item": "what", "value": "name"}, r"row 0 \(from 0\): name="),
        ({"user": "who", "item": "what", "groups": ["x"]}, "give that frame, too"),
        ({"user": "who", "item": "what", "user_ids": ["a"]}, "of a frame name"),
        ({"user": "who", "item": "what", "users": 3}, "users is of type int"),
    ],
)
def test_what_does_not_fit_is_refused_as_in_a_file(options, message):
    with pytest.raises((BadData, BadValue), match=message):
        read_frame(pl.DataFrame(SHOP), **options)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([1, 2], "events is of type list; needed is a pandas or polars DataFrame"),
        (pd.DataFrame({"who": ["a", 3], "what": [1, 2]}), "give each column one type"),
        (pd.DataFrame({"who": [None, 3], "what": [1, 2]}), "row 0 .*'who' is blank"),
        (pd.DataFrame({"who": [], "what": []}), "has a header and no lines"),
    ],
)
def test_frames_that_cannot_be_used(events, message):
    with pytest.raises((BadData, BadValue), match=message):
        read_frame(events, user="who", item="what")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"user": "x"}, "user='x' names a column, and a matrix .* has none"),
        ({"user_ids": ["a"]}, "user_ids has 1 ids"),
        ({"item_ids": ["a", "a"]}, "1 of them different; the matrix needs 2"),
    ],
)
def test_options_that_a_matrix_does_not_have(options, message):
    with pytest.raises(BadValue, match=message):
        read_frame(np.eye(2), **options)


@pytest.mark.parametrize("events", [np.ones(3), np.array([["a"]]), np.eye(2) * 1j])
def test_arrays_that_are_no_matrix_of_numbers(events):
    with pytest.raises(BadValue, match="one row per user and one column per item"):
        read_frame(events)


def test_bad_rows_can_be_left_out():
    frame = pd.DataFrame({"who": ["a", None, "b"], "what": [1, 2, 3]})
    found = read_frame(frame, user="who", item="what", skip_bad=True).load()
    assert found.left_out.bad_lines == 1


def test_without_pyarrow_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"\[tables\]"):
        read_frame(SHOP, user="who", item="what")


def test_files_of_frames_are_for_their_owner_alone():
    path = read_frame(SHOP, user="who", item="what").path
    assert path.stat().st_mode & 0o077 == 0
    assert (path.parents[1] / "key").stat().st_mode & 0o077 == 0


def test_a_frame_that_is_gone_must_be_handed_over_again(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path))
    table = read_frame(SHOP, user="who", item="what")
    assert table.path.is_relative_to(cached.frames(tmp_path))
    table.path.unlink()
    with pytest.raises(MissingData, match="hand it over again"):
        table.load()


def test_a_run_learns_from_a_frame_and_knows_its_users_later(tmp_path):
    """With users of two public groups: the run's files must be able to name them."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"who": np.repeat(np.arange(40), 6), "what": draw.integers(0, 12, 240)}
    )
    users = pl.DataFrame({"who": range(40), "plan": ["free", "paid"] * 20})
    table = read_frame(frame, user="who", item="what", users=users, groups=["plan"])
    settings = Proposal(table, table.load()).settings()
    assert settings["data"]["table"]["users"]["columns"] == ["plan"]
    settings["privacy"]["groups"] = "plan"
    out = train(check_experiment(settings), tmp_path / "run")
    assert out.assembled.plan.groups == {"free": 16, "paid": 16}
    again = read_experiment(tmp_path / "run" / "experiment.toml")
    assert again.table == table
    assert again.digest == out.run.experiment.digest
