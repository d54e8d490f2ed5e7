"""A computation written down, for programs that have neither Python nor this package.

    x = HISTORIES.held()                              # (users, items)
    scores = (x.unit(least=0.5) @ weights).tanh()     # nothing is computed yet

A formula is a tree of steps that begins at `HISTORIES` and at constants. Steps have
the names and the meaning of ONNX's operators, so that `serving.onnx_file` writes them
as they stand. Rows are users, and nobody's scores depend on who else is in the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int64

from tacit.tree import Array

Option = int | list[int]
_BOOLEAN = 9  # ONNX's number for this type


@dataclass(frozen=True, eq=False)
class Formula:
    """One step and the formulas that it reads, or a constant, or the input."""

    operator: str
    inputs: tuple[Formula, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)
    value: Array | None = None  # of a constant

    __array_ufunc__ = None  # so that `array @ formula` is an error, not an array

    @classmethod
    def constant(cls, value: Array | float) -> Formula:
        """A number or an array; one that is used twice is written to a file once."""
        return cls("Constant", value=np.asarray(value))

    # number by number

    def __add__(self, other: Operand) -> Formula:
        return self._then("Add", other)

    def __sub__(self, other: Operand) -> Formula:
        return self._then("Sub", other)

    def __mul__(self, other: Operand) -> Formula:
        return self._then("Mul", other)

    def __truediv__(self, other: Operand) -> Formula:
        return self._then("Div", other)

    def maximum(self, other: Operand) -> Formula:
        """The larger of the two, number by number."""
        return self._then("Max", other)

    def minimum(self, other: Operand) -> Formula:
        """The smaller of the two, number by number."""
        return self._then("Min", other)

    def tanh(self) -> Formula:
        """The hyperbolic tangent of every number."""
        return self._then("Tanh")

    def exp(self) -> Formula:
        """The exponential of every number."""
        return self._then("Exp")

    def log(self) -> Formula:
        """The natural logarithm of every number."""
        return self._then("Log")

    def absolute(self) -> Formula:
        """The absolute value of every number."""
        return self._then("Abs")

    def held(self) -> Formula:
        """1 where a number is above zero, else 0."""
        return self.maximum(0.0)._then("Sign")

    # row by row

    def __matmul__(self, other: Operand) -> Formula:
        return self._then("MatMul", other)

    def smallest(self) -> Formula:
        """The least number of each row, as a column."""
        return self._then("ReduceMin", axes=[1], keepdims=1)

    def length(self) -> Formula:
        """The L2 norm of each row, as a column."""
        along = np.array([1])
        return (self * self)._then("ReduceSum", along, keepdims=1)._then("Sqrt")

    def unit(self, *, least: float) -> Formula:
        """Each row over its length; a row no longer than `least` becomes zero."""
        length = self.length()
        return self * ((length - least).held() / length.maximum(least))

    # rows and columns

    def transposed(self) -> Formula:
        """The matrix with its rows as columns."""
        return self._then("Transpose", perm=[1, 0])

    def columns(self, places: Int64[np.ndarray, "columns"] | Formula) -> Formula:
        """Some columns, in the order given."""
        return self._then("Gather", places, axis=1)

    def rows(self, places: Int64[np.ndarray, "rows"] | Formula) -> Formula:
        """Some rows, in the order given."""
        return self._then("Gather", places, axis=0)

    def beside(self, other: Formula) -> Formula:
        """The columns of this formula, then those of the other."""
        return self._then("Concat", other, axis=1)

    def placed(
        self, places: Int64[np.ndarray, "columns"], *, among: Formula, n_items: int
    ) -> Formula:
        """`among`, one number per item, with these columns in those of `places`."""
        order = len(places) + np.arange(n_items)
        order[places] = np.arange(len(places))
        return self.beside(among).columns(order)

    def any_row(self) -> Formula:
        """The indices of the columns in which any row is above zero."""
        most = self._then("ReduceMax", axes=[0], keepdims=0).maximum(0.0)
        found = most._then("Cast", to=_BOOLEAN)._then("NonZero")
        return found._then("Reshape", np.array([-1]))

    def _then(self, operator: str, *others: Operand, **options: Option) -> Formula:
        read = (o if isinstance(o, Formula) else Formula.constant(o) for o in others)
        return Formula(operator, (self, *read), options)


Operand = Formula | Array | float

HISTORIES = Formula("Input")
"""The input: one row per user, above zero at each item that the user has."""
