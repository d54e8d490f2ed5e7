"""What a release draws from, and that nobody's history moves another's report."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tacit.data.features import Category
from tacit.data.federated_data import FederatedData
from tacit.errors import Refused
from tacit.keys import Key
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fedvae import FedVae
from tacit.methods.gram import Gram
from tacit.methods.privrec import PrivRec
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.runtime.checkpoint import parts_of
from tacit.runtime.secrets import Secrets
from tacit.runtime.simulate import Simulation
from tacit.sampling import Once, Poisson
from tacit.transport.channels import SecureSum, Sum

USERS, ITEMS, VICTIM = 50, 400, 7
SECRETS = Secrets(bytes(32), bytes(range(32)))


def world(victim):
    draws = np.random.default_rng(5)
    held = [
        sorted(draws.choice(ITEMS, draws.integers(2, 120), replace=False).tolist())
        for _ in range(USERS)
    ]
    held[VICTIM] = victim
    return FederatedData.of_histories(held, n_items=ITEMS)


def simulation(method, *, victim=(1, 2, 3), **settings):
    plan = Plan(USERS, rounds=2, channel="secure_sum", **settings)
    lived = world([*victim])
    genres = Category.of([f"genre {item % 7}" for item in range(ITEMS)])
    return Simulation(
        method,
        plan,
        replace(lived.catalog, features={"genre": genres}),
        lived.profiles,
        lived.shards,
        Key.from_os(),
        chunk=16,
        is_release=True,
    )


@dataclass
class Tapped:
    """A trusted sum that keeps what it was sent."""

    name: str = "secure_sum"
    delivers: type = Sum
    sent: list = field(default_factory=list)

    def carry(self, chunks, context):
        self.sent = [*chunks]
        return SecureSum().carry(self.sent, context)


NOISE = CentralGaussian({"counts": 2.0, "relations": 2.0})
METHODS = {
    "popularity": FederatedPopularity(privacy=CentralGaussian(2.0)),
    "gram": Gram(privacy=NOISE, head=200),
    "fedvae": FedVae(privacy=CentralGaussian(2.0, clip=0.1), hidden=(64,), latent=16),
    "privrec": PrivRec(privacy=CentralGaussian(2.0, clip=0.5), widths=(16, 8)),
}


@pytest.mark.parametrize(
    ("name", "round_"), [*((name, 0) for name in METHODS), ("gram", 1)]
)
def test_nobodys_history_moves_anothers_report(name, round_):
    """Not by a bit: no order of clients and no chunk's shape follows from it."""
    server, sent = None, []
    for victim in ([1, 2, 3], [*range(390)]):
        tap = Tapped()
        made = replace(simulation(METHODS[name], victim=victim), channel=tap)
        state = made.start()
        for _ in range(round_):
            state, _ = made.step(state)
        server = server or state.server
        made.step(replace(state, server=server, secrets=SECRETS))
        sent.append([parts_of(chunk.tree) for chunk in tap.sent])
    is_same = [
        all(np.array_equal(one[n][row], other[n][row]) for n in one)
        for one, other in zip(*sent, strict=True)
        for row in range(len(next(iter(one.values()))))
    ]
    assert [place for place, same in enumerate(is_same) if not same] == [VICTIM]
    assert len(is_same) == USERS


def test_every_round_has_a_secret_of_its_own_and_the_last_state_none():
    made = simulation(METHODS["popularity"])
    states = [made.start(), *(state for state, _ in made.run(made.start()))]
    first, second, last = (state.secrets for state in states)
    assert first.round != second.round
    assert last is None
    assert "round" not in repr(first)


def test_a_round_is_a_function_of_its_state():
    made = simulation(METHODS["gram"])
    state = made.start()
    one, other = (made.step(state)[0].server.weights for _ in range(2))
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])
    fresh, _ = made.step(replace(state, secrets=Secrets.from_os()))
    assert any(not np.array_equal(v, fresh.server.weights[n]) for n, v in one.items())


def test_who_is_asked_once_is_asked_once_though_rounds_have_other_secrets():
    made = simulation(METHODS["popularity"], sampler=Once())
    tallies = [tally for _, tally in made.run(made.start())]
    assert sum(tally.took_part for tally in tallies) == USERS
    *_, (state, _) = made.run(made.start())
    assert state.taken.sum(axis=1).tolist() == [1] * USERS


def test_cohorts_and_coins_come_from_the_secrets():
    local = FederatedPopularity(privacy=LocalPrivUnit(2.0))
    for method, settings in (
        (local, {}),
        (METHODS["popularity"], {"sampler": Poisson(0.5)}),
    ):
        made = simulation(method, **settings)
        found = []
        for secrets in (SECRETS, SECRETS, replace(SECRETS, round=bytes(32))):
            state = replace(made.start(), secrets=secrets)
            after, _ = made.step(state)
            found.append((after.server.weights, after.taken.tolist()))
        same = [np.array_equal(found[0][0][n], found[1][0][n]) for n in found[0][0]]
        other = [np.array_equal(found[0][0][n], found[2][0][n]) for n in found[0][0]]
        assert all(same)
        assert not all(other)
        assert found[0][1] == found[2][1]  # who is asked follows from the run's


def test_a_release_is_not_played_without_its_secret():
    made = simulation(METHODS["popularity"])
    with pytest.raises(Refused, match="has no secret to draw from"):
        made.step(replace(made.start(), secrets=None))
