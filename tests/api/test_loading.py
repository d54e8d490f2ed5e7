"""A model is loaded without what trains."""

import subprocess
import sys

import pytest

import tacit
from tacit.errors import BadRun


def test_loading_imports_nothing_that_trains(run):
    code = (
        "import sys, tacit\n"
        f"assert len(tacit.load({str(run.path)!r}).recommend(['p1'], n=3)) == 3\n"
        "trains = {'torch', 'pandas', 'pyarrow', 'tacit.experiment.training'}\n"
        "assert not trains & {*sys.modules}, trains & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_no_run_says_what_to_do(tmp_path):
    with pytest.raises(BadRun, match="train it first"):
        tacit.load(tmp_path)
