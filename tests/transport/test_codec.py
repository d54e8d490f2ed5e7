"""Whatever the bytes are: exactly what was encoded, or BadMessage."""

import inspect
import json
import struct
import tracemalloc
import typing

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tacit.data.catalog import Catalog
from tacit.errors import BadMessage, BadValue, Refused
from tacit.method import Clients, Server, Tastes, Updates
from tacit.plans import Plan
from tacit.transport import codec
from tacit.transport.codec import (
    broadcast_size,
    decode_broadcast,
    decode_partial,
    decode_reports,
    decode_stack,
    encode_broadcast,
    encode_partial,
    encode_reports,
    encode_stack,
    wire_size,
)
from tacit.transport.messages import (
    Broadcast,
    Layout,
    PartialSum,
    Reports,
    Slot,
)
from tacit.tree import Dense, Factored, Tree

DIGEST = bytes(range(16))
CAST = Broadcast(3, DIGEST, {})
LAYOUT = Layout({"b": Slot("float32", (3,)), "n": Slot("uint8", ())})
REPORT = Reports(
    Tree.dense(b=np.array([[1, -2, 0.5]], np.float32), n=np.array([7], np.uint8))
)

DTYPES = ["bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "float64"]
names = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="#"), max_size=8
).filter(lambda name: name != "__metadata__")
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


