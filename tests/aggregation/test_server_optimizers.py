"""Steps by hand, by the papers' formulas, and beside torch's."""

import numpy as np
import pytest

from tacit.aggregation.server_optimizers import Adam, DecayingBoost, Sgd
from tacit.errors import BadValue
from tacit.kernels.dispatch import TABLE
from tacit.keys import Key

WEIGHTS = {"a": np.array([1.0, -2.0]), "b": np.array(0.5)}
GRADIENT = {"a": np.array([0.5, 4.0]), "b": np.array(-1.0)}


def numpy_adam(weights, gradients, rates, *, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """FedVAE's Algorithm 2, lines 3 to 7, letter for letter."""
    m = v = np.zeros_like(weights)
    path = []
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
        weights = weights - rate * m_hat / (np.sqrt(v_hat) + epsilon)
        path.append(weights)
    return path


def run(optimizer, weights, gradients):
    """The optimizer's weights after each step; epochs count from 1 as in the paper."""
    memory, path = optimizer.start(weights), []
    for t, gradient in enumerate(gradients, start=1):
        weights, memory = optimizer.step(weights, memory, gradient, epoch=t)
        path.append(weights)
    return path


def random_gradients(steps: int, shape: tuple[int, ...] = (7, 3)) -> np.ndarray:
    return Key.from_seed(2).generator().normal(size=(steps, *shape))


# --- Hand-worked ---------------------------------------------------------------------


def test_sgd_by_hand():
    after, memory = Sgd(rate=0.5).step(WEIGHTS, {}, GRADIENT)
    assert after["a"].tolist() == [0.75, -4.0]
    assert after["b"] == 1.0
    assert memory == {}


@pytest.mark.slow
def test_sgd_is_torchs():
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Parameter(torch.from_numpy(WEIGHTS["a"].copy()))
    theirs.grad = torch.from_numpy(GRADIENT["a"].copy())
    torch.optim.SGD([theirs], lr=0.3).step()
    ours, _ = Sgd(0.3).step(WEIGHTS, {}, GRADIENT)
    np.testing.assert_allclose(ours["a"], theirs.detach().numpy(), rtol=1e-15)


def test_the_first_adam_step_has_the_size_of_the_rate():
    """m̂ = g and v̂ = g², so the step is rate · g / (|g| + ε)."""
    adam = Adam(rate=0.1, epsilon=0.5)
    after, memory = adam.step(WEIGHTS, adam.start(WEIGHTS), GRADIENT)
    np.testing.assert_allclose(
        after["a"], [1 - 0.1 * 0.5 / 1.0, -2 - 0.1 * 4 / 4.5], rtol=1e-14
    )
    np.testing.assert_allclose(after["b"], 0.5 + 0.1 / 1.5, rtol=1e-14)
    np.testing.assert_allclose(memory["adam/exp_avg/a"], [0.05, 0.4], rtol=1e-14)
    np.testing.assert_allclose(memory["adam/exp_avg_sq/a"], [2.5e-4, 0.016], rtol=1e-12)
    assert memory["adam/step"] == 1.0


def test_adam_is_the_papers_algorithm_over_twenty_steps():
    """In float64, to 1e-12."""
    gradients = random_gradients(20)
    start = np.ones((7, 3))
    expected = numpy_adam(start, gradients, [0.05] * 20)
    found = run(Adam(rate=0.05), {"w": start}, [{"w": g} for g in gradients])
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours["w"], theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("betas", [(0.5, 0.9), (0.99, 0.5)])
def test_adam_reads_its_own_parameters(betas):
    gradients = random_gradients(5)
    start = np.zeros((7, 3))
    beta1, beta2 = betas
    expected = numpy_adam(
        start, gradients, [0.1] * 5, beta1=beta1, beta2=beta2, epsilon=1e-3
    )
    adam = Adam(rate=0.1, beta1=beta1, beta2=beta2, epsilon=1e-3)
    found = run(adam, {"w": start}, [{"w": g} for g in gradients])
    np.testing.assert_allclose(found[-1]["w"], expected[-1], rtol=0, atol=1e-12)


# --- FedVAE's boost ------------------------------------------------------------------

BOOST = DecayingBoost(rate=0.05, gamma=3.0, decay=0.9)


def two_steps(weights, gradients, boost):
    """Equation 4: an Adam step at η, then ω ← ω + γ δᵗ (ω - ω before)."""
    path, adam = [], Adam(rate=boost.rate)
    memory = adam.start(weights)
    for t, gradient in enumerate(gradients, start=1):
        stepped, memory = adam.step(weights, memory, gradient)
        extra = boost.gamma * boost.decay**t
        weights = {n: w + extra * (w - weights[n]) for n, w in stepped.items()}
        path.append(weights)
    return path


def test_a_boosted_rate_is_the_papers_second_step():
    gradients = [{"w": g} for g in random_gradients(20)]
    start = {"w": np.ones((7, 3))}
    expected = two_steps(start, gradients, BOOST)
    found = run(Adam(rate=BOOST), start, gradients)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours["w"], theirs["w"], rtol=0, atol=1e-12)


def test_the_boost_by_hand():
    assert [BOOST.at(t) for t in (0, 1, 2)] == pytest.approx([0.2, 0.185, 0.1715])


