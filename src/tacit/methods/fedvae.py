"""FedVAE: a Mult-VAE trained by gradients of clients that hold one example each.

    ω = (φ, θ)    the network: encoder and decoder      R     users per round
    r_u           a user's 0/1 history                  T     rounds; t counts epochs
    g_u           the gradient of u's loss              f, m  attackers, kept reports
    η, β₁, β₂, ε  Adam's                                γ, δ  boost and its decay
    β             the weight of the KL term

    server  1  ω ← drawn from N(0, 1)                                 Algorithm 1, 2
    client  2  g_u ← gradient of -ELBO(ω; r_u), one pass or several   Algorithm 1, 8
    server  3  G ← SecureFilter(G): Krum                              Algorithm 2, 1
            4  g ← mean of G                                          Algorithm 2, 2
            5  ω ← Adam(ω, g) with rate η (1 + γ δᵗ)        Algorithm 2, 3-7; Eq. 4

Under the mechanism `central` line 2 clips g_u, all layers together, and line 4 divides
the noisy sum by the planned cohort: DP-FedAdam. Line 3 looks at single reports and may
not come before the noise; `groups` does its work after it. Some rounds may count first:
the most counted items are the network's (`head`), the others follow in the ranking by
count, and the output bias starts at the counts' logarithm. None of that is in the
paper, which `mode = "paper"` runs to the letter; nothing protects anyone there.

Source: Polato 2021, "Federated Variational Autoencoder for Collaborative Filtering".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float, Float64

from tacit import check
from tacit.aggregation.bucketed import Bucketed, Statistic
from tacit.aggregation.krum import Krum
from tacit.aggregation.mean import Mean
from tacit.aggregation.server_optimizers import Adam, DecayingBoost
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
from tacit.models.mult_vae import Held, Init, Network, Pass
from tacit.models.mult_vae.counted_head import (
    formula_with_tail,
    most_counted,
    output_bias,
    space_with_tail,
    with_tail,
)
from tacit.models.mult_vae.gradients import gradients
from tacit.models.onnx_graph import HISTORIES
from tacit.wire_names import register

Dtype = Literal["float32", "float64"]

_PROOF = "docs/methods/fedvae.md"
_BARE = "the signs of a gradient give the history back"
_PAPER = (
    "dropout gives no differential privacy, and a filter that looks at reports has no "
    "bounded sensitivity"
)
_NOT_IN_THE_PAPER = ("groups", "count_rounds", "variational", "tied", "loss")


@register("fedvae")
@dataclass(frozen=True)
class FedVae(SumMethod):
    """A variational autoencoder of histories, learnt from clients' gradients."""

    usual_rounds: ClassVar[int] = 151
    mechanisms: ClassVar[Mechanisms] = {"none": Unprotected, "central": CentralGaussian}

    mode: Literal["sound", "paper"] = "sound"
    # the network
    hidden: tuple[int, ...] = (600,)  # this and `latent`: Liang et al. 2018, Mult-VAE
    latent: int = 200
    variational: bool = True  # without it Mult-DAE: nothing is sampled, no KL
    tied: bool = False  # the last matrix is the first, transposed
    init: Init | None = None  # None: "normal" in mode="paper", else "xavier"
    dtype: Dtype | None = None  # None: "float64" where `init` is "normal"
    # a client's loss
    dropout: float = 0.5
    beta: float = 0.2
    beta_rounds: int = 0  # rounds over which β rises from 0; 0: it is fixed
    loss: Literal["sum", "mean"] = "sum"  # over a user's items
    local_passes: int = 1
    local_rate: float = 0.0  # of a client's own steps between its passes
    # the server's step
    rate: float = 1e-3  # η
    beta1: float = 0.9
    beta2: float = 0.999
    adam_epsilon: float = 1e-8
    boost: float = 0.0  # γ
    decay: float = 0.9  # δ
    # against attackers
    attackers: int | None = None  # f; None: no filter
    keep: int | None = None  # m; None: all but f
    groups: int | None = None
    statistic: Statistic = "median"
    trim: int = 1
    # counting
    count_rounds: int = 0
    count_share: float = 0.1  # of the budget, for counting
    head: int | None = None  # the most counted items; None: the whole catalog

    def __post_init__(self) -> None:
        check_offered(self)
        check.one_of(("sound", "paper"), mode=self.mode)
        check.one_of(("sum", "mean"), loss=self.loss)
        check.one_of(("float32", "float64"), dtype=self._dtype)
        self._network(1)  # refuses widths that cannot be
        if not 0 <= self.dropout < 1:
            raise BadValue(f"dropout={self.dropout} must be in [0, 1)")
        check.not_negative(beta=self.beta, local_rate=self.local_rate)
        check.at_least(0, beta_rounds=self.beta_rounds, count_rounds=self.count_rounds)
        check.count(local_passes=self.local_passes)
        check.fraction(count_share=self.count_share)
        _ = self._optimizer, self._robust
        self._check_paper()
        self._check_counting()
        if self.privacy.is_private and self.attackers is not None:
            raise BadValue(
                f"attackers={self.attackers}: Krum looks at reports before the noise, "
                "and no sensitivity follows; use groups"
            )

    def _check_paper(self) -> None:
        if self.mode == "sound":
            return
        default = {f.name: f.default for f in fields(self)}
        changed = [n for n in _NOT_IN_THE_PAPER if getattr(self, n) != default[n]]
        if self.privacy.is_private:
            changed.append("privacy")
        for name in changed:
            raise BadValue(
                f"{name}={getattr(self, name)!r} is not in the paper; use mode='sound'"
            )

    def _check_counting(self) -> None:
        if self.head is not None:
            check.count(head=self.head)
            if not self.count_rounds:
                raise BadValue(
                    f"head={self.head} needs counts: set count_rounds to 1 or more"
                )
        if self.count_rounds and self.attackers is not None:
            raise BadValue(
                f"attackers={self.attackers} with count_rounds={self.count_rounds}: "
                "Krum compares gradients and cannot count; use groups, or "
                "count_rounds = 0"
            )

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """Counting, if any, for a share of the budget; then gradients."""
        counting, training = in_turn(
            ("counts", self.count_rounds, "FedVAE counts"),
            ("gradients", 0, "trains"),
            total=plan.rounds,
        )
        trained = Phase(
            "gradients",
            training,
            what="gradients of the model",
            bound=0.1,  # the clip, unless `[privacy] clip` sets another
            is_clipped=True,
            share=1 - self.count_share if self.count_rounds else 1.0,
            proof=_PROOF,
            leak=_PAPER if self.mode == "paper" else _BARE,
        )
        if not self.count_rounds:
            return (trained,)
        share = self.count_share
        counts = Phase(
            "counts", counting, what="counts of items", share=share, proof=_PROOF
        )
        return counts, trained

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per item while counting; then two factors per layer."""
        if phase.name == "counts":
            return {"counts": Slot("float64", (len(catalog),))}
        network = self._network(self._columns(catalog))
        return {
            name: Slot(self._dtype, shape, network.ranks[name] * self.local_passes)
            for name, shape in network.shapes.items()
        }

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """The network, the items that it knows (`head`), and what was counted."""
        n_items, n_columns = len(catalog), self._columns(catalog)
        layers = {
            name: PublicSlot(self._dtype, shape)
            for name, shape in self._network(n_columns).shapes.items()
        }
        known = {"head": PublicSlot("int64", (n_columns,), 0, n_items - 1)}
        if self.count_rounds:
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
        """Line 2, raw; while counting, the history as a vector of norm 1."""
        if phase.name == "counts":
            return Tree.dense(counts=unit(rows(shards)))
        held = Held.of(shards, broadcast.weights["head"])
        return gradients(
            self._network(held.n_items),
            broadcast.weights,
            held,
            [self._pass(held, keys.at("pass", i)) for i in range(self.local_passes)],
            beta=self._beta(broadcast.round),
            is_mean=self.loss == "mean",
            rate=self.local_rate,
        )

    def robust(self, phase: Phase) -> Mean | Krum | Bucketed:
        """Line 3, if attackers are expected; counts are always plainly added."""
        return Mean() if phase.name == "counts" else self._robust

    # server

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Line 1; all counts are zero, and the head is the first items."""
        network, init = self._network(self._columns(catalog)), self._init
        weights = network.start(key.at("weights"), init=init, dtype=self._dtype)
        known: dict[str, Array] = {"head": np.arange(network.n_items)}
        if self.count_rounds:
            known["counts"] = np.zeros(len(catalog))
        memory = self._optimizer.start(weights)
        return Server(plan, catalog, 0, {**weights, **known}, memory)

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Lines 4 and 5, or one more round of counting."""
        if phase.name == "counts":
            return self._counted(server, phase, total["counts"])
        mean = divided(total, self.planned(server.plan))
        return server.stepped(self._optimizer, mean, epoch=self._epoch(server))

    def _counted(
        self, server: Server, phase: Phase, found: Float64[np.ndarray, "items"]
    ) -> Server:
        """Counts so far; after the last of them the head, and the output bias."""
        counts = server.weights["counts"] + found
        weights = {**server.weights, "counts": counts}
        if server.round == self.count_rounds - 1:
            head = most_counted(counts, len(weights["head"]))
            last = self._network(len(head)).decoder[-1]
            layer = weights[last].copy()
            users, size = server.plan.cohort_size, len(counts)
            noise = self.privacy.variance(phase, users=users, size=size)
            floor = math.sqrt(noise * self.count_rounds)
            layer[-1] = output_bias(counts, head, floor=floor)
            weights |= {"head": head, last: layer}
        return server.after(weights=weights, memory=server.memory)

    # serving

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """The mean μ of the encoder's latent vector for each history."""
        held = Held.of(shards, broadcast.weights["head"])
        x = held.dense(held.values, self._dtype)
        latent = self._network(held.n_items).encode(broadcast.weights, x)
        return Tastes(Tree.dense(latent=latent))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """The decoder's scores; items outside the head follow, by their counts."""
        head = broadcast.weights["head"]
        found = self._network(len(head)).decode(broadcast.weights, user.tree["latent"])
        if "counts" not in broadcast.weights:
            return found[:, candidates.items]
        scores = with_tail(found, head, broadcast.weights["counts"])
        return scores[:, candidates.items]

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
        """Encoder and decoder in one; items outside the head follow, by count."""
        weights, head = broadcast.weights, broadcast.weights["head"]
        x = HISTORIES.held().columns(head).unit(least=0.5)
        found = self._network(len(head)).formula(weights, x)
        if "counts" not in weights:
            return found
        return formula_with_tail(found, head, weights["counts"])

    # details

    def _network(self, n_items: int) -> Network:
        return Network(n_items, self.hidden, self.latent, self.variational, self.tied)

    @property
    def _optimizer(self) -> Adam:
        boosted = DecayingBoost(self.rate, self.boost, self.decay)
        return Adam(boosted, self.beta1, self.beta2, self.adam_epsilon)

    @property
    def _robust(self) -> Mean | Krum | Bucketed:
        if self.attackers is not None and self.groups is not None:
            raise BadValue("attackers and groups are two defenses; set one of them")
        if self.attackers is not None:
            return Krum(self.attackers, self.keep)
        if self.groups is not None:
            return Bucketed(self.groups, self.statistic, self.trim)
        return Mean()

    @property
    def _init(self) -> Init:
        if self.init is not None:
            return self.init
        return "normal" if self.mode == "paper" else "xavier"

    @property
    def _dtype(self) -> Dtype:
        """The type of the weights; N(0, 1) as a start overflows float32."""
        if self.dtype is not None:
            return self.dtype
        return "float64" if self._init == "normal" else "float32"

    def _pass(self, held: Held, keys: Keys) -> Pass:
        latent = self.latent if self.variational else 0
        return Pass.drawn(held, keys, dropout=self.dropout, latent=latent)

    def _beta(self, round: int) -> float:
        done = round - self.count_rounds
        return self.beta * min(1.0, done / self.beta_rounds if self.beta_rounds else 1)

    def _columns(self, catalog: Catalog) -> int:
        return len(catalog) if self.head is None else min(self.head, len(catalog))

    def _epoch(self, server: Server) -> int:
        """The epoch of this round, from 1: M rounds in which M R >= the population."""
        plan = server.plan
        an_epoch = math.ceil(plan.population / plan.cohort_size)
        return 1 + (server.round - self.count_rounds) // an_epoch
