"""DP-VAE: an autoencoder of histories under noise, small enough to be learnt.

    x, n    a user's history over the head, of norm 1, and its number of items; as
            published x is R_ki, the ratings of an item, of which later weigh more
    c       the sum of histories over users, with noise               (everyone sees it)
    head    the H items with the largest c                            (everyone sees it)
    W, a, b one matrix of H rows and d columns, and two biases        (everyone sees it)
    f       Wᵀ x + a, then W (·) + b: the scores of the head;   p = softmax(f)
    L       -1/n Σ log p over the items held
    S, η    clip of a gradient; rate of Adam

    counting  client  1  send x over the whole catalog
              server  2  c; the head; b = log c; W at random
    training  client  3  g = gradient of L, clipped jointly to S      (leaves, in a sum)
              server  4  a step of Adam along (Σ g + noise) / (clients planned)
    ranking   client  5  the scores f of the user's own history; then the tail, by c

That is `mode = "sound"` with `model = "autoencoder"`, the default: nothing is sampled,
and one matrix serves both ends. `model = "vae"` is the paper's network, items -> hidden
-> latent -> hidden -> items with a sampled latent vector and β KL in the loss; the KL
may be to a prior of each user's own, from metadata, which stays on the client.

`mode = "paper"` is Algorithm 3: no counts and no head, U users per round,

    client  4  μ_k, γ_k² with noise (Equation 11); z_k
            5  J examples: single items to be foretold from the whole history
            7  g_kj, the gradient of -log p + β KL of each
      9 to 15  clip, average and add noise: `privacy.published_personal`
    server 18  weights -= η (mean of reports)

Nothing protects anyone there. Source: L. Fang, B. Du and C. Wu, "Differentially private
recommender system with variational autoencoders", 2022. Departures and what the paper
leaves open: docs/methods/dpvae.md; its errors: docs/errata/dpvae.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float

from tacit import check
from tacit.aggregation.server_optimizers import Adam, ServerOptimizer, Sgd
from tacit.errors import BadValue
from tacit.method import (
    Array,
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    CentralGaussian,
    Clients,
    Formula,
    ItemSpace,
    Key,
    Keys,
    Mechanisms,
    Phase,
    Plan,
    Profiles,
    PublicSlot,
    Scores,
    Server,
    Shards,
    Slot,
    SumMethod,
    Tastes,
    Tree,
    Unprotected,
    check_offered,
    divided,
    in_turn,
)
from tacit.models.histories import rows
from tacit.models.item_relations import unit
from tacit.models.metadata_priors import metadata_of
from tacit.models.mult_vae import Held, Network, Pass, Prior
from tacit.models.mult_vae.counted_head import (
    formula_with_tail,
    most_counted,
    output_bias,
    space_with_tail,
    with_tail,
)
from tacit.models.mult_vae.gradients import example_gradients, gradients
from tacit.models.onnx_graph import HISTORIES
from tacit.privacy import PublishedPersonalNoise
from tacit.privacy.published_personal import EPSILON
from tacit.wire_names import register

_PROOF = "docs/methods/dpvae.md"
_LEAK = "the signs of a gradient give the history back"
_PAPER_LATENT = 20  # ML-100K, Table 3
# Under the paper's noise weights grow without end; so that a run comes to its end:
_MOST_WEIGHT, _MOST_LOG_VARIANCE = 1e6, 20.0
_RATES = {"sound": 0.01, "paper": 0.005}  # of Adam; of plain steps, under Table 4
# Sizes where users over noise times the root of the rounds is 1,100: 5,000 users, three
# in ten of them in each of 150 rounds, at epsilon = 1. Both grow with its root, as was
# found on validation users of MovieLens 1M (docs/methods/dpvae.md).
_EVIDENCE, _HEAD, _LATENT = 1100.0, 400, 32
_MOST_HEAD, _MOST_LATENT = 3000, 128


@register("dpvae", revision=2)
@dataclass(frozen=True)
class DpVae(SumMethod):
    """An autoencoder of histories, learnt from clipped gradients of users.

    Leave `head` and `latent` out to have them follow from the plan.
    """

    usual_rounds: ClassVar[int] = 151
    mechanisms: ClassVar[Mechanisms] = {
        "none": Unprotected,
        "central": CentralGaussian,
        "published": PublishedPersonalNoise,
    }

    mode: Literal["sound", "paper"] = "sound"
    # the network
    model: Literal["autoencoder", "vae"] | None = None  # None: "vae" in mode="paper"
    head: int | None = None  # H, sound only
    latent: int | None = None  # d; as published 20, 30 and 50
    hidden: int = 80  # of the vae; as published 80, 100 and 100
    dtype: Literal["float32", "float64"] = "float32"
    # a client's loss
    dropout: float = 0.0
    beta: float = 0.5  # of the vae; as published 0.5, 0.2 and 0.1
    is_weighted: bool = False  # inputs by their ratings; in mode="paper" always
    priors: tuple[str, ...] = ()  # metadata of the profiles with a vector and a mean
    examples: int = 10  # J, of mode="paper"
    # the server's step
    rate: float | None = None  # η; None: 0.01 of Adam, or 0.005 in mode="paper"
    # counting, sound only
    count_rounds: int = 1
    count_share: float = 0.1  # of the budget

    def __post_init__(self) -> None:
        check_offered(self)
        check.one_of(("sound", "paper"), mode=self.mode)
        check.one_of(("autoencoder", "vae"), model=self._model)
        check.one_of(("float32", "float64"), dtype=self.dtype)
        for name in ("head", "latent"):
            if getattr(self, name) is not None:
                check.count(**{name: getattr(self, name)})
        check.count(hidden=self.hidden, examples=self.examples)
        check.count(count_rounds=self.count_rounds)
        check.not_negative(beta=self.beta)
        check.positive(rate=self._rate)
        check.fraction(count_share=self.count_share)
        if not 0 <= self.dropout < 1:
            raise BadValue(f"dropout={self.dropout} must be in [0, 1)")
        if self.priors and self._model != "vae":
            raise BadValue(
                f"priors={self.priors} belong to model='vae': what is not sampled has "
                "no prior"
            )
        self._check_mode()

    def _check_mode(self) -> None:
        is_published = isinstance(self.privacy, PublishedPersonalNoise)
        if self.privacy.is_private and is_published != self._is_paper:
            raise BadValue(
                "mode='paper' and mechanism 'published' go together: the paper's clip "
                "and noise are reachable from it alone, and it has no others"
            )
        if self._is_paper and self.head is not None:
            raise BadValue(f"head={self.head} is not in the paper; use mode='sound'")

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """Counting for a share of the budget; then gradients, clipped."""
        if self._is_paper:
            return (self._training(range(plan.rounds), bound=1.5, share=1.0),)
        counting, training = in_turn(
            ("counts", self.count_rounds, "DP-VAE counts"),
            ("gradients", 0, "trains"),
            total=plan.rounds,
        )
        share = self.count_share
        counts = Phase(
            "counts", counting, what="counts of items", share=share, proof=_PROOF
        )
        return counts, self._training(training, bound=0.05, share=1 - share)

    def _training(self, rounds: range, *, bound: float, share: float) -> Phase:
        """The phase of gradients; its bound is the clip unless another is set."""
        return Phase(
            "gradients",
            rounds,
            what="gradients of the model",
            bound=bound,
            is_clipped=True,
            share=share,
            proof=_PROOF,
            leak=_LEAK,
        )

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per item while counting; then the factors of each layer."""
        if phase.name == "counts":
            return {"counts": Slot("float64", (len(catalog),))}
        network = self._network(self._side(catalog))
        layers = {
            name: Slot(
                self.dtype,
                shape,
                self.examples if self._is_paper else network.ranks[name],
            )
            for name, shape in network.shapes.items()
        }
        if isinstance(self.privacy, PublishedPersonalNoise):
            return {**layers, EPSILON: Slot("float64", ())}
        return layers

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """The network, the items that it knows, and what was counted."""
        n_items, side = len(catalog), self._side(catalog)
        layers = {
            name: PublicSlot(self.dtype, shape)
            for name, shape in self._network(side).shapes.items()
        }
        known = {"head": PublicSlot("int64", (side,), 0, n_items - 1)}
        if not self._is_paper:
            known["counts"] = PublicSlot("float64", (n_items,))
        return {**layers, **known}

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Lines 1 and 3, raw; in mode="paper" lines 4 to 7 of Algorithm 3."""
        if phase.name == "counts":
            return Tree.dense(counts=unit(rows(shards)))
        held = self._held(broadcast, shards)
        network = self._network(held.n_items)
        latent = network.latent if network.is_variational else 0
        drawn = Pass.drawn(held, keys, dropout=self.dropout, latent=latent)
        prior = self._prior(clients)
        if self._is_paper:
            targets = held.drawn_examples(keys.at("examples"), self.examples)
            told = network, broadcast.weights, held, drawn, targets
            tree = example_gradients(
                *told, beta=self.beta, prior=prior, most_log_variance=_MOST_LOG_VARIANCE
            )
            if not isinstance(self.privacy, PublishedPersonalNoise):
                return tree
            return Tree({**tree.leaves, EPSILON: clients.state.leaves[EPSILON]})
        return gradients(
            network,
            broadcast.weights,
            held,
            [drawn],
            beta=self.beta,
            is_mean=True,
            prior=prior,
        )

    # client

    def enrol(self, profiles: Profiles, keys: Keys) -> Tree:
        """What a client keeps: its user's prior, and as published an epsilon."""
        state: dict[str, Array] = {}
        if isinstance(self.privacy, PublishedPersonalNoise):
            state[EPSILON] = self.privacy.drawn(keys.at(EPSILON))
        if self.priors:
            told = metadata_of(profiles, self.priors, latent=self._known_latent)
            prior = told.prior()
            if isinstance(self.privacy, PublishedPersonalNoise):
                sigma = self.privacy.sigma(state[EPSILON])
                prior = told.noisy_prior(keys.at("prior"), sigma=sigma)  # Equation 11
            state |= {"prior mean": prior.mean, "prior variance": prior.variance}
        return Tree.dense(**state)

    def _prior(self, clients: Clients) -> Prior | None:
        if not self.priors:
            return None
        return Prior(clients.state["prior mean"], clients.state["prior variance"])

    # server

    def calibrated(self, plan: Plan) -> Self:
        """A copy with the least noise for the plan's target, and the sizes it allows.

        Without noise they are the largest.
        """
        made = super().calibrated(plan)
        if self._is_paper:
            return made
        growth = math.sqrt(made._evidence(plan))  # infinite without noise
        head = round(min(_MOST_HEAD, max(10, _HEAD * growth)))
        latent = round(min(_MOST_LATENT, max(2, _LATENT * growth)))
        return replace(made, head=self.head or head, latent=self.latent or latent)

    def _evidence(self, plan: Plan) -> float:
        """Users over noise in all rounds of training, next to ML-1M at epsilon = 1."""
        if not isinstance(self.privacy, CentralGaussian):
            return math.inf
        *_, training = self.phases(plan)
        over_noise = self.planned(plan) / self.privacy.noise_of(training)
        return over_noise * math.sqrt(len(training.rounds)) / _EVIDENCE

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """The server before anything is counted: weights at random, counts of zero."""
        network = self._network(self._side(catalog))
        weights = network.start(key.at("weights"), init="xavier", dtype=self.dtype)
        memory = self._optimizer.start(weights)
        known: dict[str, Array] = {"head": np.arange(network.n_items)}
        if not self._is_paper:
            known["counts"] = np.zeros(len(catalog))
        return Server(plan, catalog, 0, {**weights, **known}, memory)

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Line 2 or line 4; in mode="paper" lines 17 and 18 of Algorithm 3."""
        if phase.name == "counts":
            return self._counted(server, phase, total)
        mean = divided(total, self.planned(server.plan))
        after = server.stepped(self._optimizer, mean)
        if not self._is_paper:
            return after
        held = {n: np.clip(after.weights[n], -_MOST_WEIGHT, _MOST_WEIGHT) for n in mean}
        return replace(after, weights={**after.weights, **held})

    def _counted(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Line 2: counts so far; after the last of them the head, and its bias."""
        counts = server.weights["counts"] + total["counts"]
        weights = {**server.weights, "counts": counts}
        if server.round == self.count_rounds - 1:
            head = most_counted(counts, len(weights["head"]))
            users, size = server.plan.cohort_size, len(counts)
            noise = self.privacy.variance(phase, users=users, size=size)
            floor = math.sqrt(noise * self.count_rounds)
            last = self._network(len(head)).decoder[-1]
            layer = weights[last].copy()
            layer[-1] = output_bias(counts, head, floor=floor)
            weights |= {"head": head, last: layer}
        return server.after(weights=weights, memory=server.memory)

    # serving

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 5: the latent vector of each history, or its mean in a vae."""
        held = self._held(broadcast, shards)
        x = held.dense(held.values, self.dtype)
        latent = self._network(held.n_items).encode(broadcast.weights, x)
        return Tastes(Tree.dense(latent=latent))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """Line 5: the scores of the head, and below them those of the tail."""
        weights, head = broadcast.weights, broadcast.weights["head"]
        found = self._network(len(head)).decode(weights, user.tree["latent"])
        if not self._is_paper:
            found = with_tail(found, head, weights["counts"])
        return found[:, candidates.items]

    def item_space(self, broadcast: Broadcast, candidates: Candidates) -> ItemSpace:
        """The decoder's last layer; items outside the head follow, by their counts."""
        network = self._network(len(broadcast.weights["head"]))
        vectors, offsets = space_with_tail(network, broadcast.weights)
        return ItemSpace(vectors[candidates.items], offsets[candidates.items])

    def user_vectors(
        self, broadcast: Broadcast, tastes: Tastes
    ) -> Float[np.ndarray, "users inputs"]:
        """What the decoder's last layer is handed."""
        network = self._network(len(broadcast.weights["head"]))
        return network.before_last(broadcast.weights, tastes.tree["latent"])

    def formula(self, broadcast: Broadcast) -> Formula:
        """Line 5 as a graph that takes histories."""
        weights, head = broadcast.weights, broadcast.weights["head"]
        histories = HISTORIES if self._reads_ratings else HISTORIES.held()
        x = histories.columns(head).unit(least=0.5)  # no rating is smaller
        found = self._network(len(head)).formula(weights, x)
        if self._is_paper:
            return found
        return formula_with_tail(found, head, weights["counts"])

    # details

    def _held(self, broadcast: Broadcast, shards: Shards) -> Held:
        """Histories over the head, of norm 1; as published by their ratings R_ki."""
        head = broadcast.weights["head"]
        return Held.of(shards, head, is_weighted=self._reads_ratings)

    @property
    def _reads_ratings(self) -> bool:
        return self.is_weighted or self._is_paper

    def _network(self, n_items: int) -> Network:
        d = self._known_latent
        if self._model == "vae":
            return Network(n_items, (self.hidden,), d)
        is_tied = not self._is_paper
        return Network(n_items, (), d, is_variational=False, is_tied=is_tied)

    @property
    def _is_paper(self) -> bool:
        return self.mode == "paper"

    @property
    def _model(self) -> str:
        return self.model or ("vae" if self._is_paper else "autoencoder")

    @property
    def _rate(self) -> float:
        return _RATES[self.mode] if self.rate is None else self.rate

    @property
    def _optimizer(self) -> ServerOptimizer:
        return Sgd(self._rate) if self._is_paper else Adam(self._rate)

    @property
    def _known_latent(self) -> int:
        if self.latent is not None:
            return self.latent
        if self._is_paper:
            return _PAPER_LATENT
        raise BadValue(_NOT_SET.format("latent"))

    def _side(self, catalog: Catalog) -> int:
        """H, or the number of items of the catalog if it is smaller."""
        if self._is_paper:
            return len(catalog)
        if self.head is None:
            raise BadValue(_NOT_SET.format("head"))
        return min(self.head, len(catalog))


_NOT_SET = "{} is not set: set it, or have it follow from the plan (calibrated)"