@pytest.mark.parametrize("epoch", [1, 2, 50])
def test_the_limits_of_the_boost(epoch):
    """δ = 1 is a fixed rate of η (1 + γ); δ = 0 is η, for the paper's t from 1."""
    assert DecayingBoost(0.1, 3.0, decay=1.0).at(epoch) == pytest.approx(0.4)
    assert DecayingBoost(0.1, 3.0, decay=0.0).at(epoch) == 0.1
    assert DecayingBoost(0.1, 0.0).at(epoch) == 0.1


def test_the_boost_fades():
    assert BOOST.at(1000) == pytest.approx(BOOST.rate)
    assert DecayingBoost(0.1, 3.0, decay=0.0).at(0) == pytest.approx(0.4)


def test_sgd_takes_a_boosted_rate_too():
    after, _ = Sgd(rate=BOOST).step(WEIGHTS, {}, GRADIENT, epoch=2)
    np.testing.assert_allclose(after["a"], WEIGHTS["a"] - 0.1715 * GRADIENT["a"])


# --- Types, purity, refusals ---------------------------------------------------------


@pytest.mark.parametrize("optimizer", [Sgd(0.1), Adam(0.1)])
def test_float32_weights_stay_float32(optimizer):
    weights = {name: value.astype(np.float32) for name, value in WEIGHTS.items()}
    memory = optimizer.start(weights)
    for _ in range(2):
        weights, memory = optimizer.step(weights, memory, GRADIENT)
    assert {value.dtype.name for value in (weights | memory).values()} == {"float32"}


@pytest.mark.parametrize("optimizer", [Sgd(0.1), Adam(0.1)])
def test_nothing_that_was_handed_over_is_changed(optimizer):
    start = optimizer.start(WEIGHTS)
    weights, memory = optimizer.step(WEIGHTS, start, GRADIENT)
    for value in (*weights.values(), *memory.values(), *GRADIENT.values()):
        value.setflags(write=False)
    kept = {name: value.copy() for name, value in (weights | memory).items()}
    once, _ = optimizer.step(weights, memory, GRADIENT)
    again, _ = optimizer.step(weights, memory, GRADIENT)
    for name, value in (weights | memory).items():
        np.testing.assert_array_equal(value, kept[name])
    for name, value in once.items():
        np.testing.assert_array_equal(value, again[name])
        assert not np.shares_memory(value, weights[name])


@pytest.mark.parametrize("optimizer", [Sgd(0.1), Adam(0.1)])
@pytest.mark.parametrize(
    "gradient",
    [
        {"a": GRADIENT["a"]},
        GRADIENT | {"c": np.zeros(1)},
        GRADIENT | {"a": np.zeros(3)},
        GRADIENT | {"a": np.zeros((2, 1))},
    ],
    ids=["missing", "extra", "longer", "turned"],
)
def test_a_gradient_of_other_weights_is_refused(optimizer, gradient):
    with pytest.raises(BadValue, match="the weights are"):
        optimizer.step(WEIGHTS, optimizer.start(WEIGHTS), gradient)


def close(dtype):
    return {"rtol": 0, "atol": 5e-7 if dtype == np.float32 else 1e-12}


def ten_steps(dtype):
    """The first weights, ten gradients, and what Adam makes of them."""
    gradients = random_gradients(10).astype(dtype)
    start = np.ones((7, 3), dtype)
    found = run(Adam(0.05), {"w": start}, [{"w": g} for g in gradients])[-1]["w"]
    return start, gradients, found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_compiled_adam_step_is_the_plain_one(dtype, monkeypatch):
    """Float32 to 1e-6 of a step's size, float64 to 1e-12, over ten steps."""
    *_, plain = ten_steps(dtype)
    monkeypatch.setitem(TABLE, "adam.adam", TABLE["adam.adam"].at(0))
    *_, compiled = ten_steps(dtype)
    np.testing.assert_allclose(compiled, plain, **close(dtype))
    assert compiled.dtype == dtype


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adam_is_torchs(dtype):
    """As near as the compiled step is."""
    torch = pytest.importorskip("torch")
    start, gradients, plain = ten_steps(dtype)
    theirs = torch.nn.Parameter(torch.from_numpy(start.copy()))
    adam = torch.optim.Adam([theirs], lr=0.05)
    for gradient in gradients:
        theirs.grad = torch.from_numpy(gradient.copy())
        adam.step()
    np.testing.assert_allclose(plain, theirs.detach().numpy(), **close(dtype))


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Sgd(0.0), "rate=0.0"),
        (lambda: Adam(-1.0), "rate=-1.0"),
        (lambda: Adam(beta1=1.0), "beta1=1.0"),
        (lambda: Adam(beta2=0.0), "beta2=0.0"),
        (lambda: Adam(epsilon=0.0), "epsilon=0.0"),
        (lambda: DecayingBoost(0.0, 1.0), "rate=0.0"),
        (lambda: DecayingBoost(0.1, -1.0), "gamma=-1.0"),
        (lambda: DecayingBoost(0.1, 1.0, decay=-0.1), "decay=-0.1"),
        (lambda: DecayingBoost(0.1, 1.0, decay=1.1), "decay=1.1 must be <= 1"),
    ],
)
def test_settings_out_of_range_are_refused(make, complaint):
    with pytest.raises(BadValue, match=complaint):
        make()
