"""Every step of a formula, run by an ONNX runtime, against numpy."""

import numpy as np
import pytest
from onnx_device import run

from tacit.models.onnx_graph import HISTORIES, Formula
from tacit.serving.onnx_file import to_onnx

X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [-1.0, 0.5, 3.0]])
SQUARE = np.arange(9.0).reshape(3, 3) / 10
ROW = np.array([0.5, -2.0, 3.0])
LENGTHS = np.sqrt((X * X).sum(axis=1, keepdims=True))

STEPS = {
    "add": (HISTORIES + ROW, X + ROW),
    "subtract": (HISTORIES - 1.5, X - 1.5),
    "multiply": (HISTORIES * ROW, X * ROW),
    "divide": (HISTORIES / ROW, X / ROW),
    "maximum": (HISTORIES.maximum(ROW), np.maximum(X, ROW)),
    "minimum": (HISTORIES.minimum(0.25), np.minimum(X, 0.25)),
    "tanh": (HISTORIES.tanh(), np.tanh(X)),
    "exp": (HISTORIES.exp(), np.exp(X)),
    "log": ((HISTORIES + 2.0).log(), np.log(X + 2)),
    "absolute": (HISTORIES.absolute(), np.abs(X)),
    "held": (HISTORIES.held(), np.where(X > 0, 1.0, 0.0)),
    "product": (HISTORIES @ SQUARE, X @ SQUARE),
    "smallest": (HISTORIES - HISTORIES.smallest(), X - X.min(1, keepdims=True)),
    "length": (HISTORIES * HISTORIES.length(), X * LENGTHS),
    "transposed": (HISTORIES @ Formula.constant(SQUARE).transposed(), X @ SQUARE.T),
    "columns": (HISTORIES.columns(np.array([2, 0, 1])), X[:, [2, 0, 1]]),
    "rows": (
        HISTORIES @ Formula.constant(SQUARE).rows(np.array([1, 1, 0])),
        X @ SQUARE[[1, 1, 0]],
    ),
    "beside": (
        HISTORIES.columns(np.array([1])).beside(HISTORIES.columns(np.array([0, 1]))),
        X[:, [1, 0, 1]],
    ),
    "placed": (
        (HISTORIES + 10.0)
        .columns(np.array([2, 0]))
        .placed(np.array([2, 0]), among=HISTORIES, n_items=3),
        X + np.array([10.0, 0.0, 10.0]),
    ),
}


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_what_numpy_makes_of_it(step, precision):
    formula, expected = STEPS[step]
    found = run(to_onnx(formula, n_items=3, precision=precision), X)
    assert found.dtype == precision
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_unit_row_has_length_one_and_a_short_one_is_nothing():
    x = np.array([[3.0, 4.0], [0.0, 0.0], [0.5, 0.0], [0.6, 0.0]])
    found = run(to_onnx(HISTORIES.unit(least=0.5), n_items=2), x)
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [0, 0], [1, 0]], atol=1e-7)


@pytest.mark.parametrize("x", [X, X[1:2], np.eye(3)])
def test_only_columns_above_zero_are_looked_at(x):
    """Also where there is none: a product over nothing is zero."""
    some = HISTORIES.any_row()
    formula = HISTORIES.columns(some) @ Formula.constant(SQUARE).rows(some)
    held = (x > 0).any(axis=0)
    found = run(to_onnx(formula, n_items=3), x)
    np.testing.assert_allclose(found, x[:, held] @ SQUARE[held], rtol=1e-6)


def test_an_array_on_the_left_is_an_error():
    """Numpy would make an array of formulas of it."""
    with pytest.raises(TypeError):
        SQUARE @ HISTORIES
    with pytest.raises(TypeError):
        ROW + HISTORIES
