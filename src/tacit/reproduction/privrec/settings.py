"""How each contender of Tables 1 and 2 is trained: as published, and as we would.

As published, a network knows genres (MovieLens), or price and count (Frappe), and
learns from observed negatives, or from two drawn ones an event. As we would, it knows
all that the catalog says of an item, learns from drawn negatives alone, and the server
takes Adam's steps; chosen on validation people, docs/reproduction/privrec.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tacit.methods.privrec import PrivRec
from tacit.methods.rivals.fofl import Fofl
from tacit.methods.rivals.nn_self import NnSelf
from tacit.plan import Plan
from tacit.privacy import CentralGaussian, PublishedClippedSum
from tacit.reproduction.privrec.benches import Bench
from tacit.sampling import FixedSize, Poisson

EPSILON = 8.0  # of DP-PrivRec in sound mode: a person, the whole run
DELTA = 1e-6

_COHORT = 30  # M
_FEW, _MANY = 48, 480  # people a round that we ask, without noise and with
_COUNTING = 20  # rounds of few people; of many, two
_DP_ROUNDS = 50
_PEOPLE: Mapping[str, int] = {"age_group": 7, "gender": 2, "occupation": 21}
_SITUATIONS: Mapping[str, int] = {
    "daytime": 7,
    "weekday": 7,
    "isweekend": 2,
    "homework": 2,
    "weather": 8,
    "country": 79,
    "city": 233,
}
_OURS = PrivRec(
    negatives=4,
    dislikes="unused",
    local_epochs=1,
    rate=0.1,
    pull=0.0,
    step=0.02,
    server_step="adam",
    adapt_epochs=5,
    adapt_rate=0.1,
)


@dataclass(frozen=True)
class AsPublished:
    """Section 4.1 and 4.3; rates, widths, batch and mu are ours, for it states none."""

    bench: Bench

    @property
    def privrec(self) -> PrivRec:
        """E2 passes of a device, to train and to adapt."""
        epochs = self.bench.local_epochs
        method = PrivRec(mode="paper", local_epochs=epochs, adapt_epochs=epochs)
        if self.bench.source == "frappe":
            return replace(
                method, items=("price",), situations=_SITUATIONS, uses_value=True
            )
        return replace(
            method, items=("genres",), people=_PEOPLE, positive_from=4.0, negatives=0
        )

    @property
    def privacy(self) -> PublishedClippedSum:
        """Algorithm 2 with the published z, S, gamma and h."""
        clip = 35.0 if self.bench.source == "frappe" else 40.0
        return PublishedClippedSum(1.0, clip=clip, quantile=0.9, balance=0.7)

    @property
    def dp_privrec(self) -> PrivRec:
        """With its noise; with ReLU units, under it, weights grow beyond all bounds."""
        return replace(self.privrec, activation="sigmoid", privacy=self.privacy)

    @property
    def nn_self(self) -> NnSelf:
        """The inputs and labels of PrivRec, but for the count; our steps."""
        own = self.privrec
        return replace(
            AsWeWould(self.bench).nn_self,
            items=own.items,
            by_value=(),
            positive_from=own.positive_from,
            negatives=own.negatives,
            dislikes="negative",
        )

    @property
    def fofl(self) -> Fofl:
        """The labels and passes of PrivRec."""
        own = self.privrec
        return Fofl(
            positive_from=own.positive_from,
            negatives=own.negatives,
            local_epochs=own.local_epochs,
            adapt_epochs=own.adapt_epochs,
        )

    def plan(self, people: int) -> Plan:
        """M people in each of E1 rounds."""
        rounds, size = self.bench.published_rounds, min(_COHORT, people)
        return Plan(people, rounds=rounds, sampler=FixedSize(size), delta=DELTA)


@dataclass(frozen=True)
class AsWeWould:
    """What works, on validation people."""

    bench: Bench

    @property
    def privrec(self) -> PrivRec:
        """One pass of a device a round; all that the catalog says."""
        if self.bench.source == "frappe":
            known = (
                "category",
                "developer",
                "downloads",
                "language",
                "price",
                "rating",
            )
            return replace(_OURS, items=known, situations=_SITUATIONS, adapt_rate=0.02)
        return replace(
            _OURS,
            items=("genres", "year", "title"),
            by_value=("year",),
            people=_PEOPLE,
            positive_from=4.0,
        )

    @property
    def counting(self) -> PrivRec:
        """Told how often an item is liked; the first rounds count."""
        return replace(self.privrec, count_rounds=_COUNTING)

    @property
    def dp_privrec(self) -> PrivRec:
        """It counts, and has a smaller network, which leaves less to add noise to."""
        own = self.privrec
        known = own.items if self.bench.source == "frappe" else ("genres", "year")
        return replace(
            own,
            privacy=CentralGaussian(clip=0.6, clip_quantile=0.5),
            items=known,
            embedding=16,
            widths=(32, 16),
            local_epochs=3,
            rate=0.2,
            step=0.05,
            count_rounds=2,
        )

    @property
    def nn_self(self) -> NnSelf:
        """448 examples a round; PrivRec reads about 480 on MovieLens."""
        own = self.privrec
        return NnSelf(
            items=own.items,
            by_value=own.by_value,
            people=own.people,
            situations=own.situations,
            positive_from=own.positive_from,
            negatives=own.negatives,
            dislikes=own.dislikes,
            inner_steps=7,
            rate=own.rate,
            step=own.step,
            server_step="adam",
            adapt_epochs=own.adapt_epochs,
            adapt_rate=own.adapt_rate,
        )

    @property
    def fofl(self) -> Fofl:
        """As PrivRec, over ids."""
        own = self.privrec
        return Fofl(
            positive_from=own.positive_from,
            negatives=own.negatives,
            dislikes=own.dislikes,
            embedding=32,
            local_epochs=own.local_epochs,
            rate=own.rate,
            step=own.step,
            server_step="adam",
            adapt_epochs=own.adapt_epochs,
            adapt_rate=own.adapt_rate,
        )

    def plan(self, people: int) -> Plan:
        """Few people a round."""
        sampler = Poisson(min(1.0, _FEW / people))
        return Plan(people, rounds=self.bench.rounds, sampler=sampler)

    def dp_plan(self, people: int) -> Plan:
        """Many people a round: noise does not grow with them."""
        return Plan(
            people,
            rounds=min(_DP_ROUNDS, self.bench.rounds),
            sampler=Poisson(min(0.5, _MANY / people)),
            channel="secure_sum",
            delta=DELTA,
            target_epsilon=EPSILON,
        )
