"""Audits of queries: honest mechanisms pass, and each broken one is caught."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tacit.audits.served_queries import (
    check_entries,
    check_one_interaction,
    check_queries,
)
from tacit.keys import Key
from tacit.mechanisms.private_attention import GaussianAttention, LaplaceAttention
from tacit.mechanisms.private_vector import PrivateVector
from tacit.mechanisms.published import PublishedAttention
from tacit.release import Unit
from tacit.serving.noisy_attention import NoisyAttention
from tacit.serving.noisy_vector import NoisyVector
from tacit.serving.query import Mode
from tacit.serving.query_mechanism import InterestResponse
from tacit.serving.served_model import ServedModel
from tacit.serving.serving_client import ServingClient
from tacit.serving.settings import ServingSettings, served_model
from tests.serving.news_with_basis import model as news_with_basis
from tests.serving.worlds import interests, item_space, population

KEY, DRAWS = Key.from_seed(5), 40_000


def krr(epsilon=1.0):
    return InterestResponse(epsilon, interests())


def dpa(epsilon=1.0, delta=0.0):
    return NoisyAttention.fitted(epsilon, interests(), population(), delta=delta)


def vdp(epsilon=1.0, delta=0.0):
    return NoisyVector.whole(epsilon, population(), delta=delta)


@pytest.mark.parametrize(
    "mechanism",
    [krr(), dpa(), dpa(delta=1e-6), vdp(), vdp(delta=1e-6)],
    ids=["krr", "dpa", "dpa Gaussian", "vdp", "vdp Gaussian"],
)
def test_an_honest_mechanism_passes(mechanism):
    """False alarm below 1e-3 if the seed were drawn anew."""
    found = check_queries(mechanism, key=KEY, draws=DRAWS)
    assert found.ok, found
    assert found.measured > 0.1 * found.claimed  # it does look


class PaperLaplace(LaplaceAttention):
    """Noise of the paper's sensitivity, theta, under the account of the true one."""

    @property
    def scale(self):
        return PublishedAttention(
            self.epsilon, self.interests, theta=self.theta, delta=0.0
        ).noise


class PaperGaussian(GaussianAttention):
    """The same with Gaussian noise: sensitivity theta instead of sqrt(2) theta."""

    @property
    def event(self):
        own = vars(self)
        return GaussianAttention(**own).event

    @property
    def sigma(self):
        return super().sigma / np.sqrt(2)


def of_the_paper(kind, honest):
    return replace(honest, attention=kind(**vars(honest.attention)))


@dataclass(frozen=True)
class HalfNoise(PrivateVector):
    """Sensitivity theta instead of 2 theta."""

    def noisy(self, vectors, keys):
        half = PrivateVector(
            2 * self.epsilon, self.width, theta=self.theta, delta=self.delta
        )
        return half.noisy(vectors, keys)


@dataclass(frozen=True, eq=False)
class Louder(InterestResponse):
    """Draws by another epsilon than it says."""

    def release(self, users, keys):
        return InterestResponse(1.5 * self.epsilon, self.interests).release(users, keys)


@pytest.mark.parametrize(
    "mechanism",
    [
        of_the_paper(PaperLaplace, dpa(2.0)),
        of_the_paper(PaperGaussian, dpa(2.0, delta=1e-6)),
        replace(vdp(), vector=HalfNoise(**vars(vdp().vector))),
        Louder(1.0, interests()),
    ],
    ids=["paper's Laplace", "paper's Gaussian", "half the vector's noise", "louder"],
)
def test_too_little_noise_is_caught(mechanism):
    assert not check_queries(mechanism, key=KEY, draws=DRAWS).ok


# --- Over a basis that training made -----------------------------------------------


def over_basis(claimed=2.0, *, noise="paper", delta=0.0, padding=0.5):
    """Attention over the two basis vectors of a small model, as clients say it."""
    settings = ServingSettings(
        Mode.DPA, claimed, noise=noise, delta=delta, padding=padding
    )
    return served_model(news_with_basis(), settings).mechanism


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("noise", ["sound", "paper"])
def test_queries_over_a_trained_basis_pass_for_users_and_for_one_interaction(
    noise, delta
):
    honest = over_basis(noise=noise, delta=delta)
    for check in (check_queries, check_one_interaction):
        found = check(honest, key=KEY, draws=DRAWS)
        assert found.ok, found
        assert found.measured > 0.2 * found.claimed  # it looks where they lie apart


def test_the_papers_baseline_passes_at_what_is_proven():
    settings = ServingSettings(Mode.VDP, 1.0, noise="paper")
    found = check_queries(
        served_model(news_with_basis(), settings).mechanism, key=KEY, draws=DRAWS
    )
    assert found.ok
    assert found.measured > 1.0  # more than the paper claims


@dataclass(frozen=True)
class Unclipped(LaplaceAttention):
    """Attention leaves as long as it is, under noise for a cut one."""

    def noisy(self, attention, keys):
        uncut = LaplaceAttention(self.epsilon, self.interests, theta=1.0)
        drawn = uncut.noisy(attention, keys) - attention
        return attention + self.theta * drawn


@dataclass(frozen=True)
class Silent(PublishedAttention):
    """No noise, under the account of the printed one."""

    def drawn(self, keys):
        return np.zeros((len(keys), self.interests))


@dataclass(frozen=True, eq=False)
class PaddedTwice(NoisyAttention):
    """The account counts the coins of padding twice for one interaction."""

    def event(self, unit):
        once = super().event(unit)
        return once if unit is Unit.USER else self.padding.item_event(once)


def with_noise_of(kind, honest, **changes):
    return replace(honest, attention=kind(**{**vars(honest.attention), **changes}))


@pytest.mark.parametrize(
    ("check", "mechanism"),
    [
        (check_queries, with_noise_of(Unclipped, over_basis(noise="sound"), theta=0.5)),
        (check_queries, with_noise_of(Silent, over_basis())),
        (check_one_interaction, PaddedTwice(**vars(over_basis(noise="sound")))),
        (check_one_interaction, PaddedTwice(**vars(over_basis(1.0)))),
    ],
    ids=["no clip", "no noise", "padding twice", "padding twice, as printed"],
)
def test_a_broken_query_over_a_trained_basis_is_caught(check, mechanism):
    """Each skips one step of Algorithm 2, and says that it was done."""
    assert not check(mechanism, key=KEY, draws=DRAWS).ok


MODEL = ServedModel(item_space(), krr(0.1))


def test_an_honest_client_enters_every_query():
    found = check_entries(MODEL)
    assert found.ok
    assert found.claimed == 3


class Forgetful(ServingClient):
    """Makes a fresh release for each request, entered or not."""

    def query(self, user):
        super().query(user)
        [query] = self.model.release(user()[None], Key.from_os().alone())
        return query


def test_fresh_releases_without_an_entry_are_caught():
    """Numbers with noise never repeat, so that 15 requests are 15 releases."""
    model = ServedModel(item_space(), dpa(0.1))

    def opened(path, model, now):
        return Forgetful(path, model, now=now)

    found = check_entries(model, open_client=opened)
    assert (found.measured, found.claimed, found.ok) == (15, 3, False)
