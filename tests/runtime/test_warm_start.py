"""Releases written into a ledger and read again promise the same."""

import json

import pytest

from tacit.errors import BadRun
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.privacy import CentralGaussian
from tacit.runtime.warm_start import plain_past, read_past, read_spent
from tacit.sampling import Everyone, Once, Poisson
from tacit.statement import Past, account

NOISES = {"counts": 2.0, "relations": 3.0}
NOISY = Gram(head=9, privacy=CentralGaussian(NOISES))


@pytest.mark.parametrize("sampler", [Everyone(), Poisson(0.3), Once()])
@pytest.mark.parametrize("method", [NOISY, FederatedPopularity()])
def test_what_is_written_is_read_again(method, sampler):
    plan = Plan(500, rounds=2, sampler=sampler, channel="secure_sum", delta=1e-6)
    past = Past(500, method.releases(plan))
    read = read_past(json.loads(json.dumps(plain_past(past))))
    assert read == past
    assert account(plan, read.releases) == account(plan, past.releases)


def test_what_was_written_before_rounds_were_told_is_read():
    plan = Plan(500, rounds=2, channel="secure_sum", delta=1e-6)
    document = plain_past(Past(500, NOISY.releases(plan)))
    assert [one.pop("rounds") for one in document["releases"]] == [[0, 1], [1, 2]]
    assert [release.rounds for release in read_past(document).releases] == [None, None]


def test_what_was_spent_before_comes_first(tmp_path):
    plan = Plan(500, rounds=2, channel="secure_sum", delta=1e-6)
    first, last = (Past(n, NOISY.releases(plan)) for n in (400, 500))
    ledger = {"account": plain_past(last), "earlier": [plain_past(first)]}
    file = tmp_path / "ledger.json"
    file.write_text(json.dumps(ledger))
    assert read_spent(file) == (first, last)
    del ledger["account"]
    file.write_text(json.dumps(ledger))
    with pytest.raises(BadRun, match="written by an earlier version: train that run"):
        read_spent(file)


@pytest.mark.parametrize(
    "text",
    [
        *(None, "", "{", "3", '{"account": {}}', '{"account": {}, "earlier": []}'),
        '{"account": {"population": 9, "releases": [{}]}, "earlier": []}',
        '{"account": {"population": "x", "releases": []}, "earlier": []}',
    ],
)
def test_a_ledger_that_is_damaged_names_the_file(tmp_path, text):
    file = tmp_path / "ledger.json"
    if text is not None:
        file.write_text(text)
    said = r"ledger\.json (is damaged: .*; (train that run|restore it)|cannot be read)"
    with pytest.raises(BadRun, match=said):
        read_spent(file)
