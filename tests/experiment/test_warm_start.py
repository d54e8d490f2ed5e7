"""The events of another data set over the catalog of a finished run."""

from pathlib import Path

import pytest

from tacit.data.catalog import Catalog
from tacit.data.synthetic.world import World
from tacit.errors import Refused
from tacit.experiment.warm_start import EarlierRun
from tacit.methods.gram import Gram
from tacit.runtime.warm_start import Earlier

DATA = World(users=6, items=20, events_per_user=6).dataset()


def earlier(ids):
    return EarlierRun(Path("run"), Gram(), Catalog.of_ids(ids), Earlier({}, {}, ()))


def test_events_keep_their_items_whatever_the_order():
    ids = [*reversed([*DATA.catalog.ids]), "of old"]
    found = earlier(ids).renumbered(DATA)
    assert [*found.catalog.ids] == ids
    had = [DATA.catalog.ids[i] for i in DATA.interactions.items]
    assert [ids[i] for i in found.interactions.items] == had


def test_a_new_item_is_refused():
    ids = [*DATA.catalog.ids]
    with pytest.raises(Refused, match=f"1 items .* such as '{ids[3]}', are new"):
        earlier(ids[:3] + ids[4:]).renumbered(DATA)


def test_a_split_that_leaves_items_out_is_refused():
    run = earlier([*DATA.catalog.ids])
    run.refuse_other_items(DATA.catalog)
    with pytest.raises(Refused, match=r'19 items are left of the 20 .* "all"'):
        run.refuse_other_items(DATA.catalog.take(range(19)))
