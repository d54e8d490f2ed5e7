"""Factored gradients equal the literal loop, in every form of the network."""

import numpy as np
import pytest
from models.mult_vae import literal

from tacit.errors import BadValue
from tacit.kernels.dispatch import TABLE
from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_norm
from tacit.models.mult_vae import Held, Network, Pass, Prior
from tacit.models.mult_vae.gradients import example_gradients, gradients
from tacit.testing.contract import mixed_world

ITEMS = np.arange(20)[::-1][:15].copy()  # a head in an order of its own


def case(network, *, passes=1, dtype="float64", dropout=0.5):
    world = mixed_world()
    held = Held.of(world.shards, ITEMS)
    weights = network.start(Key.from_seed(1), init="normal", dtype=dtype)
    weights = {n: (0.4 * w).astype(dtype) for n, w in weights.items()}
    keys = Key.from_seed(2).each(np.arange(len(held)))
    latent = network.latent if network.is_variational else 0
    drawn = [
        Pass.drawn(held, keys.at(i), dropout=dropout, latent=latent)
        for i in range(passes)
    ]
    return weights, held, drawn


def networks():
    for hidden in ((), (5,), (6, 4)):
        for is_variational in (True, False):
            for is_tied in (True, False):
                if hidden or not (is_tied and is_variational):
                    yield Network(15, hidden, 3, is_variational, is_tied)


@pytest.mark.parametrize("network", [*networks()], ids=repr)
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_every_user_has_the_gradient_of_the_literal_loop(network, rate):
    weights, held, passes = case(network, passes=2 if rate else 1)
    options = {"beta": 0.2, "is_mean": bool(rate), "rate": rate}
    found = gradients(network, weights, held, passes, **options)
    assert {n: leaf.shape for n, leaf in found.leaves.items()} == network.shapes
    dense = found.to_dense()
    for user in range(len(held)):
        args = (network, weights, held, passes, user)
        for name, value in literal.gradient(*args, **options).items():
            np.testing.assert_allclose(
                dense[name][user], value, rtol=1e-9, atol=1e-12, err_msg=name
            )


