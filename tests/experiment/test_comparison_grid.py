"""The folders of a comparison stay in it, and no two lines share one."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.experiment.comparison_grid import Contest, folder_name

HOSTILE = [
    *("..", ".", "", "...", "../..", "/etc/passwd", "a/b", "a\\b", "a\0b", "\n", " "),
    *("-", "~", "$(reboot)", "é", "\udcff", "n" * 300, ".hidden", "con\x1b[2J"),
    *("comparison.json", "comparison.html", "baselines", "a b", "a, b", "\u202e"),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_that_of_a_folder_in_the_same_place(name):
    found = folder_name(name)
    assert found == os.path.basename(found)
    assert (Path("/out") / found).resolve().parent == Path("/out")
    assert found.isascii()
    assert found.isprintable()
    assert 0 < len(found) < 120
    assert not found.startswith((".", "comparison.", "-"))
    assert found != "baselines"


@given(st.text())
def test_so_is_any_other(name):
    found = folder_name(name)
    assert (Path("/out") / found).resolve().parent == Path("/out")
    assert found != "baselines"


@pytest.mark.parametrize("name", ["gram", "fedvae", "nn_self", "my-exp.2", "a+b"])
def test_a_plain_name_stays(name):
    assert folder_name(name) == name
    assert Contest(name, 2.0, ()).folder == f"{name}-epsilon-2"
    assert Contest(name, float("inf"), ()).folder == f"{name}-no-privacy"
    assert Contest(name, None, ()).folder == name


def test_no_two_names_share_a_folder():
    names = [*HOSTILE, "a-b", "a.b", "experiment"]
    assert len({folder_name(name) for name in names}) == len(names)
