"""PrivateRec, training: news ranked by public text vectors, learnt from impressions.

    v_c   public vector of a news                  N_h   a user's history
    h     mean of v over the history               N_c   candidates that were shown
    W     the head, at first the identity          y     which of them were clicked
    x_u   clicks of a user above expectation       e_c   effect of a news on clicks
    a     scale of the scores                      m     weight of the effects
    S, z  clip and noise multiplier                η     rate of FedAdam

    client  1  x_u ← clicked - expected over what was shown, of norm 1 at most
    server  2  e ← what noise leaves of the sum of x_u               click_effects
    client  3  score(c) = a (W h)·(W v_c) + m e_c;
               g_u ← gradient by W of the cross-entropy of the clicked among the shown
    server  4  W ← FedAdam(W, noisy sum of clipped g_u / planned cohort)
    device  5  rank by line 3; nothing leaves to be served

Lines 1 and 2 are content with private click-through counts; lines 3 and 4 are
DP-FedAdam at user level (`learns` chooses). An untrained model is content similarity.
The head may also be bilinear, with a row for what all like (`models.news_similarity`).

The paper trains on gradients through a noisy attention over B interests and claims its
privacy for one click; no guarantee follows (docs/errata/privaterec.md). That training,
`mode = "paper"`, the local mode and encoders of words are not offered yet.

Source: Liu et al. 2022, "PrivateRec: Differentially Private Model Training and Online
Serving for Federated News Recommendation", Section 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.aggregation.server_optimizers import Adam
from tacit.errors import BadValue
from tacit.method import (
    Array,
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    CentralGaussian,
    Clients,
    ItemSpace,
    Key,
    Keys,
    Mechanisms,
    Phase,
    Plan,
    PublicSlot,
    Queries,
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
from tacit.models.click_effects import click_effects, excess_clicks
from tacit.models.news_similarity import (
    Bilinear,
    Head,
    Projection,
    Slated,
    gradient,
    mean_rows,
)
from tacit.models.news_vectors import described_by, news_vectors

_PROOF = "docs/methods/privaterec.md"
_LEAK = "a gradient is made of the vectors of what was read and clicked"
# Bound of the mean gradient over the noise, both of all rounds, from which on steps are
# whole. A mean gradient is some hundredths of its bound long.
_TRUSTED = 100.0
_HEADS: dict[str, Head] = {"projection": Projection(), "bilinear": Bilinear()}
_NOT_YET = {
    "paper": "Algorithm 3 to the letter, which has no guarantee",
    "local": "private attention and labels that leave the device",
}


@dataclass(frozen=True)
class PrivateRec(SumMethod):
    """Content similarity of news, moved by clipped gradients and private click counts.

    Clients learn from impressions alone; one without any sends zeros.
    """

    mechanisms: ClassVar[Mechanisms] = {"none": Unprotected, "central": CentralGaussian}

    mode: Literal["sound"] = "sound"
    learns: Literal["clicks and gradients", "clicks", "gradients"] = (
        "clicks and gradients"
    )
    # public vectors
    content: tuple[str, ...] = ("title_vector",)  # features; `title`: words of titles
    dimensions: int | None = 64  # principal axes that are kept; None: all
    # the model
    head: Literal["projection", "bilinear"] = "projection"
    scale: float = 5.0  # a
    popularity: float = 0.5  # m, of an effect that is one deviation from the mean
    # a client
    most_impressions: int = 5  # that a client learns from in a round, drawn anew
    # the server's step
    rate: float = 0.03  # η, at the most: noise makes it smaller
    # counting clicks
    click_rounds: int = 1
    click_share: float = 0.2  # of the budget

    def __post_init__(self) -> None:
        check_offered(self)
        if self.mode in _NOT_YET:
            raise BadValue(
                f"mode='{self.mode}' ({_NOT_YET[self.mode]}) is not offered yet; use "
                "mode='sound'"
            )
        check.one_of(("sound",), mode=self.mode)
        choices = ("clicks and gradients", "clicks", "gradients")
        check.one_of(choices, learns=self.learns)
        check.one_of(_HEADS, head=self.head)
        if not self.content:
            raise BadValue(
                "content is empty; name public features of the catalog, such as "
                "'title_vector' (data.text_vectors = ['title']) or 'title'"
            )
        if self.dimensions is not None:
            check.count(dimensions=self.dimensions)
        check.count(most_impressions=self.most_impressions)
        check.count(click_rounds=self.click_rounds)
        check.positive(scale=self.scale, rate=self.rate)
        check.not_negative(popularity=self.popularity)
        check.fraction(click_share=self.click_share)

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """Clicks for a share of the budget, then gradients; or one of the two."""
        everything = range(plan.rounds)
        if self.learns == "clicks":
            return (self._counting(everything, share=1.0),)
        if self.learns == "gradients":
            return (self._training(everything, share=1.0),)
        counting, training = in_turn(
            ("clicks", self.click_rounds, "PrivateRec counts clicks"),
            ("gradients", 0, "trains"),
            total=plan.rounds,
        )
        share = self.click_share
        return (
            self._counting(counting, share=share),
            self._training(training, share=1 - share),
        )

    def _counting(self, rounds: range, *, share: float) -> Phase:
        return Phase("clicks", rounds, what="clicks", share=share, proof=_PROOF)

    def _training(self, rounds: range, *, share: float) -> Phase:
        """The phase of gradients; its bound is the clip unless another is set."""
        return Phase(
            "gradients",
            rounds,
            what="gradients",
            bound=1.5,
            is_clipped=True,
            share=share,
            proof=_PROOF,
            leak=_LEAK,
        )

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per news while counting; then the factors of the head."""
        if phase.name == "clicks":
            return {"clicks": Slot("float32", (len(catalog),))}
        rank = self._head.rank * self.most_impressions
        return {"head": Slot("float64", self._start(catalog).shape, rank)}

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """The vectors of the news, the head, and the effects."""
        vectors = self._vectors(catalog)
        return {
            "vectors": PublicSlot("float32", vectors.shape),
            "head": PublicSlot("float64", self._start(catalog).shape),
            "effects": PublicSlot("float64", (len(catalog),)),
        }

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Line 1 or line 3, raw."""
        impressions = shards.known_impressions
        if phase.name == "clicks":
            return Tree.dense(clicks=excess_clicks(impressions))
        vectors = broadcast.weights["vectors"].astype(np.float64)
        most = self.most_impressions
        found = gradient(
            self._head,
            broadcast.weights["head"],
            Slated.of(impressions, vectors, most=most, keys=keys),
            vectors,
            scale=self.scale,
            effects=self.popularity * broadcast.weights["effects"],
            n_clients=len(shards),
            most=most,
        )
        return Tree({"head": found})

    # server

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Content similarity: the head at its start, no effect of any news."""
        nothing = np.zeros(len(catalog))
        weights: dict[str, Array] = {
            "vectors": self._vectors(catalog),
            "head": self._start(catalog),
            "effects": nothing,
        }
        memory = Adam.federated(self.rate).start({"head": weights["head"]})
        return Server(plan, catalog, 0, weights, {**memory, "clicks": nothing})

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Line 2, from all clicks counted so far, or line 4."""
        if phase.name == "gradients":
            mean = divided(total, self.planned(server.plan))
            optimizer = Adam.federated(self.rate * self._trust(server, phase))
            return server.stepped(optimizer, mean)
        clicks = server.memory["clicks"] + total["clicks"]
        users, size = server.plan.cohort_size, len(clicks)
        noise = self.privacy.variance(phase, users=users, size=size)
        deviation = math.sqrt(noise * (server.round + 1))
        effects = click_effects(clicks, deviation=deviation)
        return server.after(
            weights={**server.weights, "effects": effects},
            memory={**server.memory, "clicks": clicks},
        )

    # serving, on the device

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """The user vector of each history, times the scale."""
        vectors = broadcast.weights["vectors"].astype(np.float64)
        read = mean_rows(shards.histories, vectors)
        users = self._head.users(broadcast.weights["head"], read)
        return Tastes(Tree.dense(user=self.scale * users))

    def score(
        self, broadcast: Broadcast, user: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """Line 5: content as the head sees it, and the effects of the news."""
        weights, items = broadcast.weights, candidates.items
        vectors = weights["vectors"][items].astype(np.float64)
        news = self._head.news(weights["head"], vectors)
        return user.tree["user"] @ news.T + self.popularity * weights["effects"][items]

    def item_space(self, broadcast: Broadcast, candidates: Candidates) -> ItemSpace:
        """The news as the head sees them, and the effects as offsets."""
        weights, items = broadcast.weights, candidates.items
        vectors = weights["vectors"][items].astype(np.float64)
        news = self._head.news(weights["head"], vectors)
        return ItemSpace(news, self.popularity * weights["effects"][items])

    def user_vectors(
        self, broadcast: Broadcast, tastes: Tastes
    ) -> Float64[np.ndarray, "users axes"]:
        """The user vector of each history, times the scale."""
        return tastes.tree["user"]

    # details

    def for_catalog(self, catalog: Catalog) -> Self:
        """A copy that reads whatever this catalog has in words, labels or vectors."""
        return replace(self, content=described_by(catalog))

    @property
    def _head(self) -> Head:
        return _HEADS[self.head]

    def _trust(self, server: Server, phase: Phase) -> float:
        """How much of the rate is used: less where noise outweighs the gradients.

        Adam's steps are as long under noise as without it. Of all rounds together the
        mean gradient, of norm S at the most, stands against noise of norm
        z S sqrt(numbers of the head) / (clients sqrt(rounds)).
        """
        if not isinstance(self.privacy, CentralGaussian):
            return 1.0
        head = server.weights["head"]
        clients = self.planned(server.plan) * math.sqrt(len(phase.rounds))
        noise = self.privacy.noise_of(phase) * math.sqrt(head.size)
        return min(1.0, clients / noise / _TRUSTED)

    def _vectors(self, catalog: Catalog) -> Array:
        return news_vectors(catalog, self.content, dimensions=self.dimensions)

    def _start(self, catalog: Catalog) -> Array:
        return self._head.start(self._vectors(catalog).shape[1])
