"""The names of `tacit` itself: all there, typed, and imported when asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

import tacit
from tacit import _PLACES

SOURCE = Path(tacit.__file__).parent


@pytest.mark.parametrize("name", sorted(tacit.__all__))
def test_every_name_is_there(name):
    assert getattr(tacit, name) is getattr(tacit, name)
    assert name in dir(tacit)


def test_every_name_has_a_place():
    assert {*_PLACES} | {"__version__"} == {*tacit.__all__}


def test_no_name_is_that_of_a_module():
    """Whichever were imported last would hide the other."""
    modules = {path.stem for path in SOURCE.iterdir()}
    assert not modules & {*tacit.__all__} - {"__version__"}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'trains'"):
        _ = tacit.trains
    assert not hasattr(tacit, "release_notes")


def test_import_is_light():
    code = (
        "import sys, tacit\n"
        "heavy = {'torch', 'numba', 'numpy', 'scipy', 'matplotlib', 'pyarrow'}\n"
        "assert not heavy & {*sys.modules}, heavy & {*sys.modules}\n"
        "assert 'train' in dir(tacit)\n"
        "assert not heavy & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
