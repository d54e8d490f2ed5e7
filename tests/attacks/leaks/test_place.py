from __future__ import annotations

import numpy as np

from tacit.attacks.leaks.place import place_of
from tacit.data.features import Category


def test_devices_hold_the_histories_and_the_catalog_the_features() -> None:
    histories = np.array([[1, 0, 1], [0, 0, 1]], np.uint8)
    genre = Category.of(["a", "b", "a"])
    catalog, profiles, shards = place_of(histories, {"genre": genre})
    assert [*catalog.ids] == ["0", "1", "2"]
    assert catalog.features == {"genre": genre}
    assert len(profiles) == 2
    assert profiles.features == {}
    assert shards.lengths.tolist() == [2, 1]
    assert shards.items.tolist() == [0, 2, 2]
    assert place_of(histories)[0].features == {}
