import numpy as np
import pytest

from tacit.aggregation.reptile import Reptile
from tacit.aggregation.server_optimizers import Sgd
from tacit.errors import BadValue

WEIGHTS = {"a": np.array([1.0, -2.0]), "b": np.array(0.5)}
GRADIENT = {"a": np.array([0.5, 4.0]), "b": np.array(-1.0)}


def test_half_the_way():
    after, memory = Reptile(0.5).step(WEIGHTS, Reptile(0.5).start(WEIGHTS), GRADIENT)
    assert after["a"].tolist() == [0.75, -4.0]
    assert after["b"] == 1.0
    assert memory == {}


def test_as_torch_steps():
    pytest.importorskip("torch")
    here, there = (o(0.3).step(WEIGHTS, {}, GRADIENT)[0] for o in (Reptile, Sgd))
    np.testing.assert_allclose(here["a"], there["a"], rtol=1e-15)


def test_weights_keep_their_precision():
    narrow = {name: value.astype(np.float32) for name, value in WEIGHTS.items()}
    after, _ = Reptile().step(narrow, {}, GRADIENT)
    assert after["a"].dtype == np.float32


def test_no_step_is_refused():
    with pytest.raises(BadValue, match="rate"):
        Reptile(0.0)
