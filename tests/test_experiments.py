"""Every experiment file of the project is one that can be run."""

from pathlib import Path

import pytest

from tacit.experiment.settings import read_experiment

FILES = sorted((Path(__file__).parents[1] / "experiments").rglob("*.toml"))


def test_there_are_experiments():
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_reads_without_a_problem(path):
    read_experiment(path)
