"""Clients learn what each would learn alone, step by literal step; compiled or not.

Also tests `tacit.kernels.feature_mlp`, `tacit.models.feature_mlp.compiled_pass` and
`tacit.models.feature_mlp.plain_pass`.
"""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from models.feature_mlp.small import LENGTHS, examples, keys, literal, network
from quick import slow, some_of

from tacit.errors import BadValue
from tacit.kernels.dispatch import TABLE
from tacit.keys import Key
from tacit.models.feature_mlp import Schedule, train, training

START = Key.from_seed(0)
SCHEDULE = Schedule(epochs=3, batch=4, rate=0.3, pull=0.2)

FORMS = [  # activation, head, is_squared: at once each value of each
    ("relu", "linear", True),
    ("sigmoid", "sigmoid", False),
    ("relu", "sigmoid", True),
    ("relu", "sigmoid", False),
    ("relu", "linear", False),
    ("sigmoid", "sigmoid", True),
    ("sigmoid", "linear", True),
    ("sigmoid", "linear", False),
]


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-9, err_msg=name)


@pytest.fixture(params=["plain", "compiled"])
def either(request, monkeypatch):
    """Both twins."""
    least = 0 if request.param == "compiled" else 10**9
    monkeypatch.setitem(
        TABLE, "feature_mlp.train", TABLE["feature_mlp.train"].at(least)
    )


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    ("activation", "head", "is_squared"),
    some_of(FORMS, 2),
)
def test_training_equals_the_literal_loop(activation, head, is_squared):
    """Every kind of field, clients with none, one and forty examples; 1e-9."""
    net = network(activation=activation)
    start, given = net.start(START), examples(net, head=head)
    schedule = replace(SCHEDULE, head=head, is_squared=is_squared)
    found = train(net, start, given, schedule=schedule, keys=keys())
    assert_close(found, literal(net, start, given, schedule, keys()))
    moved = np.abs(found["weights.2"] - start["weights.2"]).max(axis=(1, 2))
    assert (moved > 1e-6).tolist() == [n > 0 for n in LENGTHS]


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    "without", [("person", "situation"), pytest.param(("person",), marks=slow)]
)
def test_a_side_without_fields_is_left_out(without):
    net = network(without=without)
    start, given = net.start(START), examples(net)
    found = train(net, start, given, schedule=SCHEDULE, keys=keys())
    assert_close(found, literal(net, start, given, SCHEDULE, keys()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_kernel_equals_its_twin(monkeypatch, dtype):
    """As wide as in use, batches of 32; rounding is all that differs."""
    net = network(embedding=64, widths=(64, 32, 16, 8), dtype=dtype)
    start, given = net.start(START), examples(net, (70, 3, 0, 33))
    schedule = Schedule(epochs=2, batch=32, rate=0.05, pull=0.1)
    monkeypatch.setitem(
        TABLE, "feature_mlp.train", TABLE["feature_mlp.train"].at(10**9)
    )
    plain = train(net, start, given, schedule=schedule, keys=keys(4))
    monkeypatch.setitem(TABLE, "feature_mlp.train", TABLE["feature_mlp.train"].at(0))
    found = train(net, start, given, schedule=schedule, keys=keys(4))
    digits = {"float32": 1e-5, "float64": 1e-12}[dtype]
    for name, value in plain.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=digits)


def test_memory_is_that_of_micro_cohorts(monkeypatch):
    """Twenty micro-cohorts need what two need, one a thread, at any moment."""
    monkeypatch.setitem(TABLE, "feature_mlp.train", TABLE["feature_mlp.train"].at(0))
    monkeypatch.setattr(training, "_THREADS", 2)
    net = network(embedding=64, widths=(64, 32, 16, 8))
    start, schedule = net.start(START), Schedule(epochs=1)
    one = net.flat(start).nbytes

    def peak(clients):
        given, own = examples(net, (1,) * clients), keys(clients)
        tracemalloc.start()
        train(net, start, given, schedule=schedule, keys=own, finish=norms)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    def norms(stacked, rows):
        return {"norm": np.abs(stacked["bias.2"]).sum(axis=1)}

    peak(64)  # compiles
    for clients in (64, 640):
        assert peak(clients) < 2 * 1.3 * training.MICRO_COHORT * one


@pytest.mark.usefixtures("either")
def test_micro_cohorts_and_threads_change_nothing(monkeypatch):
    net = network()
    start, given = net.start(START), examples(net)
    whole = train(net, start, given, schedule=SCHEDULE, keys=keys())
    monkeypatch.setattr(training, "MICRO_COHORT", 3)
    assert_close(train(net, start, given, schedule=SCHEDULE, keys=keys()), whole)
    monkeypatch.setattr(training, "MICRO_COHORT", 1)
    monkeypatch.setattr(training, "_THREADS", 1)
    assert_close(train(net, start, given, schedule=SCHEDULE, keys=keys()), whole)


@pytest.mark.usefixtures("either")
def test_what_is_finished_keeps_its_place():
    net = network()
    start, given = net.start(START), examples(net)

    def named(stacked, rows):
        return {"row": rows, "bias": stacked["bias.2"]}

    found = train(net, start, given, schedule=SCHEDULE, keys=keys(), finish=named)
    whole = train(net, start, given, schedule=SCHEDULE, keys=keys())
    assert found["row"].tolist() == [*range(len(LENGTHS))]
    np.testing.assert_array_equal(found["bias"], whole["bias.2"])


@pytest.mark.usefixtures("either")
def test_who_has_nothing_stays_where_everyone_starts():
    net = network()
    start, given = net.start(START), examples(net, (0, 0))
    found = train(net, start, given, schedule=SCHEDULE, keys=keys(2))
    for name, value in start.items():
        np.testing.assert_array_equal(found[name], np.stack([value, value]))


def test_no_epoch_is_no_step():
    net = network()
    start, given = net.start(START), examples(net)
    still = replace(SCHEDULE, epochs=0)
    found = train(net, start, given, schedule=still, keys=keys())
    np.testing.assert_array_equal(found["bias.2"], np.stack([start["bias.2"]] * 8))


@pytest.mark.usefixtures("either")
def test_a_row_that_nobody_reads_does_not_move():
    net = network()
    start, given = net.start(START), examples(net, (2,))
    found = train(net, start, given, schedule=SCHEDULE, keys=keys(1))
    parts = (
        given.users,
        given.situations,
        given.catalog.take(given.items),
    )
    read = np.unique(np.concatenate([part.shares.indices for part in parts]))
    changed = (found["embeddings"][0] != start["embeddings"]).any(axis=1)
    assert set(np.flatnonzero(changed)) <= set(read.tolist())
    assert changed.any()
    assert not changed.all()


@pytest.mark.usefixtures("either")
def test_the_pull_holds_clients_back():
    net = network()
    start, given = net.start(START), examples(net)

    def away(pull):
        schedule = Schedule(epochs=5, batch=4, rate=0.3, pull=pull)
        found = train(net, start, given, schedule=schedule, keys=keys())
        gaps = [((found[n] - start[n]) ** 2).sum() for n in start]
        return sum(gaps)

    assert away(1.0) < away(0.1) < away(0.0)


@pytest.mark.usefixtures("either")
def test_single_precision_is_kept():
    net = network(dtype="float32")
    found = train(net, net.start(START), examples(net), schedule=SCHEDULE, keys=keys())
    assert {value.dtype for value in found.values()} == {np.dtype(np.float32)}


def test_schedules_that_cannot_be():
    for wrong in ({"epochs": -1}, {"batch": 0}, {"rate": 0.0}, {"pull": -1.0}):
        with pytest.raises(BadValue, match=next(iter(wrong))):
            Schedule(**wrong)
    with pytest.raises(BadValue, match="head='softmax' is not known"):
        Schedule(head="softmax")
