"""What the paper's own numbers imply, computed from them."""

from __future__ import annotations

import pytest
from tacit_study_dpvae import noise

from tacit.accounting.epsilon import epsilon
from tacit.accounting.views import server_view


def test_the_noise_of_a_batch_is_that_of_the_errata():
    """4.7985 sqrt(275,802 / 10), and over 2,850 batches; docs/errata/dpvae.md."""
    assert noise.sigma("ML-100K") == pytest.approx(4.7985, abs=5e-5)
    assert noise.noise_of_batch("ML-100K") == pytest.approx(797, abs=0.5)
    assert noise.rounds("ML-100K") == 2850
    longest = 2850**0.5 * noise.noise_of_run("ML-100K")
    assert longest == pytest.approx(noise.noise_of_batch("ML-100K"))


def test_less_budget_is_more_noise():
    half = noise.noise_of_batch("Netflix", epsilon=0.5)
    assert half == pytest.approx(2 * noise.noise_of_batch("Netflix"))


@pytest.mark.parametrize("name", noise.NAMES)
def test_the_network_has_the_parameters_of_table_3(name):
    printed = noise.PUBLISHED["table-3"].values[name]["parameters"]
    assert noise.parameters(name) == printed


def test_nothing_of_it_is_typed_in(reproduced):
    found = reproduced("noise")
    rows = {row.label: row for table in found.tables for row in table.rows}
    cost = rows["ML-100K, epsilon of a user, constant S"]
    each = server_view(noise.sigma("ML-100K"), 30)
    assert cost.paper == epsilon(each, delta=1e-6).value > 5
    assert (rows["least examples"].published, rows["most examples"].published) == (
        3,
        1772,
    )
    assert rows["least examples"].paper == pytest.approx(33.7, abs=0.05)
    assert found.unexplained == ()


def test_the_claims_say_what_they_found(reproduced):
    claims = reproduced("noise").claims
    assert [claim.ok for claim in claims] == [False] * 5
    assert "797 S" in claims[0].evidence
    assert "14.9 times" in claims[0].evidence
    assert "smallest norm" in claims[3].evidence
    assert claims[4].text.startswith("RQ6: ")
    assert "from 1 parameters on" in claims[4].evidence


def test_where_noise_is_small_the_claim_holds(monkeypatch):
    monkeypatch.setattr(noise, "noise_of_batch", lambda name: 1.0)
    assert noise._is_drowned("ML-100K").ok
    monkeypatch.setattr(noise, "noise_decides", lambda *_, **__: False)
    assert noise._is_smallest().ok
    assert noise._adapts().ok
