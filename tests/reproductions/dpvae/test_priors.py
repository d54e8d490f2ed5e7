"""Table 6 on a tiny world."""

from __future__ import annotations

import pytest
from tacit_study_dpvae.benches import PUBLISHED


@pytest.mark.slow
def test_every_published_figure_stands_beside_both_modes(reproduced):
    found = reproduced("6")
    rows = [row for table in found.tables for row in table.rows]
    assert sorted(r.published for r in rows) == sorted(PUBLISHED["table-6"].numbers())
    for row in rows:
        is_private = row.label.startswith("DP-VAE")
        assert (row.sound is not None) is is_private
        assert row.budget.startswith("printed 1" if is_private else "not private")
    assert found.unexplained == ()


@pytest.mark.slow
def test_its_claims_answer_rq2_for_all_three_forms(reproduced):
    claims = reproduced("6").claims
    assert len(claims) == 9
    assert all(claim.text.startswith("RQ2: priors help ") for claim in claims)
