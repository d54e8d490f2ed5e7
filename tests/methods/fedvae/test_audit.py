"""FedVAE through the audit: the code that runs, and what must be caught."""

from dataclasses import dataclass, replace

import pytest

from tacit.audits.audit_method import audit
from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_norm
from tacit.method import CentralGaussian, Tree
from tacit.methods.fedvae import FedVae
from tacit.plans import Plan

PLAN = Plan(2000, rounds=3, channel="secure_sum", delta=1e-6)
SMALL = {"hidden": (3,), "latent": 2}


def failed(method, seed=1):
    return [
        c.name for c in audit(method, PLAN, key=Key.from_seed(seed)).checks if not c.ok
    ]


@pytest.mark.slow
def test_what_fedvae_does_is_what_it_claims():
    """All at once: counting, a clip that moves, groups.

    False alarm below 5e-3 if the seed were drawn anew.
    """
    noise = {"counts": 2.0, "gradients": 1.5}
    privacy = CentralGaussian(noise, clip=0.3, clip_quantile=0.5, bit_noise=4.0)
    method = FedVae(privacy=privacy, **SMALL, count_rounds=1, head=700, groups=3)
    assert failed(method) == []


@dataclass(frozen=True)
class LayerByLayer(CentralGaussian):
    """Clips every layer by itself: four clips fit into one report."""

    def report(self, tree, phase, told, *, codes, keys):
        leaves = {}
        for name, leaf in tree.leaves.items():
            alone = clip_by_norm(Tree({name: leaf}), self.clip)
            leaves |= alone.leaves
        return Tree(leaves)


@pytest.mark.slow
def test_clipping_layer_by_layer_is_caught():
    honest = FedVae(privacy=CentralGaussian(1.5, clip=0.3), **SMALL)
    broken = replace(honest, privacy=LayerByLayer(1.5, clip=0.3))
    assert "largest contribution over the sensitivity" in failed(broken)
