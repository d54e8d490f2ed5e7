from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.audits.canaries import Canaries, draw_coordinates, planted, probes
from tacit.keys import Key
from tacit.testing.toy import ToyFactors
from tacit.tree import Dense, Factored, Symmetric, Tree

TEMPLATE = Tree(
    {
        "b": Dense(np.zeros((1, 5), np.float32)),
        "V": Factored(np.zeros((1, 2, 4)), np.zeros((1, 2, 3))),
        "votes": Dense(np.zeros((1, 6), np.uint8)),
    }
)
SIZES = {"b": 10.0, "V": 20.0, "votes": 1e9}


def laid_out(tree):
    dense = tree.to_dense()
    rows = [dense[name].reshape(len(tree), -1) for name in dense.leaves]
    return np.concatenate(rows, axis=1)


def test_every_canary_is_one_coordinate_and_another_one():
    """Dense and factored leaves; whole numbers hold what they can."""
    canaries = Canaries(TEMPLATE, np.arange(23), SIZES)
    values = np.repeat([10.0, 20.0, 255.0], [5, 12, 6])
    np.testing.assert_array_equal(laid_out(canaries(np.arange(23))), np.diag(values))
    some = canaries(np.array([7, 2]))
    assert laid_out(some).argmax(axis=1).tolist() == [7, 2]
    assert some["votes"].dtype == np.uint8
    assert some["b"].dtype == np.float32


def test_a_symmetric_canary_has_its_pair_and_the_two_diagonals():
    template = Tree({"G": Symmetric(np.zeros((1, 1, 3)))})
    found = laid_out(Canaries(template, np.arange(6), {"G": 4.0})(np.arange(6)))
    half = 4.0 * math.sqrt(0.5)
    assert found[0] == pytest.approx([half, 0, 0, 0, 0, 0])  # (0, 0)
    assert found[1] == pytest.approx([half, 4.0, 0, half, 0, 0])  # (0, 1)
    assert (found[np.arange(6), np.arange(6)] > 0).all()


def test_places_are_distinct():
    places = draw_coordinates(TEMPLATE, 10, Key.from_seed(1))
    assert len(set(places.tolist())) == 10
    assert places.max() < 23
    assert draw_coordinates(TEMPLATE, 10, Key.from_seed(2)).tolist() != places.tolist()


def test_half_of_the_coordinates_stay_free():
    places = draw_coordinates(TEMPLATE, 20, Key.from_seed(1))
    assert (places >= 0).sum() == 11
    assert len(places) == 20
    rows = laid_out(Canaries(TEMPLATE, places, SIZES)(np.arange(20)))
    assert ((rows != 0).sum(axis=1) == (places >= 0)).all()


def test_probes_fill_every_leaf_from_small_to_not_finite():
    tried = probes(TEMPLATE, {"b": 1.0, "V": 1.0, "votes": 1.0}, Key.from_seed(3))
    assert len(tried) == 7 + 3
    assert np.linalg.norm(tried["b"][0]) < 1.5 < 500 < np.linalg.norm(tried["b"][3])
    assert not np.isfinite(tried["b"][5:7]).any()
    assert tried["votes"][:7].all()  # whole numbers are never left out
    alone = tried.select([7]).to_dense()
    assert alone["b"].any()
    assert not alone["V"].any()
    assert not alone["votes"].any()


def test_a_planted_method_is_the_method_in_all_but_its_updates():
    method = ToyFactors(factors=3)
    other = planted(method, lambda _, numbers: TEMPLATE.select(numbers * 0))
    assert other.privatize == method.privatize
    assert other.factors == 3
    assert other.aggregators == method.aggregators
    assert other.local_update != method.local_update
