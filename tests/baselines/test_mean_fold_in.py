"""The mean of held items, and the map that fits the training users."""

import numpy as np
import scipy.sparse as sp

from tacit.baselines.mean_fold_in import fold_in_map, held_means


def test_means_are_over_items_held():
    x = sp.csr_array(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    items = np.array([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    np.testing.assert_array_equal(held_means(x, items), [[2.0, 3.0], [0.0, 0.0]])


def test_a_linear_relation_is_found():
    draws = np.random.default_rng(0)
    means, map_ = draws.normal(size=(50, 3)), draws.normal(size=(3, 3))
    found = fold_in_map(means, means @ map_)
    np.testing.assert_allclose(found, map_, rtol=0.05, atol=0.01)


def test_nobody_with_a_history_is_no_error():
    assert not fold_in_map(np.zeros((4, 2)), np.ones((4, 2))).any()
