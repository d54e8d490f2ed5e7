"""Tests of the offer of a run."""

import json

import pytest

from tacit.errors import BadRun, Refused
from tacit.experiment.saved_run import load
from tacit.service.model_document import ModelDocument
from tacit.service.run_offer import run_offer
from tacit.serving.query import Mode
from tacit.serving.settings import ServingSettings, served_model

KRR = ServingSettings(Mode.KRR, 2.0, interests=3)


def test_without_settings_every_client_ranks_by_itself(vectors_run):
    found = run_offer(vectors_run)
    document = ModelDocument.decode(found.model.content)
    assert (found.ranking, found.basis, document.queries) == (None, None, None)
    assert found.candidates.content == (vectors_run / "model.safetensors").read_bytes()
    assert document.candidates.sha256 == found.candidates.digest
    assert document.model == json.loads((vectors_run / "model.json").read_text())
    assert document.items == 15
    assert document.simulation


def test_with_settings_the_model_says_what_a_query_costs(vectors_run):
    found = run_offer(vectors_run, KRR)
    queries = ModelDocument.decode(found.model.content).queries
    model = served_model(load(vectors_run), KRR)
    assert queries.version == model.version.hex()
    assert queries.bytes == model.query_bytes == found.ranking.query_bytes
    assert queries.most == found.ranking.most == 15
    assert queries.basis.bytes == len(found.basis.content)
    costs = {
        (line["what"], line["unit"], line["view"]): line["epsilon"]
        for line in queries.costs
    }
    assert costs["one query", "user", "server"] == pytest.approx(2.0)
    assert costs["30 queries", "user", "server"] > 10


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(BadRun, match="tacit train"):
        run_offer(tmp_path)


def test_a_method_that_cannot_be_queried_is_refused(popular_run):
    assert run_offer(popular_run).candidates.content
    with pytest.raises(Refused, match="serve it on_device"):
        run_offer(popular_run, KRR)