def values(dtype: str, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    finite = {"allow_nan": False, "allow_infinity": False}
    elements = hnp.from_dtype(np.dtype(dtype), **finite)
    return hnp.arrays(dtype, shape, elements=elements)


@st.composite
def weights(draw: st.DrawFn) -> dict[str, np.ndarray]:
    drawn = draw(st.dictionaries(names, st.tuples(st.sampled_from(DTYPES), shapes)))
    return {name: draw(values(*kind)) for name, kind in drawn.items()}


@st.composite
def slots(draw: st.DrawFn) -> Slot:
    if draw(st.booleans()):
        return Slot(draw(st.sampled_from(DTYPES)), draw(shapes))
    rows, columns, rank = (draw(st.integers(0, 3)) for _ in range(3))
    return Slot(draw(st.sampled_from(DTYPES)), (rows, columns), rank)


@st.composite
def layouts_and_trees(draw: st.DrawFn) -> tuple[Layout, Tree]:
    layout = Layout(draw(st.dictionaries(names, slots(), min_size=1, max_size=3)))
    clients = draw(st.integers(1, 3))
    leaves = {}
    for name, slot in layout.slots.items():
        parts = {
            suffix: draw(values(slot.dtype, (clients, *shape)))
            for suffix, shape in slot.parts().items()
        }
        leaves[name] = slot.leaf(parts)
    return layout, Tree(leaves)


# --- Round trips ---------------------------------------------------------------------


@given(
    st.integers(0, 2**64 - 1),
    st.binary(min_size=16, max_size=16),
    weights(),
    st.integers(0, 2**16 - 1),
)
def test_a_broadcast_comes_back(round_, digest, arrays, phase):
    broadcast = Broadcast(round_, digest, arrays, phase)
    message = encode_broadcast(broadcast)
    found = decode_broadcast(message)
    assert (found.round, found.agreement) == (round_, digest)
    assert found.phase == phase
    assert_same_arrays(found.weights, arrays)
    assert len(message) == broadcast_size(broadcast.stored())


@given(layouts_and_trees())
def test_reports_come_back(drawn):
    layout, tree = drawn
    messages = encode_reports(CAST, Reports(tree))
    assert {len(message) for message in messages} == {wire_size(layout)}
    assert_same_trees(decode_reports(CAST, messages, layout).tree, tree)


def test_the_order_of_names_does_not_show():
    one, two = np.ones(2), np.arange(3)
    forth = encode_broadcast(Broadcast(0, DIGEST, {"x": one, "y": two}))
    assert forth == encode_broadcast(Broadcast(0, DIGEST, {"y": two, "x": one}))


def test_views_and_foreign_byte_orders_travel_by_value():
    square = np.arange(6.0).reshape(2, 3)
    broadcast = Broadcast(
        0, DIGEST, {"turned": square.T, "swapped": square.astype(">f8")}
    )
    found = decode_broadcast(encode_broadcast(broadcast)).weights
    np.testing.assert_array_equal(found["turned"], square.T)
    np.testing.assert_array_equal(found["swapped"], square)


def test_nobody_says_nothing():
    assert encode_reports(CAST, Reports.nobody()) == []
    assert len(decode_reports(CAST, [], LAYOUT)) == 0


def test_a_digest_of_another_length_is_refused_not_padded():
    with pytest.raises(BadValue, match="has 2 bytes; needed are 16"):
        Broadcast(0, b"ab", {})


# --- Damage --------------------------------------------------------------------------


def decoders(message: bytes):
    """Each decoder, told to expect what `message` once was."""
    yield decode_broadcast, (message,)
    yield decode_reports, (CAST, [message], LAYOUT)


def assert_refused(message: bytes) -> None:
    for decode, arguments in decoders(message):
        with pytest.raises(BadMessage):
            decode(*arguments)


WHOLE = {
    "broadcast": encode_broadcast(
        Broadcast(3, DIGEST, {"b": np.ones(2), "n": np.array(True)})
    ),
    "report": encode_reports(CAST, REPORT)[0],
}


@pytest.mark.parametrize("kind", WHOLE)
def test_every_truncation_is_refused(kind):
    whole = WHOLE[kind]
    for end in range(len(whole)):
        assert_refused(whole[:end])
    assert_refused(whole + b"\0")


@pytest.mark.parametrize("kind", WHOLE)
def test_every_changed_byte_is_refused(kind):
    whole = WHOLE[kind]
    for place in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            changed = bytearray(whole)
            changed[place] ^= flip
            assert_refused(bytes(changed))


def test_damage_is_told_from_forgery():
    changed = bytearray(WHOLE["report"])
    changed[-20] ^= 1  # in the body
    with pytest.raises(BadMessage, match="was damaged on the way"):
        decode_reports(CAST, [bytes(changed)], LAYOUT)


def test_a_message_of_another_length_is_not_even_parsed(monkeypatch):
    monkeypatch.setattr(codec, "_parse", lambda body: pytest.fail("was parsed"))
    message = sealed(BODIES["extra array"])
    with pytest.raises(
        BadMessage, match=rf"every such message has {wire_size(LAYOUT)}"
    ):
        decode_reports(CAST, [message], LAYOUT)


@given(st.binary(max_size=200))
@example(b"TCIT")
def test_random_bytes_are_refused(data):
    assert_refused(data)


# --- Forgery: the checksum is right, the content is not ------------------------------


def sealed(body: bytes, *, kind: int = 2, magic=b"TCIT", version=1, phase=0, **changed):
    """A message with a valid length and checksum around any body."""
    fields = {"round_": 3, "digest": DIGEST, "length": len(body)} | changed
    head = struct.pack("<4sBBH", magic, version, kind, phase)
    head += struct.pack("<QQ16s", fields["round_"], fields["length"], fields["digest"])
    return head + body + codec._checksum(head + body)


def body_of(header: object, data: bytes = b"", *, gap: bytes = b"") -> bytes:
    """A safetensors body with any header."""
    text = header if isinstance(header, bytes) else compact(header)
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + gap + data


def compact(header: object) -> bytes:
    return json.dumps(header, separators=(",", ":")).encode()


def entry(dtype: str, shape: list[int], start: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


FLOATS = np.array([1, -2, 0.5], "<f4").tobytes()
B, N = entry("F32", [3], 0, 12), entry("U8", [], 12, 13)
GOOD = body_of({"b": B, "n": N}, FLOATS + b"\x07")


def with_metadata() -> bytes:
    return body_of({"__metadata__": {"who": "me"}, "b": B, "n": N}, FLOATS + b"\x07")


def reordered() -> bytes:
    first, then = entry("U8", [], 0, 1), entry("F32", [3], 1, 13)
    return body_of({"n": first, "b": then}, b"\x07" + FLOATS)


def with_gap() -> bytes:
    late = {"b": entry("F32", [3], 8, 20), "n": entry("U8", [], 20, 21)}
    return body_of(late, FLOATS + b"\x07", gap=bytes(8))


BODIES = {
    "empty": b"",
    "no json": body_of(b"x" * 64),
    "not utf-8": body_of(b'{"\xff":{}}'),
    "lone surrogate": body_of(b'{"\\ud800":' + compact(B) + b"}", FLOATS),
    "nested": body_of(b"[" * 10_000),
    "a list": body_of([1, 2]),
    "metadata": with_metadata(),
    "reordered data": reordered(),
    "reordered header": body_of({"n": N, "b": B}, FLOATS + b"\x07"),
    "spaces": body_of(json.dumps({"b": B, "n": N}).encode(), FLOATS + b"\x07"),
    "leading space": body_of(b" " + compact({"b": B, "n": N}), FLOATS + b"\x07"),
    "more padding": body_of(compact({"b": B, "n": N}) + b" " * 16, FLOATS + b"\x07"),
    "gap": with_gap(),
    "overlap": body_of({"b": B, "n": entry("U8", [], 0, 1)}, FLOATS),
    "trailing data": GOOD + b"more",
    "a name twice": body_of(
        compact({"b": B, "n": N})[:-1] + b"," + compact({"n": N})[1:], FLOATS + b"\x07"
    ),
    "missing array": body_of({"b": B}, FLOATS),
    "extra array": body_of(
        {"b": B, "n": N, "x": entry("U8", [1], 13, 14)}, FLOATS + b"\x07\x00"
    ),
    "wrong dtype": body_of({"b": entry("I32", [3], 0, 12), "n": N}, FLOATS + b"\x07"),
    "wrong shape": body_of({"b": entry("F32", [1, 3], 0, 12), "n": N}, FLOATS + b"\7"),
    "unknown dtype": body_of({"b": entry("BF16", [6], 0, 12), "n": N}, FLOATS + b"\7"),
    "complex": body_of({"b": entry("C64", [1], 0, 8)}, FLOATS[:8]),
    "half a byte": body_of({"b": entry("F4", [2], 0, 1)}, b"\0"),
    "huge shape": body_of({"b": entry("F32", [2**60], 0, 2**62), "n": N}, FLOATS),
    "overflowing shape": body_of({"b": entry("F32", [2**40] * 2, 0, 12)}, FLOATS),
    "huge empty shape": body_of({"b": entry("U8", [0, 2**64 - 1], 0, 0)}),
    "too many axes": body_of({"b": entry("U8", [1] * 100, 0, 1)}, b"\0"),
    "negative shape": body_of({"b": entry("U8", [-1], 0, 1)}, b"\0"),
    "huge header": struct.pack("<Q", 2**60),
    "largest header": struct.pack("<Q", 2**64 - 1) + b"{}      ",
    "nan": body_of({"b": B, "n": N}, np.array([np.nan] * 3, "<f4").tobytes() + b"\7"),
    "infinity": body_of({"b": B, "n": N}, np.full(3, np.inf, "<f4").tobytes() + b"\7"),
}


def test_the_forger_can_write_a_good_message():
    """Else the tests below would prove nothing."""
    assert sealed(GOOD) == WHOLE["report"]


@pytest.mark.parametrize("name", BODIES)
def test_a_forged_body_is_refused(name):
    assert_refused(sealed(BODIES[name]))
    message = sealed(BODIES[name])
    with pytest.raises(BadMessage):  # whatever its length
        codec._decode_row(CAST, message, LAYOUT, len(message))
    if name not in OK_IN_A_BROADCAST:
        with pytest.raises(BadMessage):
            decode_broadcast(sealed(BODIES[name], kind=1))


OK_IN_A_BROADCAST = {  # it has no declared layout here: these are other broadcasts
    *("missing array", "extra array", "wrong dtype", "wrong shape"),
}


@pytest.mark.parametrize("name", ["nan", "infinity", "wrong dtype"])
def test_a_forgery_of_the_right_length_gets_past_the_length_check(name):
    """So what refuses it is what looks at the content."""
    assert len(sealed(BODIES[name])) == wire_size(LAYOUT)
    with pytest.raises(BadMessage, match=r"NaN|declared is"):
        decode_reports(CAST, [sealed(BODIES[name])], LAYOUT)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"magic": b"TCIX"}, "does not begin"),
        ({"phase": 1}, "does not begin"),
        ({"version": 2}, "version 2; this program reads version 1"),
        ({"kind": 1}, "is a Broadcast, expected a Report"),
        ({"kind": 3}, "is a PartialSum, expected a Report"),
        ({"kind": 4}, "is a Reports, expected a Report"),
        ({"kind": 9}, "is a kind 9, expected a Report"),
        ({"round_": 4}, "answers round 4"),
        ({"digest": bytes(16)}, "of agreement 0000"),
        ({"length": 2**60}, "its header says 1152921504606846976"),
    ],
)
def test_a_forged_head_is_refused(changed, complaint):
    with pytest.raises(BadMessage, match=complaint):
        decode_reports(CAST, [sealed(GOOD, **changed)], LAYOUT)


