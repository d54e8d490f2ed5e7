"""FMF-LDP: matrix factorisation for clicks, every device protecting its own gradient.

Minto, Haller, Haddadi and Livshits, "Stronger Privacy for Federated Collaborative
Filtering With Implicit Feedback", RecSys 2021. A round is an epoch of the paper.

    V        item factors, M × F                      (the server's; everyone sees it)
    r, p, c  how often, whether at all, 1 + alpha r    (a device's own)
    x        the person's factors                      (never leaves; made anew from V)
    g        the gradient of V, M × F, d = M F numbers  (raw)
    k, eps   votes a round, and what each may say

    server   1  V at random, mean m, deviation s                  Algorithm 2, line 1
    device   2  x = (Vᵀ C V + user_ridge I)⁻¹ Vᵀ C p             line 4, Eq. 4
             3  g = -2 c (p - x·v) x, where it is asked for       line 5, Eq. 5
             4  send k votes: (coordinate, randomised bit)        lines 6 and 7
    server   5  the mean of all reports over the people planned   line 11, Eq. 9
             6  V - gamma (mean + 2 lambda V), 20 times            line 12
    ranking  7  score = x·v on the device, for new people too

    mode    privacy  protected by
    sound   none     nothing: federated collaborative filtering (FCF)
    sound   local    PrivUnitG of the whole gradient (let devices speak `once`), or
                     one-bit votes: one coordinate of each of k parts of it
    paper   local    one-bit votes as printed: with replacement, each scaled by d,
                     which makes line 5 k times the mean

Line 3 has the sign of Equation 6: with the printed one, line 6 ascends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self, TypeVar

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.errors import BadMessage, BadValue
from tacit.keys import Key, Keys
from tacit.mechanisms.priv_unit import PrivUnit
from tacit.mechanisms.published.fmf_ldp import PublishedBits
from tacit.mechanisms.spread_bits import SpreadBits
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.methods.fmf_ldp.budget import Budget
from tacit.methods.fmf_ldp.protection import Bare, Protection, Reader, Votes, Whole
from tacit.models.formula import Formula
from tacit.models.implicit_factors import ImplicitFactors, descend
from tacit.plan import Plan
from tacit.release import Release
from tacit.transport.channels import Delivery
from tacit.transport.messages import Cast, Layout, Queries, Reports
from tacit.tree import Tree

_PAPER_VOTES = 100
_RATES = {"paper": 1e-3, "none": 0.1, "one_bit": 1e-3, "priv_unit": 0.1}


@dataclass(frozen=True)
class FmfLdp(Method):
    """Learns item factors from randomised gradients; people stay on their devices.

    Leave `epsilon` (and `votes`) out to have them follow from the plan's target. In
    sound mode reports are PrivUnitG unless said otherwise, in paper mode always bits.
    """

    privacy: Literal["none", "local"] = "local"
    mode: Literal["sound", "paper"] = "sound"
    report: Literal["one_bit", "priv_unit"] | None = None  # None: the mode's own
    factors: int = 5  # F
    alpha: float = 0.0  # how much more a click is trusted than its absence
    user_ridge: float = 1.0  # of line 2
    ridge: float = 1e-6  # lambda
    learning_rate: float | None = None  # gamma
    server_steps: int = 20  # on the same mean
    init_mean: float = 0.01  # m: a direction that everyone shares from the start
    init_deviation: float = 0.003  # s
    clip: float = 1.0  # one_bit: of a coordinate; priv_unit: of the gradient's norm
    votes: int | None = None  # k
    epsilon: float | None = None  # of one vote, or of one whole report

    def __post_init__(self) -> None:
        check.one_of(("none", "local"), privacy=self.privacy)
        check.one_of(("sound", "paper"), mode=self.mode)
        check.one_of(("one_bit", "priv_unit"), report=self._report)
        check.count(factors=self.factors, server_steps=self.server_steps)
        check.not_negative(alpha=self.alpha, ridge=self.ridge)
        check.positive(user_ridge=self.user_ridge, clip=self.clip)
        check.not_negative(init_mean=self.init_mean)
        check.positive(init_deviation=self.init_deviation)
        if self.learning_rate is not None:
            check.positive(learning_rate=self.learning_rate)
        if self.epsilon is not None:
            check.positive(epsilon=self.epsilon)
        if self.votes is not None:
            check.count(votes=self.votes)
        self._check_pairs()

    def _check_pairs(self) -> None:
        """Refuse what does not go together."""
        if self.mode == "paper" and self.privacy == "none":
            raise BadValue("mode='paper' goes with privacy='local'; FCF is 'sound'")
        if self.mode == "paper" and self._report != "one_bit":
            raise BadValue("mode='paper' sends one-bit reports; use mode='sound'")
        if self.privacy == "none" and self.epsilon is not None:
            raise BadValue("epsilon belongs to privacy='local' only")
        if self.votes is not None and not self._is_voting:
            raise BadValue("votes belong to privacy='local' with report='one_bit' only")

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the largest epsilon that meets the plan's target.

        In the release view: pure local epsilon, or over a relay that mixes the reports
        of `min_contributors` people the shuffled one.
        """
        if self.privacy == "none" or self.epsilon is not None:
            return self
        budget = Budget(plan)
        if not self._is_voting:
            return replace(self, epsilon=budget.epsilon(messages=1))
        votes = budget.votes() if self._votes is None else self._votes
        return replace(self, votes=votes, epsilon=budget.epsilon(messages=votes))

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Line 1."""
        items = self.init_mean + self.init_deviation * key.generator().standard_normal(
            (len(catalog), self.factors)
        )
        return Server(plan, catalog, 0, {"items": items}, {})

    def broadcast(self, server: Server) -> Cast:
        """V in single precision."""
        items = server.weights["items"].astype(np.float32)
        return Cast(server.round, server.plan.digest, {"items": items})

    @property
    def aggregator(self) -> Reader:
        """A plain sum, of votes or of vectors."""
        return self._protection().reader

    def aggregate(self, server: Server, delivery: Delivery, key: Key) -> Server:
        """Lines 5 and 6."""
        total = self._protection(len(server.catalog)).total(delivery)
        items = descend(
            server.weights["items"],
            total / server.plan.cohort_size,
            rate=self._rate,
            ridge=self.ridge,
            steps=self.server_steps,
        )
        return server.after(weights={"items": items}, memory={})

    # device

    def local_update(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """Lines 2 and 3, raw."""
        protection = self._protection(shards.n_items)
        update = protection.update(self._model(cast, shards), shards, keys)
        return clients.state, Updates(update)

    def privatize(
        self, cast: Cast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """Line 4: all that leaves."""
        protection = self._protection(len(cast.weights["items"]))
        return Reports(protection.report(updates.tree, keys))

    # serving

    def represent(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 2; a person who took no part in the training has factors as well."""
        return Tastes(Tree.dense(person=self._model(cast, shards).people(shards)))

    def score(
        self, cast: Cast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """Line 7."""
        items = cast.weights["items"].astype(np.float64)
        return person.tree["person"] @ items[candidates.items].T

    def formula(self, cast: Cast) -> Formula:
        """Lines 2 and 7."""
        return self._told(cast).formula()

    def reasons(
        self, cast: Cast, shards: Shards, item: int
    ) -> Float64[np.ndarray, "events"]:
        """The part of line 7 that each event of the history brings."""
        return self._model(cast, shards).parts(shards, item)

    # account

    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """Votes, or a number for each item and factor."""
        return self._protection(len(catalog)).layout()

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """The reports; V follows from them and costs nothing more."""
        protection = self._protection()
        seen_by = "server, and everyone through the item factors"
        cells = protection.cells(plan)
        if self.mode == "paper":
            assert isinstance(protection, Votes)
            figure = protection.bits.count * protection.bits.epsilon
            cells = {
                place: replace(cell, published_epsilon=figure)
                for place, cell in cells.items()
            }
        return (Release(protection.what, seen_by, "each round", cells),)

    # details

    @property
    def _report(self) -> str:
        return self.report or ("one_bit" if self.mode == "paper" else "priv_unit")

    @property
    def _is_voting(self) -> bool:
        return self.privacy == "local" and self._report == "one_bit"

    @property
    def _votes(self) -> int | None:
        if self.votes is None and self.mode == "paper":
            return _PAPER_VOTES
        return self.votes

    @property
    def _rate(self) -> float:
        """The one given, else the paper's, else what served validation people best."""
        if self.learning_rate is not None:
            return self.learning_rate
        if self.mode == "paper" or self.privacy == "none":
            return _RATES["paper" if self.mode == "paper" else "none"]
        return _RATES[self._report]

    def _model(self, cast: Cast, shards: Shards) -> ImplicitFactors:
        """What was told, if it is as large as was agreed."""
        found, agreed = cast.weights["items"].shape, (shards.n_items, self.factors)
        if found != agreed:
            raise BadMessage(f"item factors of shape {found}; agreed is {agreed}")
        return self._told(cast)

    def _told(self, cast: Cast) -> ImplicitFactors:
        items = cast.weights["items"].astype(np.float64)
        return ImplicitFactors(items, self.alpha, self.user_ridge)

    def _protection(self, n_items: int | None = None) -> Protection:
        """What a device sends for so many items; by default for as few as it can."""
        if self.privacy == "none":
            return Bare(n_items or 1, self.factors)
        epsilon = _given(self.epsilon, "epsilon")
        if not self._is_voting:
            size = (n_items or 1) * self.factors
            whole = PrivUnit(epsilon, size, self.clip)
            return Whole(whole, n_items or 1, self.factors)
        votes = _given(self._votes, "votes")
        n_items = n_items or -(-votes // self.factors)
        kind = SpreadBits if self.mode == "sound" else PublishedBits
        bits = kind(epsilon, n_items * self.factors, votes)
        return Votes(bits, n_items, self.factors, self.clip)


Number = TypeVar("Number", int, float)


def _given(value: Number | None, name: str) -> Number:
    if value is None:
        raise BadValue(
            f"{name} is not set: set it, or give the plan a target (target_epsilon) "
            "and calibrate the method to it"
        )
    return value
