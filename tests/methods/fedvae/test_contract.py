"""FedVAE keeps the contract: as the paper has it, and with all that was added."""

from tacit.method import CentralGaussian
from tacit.methods.fedvae import FedVae
from tacit.plans import Plan
from tacit.testing.contract import MethodContract, assert_checkerboard_learnt

SMALL = {"hidden": (8,), "latent": 4, "dtype": "float64", "rate": 0.1}


class FedVaeContract(MethodContract):
    """Two rounds; more to learn the checkerboard."""

    rounds = 2

    def answer_plan(self, world):
        return Plan(len(world.shards), rounds=30)

    def check_learnt(self, score, world):
        """What a user lacks comes before the other kind's items."""
        assert_checkerboard_learnt(score, world.shards)


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
