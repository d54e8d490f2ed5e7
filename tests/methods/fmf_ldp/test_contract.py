"""What every method keeps, for each kind of report."""

import numpy as np

from tacit.data.federated_data import FederatedData
from tacit.method import LocalPrivUnit, Method
from tacit.methods.fmf_ldp import FmfLdp
from tacit.plans import Plan
from tacit.privacy import LocalBits, PublishedVotes
from tacit.testing.contract import MethodContract, ScoreFunction

START = {"factors": 3, "init_mean": 0.1, "init_deviation": 0.1}


class TestBare(MethodContract):
    """Federated collaborative filtering."""

    def method(self) -> Method:
        return FmfLdp(learning_rate=0.02, **START)

    def answer_plan(self, world: FederatedData) -> Plan:
        return Plan(len(world.shards), rounds=40)

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        """Even users like even items: the one they lack stands above all odd ones."""
        own = np.arange(12) % 2 == (np.arange(24) % 2)[:, None]
        scores = score(world.shards)
        lowest = np.where(own, scores, np.inf).min(axis=1)
        highest = np.where(own, -np.inf, scores).max(axis=1)
        assert (lowest > highest).all()


class TestVotes(TestBare):
    """Hardly any flips, and every coordinate of the small world."""

    rounds = 2

    def method(self) -> Method:
        votes = LocalBits(epsilon=8.0, votes=36, clip=0.25)
        return FmfLdp(learning_rate=0.05, privacy=votes, **START)


class TestWhole(TestBare):
    rounds = 2

    def method(self) -> Method:
        whole = LocalPrivUnit(epsilon=500.0, clip=4.0)
        return FmfLdp(learning_rate=0.02, privacy=whole, **START)


class TestPaper(TestBare):
    """As published, with so many votes of so large an epsilon that it must learn."""

    rounds = 2

    def method(self) -> Method:
        votes = PublishedVotes(epsilon=8.0, votes=200)
        settings = {"mode": "paper", "learning_rate": 0.0005, "user_ridge": 1.0}
        return FmfLdp(privacy=votes, **settings, **START)
