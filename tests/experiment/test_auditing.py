from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from tacit.audits.audit_method import TICKS
from tacit.audits.checks import Audit, Check, Estimate
from tacit.errors import BadRun, BadValue
from tacit.experiment import audit_subjects, auditing
from tacit.experiment.auditing import audit_named, subjects_of


@pytest.fixture
def calls(monkeypatch):
    """Audits that are noted and not run."""
    noted = []

    def audit(method, plan, *, key, group, subject, tick):
        noted.append((subject, method, plan))
        tick()
        check = Check("c", 1.0, float("inf"), False, "")
        estimate = Estimate("e", 1.0, 2.0, 0.5, 3.5, 8)
        return Audit(subject, (check,), (estimate,), ("x: bare",))

    monkeypatch.setattr(audit_subjects, "audit", audit)
    return noted


def test_a_method_is_audited_in_every_form_it_has():
    found = {s.name: s.method for s in subjects_of("federated_popularity")}
    assert [*found] == [
        f"federated_popularity, {privacy}"
        for privacy in ("none", "central", "local", "local_item")
    ]
    central = found["federated_popularity, central"]
    assert central.privacy.noise_multiplier["votes"] == pytest.approx(2.387, abs=0.01)
    assert found["federated_popularity, local"].privacy.epsilon == pytest.approx(1.0)


def test_the_document(calls):
    steps = []
    document = audit_named(
        "federated_popularity", seed=3, progress=lambda *s: steps.append(s)
    )
    assert len(calls) == 4
    assert document["ok"] is False
    assert document["simulation"] is True
    assert document["checks"][0]["measured"] is None  # not finite
    assert document["checks"][0].keys() >= {"name", "claimed", "measured", "ok"}
    assert document["monitoring"][0]["label"] == "monitoring, never a guarantee"
    assert document["not_audited"][0]["what"] == "x: bare"
    assert steps[-1] == (4 * TICKS, 4 * TICKS)
    json.dumps(document, allow_nan=False)


def test_what_is_neither_a_method_nor_a_run(tmp_path):
    with pytest.raises(BadValue, match="did you mean 'federated_popularity'"):
        audit_named("federated_popularty")
    with pytest.raises(BadRun, match="holds no run"):
        audit_named(str(tmp_path))


def test_a_method_without_forms_is_audited_as_it_is(monkeypatch, calls):
    from tacit.testing.toy import ToyFactors

    @dataclass(frozen=True)
    class Toy(ToyFactors):
        pass

    monkeypatch.setattr(auditing, "method_names", lambda: ["toy"])
    monkeypatch.setattr(audit_subjects, "method_class", lambda name: Toy)
    assert [s.name for s in subjects_of("toy")] == ["toy"]
