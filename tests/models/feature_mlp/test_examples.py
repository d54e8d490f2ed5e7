"""Every example once a pass, in the client's own order."""

import numpy as np
from models.feature_mlp.small import LENGTHS, examples, keys, network

GIVEN = examples(network())
EVERYONE = np.arange(len(LENGTHS))


def test_every_example_once_and_clients_stay_together():
    found = GIVEN.shuffled(EVERYONE, keys())
    assert sorted(found.tolist()) == [*range(sum(LENGTHS))]
    assert found.tolist() != [*range(sum(LENGTHS))]
    owners = np.searchsorted(GIVEN.offsets, found, side="right") - 1
    np.testing.assert_array_equal(owners, np.repeat(EVERYONE, LENGTHS))


def test_an_order_is_the_clients_own():
    """Alone or among others; another key, another order."""
    among = GIVEN.shuffled(EVERYONE[[5, 3]], keys()[[5, 3]])
    alone = GIVEN.shuffled(EVERYONE[[3]], keys()[[3]])
    np.testing.assert_array_equal(among[LENGTHS[5] :], alone)
    assert (GIVEN.shuffled(EVERYONE[[3]], keys()[[4]]) != alone).any()


def test_nobody_has_nothing():
    assert len(GIVEN.shuffled(EVERYONE[:0], keys()[[]])) == 0
    assert len(examples(network(), (0, 0)).shuffled(EVERYONE[:2], keys(2))) == 0
    assert len(GIVEN.take([])) == 0


def test_what_is_known_of_examples():
    sides = GIVEN.sides([3], GIVEN.places([3])[[4, 4, 0]])
    own = GIVEN.take([3])
    items = own.catalog.take(own.items[[4, 4, 0]])
    assert (sides["item"].shares != items.shares).nnz == 0
    assert (sides["person"].shares != own.users.shares).nnz == 0
    situations = own.situations.take([4, 4, 0])
    np.testing.assert_array_equal(sides["situation"].numbers, situations.numbers)
