from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.sources import load, source
from tacit.data.synthetic import frozen_worlds
from tacit.data.synthetic.frozen_worlds import LIKE_FMF_LDP, Frozen, digest_of
from tacit.data.synthetic.world import World
from tacit.errors import BadData

SMALL = World(users=20, items=30, events_per_user=6)


def made(**changes) -> Frozen:
    facts = dict.fromkeys(("name", "title", "home", "terms", "citation"), "some")
    digest = digest_of(SMALL.dataset().interactions)
    return Frozen(**{**facts, "make": SMALL.dataset, "digest": digest, **changes})


def test_a_slice_of_the_world_is_what_it_was_when_it_was_frozen():
    """A user does not depend on how many others there are, so this is its start."""
    log = replace(LIKE_FMF_LDP, users=150).dataset().interactions
    assert len(log) == 24_424
    assert digest_of(log) == "e1b729756e343040dc424c1a5c3e8156"


def test_the_worlds_are_registered_and_the_large_one_is_kept():
    for name in ("synthetic-fmf-ldp", "synthetic-fmf-ldp-small"):
        assert source(name) is frozen_worlds.SOURCES[name]
        assert len(frozen_worlds.SOURCES[name].digest) == 32
    assert frozen_worlds.SOURCES["synthetic-fmf-ldp"].stamp is not None


@pytest.mark.slow
def test_the_small_world_opens():
    log = load("synthetic-fmf-ldp-small").interactions
    assert (log.n_users, log.n_items, len(log)) == (6_040, 12_400, 1_014_103)


def test_what_was_frozen_opens(tmp_path):
    assert made().open(cache=tmp_path).name == "synthetic"


@pytest.mark.parametrize("seed", [1, 2])
def test_another_world_under_the_same_name_is_refused(seed):
    other = replace(SMALL, seed=seed)
    with pytest.raises(BadData, match="frozen was"):
        made(make=other.dataset).open()


def test_a_kept_world_is_compared_as_well(tmp_path):
    changed = made(make=replace(SMALL, seed=1).dataset, stamp={"world": "x"})
    for _ in range(2):  # made, then read from the cache
        with pytest.raises(BadData, match="delete its cache entry"):
            changed.open(cache=tmp_path)


@pytest.mark.parametrize("column", ["offsets", "items", "values", "times"])
def test_every_column_counts(column):
    log = SMALL.dataset().interactions
    other = getattr(log, column).copy()
    if column == "offsets":
        other[1] -= 1
    elif column == "items":
        other[0] = (other[0] + 1) % log.n_items
    else:
        other[0] += 1
    changed = replace(log, **{column: other})
    assert digest_of(changed) != digest_of(log)
    assert digest_of(replace(log, items=np.array(log.items))) == digest_of(log)
