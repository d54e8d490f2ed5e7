"""Table 7 on a tiny world: what stands in it, not how good it is."""

from __future__ import annotations

from tacit_study_dpvae.benches import PUBLISHED
from tacit_study_dpvae.noise import sigma

from tacit.accounting.epsilon import epsilon
from tacit.accounting.views import server_view


def test_every_published_figure_stands_beside_both_modes(reproduced):
    found = reproduced("7")
    assert len(found.tables) == 3
    rows = [row for table in found.tables for row in table.rows]
    assert [row.published for row in rows] == PUBLISHED["table-7"].numbers()
    assert all(row.paper is not None and row.sound is not None for row in rows)
    assert found.unexplained == ()


def test_budgets_are_printed_beside_what_is_proved(reproduced):
    """A constant clip has an account, that of three rounds; the optimal has none."""
    constant, *_, optimal = (row.budget for row in reproduced("7").tables[0].rows)
    proved = epsilon(server_view(sigma("ML-100K"), 3), delta=1e-6).value
    end = "in 3 rounds; sound mode 1.00"
    assert constant == f"printed 1, proved {proved:.3g} {end}"
    assert optimal == f"printed 1, proved none {end}"


def test_other_data_are_named(reproduced):
    for table in reproduced("7").tables:
        assert "synthetic stands in" in table.name
        assert all("measured on synthetic" in r.reason for r in table.rows if not r.ok)


def test_its_claims_answer_rq3(reproduced):
    claims = reproduced("7").claims
    assert len(claims) == 6
    assert all(claim.text.startswith("RQ3: ") for claim in claims)
