"""PLM-NR: its start is content similarity, and its gradients are those of torch."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.news_encoders import PlmNr
from tacit.models.news_encoders.plm_nr import BASIS, HEAD, PADDING, VECTORS
from tacit.models.news_similarity import mean_rows
from tests.models.news_encoders.small import (
    INTERESTS,
    N_NEWS,
    attended,
    batch,
    catalog,
    literal,
)

MODEL = PlmNr(starts_at="random", width=4, attention=2)
INPUTS = MODEL.inputs(catalog())
READ = Ragged.of_lengths([3, 0, 1], np.array([1, 1, 5, 0]))


def weights_of(model: PlmNr = MODEL, *, is_moved: bool = True):
    """Weights, all of them away from zero."""
    start = model.start(Key.from_seed(0), INPUTS, interests=INTERESTS)
    draws = np.random.default_rng(5)
    return {
        name: value + is_moved * draws.standard_normal(value.shape)
        for name, value in start.items()
    }


def news_by_hand(theta, number: int):
    """One news in torch; the number after the last has the trained text vector."""
    import torch

    text = torch.tensor(
        np.append(INPUTS[VECTORS], [np.zeros(6)], 0), dtype=torch.double
    )
    own = theta[PADDING] if number == N_NEWS else text[number]
    return own @ theta[HEAD] + theta["news.bias"]


def user_by_hand(theta, read):
    import torch

    if not read:
        return torch.zeros(len(theta["news.bias"]), dtype=torch.double)
    names = ("user.attention", "user.offset", "user.query")
    return attended(torch.stack(read), *(theta[name] for name in names))


@pytest.mark.parametrize("theta", [0.5, 1.0])
@pytest.mark.parametrize("has_noise", [True, False])
def test_gradients_are_those_of_torch_client_by_client(has_noise, theta):
    pytest.importorskip("torch")
    weights, own = weights_of(), batch(has_noise=has_noise, theta=theta)
    found = MODEL.gradients(weights, INPUTS, own).to_dense()
    wanted = literal(weights, own, news=news_by_hand, user=user_by_hand)
    assert {*found.leaves} == {*weights}
    for client, slopes in enumerate(wanted):
        for name, slope in slopes.items():
            np.testing.assert_allclose(
                found[name][client], slope, atol=1e-9, err_msg=f"{client} {name}"
            )


def test_gradients_are_finite_differences_of_the_loss():
    """By the padding vector, which reaches the loss in every way there is."""
    weights, own, step = weights_of(), batch(), 1e-6
    found = MODEL.gradients(weights, INPUTS, own)[PADDING].sum(axis=0)
    for axis in range(len(found)):
        moved = np.zeros(len(found))
        moved[axis] = step
        both = [
            loss({**weights, PADDING: weights[PADDING] + sign * moved}, own)
            for sign in (1, -1)
        ]
        slope = (both[0] - both[1]) / (2 * step)
        assert found[axis] == pytest.approx(slope, abs=1e-6)


def loss(weights, own) -> float:
    """The summed loss of all clients, from news and users alone."""
    from tacit.models.news_encoders.interests import Mixture

    news = MODEL.news(weights, INPUTS)
    lengths = (own.histories >= 0).sum(axis=1)
    read = Ragged.of_lengths(lengths, own.histories[own.histories >= 0])
    users = MODEL.users(weights, news, read)
    mixture = Mixture.of(users, weights[BASIS], noise=own.noise, theta=own.theta)
    total = 0.0
    for user, slates, labels in zip(
        mixture.vectors, own.candidates, own.labels, strict=True
    ):
        for shown, label in zip(slates, labels, strict=True):
            if label >= 0:
                scores = np.where(shown >= 0, news[shown] @ user, -np.inf)
                total += np.log(np.exp(scores).sum()) - scores[label]
    return total


@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_an_untrained_model_scores_by_content_similarity(scale):
    model = PlmNr(scale=scale)
    weights = model.start(Key.from_seed(1), INPUTS)
    news = model.news(weights, INPUTS)
    scores = model.users(weights, news, READ) @ news[:-1].T
    vectors = INPUTS[VECTORS].astype(np.float64)
    content = mean_rows(READ, vectors) @ vectors.T
    if scale == 1.0:
        np.testing.assert_array_equal(news[:-1], vectors)
    np.testing.assert_allclose(scores, scale * content, rtol=1e-12, atol=1e-15)
    assert not scores[1].any()  # nothing was read


def test_clients_without_a_slate_send_zeros_and_batches_change_nothing():
    weights, own = weights_of(), batch()
    whole = MODEL.gradients(weights, INPUTS, own).to_dense()
    parts = [
        MODEL.gradients(weights, INPUTS, part).to_dense() for part in own.blocks(2)
    ]
    for name in weights:
        assert not whole[name][3].any()
        joined = np.concatenate([part[name] for part in parts])
        np.testing.assert_allclose(joined, whole[name], rtol=1e-12, atol=1e-14)


def test_factors_of_who_has_no_slate_tell_nothing_of_the_history():
    head = MODEL.gradients(weights_of(), INPUTS, batch()).leaves[HEAD]
    assert not head.left[3].any()
    assert not head.right[3].any()
    assert head.left[0].any()


def test_the_layout_of_a_gradient_is_declared():
    weights = weights_of()
    tree = MODEL.gradients(weights, INPUTS, batch())
    for name, slot in MODEL.slots(weights, most_news=1).items():
        leaf = tree.leaves[name]
        assert leaf.shape == slot.shape
        stored = {part.shape[1] for part in leaf.parts.values()}
        assert slot.rank is None or stored == {slot.rank}


def test_single_precision_stays_single():
    weights = {n: v.astype(np.float32) for n, v in weights_of().items()}
    tree = MODEL.gradients(weights, INPUTS, batch())
    exact = MODEL.gradients(weights_of(), INPUTS, batch()).to_dense()
    for name, leaf in tree.leaves.items():
        assert {part.dtype for part in leaf.parts.values()} == {np.dtype("float32")}
        found = leaf.dense().values
        np.testing.assert_allclose(found, exact[name], rtol=1e-3, atol=1e-4)
    assert MODEL.users(weights, MODEL.news(weights, INPUTS), READ).dtype == np.float32


def test_a_start_is_the_keys_own():
    first, again, other = (
        MODEL.start(Key.from_seed(seed), INPUTS, interests=2) for seed in (0, 0, 1)
    )
    assert all((first[name] == again[name]).all() for name in first)
    assert (first[HEAD] != other[HEAD]).any()
    assert BASIS not in MODEL.start(Key.from_seed(0), INPUTS)


def test_noise_without_a_basis_is_refused():
    weights = MODEL.start(Key.from_seed(0), INPUTS)
    with pytest.raises(BadValue, match="interests=B"):
        MODEL.gradients(weights, INPUTS, batch())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"content": ()}, "content is empty"),
        ({"starts_at": "zero"}, "starts_at"),
        ({"width": 0}, "width"),
        ({"scale": 0.0}, "scale"),
        ({"dimensions": 0}, "dimensions"),
    ],
)
def test_sizes_that_cannot_be_are_refused(wrong, said):
    with pytest.raises(BadValue, match=said):
        replace(MODEL, **wrong)
