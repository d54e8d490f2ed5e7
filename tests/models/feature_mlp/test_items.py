"""The catalog as it is told to clients, and what a client refuses to have been told."""

import numpy as np
import pytest
from models.feature_mlp.small import ITEMS, features

from tacit.data.features import Numeric
from tacit.errors import BadMessage
from tacit.models.feature_mlp.inputs import Fields
from tacit.models.feature_mlp.items import Items, without_catalog

N, FIRST = 12, 4
FIELDS = Fields(ITEMS, FIRST)
ROWS = FIRST + FIELDS.n_rows


def items(*, scaled: bool = True) -> Items:
    columns = features(ITEMS, N, seed=3)
    return Items.of(columns, FIELDS, n=N, rows=ROWS, scaled=scaled)


def heard(told) -> Items:
    return Items.from_broadcast(told, first=FIRST, dtype=np.float64)


def test_what_is_heard_is_what_was_told():
    one = items()
    other = heard(one.arrays())
    np.testing.assert_array_equal(other.kind_of, one.kind_of)
    np.testing.assert_array_equal(other.kinds.numbers, one.kinds.numbers)
    assert (other.kinds.shares != one.kinds.shares).nnz == 0


def test_what_is_told_has_the_public_shape():
    one = items()
    shape = one.public_shape(rows=ROWS)
    assert shape.keys() == one.arrays().keys()
    for name, value in one.arrays().items():
        assert value.dtype == shape[name].dtype
        if value.size:
            assert shape[name].least <= value.min() <= value.max() <= shape[name].most


def test_items_with_the_same_features_are_one_kind():
    columns = {name: column.take([0, 1, 0]) for name, column in
               features(ITEMS, N, seed=3).items()}  # fmt: skip
    found = Items.of(columns, FIELDS, n=3, rows=ROWS, scaled=False)
    assert found.kind_of[0] == found.kind_of[2] != found.kind_of[1]
    assert len(found.kinds) == 2


def test_scaled_numbers_have_mean_zero_and_deviation_one():
    year = np.array([1990, np.nan, 2010], np.float32)
    fields = Fields({"year": 0}, 0)
    found = Items.of({"year": Numeric(year)}, fields, n=3, rows=1, scaled=True)
    numbers = found.kinds.numbers[found.kind_of, 0]
    np.testing.assert_allclose(numbers, [-1, 0, 1])


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("offsets", lambda a: a[::-1].copy()),
        ("offsets", lambda a: a[:-1]),
        ("kinds", lambda a: a + 1000),
        ("rows", lambda a: a + 1000),
        ("shares", lambda a: a[:-1]),
        ("numbers", lambda a: a[:, :0]),
    ],
)
def test_parts_that_do_not_fit_are_refused_before_a_kernel_reads_them(part, wrong):
    told = items().arrays()
    told[f"catalog.{part}"] = wrong(told[f"catalog.{part}"])
    with pytest.raises(BadMessage):
        heard(told)


def test_the_weights_alone():
    weights = {"b": np.zeros(2)}
    assert without_catalog({**weights, **items().arrays()}).keys() == weights.keys()
