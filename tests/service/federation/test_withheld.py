"""`tacit.service.federation.coordinator`: a model that is worse than popularity.

The first half asks the coordinator what it does with a verdict; the second has real
services, and clients whose held-out item everybody has.
"""

from __future__ import annotations

import contextlib
import time

import httpx
import numpy as np
import pytest
from service.federation import services
from service.federation.services import Place

from tacit.data.shards import Shards
from tacit.errors import Refused
from tacit.evaluation.released_metric import Measured
from tacit.keys import Key
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.service.federation.coordinated_run import CoordinatedRun
from tacit.service.federation.coordinator import Coordinator, CoordinatorSchedule
from tacit.service.federation.operator_page import operator_page
from tacit.service.federation.overview import Overview, of_coordinator
from tacit.service.federation.services import serve_coordinator
from tacit.service.federation.simulated_clients import SimulatedClients

WHY = "hr@2 is 0.1000, and 0.4000 for a list by the released counts alone"
METRIC = {"share": 0.2, "k": 2, "against_popularity": True}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Place(tmp_path)


@pytest.fixture
def run(place: Place) -> CoordinatedRun:
    made = services.experiment(evaluate={"release": METRIC}, run={"rounds": 2})
    return services.a_run(place, made)


def finish(found: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step on as if every round had been played, to where a model is published."""
    monkeypatch.setattr(CoordinatedRun, "is_over", lambda *_: True)
    monkeypatch.setattr(CoordinatedRun, "metrics", lambda *_: [told()])
    found.step()


def told() -> dict[str, object]:
    return {"name": "hr@2", "value": 0.1, "low": 0.08, "high": 0.12, "people": 12}


def test_it_is_not_published_and_everybody_is_told_why(place, run, monkeypatch):
    urls = services.Urls(*["http://127.0.0.1:1"] * 3)
    found = services.coordinator(place, urls, run)
    monkeypatch.setattr(Measured, "shortfall", lambda *_: WHY)
    finish(found, monkeypatch)
    assert found.withheld == WHY
    assert found.is_over
    assert not found.is_published
    assert not (found.published_run / "model.safetensors").exists()
    seen = of_coordinator(found)
    assert seen.outcome is not None
    assert seen.outcome.metrics == (told(),)
    assert f"The model is not published: {WHY}" in operator_page(seen)
    found.close()
    # A coordinator that starts again has not forgotten, and tells clients.
    with services.in_thread(serve_coordinator, place.coordinator(), run) as served:
        answer = httpx.get(f"{served['public']}/v1/model")
        assert answer.status_code == 404
        assert WHY in answer.json()["error"]["message"]
        assert httpx.get(f"{served['public']}/v1/manifest").status_code == 410


def test_one_that_is_as_good_is_published(place, run, monkeypatch):
    found = services.coordinator(
        place, services.Urls("http://127.0.0.1:1", "", ""), run
    )
    published = []
    monkeypatch.setattr(CoordinatedRun, "publish", lambda *args: published.append(args))
    monkeypatch.setattr(Measured, "shortfall", lambda *_: None)
    finish(found, monkeypatch)
    assert len(published) == 1
    assert found.is_published
    assert found.withheld == ""
    assert found.released_metrics == (told(),)
    found.close()


def test_the_rule_is_the_metrics_own(run, monkeypatch):
    """The coordinator decides nothing by itself: it asks what was released."""
    measured = run.assembled.measured
    assert measured is not None
    assert measured.metric.against_popularity
    assert run.invitation.method.metric.against_popularity
    asked = []
    monkeypatch.setattr(Measured, "shortfall", lambda *args: asked.append(args))
    assert run.shortfall(run.start) is None
    assert asked == [(measured, run.start)]


# --- Real services --------------------------------------------------------------------

USERS = 60
PLAIN = {
    "data": {"population": USERS},
    "privacy": {"target_epsilon": 60.0},  # more is not proven, and refused
    "evaluate": {"release": {**METRIC, "share": 0.5, "k": 1}},
    "run": {"rounds": 2},
}


def played(place: Place) -> Overview:
    """What the operator sees when sixty clients have answered both rounds."""
    run = services.a_run(place, services.experiment(**PLAIN))
    held = [np.array([1 + n % 14, 0]) for n in range(USERS)]
    if_all = CoordinatorSchedule(poll=0.02, window=600, enough=USERS)
    with services.aggregators(place) as urls:
        settings = place.coordinator(
            leader_url=urls.leader,
            helper_url=urls.helper,
            reports_url=urls.reports,
            schedule=if_all,
        )
        with services.in_thread(serve_coordinator, settings, run) as own:
            shards = Shards.of_histories(held, n_items=15)
            clients = SimulatedClients(
                own["public"], run.invitation, shards, Key.from_seed(0)
            )
            answered = 0
            for _ in range(600):
                with contextlib.suppress(Refused):  # the run is over without a model
                    answered += clients.answer() is not None
                found = httpx.get(f"{own['page']}/metrics").text
                if "tacit_released_metric" in found:
                    break
                time.sleep(0.05)
            assert answered >= 2  # a round that is closing may be answered again
    urls = services.Urls(*["http://127.0.0.1:1"] * 3)
    kept = services.coordinator(place, urls, run)
    seen = of_coordinator(kept)
    kept.close()
    return seen


def test_what_is_as_good_as_popularity_is_published(place):
    """Nobody's last item is trained on, so that neither list has it: a tie.

    The noise is that of a release, and no seed. One time in forty its interval lies
    below zero; then the model is withheld, by the same rule. It lies beyond five
    deviations less than once in a million runs.
    """
    seen = played(place)
    assert seen.outcome is not None
    own, popular, difference = seen.outcome.metrics
    assert own["name"] == "hr@1"
    deviation = (difference["high"] - difference["low"]) / (2 * 1.96)
    assert abs(difference["value"]) < 5 * deviation
    assert own["value"] == pytest.approx(popular["value"], abs=0.2)
    is_worse = difference["high"] < 0
    assert bool(seen.outcome.withheld) == is_worse
    assert len(seen.outcome.models) == (0 if is_worse else 1)
    for digest in seen.outcome.models:
        assert f"The model is published; its SHA-256 is {digest}" in operator_page(seen)


def test_what_is_worse_is_not(place, monkeypatch):
    """The list beside it has everybody's last item first, and the model has it last."""
    monkeypatch.setattr(FederatedPopularity, "popularity", only_the_first)
    seen = played(place)
    assert seen.outcome is not None
    assert "for a list by the released counts alone" in seen.outcome.withheld
    assert seen.outcome.models == ()
    assert len(seen.outcome.metrics) == 3
    assert "The model is not published" in operator_page(seen)


def only_the_first(method, broadcast):
    """Counts that say what everybody's last item is."""
    return np.eye(1, len(broadcast.weights["share"]))[0]
