"""Which tables there are, and that each contender stands beside its start."""

from __future__ import annotations

import sys

import pytest

from tacit.reproduction import papers


def test_it_is_listed(study):
    assert "privaterec" in papers()
    assert [*study.tables] == ["1", "4", "5", "6", "7"]


def test_full_trains_every_model_and_quick_has_three_seeds_too(study, monkeypatch):
    own = sys.modules["tacit_study_privaterec"]
    monkeypatch.setattr(own, "has_data", lambda source: True)
    full = own.study("full")
    assert {cell.seeds for cell in full.tables["1"].cells} == {3}
    assert full.tables["1"].needed() == {"torch": "train"}
    quick = own.study("quick")
    assert {cell.seeds for cell in quick.tables["6"].cells} == {3}
    assert quick.tables["6"].needed() == {}
    assert len({*quick.tables["6"].cells}) == 5 + 5 + 4 + 1 + 4 * 4


@pytest.mark.slow
def test_every_contender_stands_beside_its_untrained_start(reproduced):
    """At smoke size nothing is learnt; what is there is what the claims compare."""
    found = reproduced("6")
    [table] = found.tables
    labels = [row.label.split(",")[0] for row in table.rows]
    proven = [f"PrivateRec ({mode})" for mode in "abc"] + ["sound DP-FedRec"]
    assert labels == ["PrivateRec", "DP-FedRec", *proven, "PrivateRec", "DP-FedRec"]
    assert all(row.beside["untrained"] > 0 for row in table.rows)
    for row in table.rows:
        is_mixture = row.label.startswith("PrivateRec, ")
        assert ({"one list", "one list, untrained"} <= {*row.beside}) == is_mixture
    noisy, rival, *sound = table.rows[:6]
    assert "proven nothing" in noisy.budget
    # Three rounds are worth more than any account proves (docs/release.md).
    assert rival.budget == "claimed 5 a round, proven nothing"
    assert {row.budget for row in sound} == {"proven 5 for the run"}
    assert all(row.paper is None and row.sound is not None for row in sound)
    learns = [claim for claim in found.claims if "untrained start" in claim.text]
    assert len(learns) == len(table.rows)


@pytest.mark.slow
@pytest.mark.parametrize("number", ["1", "4", "5", "7"])
def test_every_table_is_drawn_up(reproduced, number):
    found = reproduced(number)
    assert found.claims
    assert not found.unexplained
    assert any("one list" in claim.text for claim in found.claims) == (number != "5")


@pytest.mark.slow
def test_table_1_has_every_metric_and_what_a_client_sends(reproduced):
    [table] = reproduced("1").tables
    rows = {row.label: row.beside for row in table.rows}
    assert all({"MRR", "nDCG@5", "nDCG@10"} <= {*beside} for beside in rows.values())
    rival, private = rows["plm-nr, DP-FedRec"], rows["plm-nr, PrivateRec"]
    # Noise has no factors, so that a rival's gradient is written out; a basis is small.
    assert private["bytes up"] > 0
    assert rival["bytes up"] > 0
    assert "plm-nr, PrivateRec, one list" in rows
