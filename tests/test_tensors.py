"""A safetensors file asks for no more memory than it has bytes, and lies about none."""

import json
import struct
import tracemalloc

import numpy as np
import pytest
from quick import some_or_all
from safetensors.numpy import save

from tacit.documents import digest_of
from tacit.errors import BadRun, Damaged
from tacit.tensors import MOST_HEADER, layout_of, read_tensors

ARRAYS = {
    "a": np.arange(6.0).reshape(2, 3),
    "b": np.array([1, 2], np.int16),
    "c": np.array([True, False, True]),
    "none": np.empty((0, 4), np.float32),
    "one": np.array(3, np.uint8),
    "half": np.array([0.5], np.float16),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(save(ARRAYS, metadata={"facts": "x"}))
    return path


def test_arrays_come_back_as_they_were_and_can_be_written(path):
    found = read_tensors(path, layout=layout_of(ARRAYS))
    assert found.metadata == {"facts": "x"}
    assert found.arrays.keys() == ARRAYS.keys()
    for name, value in ARRAYS.items():
        kept = found.arrays[name]
        assert (kept.dtype, kept.shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(kept, value)
        assert kept.flags.writeable
        assert kept.flags.aligned


@some_or_all("stride", 7, 1)
def test_with_a_digest_no_bit_can_flip(stride, path):
    whole = path.read_bytes()
    for place in range(0, 8 * len(whole), stride):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        with pytest.raises(Damaged):
            read_tensors(path, digest=digest_of(whole))


@some_or_all("stride", 7, 1)
def test_without_one_a_flip_is_damage_or_other_arrays_but_nothing_else(stride, path):
    whole = path.read_bytes()
    for place in range(0, 8 * len(whole), stride):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        try:
            read_tensors(path)
        except Damaged:
            continue


def written(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    path.write_bytes(struct.pack("<Q", size) + text + data)


def entry(dtype="F64", shape=(1,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_a_small_file_cannot_ask_for_745_gib(path):
    """Refused before anything is allocated."""
    n = 10**11
    written(path, {"weights/V": entry(shape=(n,), offsets=(0, 8 * n))}, bytes(1000))
    tracemalloc.start()
    try:
        with pytest.raises(Damaged, match="its arrays have 800,000,000,000 bytes"):
            read_tensors(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "length", [0, 1, 3, 1 << 20, MOST_HEADER + 1, 2**63, 2**64 - 1]
)
def test_a_header_that_is_longer_than_the_file_or_the_bound(path, length):
    written(path, {}, length=length)
    with pytest.raises(Damaged, match="a header of"):
        read_tensors(path)


@pytest.mark.parametrize(
    "header",
    [
        *(b"[]", b"3", b"\xff\xff", b"{" * 50_000, b'{"a": 1}'),
        *({"a": entry("F8")}, {"a": entry("BF16", (4,))}, {"a": entry(["F64"])}),
        {"a": entry(shape=(-1,), offsets=(8, 0))},
        {"a": entry(shape=(1.0,))},
        {"a": entry(shape=(True,))},
        {"a": entry(shape=(2**62, 2**62))},
        {"a": entry(shape=(1,) * 40)},
        {"a": entry(offsets=(0, 7))},
        {"a": entry(offsets=(0, 8, 16))},
        {"a": entry(shape=(2,), offsets=(0, 16))},
        {"a": entry(offsets=(8, 16))},
        {"a": entry(), "b": entry()},
        {"a": {**entry(), "more": 1}},
        {"__metadata__": 3, "a": entry()},
        {},
        b'{"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}, "a": '
        b'{"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}',
    ],
)
def test_a_header_that_does_not_describe_its_data(path, header):
    written(path, header, bytes(8))
    with pytest.raises(Damaged):
        read_tensors(path)


@pytest.mark.parametrize(
    ("name", "declared", "said"),
    [
        ("a", ("F64", (3, 2)), r"'a' is F64 of shape \[2, 3\] and declared as F64 of"),
        ("a", ("F32", (2, 3)), r"declared as F32"),
        ("z", ("F32", (2, 3)), r"array 'z' is absent and declared as"),
        ("b", None, r"array 'b' is I16 of shape \[2\] and declared as absent"),
    ],
)
def test_what_was_not_declared_is_refused(path, name, declared, said):
    layout = {n: one for n, one in layout_of(ARRAYS).items() if n != name}
    if declared is not None:
        layout[name] = declared
    with pytest.raises(Damaged, match=said):
        read_tensors(path, layout=layout)


def test_what_cannot_be_read_says_why(tmp_path):
    with pytest.raises(BadRun, match="cannot be read: No such file"):
        read_tensors(tmp_path / "nowhere")
    with pytest.raises(BadRun, match="cannot be read: Is a directory"):
        read_tensors(tmp_path)
