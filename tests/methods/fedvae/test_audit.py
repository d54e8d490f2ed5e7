"""FedVAE through the audit: the code that runs, and what must be caught."""

from dataclasses import dataclass, replace

from tacit.audit.auditing import audit
from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_norm
from tacit.methods.fedvae import FedVae
from tacit.plan import Plan
from tacit.transport.messages import Reports

PLAN = Plan(2000, rounds=3, channel="secure_sum", delta=1e-6)
HONEST = FedVae(
    privacy="central", hidden=(3,), latent=2, clip=0.3, noise_multiplier=1.5
)


def failed(method, seed=1):
    return [
        c.name for c in audit(method, PLAN, key=Key.from_seed(seed)).checks if not c.ok
    ]


def test_what_fedvae_does_is_what_it_claims():
    """All at once: counting, a clip that moves, groups.

    False alarm below 5e-3 if the seed were drawn anew.
    """
    counting = replace(HONEST, count_rounds=1, count_noise=2.0, head=700)
    assert failed(replace(counting, clip_quantile=0.5, bit_noise=4.0, groups=3)) == []


@dataclass(frozen=True)
class LayerByLayer(FedVae):
    """Clips every layer by itself: four clips fit into one report."""

    def privatize(self, cast, clients, updates, keys):
        leaves = {}
        for name, leaf in updates.tree.leaves.items():
            alone = clip_by_norm(type(updates.tree)({name: leaf}), self.clip)
            leaves |= alone.leaves
        return Reports(type(updates.tree)(leaves))


def test_clipping_layer_by_layer_is_caught():
    broken = LayerByLayer(
        privacy="central", hidden=(3,), latent=2, clip=0.3, noise_multiplier=1.5
    )
    assert "largest contribution over the sensitivity" in failed(broken)