def test_only_a_broadcast_says_a_phase():
    """In a report it would be one more thing to tell users apart by."""
    assert decode_broadcast(sealed(GOOD, kind=1, phase=2)).phase == 2
    with pytest.raises(BadMessage):
        decode_reports(CAST, [sealed(GOOD, phase=2)], LAYOUT)
    assert len(decode_reports(CAST, [sealed(GOOD)], LAYOUT)) == 1


def test_there_is_one_way_to_say_true():
    """A byte of 2 reads as true too: a message within the message."""
    two = sealed(body_of({"x": entry("BOOL", [1], 0, 1)}, b"\x02"), kind=1)
    with pytest.raises(BadMessage, match="neither true nor false"):
        decode_broadcast(two)
    one = sealed(body_of({"x": entry("BOOL", [1], 0, 1)}, b"\x01"), kind=1)
    assert decode_broadcast(one).weights["x"].tolist() == [True]


headers = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2**65) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["b", "n", "dtype", "shape", "data_offsets"]), inner
        )
        | st.builds(
            entry,
            st.sampled_from(["F32", "U8", "BOOL", "F8_E4M3"]),
            st.lists(st.integers(0, 2**64)),
            st.integers(0, 16),
            st.integers(0, 2**64),
        )
    ),
    max_leaves=8,
)


