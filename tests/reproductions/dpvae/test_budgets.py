"""Table 10 on a tiny world."""

from __future__ import annotations

import pytest
from tacit_study_dpvae.benches import PUBLISHED
from tacit_study_dpvae.budgets import EPSILONS

pytestmark = pytest.mark.slow


def test_every_budget_has_its_rows_and_its_account(reproduced):
    found = reproduced("10")
    [table] = found.tables
    assert [row.published for row in table.rows] == PUBLISHED["table-10"].numbers()
    budgets = {row.label: row.budget for row in table.rows}
    for most in EPSILONS:
        told = budgets[f"DP-VAE ({most:g}), NDCG@100"]
        assert told.startswith(f"printed {most:g}, proved none")
        assert told.endswith(f"sound mode {most:.2f}")
    assert found.unexplained == ()


def test_its_claims_answer_rq5(reproduced):
    claims = reproduced("10").claims
    assert len(claims) == 2 * (len(EPSILONS) - 1) + 2
    assert all(claim.text.startswith("RQ5: ") for claim in claims)


def test_one_line_to_the_letter_and_one_that_is_sound(reproduced):
    [chart] = reproduced("10").charts
    assert {line.x for line in chart.lines.values()} == {EPSILONS}
    assert {*chart.levels} == {"VAE", "popularity"}
