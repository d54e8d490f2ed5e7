from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from tacit.audits.audit_method import TICKS
from tacit.audits.checks import Audit, Check, Estimate
from tacit.audits.small_world import simulation_of
from tacit.documents import read_document, write_document
from tacit.errors import BadRun, BadValue
from tacit.experiment import audit_subjects, auditing
from tacit.experiment.auditing import audit_named, subjects_of
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.runtime.run import RunDirectory, Spending
from tacit.runtime.simulate import Simulation


@dataclass(frozen=True)
class Played:
    """What an audit of a ledger reads of an assembled run."""

    simulation: Simulation


def _audited(simulation, folder, *, plays=None, rounds=3, **changed):
    """The failed checks of the ledger of `plays`, as of a run of `simulation`."""
    directory = RunDirectory(folder)
    spending = Spending(plays or simulation, directory.ledger, "digest")
    for number in range(rounds):
        spending.begin(number, most=number + 1)
    document = read_document(directory.ledger)
    rest = {k: v for k, v in document.items() if changed.get(k, v) is not GONE}
    write_document(directory.ledger, rest)
    [audit] = auditing._of_ledger(directory, Played(simulation))
    return [check.name.split()[0] for check in audit.failed]


GONE = object()
TWO = Plan(36, 3, channel="two_servers", delta=1e-6)
MIXED = Plan(36, 3, channel="shuffle", delta=1e-6, min_contributors=30)
RUNS = {
    "one_machine": (FederatedPopularity(privacy=CentralGaussian(8.0)), TWO),
    "one_machine_relay": (FederatedPopularity(privacy=LocalPrivUnit(1.0)), MIXED),
}


@pytest.mark.parametrize("why", RUNS)
def test_the_ledger_of_a_trial_is_held_against_the_account_of_one_machine(
    why, tmp_path
):
    """Its lines in the server's view are not those of two, and it says why."""
    of_two = simulation_of(*RUNS[why])
    of_one = simulation_of(*RUNS[why], one_operator=why)
    (tmp_path / "two").mkdir()
    (tmp_path / "lie").mkdir()
    assert _audited(of_two, tmp_path, plays=of_one) == []
    assert _audited(of_two, tmp_path / "two") == []
    # The releases of one machine beside the lines of two promise more than there is.
    directory = RunDirectory(tmp_path / "lie")
    told, lines = (
        read_document(RunDirectory(folder).ledger)
        for folder in (tmp_path, tmp_path / "two")
    )
    write_document(directory.ledger, {**told, "spent": lines["spent"]})
    [audit] = auditing._of_ledger(directory, Played(of_two))
    assert not audit.ok


@pytest.mark.parametrize("entry", ["most_participations", "spent", "account"])
def test_a_ledger_of_an_earlier_version_is_a_finding_and_no_error(entry, tmp_path):
    """Releases that compose were not always there, and are not compared."""
    found = _audited(simulation_of(*RUNS["one_machine"]), tmp_path, **{entry: GONE})
    assert found == ([] if entry == "account" else ["reasons"])


def test_a_ledger_behind_the_metrics_of_its_run_is_caught(tmp_path):
    simulation = simulation_of(*RUNS["one_machine"])
    lines = [json.dumps({"round": number}) for number in range(3)]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    assert _audited(simulation, tmp_path, rounds=2) == ["rounds", "share"]


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
