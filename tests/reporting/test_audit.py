"""The figures of an audit, as tables and lines."""

from tacit.reporting.audit import _shown, _up, check_tables, notes, summary

CHECK = {
    "subject": "toy",
    "name": "noise",
    "claimed": 1.0,
    "measured": 0.5,
    "ok": True,
    "detail": "",
}
DOCUMENT = {
    "checks": [CHECK, {**CHECK, "ok": False, "detail": "too little"}],
    "monitoring": [],
    "not_audited": [{"subject": "toy", "what": "the metric"}],
}


def test_chances_are_shown_in_two_digits():
    assert [_up(3.21e-9), _shown(3.21e-9)] == ["3.3e-9", "3.2e-9"]
    assert [_up(0.0), _shown(0.0), _up(1e-4)] == ["0.0000", "0.0000", "0.0001"]


def test_a_claim_stands_beside_what_was_measured():
    [table] = check_tables(DOCUMENT)
    assert table.rows[0] == ("noise", "1.0000", "0.5000", "holds")
    assert notes(DOCUMENT) == ["not audited: toy: the metric"]


def test_a_failure_is_named():
    assert summary(DOCUMENT) == "FAILED: toy: noise: too little"
    assert summary({**DOCUMENT, "checks": [CHECK]}).startswith("all 1 checks hold")
    assert summary({**DOCUMENT, "checks": []}).startswith("nothing is promised")
