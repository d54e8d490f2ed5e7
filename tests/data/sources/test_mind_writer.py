from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.data.columns import describe
from tacit.data.dataset import Dataset
from tacit.data.sources.mind import read
from tacit.data.sources.mind_writer import write
from tacit.data.strings import Strings
from tacit.data.synthetic.news_world import NewsWorld
from tacit.data.synthetic.world import checkerboard
from tacit.errors import BadValue

WORLD = NewsWorld(users=40, news=120, shown=8, history=5, topics=4, cold=0.2)
NEWS = WORLD.dataset()


def assert_same(a: Dataset, b: Dataset) -> None:
    (left, columns), (right, others) = describe(a, "d"), describe(b, "d")
    assert left == right
    for name, column in columns.items():
        assert column.dtype == others[name].dtype, name
        np.testing.assert_array_equal(column, others[name], name)


def test_what_is_written_is_read_back_identically(tmp_path):
    write(NEWS, tmp_path / "news")
    assert_same(read(tmp_path / "news", name="synthetic-news"), NEWS)


def test_so_are_impressions_without_times(tmp_path):
    slates = replace(NEWS.impressions.slates, times=None)
    log = replace(NEWS.interactions, times=None)
    untimed = replace(
        NEWS,
        interactions=log,
        impressions=replace(NEWS.impressions, slates=slates),
    )
    write(untimed, tmp_path)
    assert_same(read(tmp_path, name="synthetic-news"), untimed)


def test_a_filtered_set_can_be_written(tmp_path):
    fewer = NEWS.filtered(min_interactions=6)
    assert fewer.interactions.n_users < 40
    write(fewer, tmp_path)
    again = read(tmp_path)
    np.testing.assert_array_equal(again.impressions.clicked, fewer.impressions.clicked)
    assert again.catalog.ids == fewer.catalog.ids


def test_the_lines_are_those_of_the_format(tmp_path):
    write(NEWS, tmp_path)
    news = (tmp_path / "news.tsv").read_text().splitlines()
    lines = (tmp_path / "behaviors.tsv").read_text().splitlines()
    assert len(news) == 120
    assert news[0].split("\t")[0] == "N000"
    assert news[0].split("\t")[5:] == ["", "[]", "[]"]
    number, user, time, _, shown = lines[0].split("\t")
    assert (number, user) == ("1", "U00")
    assert time.startswith(("1/3", "2/"))
    assert time.endswith((" AM", " PM"))
    assert {candidate[-2:] for candidate in shown.split(" ")} == {"-0", "-1"}


def changed(**parts: object) -> Dataset:
    return replace(NEWS, **parts)


@pytest.mark.parametrize(
    ("dataset", "problem"),
    [
        (checkerboard(4, 4, 2), "checkerboard has no impressions to write"),
        (
            changed(impressions=NEWS.impressions.keep(NEWS.impressions.users > 0)),
            "user 'U00' has no impression",
        ),
        (
            changed(
                profiles=replace(NEWS.profiles, ids=Strings.of(["a b"] + ["c"] * 39))
            ),
            "id 'a b' is blank or has a space",
        ),
        (
            changed(
                catalog=replace(NEWS.catalog, titles=Strings.of(["a\tb"] + ["c"] * 119))
            ),
            "news 'N000' has a tab or a line end",
        ),
    ],
)
def test_what_the_format_cannot_hold_is_refused(dataset, problem, tmp_path: Path):
    with pytest.raises(BadValue, match=problem):
        write(dataset, tmp_path)
