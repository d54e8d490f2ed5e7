"""The offer of a run directory: what its server gives away."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tacit.documents import parsed, read_bytes
from tacit.experiment.privacy_card import current_card
from tacit.experiment.saved_run import SavedRun, load
from tacit.service.basis import write_basis
from tacit.service.http import JSON
from tacit.service.model_document import FORMAT, Content, ModelDocument, Queries
from tacit.service.offer import Offer, Ranking, Resource
from tacit.serving.query import HEADER_BYTES, Query
from tacit.serving.query_server import QueryServer
from tacit.serving.recommender import Recommender
from tacit.serving.served_model import ServedModel
from tacit.serving.serving_account import outlook
from tacit.serving.settings import ServingSettings, served_model
from tacit.version import __version__

MOST = 1000  # items in an answer, unless the catalog has fewer


def run_offer(run: Path, settings: ServingSettings | None = None) -> Offer:
    """What a server of this run gives away; without settings it ranks nothing.

    It takes some seconds where queries are ranked: interests are found, kernels
    compiled, and the lists of all interests ranked.
    """
    directory = SavedRun.at(run).directory
    recommender = load(run)
    facts = parsed(directory.model_facts, read_bytes(directory.model_facts))
    candidates = Resource(read_bytes(directory.model))
    basis, ranking, queries = None, None, None
    if settings is not None:
        model = served_model(recommender, settings)
        basis = Resource(write_basis(model.mechanism))
        ranking = _ranking(model, recommender)
        queries = _queries(model, ranking, basis)
    card = current_card(directory)
    document = ModelDocument(
        FORMAT,
        __version__,
        len(recommender.catalog),
        facts,
        _content("candidates", candidates),
        queries,
        bool(card["simulation"]),
        card["totals"],
    )
    return Offer(Resource(document.encode(), JSON), candidates, basis, ranking)


def _ranking(model: ServedModel, recommender: Recommender) -> Ranking:
    ids = tuple(recommender.catalog.ids)
    most = min(MOST, len(ids))
    ranker = QueryServer(model).prepared(most)
    # The first user's query finds the kernels compiled.
    zeros = bytes(model.query_bytes - HEADER_BYTES)
    ranker.answer(Query(model.version, model.mechanism.mode, zeros), most)
    return Ranking(ranker, model.version, model.query_bytes, most=most, ids=ids)


def _queries(model: ServedModel, ranking: Ranking, basis: Resource) -> Queries:
    lines: list[dict[str, Any]] = [asdict(line) for line in outlook(model.mechanism)]
    return Queries(
        str(model.mechanism.mode),
        model.version.hex(),
        model.query_bytes,
        ranking.most,
        _content("basis", basis),
        lines,
    )


def _content(name: str, resource: Resource) -> Content:
    digest = resource.digest
    return Content(f"/v1/{name}/{digest}", digest, len(resource.content))
