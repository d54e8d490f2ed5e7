"""An audit from Python."""

import pytest

import tacit
from tacit.api.auditing import Audited
from tacit.errors import BadValue

DOCUMENT = {
    "ok": True,
    "checks": [
        {
            "subject": "toy",
            "name": "noise",
            "claimed": 1.0,
            "measured": 0.5,
            "ok": True,
            "detail": "",
        }
    ],
    "monitoring": [],
    "not_audited": [{"subject": "toy", "what": "the metric"}],
}


def test_an_audit_says_whether_all_holds(monkeypatch, run):
    asked = []

    def audited(name, *, seed, looks_at_all):
        asked.append((name, seed, looks_at_all))
        return DOCUMENT

    monkeypatch.setattr("tacit.api.auditing.audit_named", audited)
    found = tacit.audit(run, seed=3)
    tacit.audit(run, everything=True)
    assert asked == [(str(run.path), 3, False), (str(run.path), 0, True)]
    assert found.ok
    assert found.rows()[0]["name"] == "noise"
    assert "all 1 checks hold" in str(found)
    assert "not audited: toy: the metric" in found._repr_html_()
    assert not Audited({**DOCUMENT, "ok": False}).ok


def test_an_unknown_method_is_named():
    with pytest.raises(BadValue, match="did you mean 'gram'"):
        tacit.audit("gramm")
