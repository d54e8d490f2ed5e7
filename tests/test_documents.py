"""A document that was changed by anything but the program says so."""

import json
import logging

import pytest
from quick import some_or_all

from tacit.documents import (
    checksum_of,
    opened,
    read_document,
    sealed,
    write_document,
)
from tacit.errors import BadRun, Damaged

SPENT = {"epsilon": 5.93, "standing": "PROVEN", "who": "Amélie", "lines": [1, None]}


@pytest.fixture
def path(tmp_path):
    write_document(tmp_path / "ledger.json", SPENT, is_private=True)
    return tmp_path / "ledger.json"


def test_a_document_comes_back_as_it_was(path, caplog):
    assert read_document(path) == SPENT
    assert not caplog.records


@some_or_all("stride", 7, 1)
def test_no_flipped_bit_can_change_what_is_read(stride, path, caplog):
    """Of all flips only one in the word `checksum` is no error, and it is told."""
    whole = path.read_bytes()
    for place in range(0, 8 * len(whole), stride):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        caplog.clear()
        try:
            found = read_document(path)
        except BadRun:
            continue
        kept = {name: value for name, value in found.items() if name in SPENT}
        assert kept == SPENT, changed
        assert found == SPENT or "read unverified" in caplog.text


def test_spaces_and_order_do_not_matter_but_every_entry_does(path):
    turned = dict(reversed(json.loads(path.read_text()).items()))
    path.write_text(json.dumps(turned))
    assert read_document(path) == SPENT
    for changed in ({"epsilon": 4.04}, {"standing": "NONE"}, {"more": 1}):
        assert checksum_of(SPENT | changed) != checksum_of(SPENT)
        with pytest.raises(Damaged, match=r"ledger\.json is damaged: its checksum"):
            opened(path, sealed(SPENT) | changed)


def test_one_of_an_earlier_version_is_read_and_told(path, caplog):
    path.write_text(json.dumps(SPENT))
    with caplog.at_level(logging.WARNING):
        assert read_document(path) == SPENT
    assert "ledger.json has no checksum" in caplog.text
    with pytest.raises(Damaged):
        read_document(path, needs_checksum=True)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"3", b"\xff\xfe", b'{"a": NaN}', b'{"checksum": 3}'),
        b"[" * 100_000,
    ],
)
def test_what_is_no_document_is_damaged(path, content):
    path.write_bytes(content)
    with pytest.raises(Damaged, match=r"restore it from a copy"):
        read_document(path)


def test_what_cannot_be_read_says_why(tmp_path):
    with pytest.raises(BadRun, match=r"nowhere\.json cannot be read: No such file"):
        read_document(tmp_path / "nowhere.json")
    with pytest.raises(BadRun, match="cannot be read: Is a directory"):
        read_document(tmp_path)