def prior_of(users, latent):
    draws = Key.from_seed(6).generator()
    mean = draws.normal(size=(users, latent))
    return Prior(mean, draws.uniform(0.1, 3.0, size=(users, latent)))


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_every_user_may_have_a_prior(rate):
    """torch's own divergence of two normals."""
    network = Network(15, (6,), 3)
    weights, held, passes = case(network, passes=2 if rate else 1)
    options = {"beta": 0.7, "rate": rate, "prior": prior_of(len(held), 3)}
    dense = gradients(network, weights, held, passes, **options).to_dense()
    for user in range(len(held)):
        args = (network, weights, held, passes, user)
        for name, value in literal.gradient(*args, **options).items():
            np.testing.assert_allclose(dense[name][user], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("has_prior", [False, True])
@pytest.mark.parametrize("hidden", [(6,), ()])
def test_every_product_is_the_gradient_of_one_example(has_prior, hidden):
    network = Network(15, hidden, 3)
    weights, held, [one] = case(network)
    options = {"beta": 0.7, "prior": prior_of(len(held), 3) if has_prior else None}
    draws = Key.from_seed(9).generator()
    targets = draws.integers(15, size=(len(held), 4))
    found = example_gradients(network, weights, held, one, targets, **options)
    for user in np.flatnonzero(held.lengths):
        for j, column in enumerate(targets[user]):
            args = (network, weights, held, one, user, column)
            for name, value in literal.example_gradient(*args, **options).items():
                leaf = found.leaves[name]
                product = 4 * np.outer(leaf.left[user, j], leaf.right[user, j])
                np.testing.assert_allclose(product, value, rtol=1e-9, atol=1e-12)
    assert not found.norms()[held.lengths == 0].any()


def test_examples_of_all_items_add_up_to_the_mean_loss():
    """With β = 0.3 the divergence is in every example, so in their mean once."""
    network, world = Network(4, (6,), 3), mixed_world().shards.take([1])
    held = Held.of(world, np.arange(4))
    weights = network.start(Key.from_seed(1), init="normal", dtype="float64")
    one = Pass.drawn(held, Key.from_seed(2).each([0]), dropout=0.0, latent=3)
    targets = np.arange(4)[None]
    found = example_gradients(network, weights, held, one, targets, beta=0.3)
    mean = gradients(network, weights, held, [one], beta=4 * 0.3, is_mean=True)
    for name, value in mean.to_dense().leaves.items():
        dense = found.leaves[name].dense().values
        np.testing.assert_allclose(dense, value.values, rtol=1e-9, atol=1e-12)


def test_examples_of_a_tied_network_are_refused():
    network = Network(15, (6,), 3, is_tied=True)
    weights, held, [one] = case(network)
    targets = np.zeros((len(held), 1), np.int64)
    with pytest.raises(BadValue, match="tied"):
        example_gradients(network, weights, held, one, targets, beta=0.0)


def test_clipped_sums_in_single_precision():
    """1e-5 of the literal sum, relatively, clipped and not."""
    network = Network(15, (6,), 3)
    weights, held, passes = case(network, dtype="float32")
    found = clip_by_norm(gradients(network, weights, held, passes, beta=0.2), 0.7)
    wide = {name: value.astype(np.float64) for name, value in weights.items()}
    total = {name: np.zeros(shape) for name, shape in network.shapes.items()}
    for user in range(len(held)):
        one = literal.gradient(network, wide, held, passes, user, beta=0.2)
        norm = np.sqrt(sum((g**2).sum() for g in one.values()))
        for name in total:
            total[name] += one[name] * min(1.0, 0.7 / max(norm, 1e-300))
    for name, value in found.sum().items():
        off = np.linalg.norm(value - total[name]) / np.linalg.norm(total[name])
        assert off < 1e-5, name


def test_whoever_holds_nothing_has_nothing_to_say():
    """Also somebody whose items are all outside the head."""
    network = Network(2, (4,), 3)
    weights = network.start(Key.from_seed(0), init="normal", dtype="float64")
    held = Held.of(mixed_world().shards, np.array([3, 7]))
    keys = Key.from_seed(2).each(np.arange(len(held)))
    one = Pass.drawn(held, keys, dropout=0.0, latent=3)
    norms = gradients(network, weights, held, [one], beta=0.2).norms()
    np.testing.assert_array_equal(norms == 0, held.lengths == 0)
    assert (held.lengths == 0).sum() > 1


def test_items_nobody_touched_still_have_a_gradient_in_the_decoder_only():
    network = Network(20, (4,), 3)
    held = Held.of(mixed_world().shards.take([2]), np.arange(20))  # 3 and 7
    weights = network.start(Key.from_seed(0), init="xavier", dtype="float64")
    one = Pass.drawn(held, Key.from_seed(1).each([0]), dropout=0.0, latent=3)
    tree = gradients(network, weights, held, [one], beta=0.2).to_dense()
    touched = np.flatnonzero(np.abs(tree["encoder/0"][0, :-1]).sum(axis=1))
    assert touched.tolist() == [3, 7]
    bias = tree["decoder/1"][0, -1]
    assert np.flatnonzero(bias < 0).tolist() == [3, 7]  # its signs are the history
    assert (bias != 0).all()


def test_nothing_has_the_size_of_clients_times_weights():
    network = Network(15, (6,), 3)
    weights, held, passes = case(network)
    tree = gradients(network, weights, held, passes, beta=0.2)
    for name, leaf in tree.leaves.items():
        rows, columns = network.shapes[name]
        stored = sum(part.size for part in leaf.parts.values())
        assert stored == len(held) * (rows + columns)


def test_the_compiled_first_layer_is_the_dense_one(monkeypatch):
    network = Network(15, (6,), 3)
    weights, held, passes = case(network)
    plain = gradients(network, weights, held, passes, beta=0.2).to_dense()
    monkeypatch.setitem(TABLE, "rows.weighted_rows", TABLE["rows.weighted_rows"].at(0))
    compiled = gradients(network, weights, held, passes, beta=0.2).to_dense()
    for name in network.shapes:
        np.testing.assert_allclose(compiled[name], plain[name], rtol=0, atol=1e-12)
