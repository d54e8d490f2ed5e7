"""Philox-4x64-10 against numpy's, which is another implementation of it."""

import numpy as np
import pytest

from tacit.kernels.philox import philox


@pytest.mark.parametrize("domain", [0, 1, 2**63 - 1])
def test_blocks_are_those_of_numpy(domain):
    words = np.array([[1, 2], [2**64 - 1, 0], [0, 0]], np.uint64)
    first = np.array([5, 2**40, 1], np.uint64)
    found = philox(words, first, 3, domain)
    assert found.shape == (3, 3, 4)
    for key, start, blocks in zip(words, first, found, strict=True):
        # numpy adds one to its counter before it makes a block.
        counter = np.array([start - np.uint64(1), 0, 0, domain], np.uint64)
        theirs = np.random.Philox(key=key, counter=counter)
        assert blocks.ravel().tolist() == theirs.random_raw(12).tolist()


def test_no_keys_and_no_blocks_give_nothing():
    empty = np.empty((0, 2), np.uint64)
    assert philox(empty, np.empty(0, np.uint64), 4, 0).shape == (0, 4, 4)
    one = np.zeros((1, 2), np.uint64)
    assert philox(one, np.zeros(1, np.uint64), 0, 0).shape == (1, 0, 4)