@given(headers, st.binary(max_size=16))
def test_a_forged_header_is_refused_or_is_a_broadcast_that_encodes_to_itself(
    header, data
):
    message = sealed(body_of(header, data), kind=1)
    try:
        broadcast = decode_broadcast(message)
    except BadMessage:
        return
    assert encode_broadcast(broadcast) == message


@pytest.mark.parametrize("claim", ["head", "header length", "shape"])
def test_a_claim_of_much_memory_allocates_nothing(claim):
    lie = {
        "head": sealed(b"", length=2**60),
        "header length": sealed(struct.pack("<Q", 2**60)),
        "shape": sealed(BODIES["huge shape"]),
    }[claim]
    tracemalloc.start()
    for decode, arguments in decoders(lie):
        with pytest.raises(BadMessage):
            decode(*arguments)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000


# --- What a machine answers ----------------------------------------------------------

SUM = PartialSum({"x": np.arange(3.0), "n": np.array(4)})
SLOTS = {"x": ("float64", (3,)), "n": ("int64", ())}


def test_a_partial_sum_comes_back():
    found = decode_partial(CAST, encode_partial(CAST, SUM), SLOTS)
    for name, value in SUM.total.items():
        np.testing.assert_array_equal(found.total[name], value)


@pytest.mark.parametrize(
    ("total", "complaint"),
    [
        ({"x": np.full(3, np.nan), "n": np.array(4)}, "NaN or infinity"),
        ({"x": np.zeros(4), "n": np.array(4)}, "bytes; every such sum has"),
        ({"y": np.zeros(3), "n": np.array(4)}, "agreed is"),
        ({"x": np.zeros(3, np.int64), "n": np.array(4)}, "bytes; every|agreed is"),
    ],
)
def test_another_sum_is_refused(total, complaint):
    with pytest.raises(BadMessage, match=complaint):
        decode_partial(CAST, encode_partial(CAST, PartialSum(total)), SLOTS)


