"""A digest changes with everything that it covers, and with nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.data import cache
from tacit.data.catalog import Profiles
from tacit.data.digest import content_digest, input_digest
from tacit.data.features import Category
from tacit.data.splits import everyone_trains, new_users
from tacit.data.strings import Strings
from tacit.data.synthetic.news_world import NewsWorld
from tacit.data.synthetic.world import World
from tacit.keys import Key

DATA = World(users=40, items=30, events_per_user=8).dataset()
NEWS = NewsWorld(users=12, news=60, shown=5, history=3, topics=2).dataset()


def digest(dataset, **options):
    made = {"n_validation": 5, "n_test": 5, "key": Key.from_seed(1)} | options
    return input_digest(dataset, new_users(dataset, **made))


def altered(column):
    other = column.copy()
    other[-1] += 1
    return other


LOG = DATA.interactions
OTHERS = {
    "an item": replace(DATA, interactions=replace(LOG, items=LOG.items[::-1].copy())),
    "a value": replace(DATA, interactions=replace(LOG, values=altered(LOG.values))),
    "a time": replace(DATA, interactions=replace(LOG, times=altered(LOG.times))),
    "no times": replace(DATA, interactions=replace(LOG, times=None)),
    "a title": replace(DATA, catalog=replace(DATA.catalog, titles=DATA.catalog.ids)),
    "a feature": replace(DATA, catalog=replace(DATA.catalog, features={})),
    "a list": replace(DATA, listed=None),
    "a user": replace(DATA, profiles=Profiles(DATA.profiles.ids)),
    "a label": replace(
        DATA, profiles=Profiles(DATA.profiles.ids, {"x": Category.of(["a"] * 40)})
    ),
    "a name": replace(
        DATA,
        profiles=replace(DATA.profiles, ids=Strings.of(f"x{i}" for i in range(40))),
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_it_changes_with_anything_in_the_data(what):
    assert digest(OTHERS[what]) != digest(DATA)


def test_it_changes_with_who_trains():
    assert digest(DATA, key=Key.from_seed(2)) != digest(DATA)
    assert input_digest(DATA, everyone_trains(DATA)) != digest(DATA)


def test_it_changes_with_what_was_shown():
    shown = NEWS.impressions
    other = replace(NEWS, impressions=replace(shown, clicked=~shown.clicked))
    assert content_digest(other) != content_digest(NEWS)


def test_boundaries_between_texts_count():
    """The same bytes, cut elsewhere."""
    one, two = (Strings.of(texts) for texts in (["ab", "c"], ["a", "bc"]))
    assert one.buffer.tobytes() == two.buffer.tobytes()
    assert content_digest(one) != content_digest(two)


def test_equal_data_have_equal_digests_however_they_lie_in_memory(tmp_path):
    cache.write(DATA, tmp_path / "kept", stamp={})
    kept = cache.read(tmp_path / "kept")
    strided = np.repeat(LOG.times, 2)[::2]
    other = replace(DATA, interactions=replace(LOG, times=strided))
    assert digest(kept) == digest(DATA) == digest(other)


def test_the_byte_order_of_a_machine_does_not_count():
    assert content_digest({"x": np.arange(3, dtype=">i8")}) == content_digest(
        {"x": np.arange(3, dtype="<i8")}
    )


def test_it_changes_with_what_training_clients_were_shown():
    split = everyone_trains(NEWS)
    assert split.train.impressions is not None
    without = replace(split, train=replace(split.train, impressions=None))
    assert input_digest(NEWS, split) != input_digest(NEWS, without)
