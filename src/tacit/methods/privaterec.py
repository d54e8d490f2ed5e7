"""PrivateRec, training: news ranked by their texts, learnt from impressions.

    v_c   public vector of a news                  N_h   a user's history
    h     mean of v over the history               N_c   candidates that were shown
    W     the head, at first the identity          y     which of them were clicked
    x_u   clicks of a user above expectation       e_c   effect of a news on clicks
    a     scale of the scores                      m     weight of the effects
    S, z  clip and noise multiplier                η     rate of FedAdam
    Θ     all weights of an encoder                b     B basis vectors, interests
    k, C  sampled negatives, size of a slate       p, θ  padding, sensitivity assumed
    τ     how far W is from I, before any click

sound, model = "projection" or "bilinear"

    client  1  x_u ← clicked - expected over what was shown, of norm 1 at most
    server  2  e ← what noise leaves of the sum of x_u               click_effects
    client  3  score(c) = a (W h)·(W v_c) + m e_c;
               g_u ← gradient by W of the cross-entropy of the clicked among the shown
    server  4  W ← FedAdam(W, (noisy sum of clipped g + (W - I) / τ²) / planned cohort)
    device  5  rank by line 3; nothing leaves to be served

Lines 1 and 2 are content with private click-through counts; lines 3 and 4 are
DP-FedAdam at user level (`learns` chooses). An untrained model is content similarity.
With model = "plm-nr", "naml" or "nrms" line 3 is the gradient by all of Θ of a click
beside k others. Without noise that is the paper's FedRec; under `local`, DP-FedRec
with the noise that proves its epsilon.

With `interests` a user vector is lines 1 to 3 of the paper below, without padding and
noise: b is trained with Θ, and what a client sends stays one bounded gradient.

paper, mechanism = "published"                                    Algorithms 2 and 3

    server  0  b ← centres of the vectors of all news, by k-means, times their length

    client  1  u ← Θ_U(Θ_N(n) for n in N_h, each replaced by padding with p)      2-6
            2  α ← softmax(u·b / sqrt d), clipped to 1                            7-8
            3  α ← α + noise of θ and ε_t, made positive by ReLU, summing to 1    9-10
            4  k candidates not clicked; the label permuted, e^β : 1             16-18
            5  g_u ← gradient by Θ and b of the cross-entropy, scores (α b)·r    19-21
    server  6  Θ, b ← FedAdam(Θ, b, sum of g_u / planned cohort)                     9
    device  7  rank by lines 1 to 3 without padding and noise (ε_s = ∞), SoftPlus

Line 5 is computed from the raw history, so nothing is promised; what is claimed stands
beside it (docs/errata/privaterec.md). Line 0 is ours: the paper does not say where b
starts. mechanism = "published_gradient" is DP-FedRec as
printed: noise on the gradient by Θ, no basis, labels as they are. "none" is either of
them at ε_t = ∞: with interests in mode "paper", without in mode "sound" unless set.

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
from tacit.data.history_slates import impressions_of
from tacit.data.ragged import Ragged
from tacit.errors import BadValue, Refused
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
    LocalPrivUnit,
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
from tacit.models.click_effects import click_effects, excess_clicks
from tacit.models.news_encoders import Naml, Nrms, PlmNr, Vocabulary
from tacit.models.news_encoders.drawn_batch import Draws, TrueLabels
from tacit.models.news_encoders.plm_nr import BASIS
from tacit.models.news_models import (
    BasisStart,
    Encoded,
    Encoder,
    NewsModel,
    Similarity,
)
from tacit.models.news_similarity import (
    Bilinear,
    Head,
    Projection,
    ranking_formula,
    reasons,
)
from tacit.models.news_vectors import described_by
from tacit.privacy import PublishedAttentionNoise, PublishedGradientNoise
from tacit.wire_names import register

EFFECTS = "effects"  # of the news on clicks, among the weights of a head
_PROOF = "docs/methods/privaterec.md"
_LEAK = "a gradient is made of the vectors of all news that were read and clicked"
# Bound of the mean gradient over the noise, both of all rounds, from which on steps are
# whole. A mean gradient is some hundredths of its bound long.
_TRUSTED = 100.0
_HEADS: dict[str, Head] = {"projection": Projection(), "bilinear": Bilinear()}
_ENCODERS = ("plm-nr", "naml", "nrms")
_LEARNS = ("clicks and gradients", "clicks", "gradients")
_RATES = {"head": 0.03, "encoder": 0.001}  # chosen on MIND's validation day
_LENGTHS: dict[BasisStart, float] = {
    "clusters": 8.0,
    "random": 1.0,
}  # on that day, too
_PUBLISHED = (PublishedAttentionNoise, PublishedGradientNoise)


@register("privaterec", revision=2)
@dataclass(frozen=True)
class PrivateRec(SumMethod):
    """News ranked by a model that clients' impressions train.

    Clients learn from impressions alone; one without any sends zeros. Where data have
    none at all, as films, each client makes slates of its history.
    """

    mechanisms: ClassVar[Mechanisms] = {
        "none": Unprotected,
        "central": CentralGaussian,
        "local": LocalPrivUnit,
        "published": PublishedAttentionNoise,
        "published_gradient": PublishedGradientNoise,
    }

    mode: Literal["sound", "paper"] = "sound"
    learns: Literal["clicks and gradients", "clicks", "gradients"] | None = None
    # the model
    model: Literal["projection", "bilinear", "plm-nr", "naml", "nrms"] = "projection"
    content: tuple[str, ...] = ("title_vector",)  # features; `title`: words of titles
    dimensions: int | None = 64  # principal axes that are kept; None: all
    scale: float = 5.0  # a
    popularity: float = 0.5  # m, of an effect that is one deviation from the mean
    # of plm-nr and nrms; None: random in the paper's mode, and of nrms in both
    starts_at: Literal["content", "random"] | None = None
    word_vectors: str | None = None  # a file such as GloVe's, for naml and nrms
    word_width: int = 50  # of a vector in that file, or of one that is learnt
    title_words: int = 20  # of a title that naml and nrms read; fewer are padded
    dtype: Literal["float32", "float64"] = "float64"  # of an encoder's weights
    interests: int | None = None  # B, of an encoder; None: 3 as published, else none
    basis_starts_at: BasisStart = "clusters"  # of the vectors of all news, by k-means
    basis_length: float | None = None  # of b at the start; None: by where it starts
    serving: Literal["softplus", "relu"] | None = None  # None: SoftPlus as published
    # a client
    most_impressions: int | None = None  # in a round; None: 5, or 1 as published
    negatives: int = 4  # k, of an encoder
    most_read: int = 50  # news of a history that an encoder reads, the last ones
    # the server's step
    rate: float | None = None  # η, at the most; None: by the model. 0: untrained
    prior: float = 0.1  # τ: expected deviation of a number of a head from its start
    # counting clicks
    click_rounds: int = 1
    click_share: float = 0.2  # of the budget

    def __post_init__(self) -> None:
        check_offered(self)
        check.one_of(("sound", "paper"), mode=self.mode)
        check.one_of(_LEARNS, learns=self._learns)
        check.one_of((*_HEADS, *_ENCODERS), model=self.model)
        check.one_of(("content", "random"), starts_at=self._starts_at)
        check.one_of(("softplus", "relu"), serving=self._serving)
        check.one_of(("clusters", "random"), basis_starts_at=self.basis_starts_at)
        check.one_of(("float32", "float64"), dtype=self.dtype)
        if not self.content:
            raise BadValue(
                "content is empty; name public features of the catalog, such as "
                "'title_vector' (data.text_vectors = ['title']) or 'title'"
            )
        if self.dimensions is not None:
            check.count(dimensions=self.dimensions)
        check.count(most_impressions=self._most_impressions, most_read=self.most_read)
        check.count(negatives=self.negatives, click_rounds=self.click_rounds)
        check.count(word_width=self.word_width, title_words=self.title_words)
        if self.interests is not None:
            check.at_least(2, interests=self.interests)
        check.positive(scale=self.scale, prior=self.prior)
        check.positive(basis_length=self._basis_length)
        check.not_negative(popularity=self.popularity, rate=self._rate)
        check.fraction(click_share=self.click_share)
        self._check_mode()

    def _check_mode(self) -> None:
        is_published = isinstance(self.privacy, _PUBLISHED)
        if self.mode == "sound" and is_published:
            raise BadValue(
                f"mode='sound' with {type(self.privacy).__name__}: the paper's own "
                "noises go with mode='paper'"
            )
        if self.mode == "paper" and self.privacy.is_private and not is_published:
            raise BadValue(
                f"mode='paper' with {type(self.privacy).__name__}: the paper has "
                "mechanism 'published', its rival 'published_gradient', and 'none' "
                "without noise"
            )
        if self.mode == "paper" and not self._is_encoder:
            raise BadValue(
                f"model='{self.model}' is not in the paper; use one of "
                f"{', '.join(_ENCODERS)}, or mode='sound'"
            )
        if self._is_encoder and self._learns != "gradients":
            raise BadValue(
                f"learns='{self.learns}' with model='{self.model}': encoders learn "
                "from gradients alone; use learns='gradients', or a model of "
                f"{', '.join(_HEADS)}"
            )
        if self.interests is not None and not self._is_encoder:
            raise BadValue(
                f"interests={self.interests} with model='{self.model}': a basis is "
                f"part of an encoder; use one of {', '.join(_ENCODERS)}"
            )
        if isinstance(self.privacy, PublishedGradientNoise) and self.interests:
            raise BadValue(
                f"interests={self.interests} with PublishedGradientNoise: DP-FedRec "
                "has no basis; leave interests out, or use mechanism 'published'"
            )
        if self.starts_at == "content" and self.model == "naml":
            raise BadValue(
                "starts_at='content' with model='naml': its user encoder has no "
                "matrix that could be the identity; use 'random', or another model"
            )

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """Clicks for a share of the budget, then gradients; or one of the two."""
        everything = range(plan.rounds)
        if self._learns == "clicks":
            return (self._counting(everything, share=1.0),)
        if self._learns == "gradients":
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
        return Phase(
            "clicks", rounds, what="counts of clicks", share=share, proof=_PROOF
        )

    def _training(self, rounds: range, *, share: float) -> Phase:
        """The phase of gradients; its bound is the clip unless another is set."""
        return Phase(
            "gradients",
            rounds,
            what="gradients of the model",
            bound=1.5,
            is_clipped=True,
            share=share,
            proof=_PROOF,
            leak=_LEAK,
        )

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per news while counting; then the gradient by every weight."""
        if phase.name == "clicks":
            return {"clicks": Slot("float32", (len(catalog),))}
        model = self._model
        return model.slots(model.shapes(model.inputs(catalog)))

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """Public inputs, weights and effects; at the end what ranking needs."""
        model = self._model
        inputs = model.inputs(catalog)
        known = {**inputs, **model.shapes(inputs)}
        if phase is None:
            known = model.served_like(known, len(catalog))
        return {
            **{name: _public_slot(value) for name, value in known.items()},
            **self._effects_shape(len(catalog)),
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
        is_count = phase.name == "clicks"
        own, most = keys.at("slates"), None if is_count else self._most_impressions
        impressions = impressions_of(shards, own, most=most, has_history=not is_count)
        if is_count:
            return Tree.dense(clicks=excess_clicks(impressions))
        told = self.privacy.told_shape(phase)
        known = {n: v for n, v in broadcast.weights.items() if n not in told}
        effects = self.popularity * known.pop(EFFECTS, np.zeros(shards.n_items))
        return self._model.gradients(known, impressions, keys, effects=effects)

    # server

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """The model at its start, and no effect of any news."""
        model = self._model
        inputs = model.inputs(catalog)
        weights = model.start(key, inputs)
        nothing = np.zeros(len(catalog))
        effects = dict.fromkeys(self._effects_shape(len(catalog)), nothing)
        memory = Adam.federated(1.0).start(weights)
        return Server(
            plan,
            catalog,
            0,
            {**inputs, **weights, **effects},
            {**memory, "clicks": nothing},
        )

    def public(self, server: Server, phase: Phase | None) -> Arrays:
        """All of it while training; at the end what ranking needs."""
        if phase is not None:
            return server.weights
        known = dict(server.weights)
        effects = {n: known.pop(n) for n in (EFFECTS,) if n in known}
        return {**self._model.served(known), **effects}

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Line 2, from all clicks counted so far, or line 4."""
        if phase.name == "gradients":
            return self._stepped(server, phase, total)
        clicks = server.memory["clicks"] + total["clicks"]
        users, size = server.plan.cohort_size, len(clicks)
        noise = self.privacy.variance(phase, users=users, size=size)
        deviation = math.sqrt(noise * (server.round + 1))
        effects = click_effects(clicks, deviation=deviation)
        return server.after(
            weights={**server.weights, EFFECTS: effects},
            memory={**server.memory, "clicks": clicks},
        )

    def _stepped(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Line 4; at a rate of zero the model stays at its start."""
        rate = self._rate * self._trust(server, phase, total)
        if not rate:
            return server.after(weights=server.weights, memory=server.memory)
        mean = divided(self._with_prior(server, total), self.planned(server.plan))
        return server.stepped(Adam.federated(rate), mean)

    # serving, on the device

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """The user vector of each history."""
        served = self._served(broadcast)
        return Tastes(Tree.dense(user=self._model.users(served, shards.histories)))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """Line 5: inner products of users and news, and the effects of the news."""
        return self.item_space(broadcast, candidates).scores(user.tree["user"])

    def _served(self, broadcast: Broadcast) -> Arrays:
        known = {n: v for n, v in broadcast.weights.items() if n != EFFECTS}
        return self._model.served(known)

    def formula(self, broadcast: Broadcast) -> Formula:
        """Line 5 as a graph that takes histories; a repeat in a history counts once."""
        head, weights = self._exact_head("a file for devices"), broadcast.weights
        return ranking_formula(
            head,
            weights["head"],
            weights["vectors"].astype(np.float64),
            scale=self.scale,
            effects=self.popularity * weights[EFFECTS],
        )

    def reasons(
        self, broadcast: Broadcast, shards: Shards, item: int
    ) -> Float64[np.ndarray, "events"]:
        """How much each news that was read adds to the content term of line 5."""
        head, weights = self._exact_head("a reason"), broadcast.weights
        vectors, read = weights["vectors"].astype(np.float64), shards.items
        return reasons(
            head, weights["head"], vectors, read=read, item=item, scale=self.scale
        )

    def _exact_head(self, wanted: str) -> Head:
        """The head, whose scores are linear in what was read; encoders are refused."""
        if self._is_encoder:
            raise Refused(
                f"model='{self.model}' has attention over what was read, and {wanted} "
                f"needs scores that are linear in it; train one of {', '.join(_HEADS)}"
            )
        return _HEADS[self.model]

    def item_space(self, broadcast: Broadcast, candidates: Candidates) -> ItemSpace:
        """The news as the model sees them, and the effects as offsets."""
        items = candidates.items
        news = self._model.news(self._served(broadcast), items)
        if EFFECTS not in broadcast.weights:
            return ItemSpace(news, np.zeros(len(items)))
        return ItemSpace(news, self.popularity * broadcast.weights[EFFECTS][items])

    def user_vectors(
        self, broadcast: Broadcast, tastes: Tastes
    ) -> Float64[np.ndarray, "users axes"]:
        """The user vector of each history."""
        return tastes.tree["user"]

    @property
    def basis_size(self) -> int:
        """B where training makes a basis: Algorithm 3, with or without its noise."""
        return self._model.interests if isinstance(self._model, Encoded) else 0

    def basis(self, broadcast: Broadcast) -> Float64[np.ndarray, "interests axes"]:
        """The vectors b; only where `basis_size` is not 0."""
        return broadcast.weights[BASIS].astype(np.float64)

    def encodings(
        self, broadcast: Broadcast, histories: Ragged
    ) -> Float64[np.ndarray, "users axes"]:
        """Lines 1 to 6 of Algorithm 2: u of each history, r_0 for each padded news."""
        model = self._model
        assert isinstance(model, Encoded)  # others have no basis
        return model.encodings(self._served(broadcast), histories)

    # details

    def for_catalog(self, catalog: Catalog) -> Self:
        """A copy that reads whatever this catalog has in words, labels or vectors."""
        return replace(self, content=described_by(catalog))

    @property
    def _is_encoder(self) -> bool:
        return self.model in _ENCODERS

    @property
    def _learns(self) -> str:
        if self.learns is not None:
            return self.learns
        return "gradients" if self._is_encoder else "clicks and gradients"

    @property
    def _starts_at(self) -> Literal["content", "random"]:
        if self.starts_at is not None:
            return self.starts_at
        return "random" if self.mode == "paper" else "content"

    @property
    def _interests(self) -> int:
        """B; none for DP-FedRec, and without noise in mode "sound" for FedRec."""
        if self.interests is not None:
            return self.interests
        is_rival = isinstance(self.privacy, PublishedGradientNoise)
        return 3 if self.mode == "paper" and not is_rival else 0

    @property
    def _basis_length(self) -> float:
        if self.basis_length is not None:
            return self.basis_length
        return _LENGTHS[self.basis_starts_at]

    @property
    def _serving(self) -> Literal["softplus", "relu"]:
        if self.serving is not None:
            return self.serving
        return "softplus" if self.mode == "paper" else "relu"

    @property
    def _most_impressions(self) -> int:
        if self.most_impressions is not None:
            return self.most_impressions
        return 1 if self.mode == "paper" else 5

    @property
    def _rate(self) -> float:
        if self.rate is not None:
            return self.rate
        return _RATES["encoder" if self._is_encoder else "head"]

    @property
    def _model(self) -> NewsModel:
        if not self._is_encoder:
            return Similarity(
                _HEADS[self.model],
                self.content,
                self.dimensions,
                self.scale,
                self._most_impressions,
            )
        privacy, labels = self.privacy, TrueLabels(self.negatives)
        reads = self._most_impressions, self.most_read
        own = Encoded(
            self._encoder,
            Draws(labels, *reads),
            interests=self._interests,
            basis_starts_at=self.basis_starts_at,
            basis_length=self._basis_length,
            serving=self._serving,
            dtype=self.dtype,
        )
        if isinstance(privacy, PublishedAttentionNoise):
            return replace(
                own,
                draws=Draws(privacy.labels(self.negatives), *reads, privacy.padding),
                attention=privacy.attention(self._interests),
            )
        return own

    @property
    def _encoder(self) -> Encoder:
        if self.model == "plm-nr":
            return PlmNr(
                content=self.content,
                dimensions=self.dimensions,
                starts_at=self._starts_at,
                scale=self.scale,
            )
        words = Vocabulary(self.word_vectors, self.word_width)
        if self.model == "naml":
            return Naml(words, title=self.title_words)
        start = self.starts_at or "random"
        return Nrms(words, title=self.title_words, starts_at=start)

    def _effects_shape(self, n_items: int) -> dict[str, PublicSlot]:
        if self._is_encoder:
            return {}
        return {EFFECTS: PublicSlot("float64", (n_items,))}

    def _with_prior(self, server: Server, total: Arrays) -> Arrays:
        """The sum of gradients with that of a normal prior around the start.

        What is found is then the likeliest head after clicks and prior together. A
        prior weighs as much as 1/τ² users: much in a small population, whose clicks
        would be learnt by heart, and little in a large one.
        """
        if self._is_encoder:  # a random start is nothing to stay near
            return total
        model = self._model
        start = model.shapes(model.inputs(server.catalog))  # a head has one start
        return {
            name: value + (server.weights[name] - start[name]) / self.prior**2
            for name, value in total.items()
        }

    def _trust(self, server: Server, phase: Phase, total: Arrays) -> float:
        """How much of the rate is used: less where noise outweighs the gradients.

        Adam's steps are as long under noise as without it. Of all rounds together the
        mean gradient, of norm S at the most, stands against noise of norm
        z S sqrt(numbers of the model) / (clients sqrt(rounds)).
        """
        if not isinstance(self.privacy, CentralGaussian | LocalPrivUnit):
            return 1.0  # without noise, or as the paper has it
        size = sum(value.size for value in total.values())
        clients = self.planned(server.plan)
        variance = self.privacy.variance(phase, users=clients, size=size)
        noise = math.sqrt(variance * size) / phase.bounded_by(self.privacy.clip)
        return min(1.0, clients * math.sqrt(len(phase.rounds)) / noise / _TRUSTED)


def _public_slot(value: Array) -> PublicSlot:
    """The layout of a public array; whole numbers are in the range that they have."""
    if value.dtype.kind == "f":
        return PublicSlot(str(value.dtype), value.shape)
    return PublicSlot(str(value.dtype), value.shape, 0, int(value.max(initial=0)))