def test_a_sum_answers_one_round_of_one_agreement():
    for other in (Broadcast(4, DIGEST, {}), Broadcast(3, bytes(16), {})):
        with pytest.raises(BadMessage, match="answers round"):
            decode_partial(CAST, encode_partial(other, SUM), SLOTS)


def stacked(n: int) -> Reports:
    rows = np.arange(3.0 * n, dtype=np.float32).reshape(n, 3)
    return Reports(Tree.dense(b=rows, n=np.arange(n).astype(np.uint8)))


def test_many_reports_come_back_in_one_message():
    found = decode_stack(CAST, encode_stack(CAST, stacked(9)), LAYOUT, most=9)
    np.testing.assert_array_equal(found.tree["b"], stacked(9).tree["b"])
    assert len(found) == 9


def test_more_reports_than_clients_are_refused():
    message = encode_stack(CAST, stacked(9))
    with pytest.raises(BadMessage, match="from 1 to 8 may report"):
        decode_stack(CAST, message, LAYOUT, most=8)
    large = encode_stack(CAST, stacked(9000))
    with pytest.raises(BadMessage, match="have no more than"):
        decode_stack(CAST, large, LAYOUT, most=8)


def test_stacked_reports_have_the_declared_layout():
    odd = Reports(Tree.dense(b=np.ones((2, 4), np.float32), n=np.ones(2, np.uint8)))
    with pytest.raises(BadMessage, match="declared is"):
        decode_stack(CAST, encode_stack(CAST, odd), LAYOUT, most=9)


# --- Only three things can be encoded ------------------------------------------------


def test_only_broadcasts_reports_and_their_sums_have_a_codec():
    public = {
        name: function
        for name, function in inspect.getmembers(codec, inspect.isfunction)
        if function.__module__ == codec.__name__ and not name.startswith("_")
    }
    accepted = {
        hint
        for name, function in public.items()
        for parameter, hint in typing.get_type_hints(function).items()
        if name.startswith("encode") and parameter != "return"
    }
    assert accepted == {Broadcast, Reports, PartialSum}
    assert {
        "encode_broadcast",
        "encode_partial",
        "encode_reports",
        "encode_stack",
    } == {name for name in public if name.startswith("encode")}


PRIVATE = [
    Updates(REPORT.tree),
    Tastes(REPORT.tree),
    Clients(Plan(1), np.arange(1), np.zeros(1, np.int64), REPORT.tree),
    Server(Plan(1), Catalog.of_ids(["a"]), 0, {}, {}),
]


@pytest.mark.parametrize("private", PRIVATE, ids=lambda thing: type(thing).__name__)
def test_what_is_private_is_refused_by_every_encoder(private):
    """`Updates` and `Tastes` have the same field as `Reports`: the type decides."""
    with pytest.raises(Refused, match=type(private).__name__):
        encode_reports(CAST, private)
    with pytest.raises(Refused, match=type(private).__name__):
        encode_broadcast(private)


def assert_same_arrays(found, expected) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(found[name], value)


def assert_same_trees(found: Tree, expected: Tree) -> None:
    assert found.leaves.keys() == expected.leaves.keys()
    for name, leaf in expected.leaves.items():
        assert isinstance(leaf, Dense | Factored)
        assert type(found.leaves[name]) is type(leaf)
        assert_same_arrays(found.leaves[name].parts, leaf.parts)
