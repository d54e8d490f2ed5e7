"""What the system refuses is an error of ours and of Python's, with what to do."""

import errno
import os
import pickle

import pytest

from tacit.errors import BadValue, TacitError
from tacit.system_errors import (
    DiskError,
    TooLittleMemory,
    disk_sentence,
    explained,
)


def test_a_disk_that_refuses_is_still_an_oserror(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(OSError, match="a part of its path is a file") as caught,
        explained(),
    ):
        (tmp_path / "file" / "run").mkdir()
    assert isinstance(caught.value, DiskError)
    assert isinstance(caught.value, TacitError)
    assert caught.value.errno == errno.ENOTDIR
    assert str(tmp_path / "file" / "run") in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.EROFS])
def test_a_sentence_names_the_place_and_what_to_do(number):
    error = OSError(number, os.strerror(number), "run/model.json")
    said = disk_sentence(error)
    assert said.startswith("run/model.json: ")
    assert ";" in said


def test_too_little_memory_is_still_a_memoryerror():
    with pytest.raises(MemoryError, match="8 GiB; use fewer") as caught, explained():
        raise MemoryError("8 GiB")
    assert isinstance(caught.value, TooLittleMemory)


@pytest.mark.parametrize("error", [BadValue("x"), RuntimeError("x"), KeyError("x")])
def test_other_errors_pass(error):
    with pytest.raises(type(error)) as caught, explained():
        raise error
    assert caught.value is error
