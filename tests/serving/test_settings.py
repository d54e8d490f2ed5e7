"""Tests of the settings of serving, and of the public model that follows."""

import numpy as np
import pytest

from tacit.accounting.epsilon import epsilon
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.release import Unit
from tacit.serving.query import Mode
from tacit.serving.settings import ServingSettings, served_model, usual_interests

from .test_population import TWO_KINDS


@pytest.mark.parametrize(
    ("settings", "width"),
    [
        (ServingSettings(Mode.KRR, 2.0), 1),
        (ServingSettings(Mode.KRR, 2.0, interests=2), 1),
        (ServingSettings(Mode.DPA, 2.0, interests=2, padding=0.3), 2),
        (ServingSettings(Mode.DPA, 2.0, interests=2, reading="softplus"), 2),
        (ServingSettings(Mode.VDP, 2.0, delta=1e-6), 2),
        (ServingSettings(Mode.VDP, 2.0, axes=1), 1),
    ],
    ids=lambda value: getattr(value, "mode", ""),
)
def test_client_and_server_make_the_same_model(settings, width):
    one, two = (served_model(TWO_KINDS, settings) for _ in "ab")
    assert one.version == two.version
    assert one.mechanism.mode is settings.mode
    assert one.mechanism.width == width


@pytest.mark.parametrize(
    "settings",
    [
        ServingSettings(Mode.KRR, 2.0),
        ServingSettings(Mode.DPA, 2.0, interests=2, padding=0.3),
        ServingSettings(Mode.DPA, 2.0, interests=2, delta=1e-6, padding=0.3),
        ServingSettings(Mode.VDP, 2.0, delta=1e-6),
        ServingSettings(Mode.VDP, 2.0, axes=1),
    ],
    ids=lambda one: f"{one.mode} {one.delta}",
)
@pytest.mark.parametrize("unit", [*Unit])
def test_settings_cost_what_their_mechanism_costs(settings, unit):
    mechanism = served_model(TWO_KINDS, settings).mechanism
    delta = 1e-6 if settings.delta else 0.0
    one, two = (
        epsilon(found.event(unit), delta=delta, adjacency="replace_one").value
        for found in (settings, mechanism)
    )
    assert one == pytest.approx(two, rel=1e-6)
    assert settings.assumes == mechanism.assumes


def test_few_interests_at_a_small_budget():
    counts = [usual_interests(epsilon) for epsilon in (0.5, 2.0, 5.0, 10.0, 20.0)]
    assert counts == sorted(counts)
    assert counts[0] == 3


@pytest.mark.parametrize(
    "bad",
    [
        {"mode": Mode.ON_DEVICE},
        {"epsilon": 0.0},
        {"delta": 1e-6},
        {"padding": 0.5},
        {"axes": 3},
        {"mode": Mode.VDP, "interests": 3},
    ],
    ids=str,
)
def test_settings_that_would_change_nothing_are_refused(bad):
    with pytest.raises(BadValue):
        ServingSettings(**{"mode": Mode.KRR, "epsilon": 1.0, **bad})


def test_a_query_comes_back_as_a_vector_of_the_model():
    model = served_model(TWO_KINDS, ServingSettings(Mode.KRR, 50.0, interests=2))
    [query] = model.release(np.array([[1.0, 0.0]]), Key.from_seed(0).alone())
    assert model.decode(query).argmax() == 0
