import numpy as np
import pytest

from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.feature_mlp.labels import Labelling

SHARDS = Shards(
    np.array([0, 3, 3, 5]),
    np.array([1, 4, 2, 0, 5], np.int32),
    np.array([5, 2, 4, 1, 3], np.float32),
    None,
    6,
)
KEYS = Key.from_seed(0).each(np.arange(3))


def found(**settings):
    made = Labelling(**settings).of(SHARDS, KEYS)
    rows = zip(made.items.tolist(), made.labels.tolist(), strict=True)
    return np.diff(made.offsets).tolist(), list(rows), made


def test_stars_below_are_negatives():
    lengths, rows, _ = found(positive_from=4.0, negatives=0)
    assert lengths == [3, 0, 2]
    assert rows == [(1, 1.0), (4, 0.0), (2, 1.0), (0, 0.0), (5, 0.0)]


def test_or_are_left_out():
    """User 2 likes nothing and learns nothing; nobody draws what they touched."""
    lengths, rows, made = found(positive_from=4.0, negatives=2, dislikes="unused")
    assert lengths == [6, 0, 0]
    assert rows[:2] == [(1, 1.0), (2, 1.0)]
    assert {item for item, _ in rows[2:]} <= {0, 3, 5}
    assert made.is_drawn.tolist() == [False] * 2 + [True] * 4
    assert made.events.tolist() == [0, 2, 0, 0, 2, 2]


def test_a_rating_is_its_own_label():
    """Of every event; some are liked all the same."""
    how = {"positive_from": 4.0, "negatives": 0, "head": "linear"}
    _, rows, _ = found(**how)
    assert [label for _, label in rows] == [5, 2, 4, 1, 3]
    assert Labelling(**how).liked(SHARDS).items.tolist() == [1, 2]
    assert Labelling(**how).least_liked == 4.0


STARS = {"head": "linear", "negatives": 0, "positive_from": 4.0}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"negatives": 0}, "none disliked"),
        (
            {"negatives": 0, "positive_from": 4.0, "dislikes": "unused"},
            "none disliked",
        ),
        ({"dislikes": "ignored"}, "'ignored' is not known"),
        ({"negatives": -1}, "negatives=-1 must be >= 0"),
        (STARS | {"negatives": 2}, "negatives=2: .* never touched has none"),
        (STARS | {"dislikes": "unused"}, "dislikes='unused': .* low ones too"),
        (STARS | {"positive_from": None}, "such as positive_from = 4"),
    ],
)
def test_settings_that_cannot_be(settings, words):
    with pytest.raises(BadValue, match=words):
        Labelling(**settings)
