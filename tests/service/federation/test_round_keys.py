"""Keys of rounds are their owner's alone, and are gone when they are not needed."""

import stat

import pytest

from tacit.service.federation.round_keys import RoundKeys

ONE, TWO = bytes(32), bytes([1] * 32)


@pytest.fixture
def keys(tmp_path):
    return RoundKeys(tmp_path / "keys")


def test_a_key_is_its_owners_alone_until_it_is_deleted(keys):
    keys.keep(ONE, b"private")
    assert keys.get(ONE) == b"private"
    [file] = keys.folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    keys.delete(ONE)
    keys.delete(ONE)  # it may be asked again
    assert keys.get(ONE) is None
    assert [*keys.folder.iterdir()] == []


def test_what_no_round_needs_is_deleted_and_other_keys_stay(keys):
    keys.keep(ONE, b"one")
    keys.keep(TWO, b"two")
    (keys.folder / "signing.key").write_bytes(b"the operator's")
    keys.delete_all_but([TWO])
    assert keys.get(ONE) is None
    assert keys.get(TWO) == b"two"
    assert (keys.folder / "signing.key").exists()


def test_a_folder_that_is_not_there_holds_nothing(keys):
    keys.delete_all_but([])
    keys.delete(ONE)
    assert keys.get(ONE) is None
