"""Table 11: on an invented world, every cell and claim; the published figures."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tacit.experiment.training import Nobody
from tacit.reproduction.cells import Results
from tacit.reproduction.study import SCALES

HOME = Path(__file__).parents[3] / "reproductions" / "dpvae"


@pytest.fixture(scope="module")
def module():
    """The module by itself: it needs nothing that stands beside it but its figures."""
    path = HOME / "table_11.py"
    spec = importlib.util.spec_from_file_location("dpvae_table_11", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def test_every_published_figure_is_there(module):
    assert len(module.PRINTED.numbers()) == 27
    assert module.PRINTED.value("AE", "DP-O", "recall@50") == 0.41
    assert module.PRINTED.value("AE", "budgets", "recall@50") is None


@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_is_an_experiment(module, scale):
    for model in module.MODELS:
        cells = model.cells(scale)
        assert ("DP-O" in cells) == model.has_clip
        for column, cell in cells.items():
            first, *_ = cell.experiments()
            target = first.privacy.target_epsilon
            if column == "budgets":
                assert target == {"strict": 1.0, "balanced": 4.0, "open": 8.0}
            elif column != "OL":
                assert target == 1.0


def test_it_runs_on_an_invented_world(module, tmp_path):
    table = module.table_11("smoke")
    made = table.make(Results(tmp_path, table.cells, Nobody()))
    [found] = made.tables
    assert len(found.rows) == 3 * 4 * 3
    assert not made.unexplained
    for row in found.rows:
        has_cell = not row.label.startswith("SVD, DP-O")
        assert (row.paper is not None or row.sound is not None) == has_cell
        if row.sound is not None:
            most = 8.0 if "budgets" in row.label else 1.0
            assert float(row.budget.removeprefix("proved ")) <= most + 0.005
    assert len(made.claims) == 3 * 3 - 1
