from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines.pure_svd import PureSvd
from tacit.errors import BadValue
from tacit.keys import Key

KEY = Key.from_seed(0)


@pytest.mark.parametrize("factors", [1, 5, 11, 12, 50])
def test_it_is_the_projection_of_numpys_decomposition(shards, table, factors):
    """Twelve items have twelve directions at most; 50 asks for all of them."""
    fitted = PureSvd(factors).fit(shards(table), key=KEY)
    v = np.linalg.svd(table)[2][:factors].T
    np.testing.assert_allclose(
        fitted.score(shards(table[:9])), table[:9] @ v @ v.T, atol=1e-5
    )


def test_directions_that_the_data_does_not_have_are_left_out(shards):
    """Two different rows: histories come back as they are, nothing is invented."""
    x = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0]] * 3)
    fitted = PureSvd(4).fit(shards(x), key=KEY)
    assert fitted.items.shape == (5, 2)
    np.testing.assert_allclose(fitted.score(shards(x)), x, atol=1e-6)


def test_the_key_does_not_change_the_answer(shards, table):
    one, two = (PureSvd(4).fit(shards(table), key=Key.from_seed(s)) for s in (0, 1))
    users = shards(table[:9])
    np.testing.assert_allclose(one.score(users), two.score(users), atol=1e-5)


def test_at_least_one_factor():
    with pytest.raises(BadValue, match="factors=0 must be >= 1"):
        PureSvd(0)
