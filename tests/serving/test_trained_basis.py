"""Tests of queries over a basis that training made (PrivateRec, Algorithms 1, 2)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.accounting.epsilon import epsilon
from tacit.data.shards import Shards
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.padding import Padding
from tacit.mechanisms.private_attention import clip_attention, laplace, to_weights
from tacit.methods.gram import Gram
from tacit.privacy import UNPROTECTED
from tacit.release import Standing, Unit
from tacit.serving.interests import Interests
from tacit.serving.noisy_attention import attention_of
from tacit.serving.query import Mode
from tacit.serving.query_server import QueryServer
from tacit.serving.sensitive import Marks, Protection
from tacit.serving.serve import trial, vector_of
from tacit.serving.serving_account import outlook, release_of
from tacit.serving.settings import ServingSettings, served_model
from tacit.serving.trained_basis import TrainedBasis, encodings_of, trained_basis

from .news_with_basis import BASIS, CATALOG, KINDS, METHOD, PADDING, model
from .test_population import TWO_KINDS

PRINTED = ServingSettings(Mode.DPA, 10.0, padding=0.5, noise="paper")
HEALTH, SPORT = ["n1", "n2", "n3"], ["n11", "n12", "n13"]


def served(settings=PRINTED):
    return served_model(model(), settings)


def users_of(length, *, news=1, padding=None, n=1):
    held = np.full((n, length), news)
    shards = Shards.of_histories(list(held), n_items=len(CATALOG), value=1.0)
    return encodings_of(model(), shards, padding=padding, key=Key.from_seed(1))


def test_attention_is_that_of_line_7():
    """u = (4, 0), b = 3 I, d = 2: softmax of (12 / sqrt 2, 0)."""
    basis = trained_basis(model())
    assert np.array_equal(basis.basis, BASIS)
    np.testing.assert_allclose(users_of(3), [[4.0, 0.0]])
    own = attention_of(basis, users_of(3), temperature=basis.temperature(users_of(3)))
    np.testing.assert_allclose(own[0, 0], 1 / (1 + math.exp(-12 / math.sqrt(2))))


def test_padded_news_are_the_models_own_padding_news():
    """One news was read: its vector, or r_0 with p; 4.5 standard errors of a coin."""
    found = users_of(1, padding=Padding(0.3), n=4000)
    is_padded = (found == PADDING).all(axis=1)
    assert (is_padded | (found == KINDS[1]).all(axis=1)).all()
    assert abs(is_padded.mean() - 0.3) < 4.5 * math.sqrt(0.21 / 4000)


@pytest.mark.parametrize("noise", ["sound", "paper"])
def test_dpa_says_attention_over_the_basis_that_training_made(noise):
    found = served(replace(PRINTED, noise=noise)).mechanism
    assert isinstance(found.interests, TrainedBasis)
    assert np.array_equal(found.interests.basis, BASIS)
    assert found.temperature == 1.0
    assert "2 basis vectors that training made" in found.reason


def test_krr_and_models_without_a_basis_keep_interests_of_invented_users():
    of_krr = served(ServingSettings(Mode.KRR, 2.0, interests=2)).mechanism
    assert isinstance(of_krr.interests, Interests)
    dpa = ServingSettings(Mode.DPA, 2.0, interests=2)
    other = served_model(TWO_KINDS, dpa).mechanism
    assert isinstance(other.interests, Interests)
    assert "2 interests" in other.reason


def test_a_number_of_interests_that_training_did_not_make_is_refused():
    with pytest.raises(BadValue, match="basis of 2"):
        served(ServingSettings(Mode.DPA, 2.0, interests=5))
    sound = replace(METHOD, mode="sound", privacy=UNPROTECTED, learns="gradients")
    assert sound.basis_size == 2
    assert replace(sound, interests=None).basis_size == 0


def test_the_printed_mechanism_needs_a_basis():
    with pytest.raises(BadValue, match="Gram"):
        PRINTED.of_method(Gram())
    with pytest.raises(Refused, match="no basis"):
        trained_basis(TWO_KINDS)


def test_the_printed_mechanism_to_the_letter():
    """Lines 8 to 10 recomputed: clip to 1, Lap(θ / ε0), SoftPlus; then Algorithm 1."""
    mechanism, keys = served().mechanism, Key.from_seed(7).each(np.arange(50))
    users = np.repeat(users_of(3), 50, axis=0)
    alpha = attention_of(mechanism.interests, users, temperature=1.0)
    noise = laplace(keys.at("noise"), 2) / Padding(0.5).inner_epsilon(10.0)
    said = mechanism.release(users, keys)
    np.testing.assert_allclose(
        said, clip_attention(alpha, theta=1.0) + noise, rtol=1e-5
    )
    mixed = mechanism.decode(said)
    np.testing.assert_allclose(mixed, to_weights(said.astype(float)) @ BASIS)


def test_without_noise_the_paper_serves_what_the_device_ranks_by():
    """At an infinite epsilon Algorithm 1 is line 7 of the method, and promises none."""
    bare = served(ServingSettings(Mode.DPA, math.inf, noise="paper"))
    said = bare.mechanism.release(users_of(3), Key.from_seed(0).alone())
    shards = Shards.of_histories([np.array([1, 2, 3])], n_items=20, value=1.0)
    tastes = METHOD.represent(model().broadcast, None, shards, None)  # type: ignore[arg-type]
    own = METHOD.user_vectors(model().broadcast, tastes)
    np.testing.assert_allclose(bare.mechanism.decode(said), own, rtol=1e-6)
    for line in outlook(bare.mechanism, horizons=(1,)):
        assert (line.standing, line.epsilon) == (Standing.NONE, None)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_is_proven_stands_beside_the_claim(delta):
    """ε0 = log((e^10 - .5) / .5): vectors are 2 apart, and not θ = 1 (Laplace)."""
    settings = replace(PRINTED, delta=delta)
    mechanism = served(settings).mechanism
    cells = release_of(mechanism).cells
    for (unit, _), cell in cells.items():
        assert cell.published_epsilon == (None if unit is Unit.USER else 10.0)
        assert cell.standing is Standing.ASSUMED
    user = epsilon(mechanism.event(Unit.USER), delta=delta, adjacency="replace_one")
    if not delta:
        assert user.value == pytest.approx(2 * Padding(0.5).inner_epsilon(10.0))
    item = epsilon(mechanism.event(Unit.ITEM), delta=delta, adjacency="replace_one")
    assert 10.0 < item.value < user.value
    for unit in Unit:
        assert settings.of_method(METHOD).event(unit) == mechanism.event(unit)


def test_a_claim_is_for_one_query_and_never_in_the_place_of_an_epsilon():
    lines = outlook(served().mechanism, horizons=(1, 30))
    one, many = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    assert {line.published_epsilon for line in one} == {None, 10.0}
    assert {line.published_epsilon for line in many} == {None}
    assert all(line.epsilon > 10.0 for line in lines)


def test_vdp_is_the_papers_baseline():
    """Cut to θ = .001, Lap(2 θ / ε) on each number: ε sqrt(d), or ε² / 2-zCDP."""
    settings = ServingSettings(Mode.VDP, 1.0, noise="paper")
    mechanism = served(settings).mechanism
    keys = Key.from_seed(2).each(np.arange(2000))
    said = mechanism.release(np.full((2000, 2), 5.0), keys)
    off = np.abs(said - 0.001 / math.sqrt(2)).mean()
    assert off == pytest.approx(0.002, rel=0.1)  # the mean size of Laplace noise
    assert mechanism.event(Unit.USER).epsilon == pytest.approx(math.sqrt(2))
    # A plan knows no width: (1 / 2)-zCDP holds for any.
    planned = epsilon(settings.event(Unit.USER), delta=1e-6, adjacency="replace_one")
    assert planned.value == pytest.approx(5.2, abs=0.1)
    assert mechanism.claimed == 1.0


@pytest.mark.parametrize(
    ("kind", "other"), [(HEALTH, SPORT), (SPORT, HEALTH)], ids=["health", "sport"]
)
@pytest.mark.parametrize("noise", ["sound", "paper"])
def test_lists_follow_the_history_where_there_is_little_noise(noise, kind, other):
    quiet = ServingSettings(Mode.DPA, 1e6, noise=noise)
    made = served(quiet)
    found = trial(model(), kind, 5, model=made, ask=QueryServer(made).answer)
    assert {CATALOG.indices([one.id])[0] // 10 for one in found} == {
        CATALOG.indices(kind)[0] // 10
    }


def test_marks_say_what_enters_and_what_may_be_padded():
    """Left out, health is not seen; padded alone, sport is never padded."""
    always = replace(served().mechanism, padding=Padding(1 - 1e-12), pads="sensitive")
    marks = Marks.of(CATALOG, "kind", ["health"], protection=Protection.PAD_SENSITIVE)
    padded = vector_of(model(), ["n1", "n11"], mechanism=always, marks=marks)
    np.testing.assert_allclose(padded, (PADDING + KINDS[11]) / 2)
    left = replace(marks, protection=Protection.LEAVE_OUT)
    bare = served(replace(PRINTED, padding=0.0)).mechanism
    found = vector_of(model(), ["n1", "n11"], mechanism=bare, marks=left)
    np.testing.assert_allclose(found, KINDS[11])


@pytest.mark.parametrize(
    "bad",
    [
        {"mode": Mode.KRR},
        {"theta": 0.0},
        {"noise": "sound", "theta": 0.1},
        {"noise": "sound", "epsilon": math.inf},
        {"reading": "regression"},
        {"mode": Mode.VDP, "axes": 2},
    ],
    ids=str,
)
def test_settings_that_the_paper_does_not_have_are_refused(bad):
    own = {"mode": Mode.DPA, "epsilon": 1.0, "noise": "paper"}
    with pytest.raises(BadValue):
        ServingSettings(**{**own, **bad})
