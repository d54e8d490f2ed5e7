"""Seals to messages: a seal counts once, and what does not open is left out."""

import tracemalloc

import numpy as np
import pytest
from service.relay.places import a_batch, a_manifest

from tacit.service import hpke
from tacit.service.relay import opening
from tacit.service.relay.messages import MessageForm
from tacit.service.relay.opening import open_all
from tacit.service.relay.uploads import seal_info
from tacit.transport.messages import Layout, Slot

PRIVATE = bytes([9]) * 32
MANIFEST = a_manifest(collector_key=hpke.public_key(PRIVATE))
FORM = MessageForm(Layout({"votes": Slot("int32", (3,))}, split_axis=0))


def sealed(
    vote: int, *, key=MANIFEST.keys["collector"], epoch=MANIFEST.round_id
) -> bytes:
    text = vote.to_bytes(4, "little", signed=True) + bytes(4)
    return hpke.sealed(text, key, seal_info(epoch))


def found(tmp_path, *batches, **kwargs):
    bodies = [a_batch(MANIFEST.round_id, one) for one in batches]
    return open_all(bodies, MANIFEST, PRIVATE, FORM.sound, folder=tmp_path, **kwargs)


def votes(opened) -> list[int]:
    return sorted(FORM.tree(opened.rows)["votes"].tolist())


def test_all_messages_come_out_in_an_order_of_their_own(tmp_path):
    seals = [sealed(n) for n in range(-5, 20)]
    one = found(tmp_path, seals[:10], seals[10:])
    two = found(tmp_path, seals[::-1])
    assert votes(one) == [*range(-5, 20)]
    np.testing.assert_array_equal(one.rows, two.rows)
    assert (one.dropped, one.repeated) == (0, 0)
    assert [*tmp_path.iterdir()] == []  # nothing that was opened has a name


def test_a_seal_that_is_there_twice_counts_once(tmp_path):
    """Replayed by a relay, in one batch or in two."""
    seals = [sealed(n) for n in range(4)]
    one = found(tmp_path, [*seals, seals[0]], seals[2:])
    assert votes(one) == [0, 1, 2, 3]
    assert one.repeated == 3


def test_equal_messages_of_two_clients_count_twice(tmp_path):
    assert votes(found(tmp_path, [sealed(7), sealed(7)])) == [7, 7]


def test_what_does_not_open_or_is_no_message_is_left_out(tmp_path):
    other = hpke.public_key(bytes([8]) * 32)
    padded = hpke.sealed(
        bytes(7) + b"\1", MANIFEST.keys["collector"], seal_info(MANIFEST.round_id)
    )
    harmed = sealed(3)
    bad = [
        sealed(1, key=other),
        sealed(2, epoch=bytes(32)),
        bytes(56),
        b"\xff" * 56,
        harmed[:-1] + bytes([harmed[-1] ^ 1]),
        padded,
    ]
    one = found(tmp_path, [*bad[:3], sealed(9), *bad[3:]])
    assert votes(one) == [9]
    assert one.dropped == len(bad)


def test_nothing_at_all_is_no_message(tmp_path):
    one = found(tmp_path, [bytes(56)])
    assert (one.rows.shape, one.dropped) == ((0, 8), 1)


@pytest.mark.slow
def test_several_processes_open_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "_MANY", 10)
    seals = [sealed(n) for n in range(40)]
    batches = [seals[i : i + 7] for i in range(0, 40, 7)]
    one = found(tmp_path, *batches, processes=2, expected=40)
    assert votes(one) == [*range(40)]


def test_large_epochs_are_not_sorted_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "_SORTED_BYTES", 8)
    assert votes(found(tmp_path, [sealed(n) for n in range(9)])) == [*range(9)]


def test_repeated_digests_are_found_with_little_memory():
    """Of 200,000, each fifth again: less than the digests themselves take."""
    draws = np.random.default_rng(0)
    rows = draws.integers(0, 256, (200_000, 16), np.uint8)
    rows[5::5] = rows[:-5:5]  # each as the one five before: all are as the first
    digests = bytearray(rows.tobytes())
    tracemalloc.start()
    try:
        found = opening._first_of_each(digests)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    whole = rows.view(np.dtype((np.void, 16)))[:, 0]
    expected = np.zeros(len(rows), bool)
    expected[np.unique(whole, return_index=True)[1]] = True
    np.testing.assert_array_equal(found, expected)
    assert most < len(digests) / 2
