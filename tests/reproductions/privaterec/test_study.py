"""Which tables there are, and that each contender stands beside its start."""

from __future__ import annotations

import sys

import pytest

from tacit.reproduction import papers


def test_it_is_listed(study):
    assert "privaterec" in papers()
    assert [*study.tables] == ["1", "5", "6", "7"]


def test_full_trains_every_model_with_three_seeds(study, monkeypatch):
    own = sys.modules["tacit_study_privaterec"]
    monkeypatch.setattr(own, "has_data", lambda source: True)
    full = own.study("full")
    assert {cell.seeds for cell in full.tables["1"].cells} == {3}
    assert full.tables["1"].needed() == {"torch": "train"}
    quick = own.study("quick")
    assert quick.tables["6"].needed() == {}
    assert len({*quick.tables["6"].cells}) == 5 + 5 + 2 + 1 + 4 * 4


@pytest.mark.slow
def test_untrained_starts_stand_beside_both(reproduced):
    """At smoke size nothing is learnt; what is there is what the claims compare."""
    [table] = reproduced("6").tables
    labels = [row.label.split(",")[0] for row in table.rows]
    assert labels == ["PrivateRec", "DP-FedRec"] * 2
    noisy = table.rows[0]
    assert "proven nothing" in noisy.budget
    assert {*noisy.beside} == {"untrained", "(b) local", "(c) clicks"}
    assert noisy.sound is not None
    assert "for the run" in table.rows[1].budget


@pytest.mark.slow
@pytest.mark.parametrize("number", ["1", "5", "7"])
def test_every_table_is_drawn_up(reproduced, number):
    found = reproduced(number)
    assert found.claims
    assert not found.unexplained
