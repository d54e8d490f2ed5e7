from functools import partial

import pytest

from tacit.attacks import leaks
from tacit.audits.checks import Audit, Check, Estimate
from tacit.documents import read_document, write_document
from tacit.experiment import audit_subjects, auditing
from tacit.runtime.run import RunDirectory

CENTRAL = (
    *("--set", "privacy.mechanism=central", "--set", "privacy.channel=secure_sum"),
    *("--set", "privacy.delta=1e-6", "--set", "privacy.target_epsilon=2"),
)


def test_a_run_is_audited_and_keeps_the_result(
    tacit, experiment, tmp_path, monkeypatch
):
    """The checks of 10.4 of the privacy page, on the noise that the run was given."""
    run = tmp_path / "run"
    assert tacit("train", experiment, "--out", run, *CENTRAL).code == 0
    answer = tacit("audit", run, "--json")
    assert answer.code == 0
    document = answer.json
    assert document == read_document(run / "audit.json", needs_checksum=True)
    assert all(line["ok"] for line in document["checks"])
    assert [c["subject"] for c in document["checks"]].count("ledger.json") == 4
    claimed = {line["name"]: line["claimed"] for line in document["checks"]}
    # One participation in the run has mu = 1 / 2.2305; the audit plays four.
    assert claimed["mu of 4 rounds"] == pytest.approx(2 / 2.2305, rel=1e-3)
    # A ledger that has another group's lines is refuted; the rest need not be asked.
    ledger = RunDirectory(run).ledger
    told = read_document(ledger)
    lines = [{**line, "group": "open"} for line in told["spent"]]
    write_document(ledger, {**told, "spent": lines}, is_private=True)
    holds = Audit("toy", (Check("c", 1.0, 1.0, True, ""),))
    monkeypatch.setattr(audit_subjects, "audit", lambda *_, **__: holds)
    answer = tacit("audit", run)
    assert answer.code == 1
    assert "FAILED: ledger.json: lines of the ledger that are missing" in answer.out
    assert "a foreign line of open (user, release)" in answer.out


ABOVE = Estimate("e", 1.0, 2.0, 0.5, 4.0, 25)


@pytest.fixture
def failing(monkeypatch):
    def audit_named(name, *, seed, looks_at_all, progress):
        progress(1, 1)
        check = {"subject": "toy", "name": "noise", "claimed": 1e-4, "measured": None}
        return {
            "method": "toy",
            "ok": False,
            "checks": [check | {"ok": False, "detail": "no [bold]noise[/] at all"}],
            "monitoring": [{"subject": "toy"} | ABOVE.to_json()],
            "not_audited": [{"subject": "toy", "what": "bits: bare"}],
        }

    monkeypatch.setattr(auditing, "audit_named", audit_named)


def test_a_failed_check_is_exit_code_one(tacit, failing):
    answer = tacit("audit", "toy")
    assert answer.code == 1
    assert "FAILED: toy: noise: no [bold]noise[/] at all" in answer.out
    assert "0.0001" in answer.out
    assert "not finite" in answer.out
    assert "not audited: toy: bits: bare" in answer.out
    assert tacit("audit", "toy", "--json").code == 1


def test_an_estimate_above_a_claim_says_what_it_is(tacit, failing):
    [line] = [one for one in tacit("audit", "toy").out.splitlines() if "toy: e:" in one]
    assert line.startswith("monitoring, never a guarantee")
    assert "2.0000, claimed 1.0000; an estimate from 25 canaries of one run" in line
    assert "with 95 % between 0.50 and 4.00" in line
    assert line.endswith(
        "the one that is proven, and the interval contains it: no violation"
    )
    told = tacit("audit", "toy", "--json").json["monitoring"][0]
    assert told["remark"] == ABOVE.remark
    assert (told["low"], told["high"], told["canaries"]) == (0.5, 4.0, 25)


def test_every_estimate_says_what_it_is_and_what_is_proven():
    below = Estimate("e", 1.0, 0.9, 0.5, 4.0, 25)
    assert below.remark.endswith("the claimed figure is the one that is proven")
    beyond = Estimate("e", 1.0, 2.0, 1.5, 4.0, 25)
    assert "as it does by chance in one honest run of forty" in beyond.remark


def test_leaks_are_added_and_drawn(tacit, failing, monkeypatch, tmp_path):
    few = partial(leaks.run, ("item_gradient",), n_users=40)
    monkeypatch.setattr("tacit.attacks.leaks.run", few)
    page = tmp_path / "leaks.html"
    answer = tacit("audit", "toy", "--leaks", "--page", page, "--json")
    assert [finding["name"] for finding in answer.json["leaks"]] == ["item_gradient"]
    assert '<ul class="bars">' in page.read_text(encoding="utf-8")


def test_the_attacks_on_the_audited_method_run(tacit, failing, monkeypatch, tmp_path):
    asked, found = [], leaks.run(("item_gradient",), n_users=40)

    def run(*, method, seed):
        asked.append((method, seed))
        return found

    monkeypatch.setattr("tacit.attacks.leaks.run", run)
    page = tmp_path / "leaks.html"
    tacit("audit", "toy", "--leaks", "--page", page, "--seed", "3", "--json")
    assert asked == [("toy", 3)]


def test_nothing_promised(tacit, experiment, tmp_path):
    run = tmp_path / "run"
    tacit("train", experiment, "--out", run)
    answer = tacit("audit", run)
    assert answer.code == 0
    assert "nothing is promised" in answer.out


def test_an_unknown_name(tacit):
    answer = tacit("audit", "nonesuch")
    assert answer.code == 2
    assert "known: dpals, dplcf, dpmf, dpvae, federated_popularity" in answer.err
