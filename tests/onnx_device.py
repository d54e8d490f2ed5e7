"""A device that has an exported file and an ONNX runtime, and nothing of ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime


def run(model: bytes | Path, history: np.ndarray) -> np.ndarray:
    """The scores of these histories."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # tests share a machine
    content = model if isinstance(model, bytes) else model.read_bytes()
    session = onnxruntime.InferenceSession(content, options)
    (entry,), (leave,) = session.get_inputs(), session.get_outputs()
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}[entry.type]
    assert (entry.name, leave.name) == ("history", "scores")
    return session.run(["scores"], {"history": history.astype(kind)})[0]
