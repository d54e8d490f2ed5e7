"""Every example once a pass, in the client's own order; rows that are read."""

import numpy as np
from models.feature_mlp.small import LENGTHS, examples, keys, network

from tacit.models.feature_mlp.batches import Touched

ORDER = np.argsort([-n for n in LENGTHS], kind="stable")


def passes(given, own, batch=4):
    net = network()
    return [*Touched.by(given, net).steps(given, batch, own)]


def test_every_example_once_and_clients_drop_off_the_end():
    given = examples(network()).take(ORDER)
    steps = passes(given, keys()[ORDER])
    taken = np.concatenate([step.examples[step.is_real] for step in steps])
    assert sorted(taken.tolist()) == [*range(sum(LENGTHS))]
    assert [step.active for step in steps] == [7, 4, 2, 2, 1, 1, 1, 1, 1, 1]
    owners = np.repeat(np.arange(8), given.lengths)
    for step in steps:
        rows = np.arange(step.active)[:, None]
        assert (owners[step.examples] == rows).all()  # padding is the client's own


def test_an_order_is_the_clients_own():
    """Alone or among others; another key, another order."""
    given = examples(network()).take(ORDER)
    among = [step.examples[0][step.is_real[0]] for step in passes(given, keys()[ORDER])]
    alone = passes(given.take([0]), keys()[ORDER[:1]])
    for one, other in zip(among, alone, strict=True):
        np.testing.assert_array_equal(one, other.examples[0][other.is_real[0]])
    again = passes(given.take([0]), keys()[ORDER[1:2]])
    assert any(
        (a.examples != b.examples).any() for a, b in zip(alone, again, strict=True)
    )


def test_rows_are_those_that_are_read():
    """Over its own rows a client reads what it would read in the whole table."""
    net = network()
    given = examples(net).take(ORDER)
    touched = Touched.by(given, net)
    table = np.random.default_rng(0).normal(size=(net.n_rows, 3))
    for side, whole in {
        "person": given.people,
        "situation": given.situations,
        "item": given.catalog.take(given.items),
    }.items():
        found = touched.inputs[side].shares @ table[touched.rows]
        np.testing.assert_allclose(found, whole.shares @ table)
    assert (np.diff(touched.owners) >= 0).all()


def test_nobody_takes_no_step():
    given = examples(network(), (0, 0))
    assert passes(given, keys(2)) == []
    assert len(examples(network()).take([])) == 0
    assert passes(examples(network()).take([]), keys()[[]]) == []
