"""FedVAE keeps the contract: as the paper has it, and with all that was added."""

import numpy as np

from tacit.method import CentralGaussian
from tacit.methods.fedvae import FedVae
from tacit.plan import Plan
from tacit.testing.contract import MethodContract

SMALL = {"hidden": (8,), "latent": 4, "dtype": "float64", "rate": 0.1}


class FedVaeContract(MethodContract):
    """Two rounds; more to learn the checkerboard."""

    rounds = 2

    def answer_plan(self, world):
        return Plan(len(world.shards), rounds=30)

    def check_learnt(self, score, world):
        """What a user lacks comes before the other kind's items."""
        scores = score(world.shards)
        owned = np.zeros(scores.shape, bool)
        owned[world.shards.owners, world.shards.items] = True
        first = np.where(owned, -np.inf, scores).argmax(axis=1)
        lacks = [np.arange(12)[p % 2 :: 2][p % 6] for p in range(24)]
        assert first.tolist() == lacks


class TestPaper(FedVaeContract):
    def method(self):
        return FedVae(mode="paper", boost=1.0, **SMALL)


class TestAllThatWasAdded(FedVaeContract):
    """Counted, a head, a clip that moves, noise that hardly shows, groups, two local
    steps, one matrix for both ends.
    """

    def method(self):
        return FedVae(
            privacy=CentralGaussian(
                {"counts": 0.01, "gradients": 0.01},
                clip=5.0,
                clip_quantile=0.5,
                bit_noise=1.0,
            ),
            count_rounds=1,
            head=15,
            groups=3,
            local_passes=2,
            local_rate=0.05,
            tied=True,
            dropout=0.2,
            **SMALL,
        )
