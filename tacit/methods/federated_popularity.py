"""Federated popularity: every device votes for what its user has; the server counts.

    m   max_votes    the most items one device votes for in a round
    x   votes        a 0/1 vector over the catalog, at most m ones
    v   report       x as it is, or the unit vector x / |x|             (leaves)
    s   share        all reports so far over devices planned so far     (all see it)

    device   1  draw m of the items in the history, all if there are fewer
             2  send v, protected
    server   3  add the reports
    ranking  4  score(item) = s, the same for everyone; with public content s times how
                alike the item is to what the person has

    privacy      v             protected by
    none         x             nothing
    central      x / |x|       Gaussian noise on the sum, over secure_sum
    local        x / |x|       PrivUnitG on the device
    local_item   one item      randomised response over the catalog, on the device

A unit vector has L2 norm 1 whatever the history, so one person moves a round's sum by
at most 1, and everyone counts the same. The strongest cheap rival at a small epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from jaxtyping import Float32, UInt8

from tacit import check
from tacit.aggregation.mean import Mean
from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key, Keys
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.priv_unit import PrivUnit
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.models.formula import HISTORIES, Formula
from tacit.models.histories import rows
from tacit.models.similarity import Content
from tacit.plan import Plan
from tacit.release import (
    Cells,
    Release,
    epsilon_a_report,
    local,
    noise_for_target,
    summed,
    unprotected,
)
from tacit.transport.channels import Delivery, Noise
from tacit.transport.messages import Cast, Layout, Queries, Reports, Slot
from tacit.tree import Tree


@dataclass(frozen=True)
class FederatedPopularity(Method):
    """Counts bounded votes; the simplest method that uses the whole engine.

    Where `privacy` is not "none", leave `noise_multiplier` or `epsilon` out to have it
    calibrated to the plan's target.
    """

    max_votes: int = 300
    privacy: Literal["none", "central", "local", "local_item"] = "none"
    noise_multiplier: float | None = None  # central: noise over sensitivity, a round
    epsilon: float | None = None  # local: of one report
    content: tuple[str, ...] = ()  # public features of items that say who is alike
    content_scale: float = 7.0  # of numbers among them, such as years

    def __post_init__(self) -> None:
        check.positive(content_scale=self.content_scale)
        check.at_least(1, max_votes=self.max_votes)
        check.one_of(("none", "central", "local", "local_item"), privacy=self.privacy)
        if self.noise_multiplier is not None:
            check.positive(noise_multiplier=self.noise_multiplier)
            if self.privacy != "central":
                raise BadValue("noise_multiplier belongs to privacy='central' only")
        if self.epsilon is not None:
            check.positive(epsilon=self.epsilon)
            if not self.privacy.startswith("local"):
                raise BadValue("epsilon belongs to privacy='local' or 'local_item'")

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the least noise that meets the plan's target."""
        if self.privacy == "central" and self.noise_multiplier is None:
            return replace(self, noise_multiplier=noise_for_target(plan))
        if self.privacy.startswith("local") and self.epsilon is None:
            return replace(self, epsilon=epsilon_a_report(plan))
        return self

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Nobody has voted."""
        nothing = np.zeros(len(catalog))
        weights = {"share": nothing}
        if self.content:
            known = Content.of(catalog, self.content, scale=self.content_scale)
            weights |= {"labels": known.labels, "numbers": known.numbers}
        return Server(plan, catalog, 0, weights, {"votes": nothing})

    def local_update(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """Line 1: mark at most `max_votes` distinct items of each history."""
        drawn = shards.at_most(self.max_votes, keys)
        votes = np.zeros((len(shards), shards.n_items), np.uint8)
        votes[drawn.owners, drawn.items] = 1
        return clients.state, Updates(Tree.dense(votes=votes))

    def privatize(
        self, cast: Cast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """Line 2."""
        votes = updates.tree["votes"]
        protection = self._protection(votes.shape[1])
        return Reports(Tree.dense(votes=protection.report(votes, keys)))

    def noise(self, cast: Cast) -> Noise | None:
        """What a trusted sum adds."""
        return self._protection(len(cast.weights["share"])).noise

    @property
    def aggregator(self) -> Mean:
        """A plain sum."""
        return Mean()

    def aggregate(self, server: Server, delivery: Delivery, key: Key) -> Server:
        """Line 3."""
        layout = self.layout(server.plan, server.catalog, round=server.round)
        noise = self._protection(len(server.catalog)).noise
        total = self.aggregator.total(delivery, layout, noise=noise, key=key)
        votes = server.memory["votes"] + total["votes"]
        asked = server.plan.cohort_size * (server.round + 1)
        weights = {**server.weights, "share": votes / asked}
        return server.after(weights=weights, memory={"votes": votes})

    def represent(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Nothing, or how alike each item is: popularity depends on nobody."""
        if not self.content:
            return Tastes(Tree.dense(nothing=np.zeros((len(shards), 0))))
        known = Content(cast.weights["labels"], cast.weights["numbers"])
        return Tastes(Tree.dense(alike=known.spread(rows(shards))))

    def score(
        self, cast: Cast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """Line 4."""
        share = cast.weights["share"][candidates.items]
        if self.content:
            alike = person.tree["alike"][:, candidates.items]
            return np.maximum(share, 0.0) * alike + 1e-9 * share
        return np.broadcast_to(share, (len(person.tree), len(share)))

    def formula(self, cast: Cast) -> Formula:
        """Line 4, from histories on."""
        share, held = cast.weights["share"], HISTORIES.held()
        if not self.content:
            return held * 0.0 + share
        known = Content(cast.weights["labels"], cast.weights["numbers"])
        alike = known.spread_formula(held)
        return alike * np.maximum(share, 0.0) + 1e-9 * share

    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """One number an item."""
        dtype = self._protection(len(catalog)).dtype
        return Layout({"votes": Slot(dtype, (len(catalog),))})

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """The sum of reports; shares follow from it and cost nothing more."""
        protection = self._protection(1)
        seen_by = "server, and everyone through the shares"
        cells = protection.cells(plan)
        return (Release(protection.what, seen_by, "each round", cells),)

    def _protection(self, n_items: int) -> Protection:
        if self.privacy == "none":
            return Bare()
        if self.privacy == "central":
            return Central(GaussianSum(1.0, _given(self.noise_multiplier)))
        epsilon, choices = _given(self.epsilon), max(n_items, 2)
        if self.privacy == "local":
            return Local(PrivUnit(epsilon, choices))
        return LocalItem(RandomizedResponse(epsilon, choices))


Votes = UInt8[np.ndarray, "clients items"]
Units = Float32[np.ndarray, "clients items"]


@dataclass(frozen=True)
class Bare:
    """Votes as they are."""

    what: str = "votes of each device"
    dtype: str = "uint8"
    noise: Noise | None = None

    def report(self, votes: Votes, keys: Keys) -> Votes:
        """Unchanged."""
        return votes

    def cells(self, plan: Plan) -> Cells:
        """None."""
        return unprotected("votes are sent as they are; no mechanism protects them")


@dataclass(frozen=True)
class Central:
    """Unit vectors, and Gaussian noise on their sum."""

    noise: GaussianSum
    what: str = "noisy sum of votes"
    dtype: str = "float32"

    def report(self, votes: Votes, keys: Keys) -> Units:
        """Clipped to norm 1, which unit vectors have anyway."""
        bounded = self.noise.bound(Tree.dense(votes=unit(votes)))
        return bounded["votes"]

    def cells(self, plan: Plan) -> Cells:
        """A Gaussian release in every round."""
        reason = "Gaussian mechanism on a sum of vectors of norm at most 1"
        return summed(plan, self.noise.event, reason=reason)


@dataclass(frozen=True)
class Local:
    """Unit vectors, each randomised on its device."""

    mechanism: PrivUnit
    what: str = "randomised votes of each device"
    dtype: str = "float32"
    noise: Noise | None = None

    def report(self, votes: Votes, keys: Keys) -> Units:
        """One PrivUnitG report."""
        return np.asarray(self.mechanism.privatize(unit(votes), keys), np.float32)

    def cells(self, plan: Plan) -> Cells:
        """Pure local privacy, a report a participation."""
        reason = "PrivUnitG, pure local privacy"
        return local(plan, self.mechanism.event, reason=reason)


@dataclass(frozen=True)
class LocalItem:
    """One item of each history, by randomised response; worse than `Local`."""

    mechanism: RandomizedResponse
    what: str = "one randomised item of each device"
    dtype: str = "uint8"
    noise: Noise | None = None

    def report(self, votes: Votes, keys: Keys) -> Votes:
        """A random vote of the device, or of nobody's, through k-ary response.

        Counts rank as unbiased estimates do: the estimate is linear in them.
        """
        # An empty history draws among all items, so that every input is legal.
        held = np.where(votes.any(axis=1, keepdims=True), votes, 1)
        draws = keys.at("item").uniform(votes.shape[1])
        item = np.where(held, draws, -1.0).argmax(axis=1)
        said = self.mechanism.privatize(item, keys.at("response"))
        report = np.zeros_like(votes)
        report[np.arange(len(said)), said] = 1
        return report

    def cells(self, plan: Plan) -> Cells:
        """Pure local privacy, a report a participation."""
        reason = "k-ary randomised response over the whole catalog"
        return local(plan, self.mechanism.event, reason=reason)


Protection = Bare | Central | Local | LocalItem


def unit(votes: Votes) -> Units:
    """Each row over its L2 norm; a row of zeros stays."""
    norms = np.sqrt(votes.sum(axis=1, dtype=np.float64, keepdims=True))
    return (votes / np.maximum(norms, 1.0)).astype(np.float32)


def _given(value: float | None) -> float:
    if value is None:
        raise BadValue(
            "privacy needs noise: set noise_multiplier (central) or epsilon (local), "
            "or privacy.target_epsilon and privacy.delta in the plan"
        )
    return value
