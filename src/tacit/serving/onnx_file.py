"""A formula as an ONNX file, for devices that have neither Python nor tacit.

    history   (users, items)   in: above zero at each item that the user has
    scores    (users, items)   out: larger is better

The steps are written as they stand (`models.onnx_graph`) without torch. Constants
are cast to the precision of the file, and equal formulas give equal bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal

import numpy as np

from tacit.errors import BadValue, MissingExtra
from tacit.models.onnx_graph import HISTORIES, Formula
from tacit.tree import Array
from tacit.version import __version__

Precision = Literal["float32", "float64"]

INPUT, OUTPUT = "history", "scores"
OPSET = 17  # of 2022: the runtimes on devices today know all of it
_IR_VERSION = 8  # the file format that came with it
_MOST_BYTES = 2**31 - 2**20  # a file is one message, which protobuf ends at 2 GiB


def to_onnx(
    formula: Formula, *, n_items: int, precision: Precision = "float32"
) -> bytes:
    """The bytes of the file, checked by ONNX's own checker."""
    onnx = _onnx()
    written = _Written(onnx, np.dtype(precision))
    last = written.name(formula)
    written.nodes.append(onnx.helper.make_node("Identity", [last], [OUTPUT]))
    kind = onnx.helper.np_dtype_to_tensor_dtype(written.dtype)
    ends = [
        onnx.helper.make_tensor_value_info(name, kind, ["people", n_items])
        for name in (INPUT, OUTPUT)
    ]
    graph = onnx.helper.make_graph(
        written.nodes, "ranking", ends[:1], ends[1:], written.constants
    )
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
        producer_name="tacit",
        producer_version=__version__,
    )
    onnx.checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString()
    return content


@dataclass
class _Written:
    """The steps and constants so far, each formula once and after what it reads."""

    onnx: ModuleType
    dtype: np.dtype[Any]
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    size: int = 0
    names: dict[Formula, str] = field(default_factory=lambda: {HISTORIES: INPUT})

    def name(self, formula: Formula) -> str:
        """The name of a formula's output; its step is added if it is new."""
        if formula not in self.names:
            read = [self.name(one) for one in formula.inputs]
            self.names[formula] = name = f"step_{len(self.names)}"
            if formula.value is not None:
                self._add_constant(formula.value, name)
            else:
                self._add_step(formula, read, name)
        return self.names[formula]

    def _add_step(self, formula: Formula, read: list[str], name: str) -> None:
        make = self.onnx.helper.make_node
        self.nodes.append(make(formula.operator, read, [name], **formula.options))

    def _add_constant(self, value: Array, name: str) -> None:
        constant = self._cast(value)
        self.size += constant.nbytes
        if self.size > _MOST_BYTES:
            raise BadValue(
                f"the model takes more than {_MOST_BYTES:,} bytes, the most an ONNX "
                "file can hold; train with fewer items (a smaller head) or widths"
            )
        self.constants.append(self.onnx.numpy_helper.from_array(constant, name))

    def _cast(self, value: Array) -> Array:
        """Floats in the file's precision; indices of items as int64."""
        if not np.issubdtype(value.dtype, np.floating):
            return value.astype(np.int64)
        with np.errstate(over="ignore"):
            found = np.asarray(value, self.dtype, order="C")
        if not np.isfinite(found).all():
            raise BadValue(
                f"the model has weights that are no finite {self.dtype.name}; "
                "write it in float64, or look why training diverged"
            )
        return found


def _onnx() -> ModuleType:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingExtra("onnx", "onnx") from error
    return onnx
