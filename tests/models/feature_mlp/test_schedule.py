"""A schedule refuses what cannot be trained by."""

import pytest

from tacit.errors import BadValue
from tacit.models.feature_mlp.schedule import Schedule


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epochs", -1),
        ("batch", 0),
        ("rate", 0.0),
        ("rate", float("nan")),
        ("pull", -0.1),
        ("head", "softmax"),
    ],
)
def test_what_cannot_be_is_named(field, value):
    with pytest.raises(BadValue, match=rf"{field}.*{value}"):
        Schedule(**{field: value})


def test_no_epoch_is_a_schedule():
    """A client that trains for no epoch hands its weights back."""
    assert Schedule(epochs=0).epochs == 0
