from __future__ import annotations

import numpy as np
import pytest
from data.sources.releases import STEAM, edited, parsed, write

from tacit.data.sources import load
from tacit.errors import BadData

FILE = "steam-200k.csv"


@pytest.mark.parametrize("packed", [True, False])
def test_an_event_is_a_purchase_with_its_hours(packed, tmp_path):
    write("steam-200k", tmp_path, STEAM, packed=packed)
    found = load("steam-200k", where=tmp_path, cache=tmp_path / "cache")
    log = found.interactions
    assert list(found.profiles.ids) == ["99", "151"]
    assert list(found.catalog.ids) == ["Café, the game", "Spore"]
    assert found.catalog.titles == found.catalog.ids
    assert log.offsets.tolist() == [0, 1, 4]
    assert log.items.tolist() == [1, 0, 1, 1]  # Spore was bought twice
    assert log.values.tolist() == [1.0] * 4
    hours = log.contexts["hours"].values
    np.testing.assert_allclose(hours, [0.1, 27.5, 0.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        (b"151,", b"x,", 1, "user='x' must be a whole number"),
        (b'"Spore"', b'""', 3, "game='' must be a title"),
        (b"purchase", b"rental", 1, "behavior='rental' must be one of purchase, play"),
        (b"1.0", b"2.0", 1, "value='2.0' must be one of 1.0"),
        (b"27.5", b"nan", 2, "value='nan' must be a number"),
        (b"27.5", b"-1", 2, "value='-1' must be a number"),
        (b"27.5,0", b"27.5,7", 2, "last='7' must be one of 0"),
        (b"27.5,0", b"27.5", 2, "4 fields separated by ',', expected 5"),
        (b'"Spore",purchase,1.0', b'"Spore",play,1.0', 3, "must follow the purchase"),
        (b'99,"Spore",play', b'98,"Spore",play', 5, "must follow the purchase"),
        (b"purchase,1.0", b"play,1.0", 1, "must follow the purchase"),
        (b'"Spore"', b'"Spore" II', 3, "check its quotation marks"),
        ("é".encode(), b"\xe9", 1, "is not utf-8"),
    ],
)
def test_odd_input_is_named(old, new, line, problem, tmp_path):
    with pytest.raises(BadData) as caught:
        parsed("steam-200k", tmp_path, edited("steam-200k", FILE, old, new))
    assert problem in str(caught.value)
    assert caught.value.line == line


@pytest.mark.data
def test_the_real_one(real):
    found = real("steam-200k")
    log = found.interactions
    assert (log.n_users, log.n_items, len(log)) == (12_393, 5155, 129_511)
    assert len(log.distinct()) == 128_804
    hours = log.contexts["hours"].values
    assert (hours > 0).sum() == 70_489
    assert hours.max() == 11_754
