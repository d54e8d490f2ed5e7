from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data import cache
from tacit.data.columns import describe, restore
from tacit.data.features import Category
from tacit.data.synthetic.news_world import NewsWorld
from tacit.data.synthetic.world import checkerboard
from tacit.errors import BadValue

NEWS = NewsWorld(users=12, news=60, shown=5, history=3, topics=2).dataset()


@pytest.mark.parametrize("has_times", [True, False])
@pytest.mark.parametrize("has_parts", [True, False])
def test_impressions_come_back_from_the_cache(tmp_path, has_times, has_parts):
    impressions = NEWS.impressions
    if has_parts:
        labels = ["dev", "train"] * len(impressions)
        parts = Category.of(labels[: len(impressions)])
        impressions = replace(impressions, parts=parts)
    if not has_times:
        impressions = replace(
            impressions, slates=replace(impressions.slates, times=None)
        )
    dataset = replace(NEWS, impressions=impressions)
    cache.write(dataset, tmp_path / "news", stamp={})
    kept = cache.read(tmp_path / "news")
    described, columns = describe(dataset, "dataset")
    again, read = describe(kept, "dataset")
    assert again == described
    assert set(read) == set(columns)
    for name, column in columns.items():
        np.testing.assert_array_equal(read[name], column)
        assert read[name].dtype == column.dtype


def test_an_entry_from_before_there_were_impressions_still_reads():
    described, columns = describe(checkerboard(4, 4, 2), "dataset")
    del described["fields"]["impressions"]
    assert restore(described, columns).impressions is None


def test_what_cannot_be_kept_is_refused():
    with pytest.raises(BadValue, match="place is a set, which cannot be kept"):
        describe({1}, "place")
