"""PrivateRec with local reports: interests and clicks leave a device, randomised.

    v_c    public vector of a news             N_h   a user's history
    b_j    public interest, j = 1 … B          N_c   candidates that were shown
    h      mean of v over the history          y     a click among them
    ε_a    of the interest, a share of ε       ε_y   of a label, the rest of ε over K
    W      head, at first the identity         g, e  taste of all; effect of a news
    K      slates a client reports on          k     negatives of a slate

    client  1  draw K of the slates that were shown, without a look at the clicks
            2  attention over B interests: softmax of h · b_j; report the nearest one by
               randomised response (or all of them under Laplace noise)          ε_a
            3  for each slate: a click of it, or any item if there is none, by
               randomised response over the whole slate                          ε_y
            4  draw k negatives from what the report left over
    server  5  store the reports
            6  expect a user vector given each reported interest; fit W, g and e to the
               likelihood of the reported labels, in as many passes as one likes
    device  7  score(c) = a (W h)·(W v_c) + g·v_c + e_c; nothing leaves to be served

The server computes from reports and public texts alone, so lines 5 and 6 cost nothing.
Interests are fixed while reports are used, and no gradient reaches a user's encoder.
Slates are public: the server has shown them. Everything else of a user is covered.

It is PrivateRec's idea, a private attention and a private label, as a protocol for
which its guarantee holds. Algorithm 3 sends a gradient instead, and draws its
candidates around the true click (docs/errata/privaterec.md).

    mechanism       protected by
    none            nothing
    local           randomised response on the interest and on each label
    local_laplace   Laplace noise on the attention, randomised response on each label
    local_sensitive  randomised response on labels of slates that show a sensitive item

Source: Liu et al. 2022, "PrivateRec: Differentially Private Model Training and Online
Serving for Federated News Recommendation", Sections 3.2 and 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from tacit import check
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.errors import BadValue, Refused
from tacit.mechanisms.label_choice import LabelChoice, negatives, with_labels
from tacit.method import (
    Array,
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    Clients,
    Key,
    Keys,
    Mechanisms,
    Method,
    Phase,
    Plan,
    PublicSlot,
    Scores,
    Server,
    Shards,
    Slot,
    Tastes,
    Tree,
    Unprotected,
    Updates,
    check_offered,
)
from tacit.models.news_similarity import mean_rows
from tacit.models.news_vectors import described_by, news_vectors
from tacit.models.public_interests import attention, public_interests
from tacit.models.reported_clicks import ClickModel, Prior, ReportedClicks, fit, lies
from tacit.privacy import (
    UNPROTECTED,
    LocalClicks,
    LocalNoisyClicks,
    SensitiveClicks,
)
from tacit.privacy.local_clicks import OPEN_CLICKS
from tacit.privacy.privacy import Legal
from tacit.release import Release
from tacit.transport.channels import Delivery, Each, RoundContext, Unlinked
from tacit.transport.messages import BroadcastLayout, Layout, Reports
from tacit.wire_names import register

_LEAK = "they show all news that were read and clicked"


@register("privaterec_local")
@dataclass(frozen=True)
class PrivateRecLocal(Method):
    """Content similarity of news, moved by randomised interests and clicks.

    Clients learn from impressions alone; one that was shown nothing reports no slate.
    """

    mechanisms: ClassVar[Mechanisms] = {
        "none": Unprotected,
        "local": LocalClicks,
        "local_laplace": LocalNoisyClicks,
        "local_sensitive": SensitiveClicks,
    }

    needs_impressions: ClassVar[bool] = True

    # public vectors
    content: tuple[str, ...] = ("title_vector",)  # features; `title`: words of titles
    dimensions: int | None = 64  # principal axes that are kept; None: all
    interests: int = 16  # B, at the most
    temperature: float = 0.1  # of the attention, where it is sent under Laplace noise
    # a report
    attention_share: float = 0.5  # of epsilon; 0: labels alone
    most_impressions: int = 1  # K
    most_shown: int = 300  # longer slates are not reported
    negatives: int = 50  # k
    # the model
    scale: float = 5.0  # a
    passes: int = 30  # steps over the stored reports; 0: untrained
    head_deviation: float = 0.03  # priors: how far W, g and e usually are from 1, 0, 0
    taste_deviation: float = 0.05
    effect_deviation: float = 0.25
    _: KW_ONLY
    privacy: Unprotected | LocalClicks = UNPROTECTED

    def __post_init__(self) -> None:
        check_offered(self)
        if not self.content:
            raise BadValue(
                "content is empty; name public features of the catalog, such as "
                "'title_vector' (data.text_vectors = ['title']) or 'title'"
            )
        if self.dimensions is not None:
            check.count(dimensions=self.dimensions)
        check.at_least(2, interests=self.interests, most_shown=self.most_shown)
        check.count(most_impressions=self.most_impressions, negatives=self.negatives)
        check.not_negative(passes=self.passes)
        check.positive(temperature=self.temperature, scale=self.scale)
        check.positive(
            head_deviation=self.head_deviation,
            taste_deviation=self.taste_deviation,
            effect_deviation=self.effect_deviation,
        )
        if self.attention_share:
            check.fraction(attention_share=self.attention_share)

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the epsilon that meets the plan's target."""
        return replace(self, privacy=self.privacy.calibrated(plan, self._parts(plan)))

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Content similarity, and room for the reports of everyone."""
        vectors = self._vectors(catalog)
        start = ClickModel.start(*vectors.shape)
        weights: dict[str, Array] = {"vectors": vectors, **_weights(start)}
        if self.attention_share:
            weights["interests"] = self._interests(catalog)
        weights |= self._protection.public_items(catalog)
        most = plan.population * plan.sampler.most_participations(plan)
        slots = self.layout(plan, catalog, round=0).slots
        memory = {n: np.zeros((most, *s.shape), s.dtype) for n, s in slots.items()}
        return Server(plan, catalog, 0, weights, memory)

    def broadcast_layouts(
        self, plan: Plan, catalog: Catalog
    ) -> tuple[BroadcastLayout, ...]:
        """One phase, whose broadcast is laid out as the finished model."""
        return (self.model_layout(catalog),)

    def model_layout(self, catalog: Catalog) -> BroadcastLayout:
        """The vectors of the news, the interests and the model."""
        n, axes = self._vectors(catalog).shape
        slots = {
            "vectors": PublicSlot("float32", (n, axes)),
            "head": PublicSlot("float64", (axes, axes)),
            "taste": PublicSlot("float64", (axes,)),
            "effects": PublicSlot("float64", (n,)),
        }
        if self.attention_share:
            shape = self._interests(catalog).shape
            slots["interests"] = PublicSlot("float64", shape)
        for name, value in self._protection.public_items(catalog).items():
            slots[name] = PublicSlot(str(value.dtype), value.shape, 0, 1)
        return BroadcastLayout(slots)

    def aggregators(self, plan: Plan) -> tuple[StoredReports, ...]:
        """An aggregator that keeps every report."""
        return (StoredReports(),)

    def legal(
        self, messages: Tree, plan: Plan, catalog: Catalog, *, phase: int
    ) -> Legal:
        """Slates that may have been shown, with distinct items, and one interest."""
        arrays = {name: messages[name] for name in messages.leaves}
        is_none = (arrays["sizes"] == 0) & ~arrays["candidates"].any(axis=2)
        is_slate = _is_legal(arrays, len(catalog))
        is_slate &= arrays["sizes"] <= self.most_shown
        counts = (arrays["candidates"] > 0).sum(axis=2)
        is_slate &= counts == np.minimum(arrays["sizes"], self._width)
        is_slate &= _is_packed(arrays["candidates"])
        is_marked = self._protection.are_marks(arrays, catalog)
        fine = ((is_none | is_slate) & is_marked).all(axis=1)
        if self.attention_share:
            fine &= self._protection.are_interests(arrays["interests"])
        return np.asarray(fine)

    def aggregate(
        self, server: Server, delivery: Delivery, context: RoundContext
    ) -> Server:
        """Lines 5 and 6: store; after the last round, learn from all that is stored."""
        memory = StoredReports().added(server.memory, delivery)
        weights = server.weights
        if server.round + 1 == server.plan.rounds:
            # Sums are rounded by the order of memory, which a checkpoint does not keep.
            vectors = weights["vectors"].astype(np.float64, order="C")
            prior = Prior(
                self.head_deviation, self.taste_deviation, self.effect_deviation
            )
            found = fit(
                self._reported(memory, weights),
                vectors,
                scale=self.scale,
                prior=prior,
                passes=self.passes,
            )
            weights = {**weights, **_weights(found)}
        return server.after(weights=weights, memory=memory)

    def _reported(self, memory: Arrays, weights: Arrays) -> ReportedClicks:
        """The stored slates, with the user vector that each report lets expect."""
        n_items, axes = weights["vectors"].shape
        sent = memory["candidates"]
        clients, places = np.nonzero(_is_legal(memory, n_items))
        counts = (sent[clients, places] > 0).sum(axis=1)
        items = sent[clients, places]
        candidates = Ragged.of_lengths(counts, items[items > 0].astype(np.int64) - 1)
        users = np.zeros((len(clients), axes))
        if self.attention_share and len(clients):
            said, place = np.unique(clients, return_inverse=True)
            expected = self._protection.expected(
                memory["interests"][said], share=self.attention_share
            )
            users = (expected @ np.ascontiguousarray(weights["interests"]))[place]
        sizes = memory["sizes"][clients, places].astype(np.int64)
        are_open = self._protection.are_open(memory["sizes"], memory)
        hidden, chances = ~are_open[clients, places], np.zeros(len(sizes))
        if hidden.any():
            epsilon = self._labels().epsilon
            chances[hidden] = lies(epsilon, sizes=sizes[hidden], sent=counts[hidden])
        return ReportedClicks(users, candidates, chances)

    # client

    def local_update(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """Lines 1 and 2, raw: slates, one click of each, and the attention."""
        impressions = shards.known_impressions
        kept, places = _drawn(
            impressions,
            most=self.most_impressions,
            most_shown=self.most_shown,
            keys=keys.at("slates"),
        )
        owners = impressions.users[kept].astype(np.int64)
        taken = impressions.slates.shown.take(kept)
        n, most = len(shards), self.most_impressions
        shown = np.zeros((n, most, self.most_shown), np.int32)
        within = np.arange(len(taken.values)) - taken.offsets[taken.owners]
        # Items count from 1: a zero says that there is none.
        shown[owners[taken.owners], places[taken.owners], within] = taken.values + 1
        clicks = np.zeros((n, most), np.int32)
        clicks[owners, places] = _click(impressions, kept, keys.at("clicks"))
        raw: dict[str, Array] = {"shown": shown, "clicks": clicks}
        raw |= self._protection.mark_slates(shown, broadcast.weights)
        if self.attention_share:
            first = places == 0
            raw["attention"] = self._attention(
                broadcast, shards, owners[first], kept[first]
            )
        return clients.state, Updates(Tree.dense(**raw))

    def _attention(
        self,
        broadcast: Broadcast,
        shards: Shards,
        owners: Int64[np.ndarray, "slates"],
        kept: Int64[np.ndarray, "slates"],
    ) -> Float64[np.ndarray, "clients interests"]:
        """Of what was read before the first slate; of all if nothing was shown."""
        vectors = broadcast.weights["vectors"].astype(np.float64)
        slates = shards.known_impressions.slates
        before = slates.histories.take(slates.history_of[kept])
        whole, history = (
            self._protection.open_part(one, broadcast.weights)
            for one in (shards.histories, before)
        )
        read = mean_rows(whole, vectors)
        read[owners] = mean_rows(history, vectors)
        basis = broadcast.weights["interests"]
        return attention(read, basis, temperature=self.temperature)

    def empty_update(
        self, broadcast: Broadcast, clients: Clients, shown: Shards, keys: Keys
    ) -> Updates:
        """The update of somebody who has read nothing and clicked nothing.

        A report without slates would tell of clients that were shown some, and could
        not compute.
        """
        return self.local_update(broadcast, clients, shown, keys)[1]

    def update_slots(
        self, plan: Plan, catalog: Catalog
    ) -> tuple[Mapping[str, Slot], ...]:
        """Whole slates, a click of each, and the attention."""
        most = self.most_impressions
        slots = {
            "shown": Slot("int32", (most, self.most_shown)),
            "clicks": Slot("int32", (most,)),
            **self._protection.marks(most),
        }
        if self.attention_share:
            slots["attention"] = Slot("float64", (len(self._interests(catalog)),))
        return (slots,)

    def privatize(
        self, broadcast: Broadcast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """Lines 2 to 4: whatever leaves was randomised, or is public."""
        raw = updates.tree
        shown, clicks = raw["shown"], raw["clicks"]
        sizes = (shown > 0).sum(axis=2, dtype=np.int32)
        sent = np.zeros((*sizes.shape, self._width), np.int32)
        protection = self._protection
        marks = {name: raw[name] for name in protection.marks(self.most_impressions)}
        are_open = protection.are_open(sizes, marks)
        for place in range(self.most_impressions):
            for is_open in (False, True):
                is_here = (sizes[:, place] > 0) & (are_open[:, place] == is_open)
                rows = np.flatnonzero(is_here)
                if not len(rows):
                    continue
                own, size = keys.at("slate", place)[rows], sizes[rows, place]
                pick = _as_it_is if is_open else self._picked
                picked = pick(clicks[rows, place], own, size, self._width - 1)
                owners = rows[picked.owners]
                column = np.arange(len(owners)) - picked.offsets[picked.owners]
                sent[owners, place, column] = shown[owners, place, picked.values]
        report = {"sizes": sizes, "candidates": sent, **marks}
        if self.attention_share:
            report["interests"] = protection.interests(
                raw["attention"], keys.at("interest"), share=self.attention_share
            )
        return Reports(Tree.dense(**report))

    def _picked(
        self,
        clicks: Int32[np.ndarray, "slates"],
        keys: Keys,
        sizes: Int32[np.ndarray, "slates"],
        count: int,
    ) -> Ragged:
        """Places in each slate: the label that is reported, then its negatives."""
        return self._labels().privatize(clicks, keys, sizes=sizes)

    # serving, on the device

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """The user vector of each whole history."""
        weights = broadcast.weights
        read = mean_rows(shards.histories, weights["vectors"].astype(np.float64))
        model = ClickModel(weights["head"], weights["taste"], weights["effects"])
        return Tastes(Tree.dense(user=model.users(read, scale=self.scale)))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """Line 7: content as the head sees it, the taste of all, and the effects."""
        weights, items = broadcast.weights, candidates.items
        vectors = weights["vectors"][items].astype(np.float64)
        return user.tree["user"] @ vectors.T + weights["effects"][items]

    # account

    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """The size and some items of each slate, and the interest."""
        most = self.most_impressions
        slots = {
            "sizes": Slot("int32", (most,)),
            "candidates": Slot("int32", (most, self._width)),
            **self._protection.marks(most),
        }
        if self.attention_share:
            shape = (len(self._interests(catalog)),)
            slots["interests"] = Slot("float32", shape)
        return Layout(slots)

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """The interest and the clicks; the model follows from them at no more cost."""
        return self.privacy.releases(plan, self._parts(plan))

    # details

    def for_catalog(self, catalog: Catalog) -> Self:
        """A copy that reads whatever this catalog has, with room for all of it."""
        most = min(self.most_shown, max(2, len(catalog)))
        return replace(self, content=described_by(catalog), most_shown=most)

    def _parts(self, plan: Plan) -> tuple[Phase, ...]:
        """The parts of a report, side by side in every round."""
        share, rounds = self.attention_share, range(plan.rounds)
        clicks = Phase(
            "clicks",
            rounds,
            what=f"clicks in at most {self.most_impressions} slates per report",
            share=1.0 - share,
            proof="randomised response over the whole slate",
            leak=_LEAK,
        )
        if not share:
            return (clicks,)
        interests = Phase(
            "interests",
            rounds,
            what="interests",
            share=share,
            proof="one interest for the whole history, or noise on all interests",
            leak=_LEAK,
        )
        return interests, clicks

    @property
    def _protection(self) -> LocalClicks:
        """What interests and clicks leave by, also where nothing protects them."""
        return OPEN_CLICKS if isinstance(self.privacy, Unprotected) else self.privacy

    def _labels(self) -> LabelChoice:
        return self._protection.labels(
            share=1.0 - self.attention_share,
            slates=self.most_impressions,
            negatives=self._width - 1,
        )

    @property
    def _width(self) -> int:
        """The most items of a slate that are sent."""
        return min(1 + self.negatives, self.most_shown)

    def _vectors(self, catalog: Catalog) -> Array:
        return news_vectors(catalog, self.content, dimensions=self.dimensions)

    def _interests(self, catalog: Catalog) -> Array:
        return public_interests(catalog, self.content, self.dimensions, self.interests)


@dataclass(frozen=True)
class StoredReports:
    """Keeps reports in an order of their own; one of zeros is as good as none."""

    accepts: tuple[type[Delivery], ...] = (Each, Unlinked)
    is_plain_sum: bool = True

    def total(self, delivery: Delivery, context: RoundContext) -> dict[str, Array]:
        """Refused: reports are kept one by one; see `added`."""
        raise Refused("slates and labels are no sum of reports; see `added`")

    def added(self, memory: Arrays, delivery: Delivery) -> Arrays:
        """The earlier reports and those delivered now, whatever their order."""
        if isinstance(delivery, Unlinked):
            chunks = [delivery.messages]  # a report is one message: it is not cut
        elif isinstance(delivery, Each):
            chunks = [chunk.tree for chunk in delivery.chunks if len(chunk)]
        else:
            raise Refused(
                f"PrivateRec's local reports are kept one by one, and "
                f"{type(delivery).__name__} adds them up; use 'direct' or 'shuffle'"
            )
        found = {
            name: np.concatenate([old, *(chunk[name] for chunk in chunks)])
            for name, old in memory.items()
        }
        # By name: the order of a table is not what a checkpoint keeps.
        columns = [found[name].reshape(len(found[name]), -1) for name in sorted(found)]
        wide = np.concatenate(columns, axis=1)
        some = np.flatnonzero(wide.any(axis=1))
        order = some[np.lexsort(wide[some].T)]
        kept = {}
        for name, old in memory.items():
            # More than there is room for: clients that report oftener than was agreed.
            # Which of them are those, nobody knows, so nobody is left out.
            rows = max(len(old), len(order))
            kept[name] = np.zeros((rows, *old.shape[1:]), old.dtype)
            kept[name][: len(order)] = found[name][order]
        return kept


def _weights(model: ClickModel) -> dict[str, Array]:
    return {"head": model.head, "taste": model.taste, "effects": model.effects}


def _drawn(
    impressions: Impressions, *, most: int, most_shown: int, keys: Keys
) -> tuple[Int64[np.ndarray, "slates"], Int64[np.ndarray, "slates"]]:
    """Line 1: slates by client, and the place of each among its client's.

    It looks at what was shown and not at what was clicked.
    """
    lengths = impressions.slates.shown.lengths
    usable = np.flatnonzero((lengths > 0) & (lengths <= most_shown))
    users = impressions.users[usable].astype(np.int64)
    counts = np.bincount(users, minlength=len(keys))
    order = np.lexsort((keys.uniform_ragged(counts), users))
    place = np.arange(len(users)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_kept = place < most
    return usable[order[is_kept]], place[is_kept]


def _click(
    impressions: Impressions, kept: Int64[np.ndarray, "slates"], keys: Keys
) -> Int64[np.ndarray, "slates"]:
    """The place of one click of each slate; any place if there is none."""
    shown = impressions.slates.shown.take(kept)
    clicked: Bool[np.ndarray, "items"] = impressions.clicked[
        impressions.slates.shown.places(kept)
    ]
    users = impressions.users[kept].astype(np.int64)[shown.owners]
    draws = keys.uniform_ragged(np.bincount(users, minlength=len(keys)))
    # Draws are below one: a clicked item comes before all others.
    order = np.lexsort((draws + clicked, shown.owners))
    return np.asarray(order[shown.offsets[1:] - 1] - shown.offsets[:-1])


def _as_it_is(
    clicks: Int32[np.ndarray, "slates"],
    keys: Keys,
    sizes: Int32[np.ndarray, "slates"],
    count: int,
) -> Ragged:
    """Places in each slate: its click, then negatives; nothing is hidden."""
    labels, n = clicks.astype(np.int64), sizes.astype(np.int64)
    return with_labels(labels, negatives(labels, keys, sizes=n, count=count))


def _is_packed(
    sent: Int32[np.ndarray, "reports slates items"],
) -> Bool[np.ndarray, "reports slates"]:
    """Which lists have each item once, and zeros at the end alone."""
    ordered = np.sort(sent, axis=2)
    repeats = (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] != 0)
    gaps = (sent[..., :-1] == 0) & (sent[..., 1:] != 0)
    return np.asarray(~(repeats | gaps).any(axis=2))


def _is_legal(memory: Arrays, n_items: int) -> Bool[np.ndarray, "reports slates"]:
    """Which slates a client could have reported; others count as none."""
    sent, sizes = memory["candidates"], memory["sizes"]
    counts = (sent > 0).sum(axis=2)
    in_catalog = ((sent >= 0) & (sent <= n_items)).all(axis=2)
    return np.asarray((sent[..., 0] > 0) & in_catalog & (sizes >= counts))
