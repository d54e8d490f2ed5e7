"""Samples for Prometheus: their form, and no sample where something is hidden."""

import re
from dataclasses import replace

from service.federation.overviews import a_coordinator, a_leader, a_round

from tacit.service.federation.operator_metrics import metrics_text
from tacit.service.federation.overview import Outcome, Overview

SAMPLE = re.compile(r'([a-z_]+)(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+')


def samples(seen: Overview) -> dict[str, float]:
    lines = metrics_text(seen, up_seconds=61.7).splitlines()
    found = [line for line in lines if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in found), found
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in found}


def test_a_leaders_samples():
    found = samples(a_leader())
    assert found['tacit_up_seconds{role="leader"}'] == 61
    assert found["tacit_round_reports"] == 1200
    assert found['tacit_round_state{state="open"}'] == 1
    assert found['tacit_refusals{status="503"}'] == 1050
    assert found['tacit_commit_seconds{quantile="0.99"}'] == 0.09
    assert found["tacit_last_commit_seconds"] % 3600 == 0
    assert found['tacit_peer_answers{peer="helper"}'] == 1
    assert found["tacit_starts"] == 3


def test_what_is_hidden_has_no_sample_and_no_help():
    hidden = replace(a_leader(), rounds=(a_round(reports=None),))
    text = metrics_text(hidden, up_seconds=1)
    assert "tacit_round_reports" not in text
    assert 'status="400"' not in text


def test_a_coordinators_samples():
    found = samples(a_coordinator())
    epsilons = [name for name in found if name.startswith("tacit_epsilon")]
    assert len(epsilons) == 2  # what is not proven has none
    for term in ("adjacency=", "delta=", "accountant=", "standing=", "unit=", "view="):
        assert all(term in name for name in epsilons)
    assert found['tacit_released_metric{name="hr@20",bound="low"}'] == 0.2
    assert found["tacit_released_models"] == 1
    assert found['tacit_peer_answers{peer="helper"}'] == 0
    assert found['tacit_peer_answer_age_seconds{peer="helper"}'] == 181


def test_a_withheld_model_is_told():
    found = samples(a_coordinator(outcome=Outcome(withheld="it is worse")))
    assert found["tacit_withheld_models"] == 1
    assert found["tacit_released_models"] == 0


def test_every_sample_has_a_help_and_a_type():
    text = metrics_text(a_leader(), up_seconds=1)
    text += metrics_text(a_coordinator(), up_seconds=1)
    names = {re.split(r"[{ ]", one)[0] for one in text.splitlines() if one[0] != "#"}
    assert len(names) == 19
    for name in names:
        assert f"# HELP {name} " in text
        assert f"# TYPE {name} gauge" in text


def test_a_label_cannot_break_out():
    seen = a_coordinator(rounds=(a_round(state='a"b\nc\\'),))
    assert r'{state="a\"b\nc\\"}' in metrics_text(seen, up_seconds=1)
