"""A hit rate that may be released: measured on those who train, under the same budget.

    h   hit     1 if the held-out item is among the first k of the ranking for the rest
                of the history, else 0; tied items have no order, so h is the chance
    s   share   of the budget, for one round after the method's own

    client   1  hold the last item out, in every round the same, and train on the rest
             2  in the last round send (h, 1 - h): a hit, or a miss
    server   3  H, M: the sums of both, with noise; the rate is H / (H + M)

A client with fewer than two distinct items trains on them and sends (0, 0); it is
neither in H nor in M, and so are those who are absent.

*Sensitivity.* h² + (1 - h)² <= 1 for h from 0 to 1: two numbers for the price of one.

*Beside popularity*, as an option: p is the same chance under the ranking by the counts
that the method's own model has, and line 2 sends the four joint chances of the two,

    a = h p   b = h (1 - p)   c = (1 - h) p   d = (1 - h)(1 - p),

with noise on each of the four sums A, B, C, D. Then (A + B) / n is the model's rate,
(A + C) / n that of popularity, and (B - C) / n their difference; n = A + B + C + D.

*Its sensitivity* is the same: a² + b² + c² + d² = (h² + (1 - h)²)(p² + (1 - p)²) <= 1,
since both factors are at most 1. Ties of the two rankings are broken independently.

*Its interval.* The noise of B - C has the variance 2 s², that of n 4 s², and they are
independent, because the coefficients of the four noises are orthogonal. Over sqrt(2)
and over 2 both have the deviation s: Fieller's interval is exact here too.

*Interval.* With noise of deviation d on both sums, the point (H, M) is farther than
1.96 d from the line through (rate, 1 - rate) in 5 % of releases. So the rates whose
line is nearer are a 95 % interval, exactly (Fieller 1954). It speaks of the noise only:
other users would have another rate.

*Budget.* If everyone is asked in every round, a run of noise multipliers z_i amounts to
one of 1 / z² = Σ 1 / z_i². The plan's target has its z; the method learns with 1 - s of
1 / z², as if that were its target, and the hit rate has the rest.

*Methods that choose their phases* may end early, so the hit rate has one phase for each
round in which it may come, all with the same share, and follows the method's last. Its
share is set aside from the start: whatever the method chooses, Σ 1 / z_i² of its own
phases is at most 1 - s of 1 / z², and one hit rate is measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Float64, Int64

from tacit import check
from tacit.accounting.calibration import gaussian_epsilon
from tacit.aggregation.mean import Aggregator
from tacit.data.ragged import Ragged
from tacit.errors import BadValue, Refused
from tacit.evaluation.ranking import count_ranks
from tacit.method import (
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    CentralGaussian,
    Clients,
    Key,
    Keys,
    Mechanisms,
    Method,
    Phase,
    Plan,
    Popular,
    Profiles,
    PublicSlot,
    Scores,
    Server,
    Shards,
    Slot,
    SumMethod,
    Tastes,
    Tree,
    Way,
)
from tacit.privacy.budgets import least_total, noise_of_the_sum
from tacit.release import EVERYONE
from tacit.sampling import Everyone, Sampler
from tacit.wire_names import LATER, register

NAME = "hit_rate"  # of the phase, and of its noise in the privacy settings
ABOVE = "above popularity"  # at the end of the difference's name
_AFTER = f"{NAME} after round "  # of each phase, where the last round is not known
_TALLY = "hits and misses"  # in the reports and in the server's memory
_USERS_AT_ONCE = 256  # a taste may be a whole network of its own
_Z95 = 1.959963984540054  # the normal quantile of a two-sided 95 % interval
_ROUNDING = 1e-9  # relative: noise that rounding of a sum of squares may lack

Hits = Float64[np.ndarray, "users 2"]  # and misses
Tally = Float64[np.ndarray, "users cells"]  # a hit and a miss, or joint chances


@register("released_metric")
@dataclass(frozen=True)
class ReleasedMetric:
    """The settings of a hit rate that is released: its share of the budget, and k."""

    share: float = 0.05
    k: int = 20
    # whether popularity is measured beside the model, by four numbers instead of two
    against_popularity: bool = field(default=False, metadata=LATER)

    def __post_init__(self) -> None:
        check.fraction(share=self.share)
        check.count(k=self.k)


@dataclass(frozen=True)
class Released:
    """A metric of private users, with its noise and the 95 % interval of that."""

    name: str
    value: float
    low: float
    high: float
    people: int  # users measured, by the noisy count; the key that earlier results have

    @classmethod
    def of(cls, name: str, hits: float, misses: float, *, deviation: float) -> Released:
        """The rate of noisy sums, with the interval of the point's angle (Fieller)."""
        angle, distance = math.atan2(hits, misses), math.hypot(hits, misses)
        # Nearer to the origin than the noise, any rate is possible.
        is_known = hits + misses > 0 and distance > _Z95 * deviation
        off = math.asin(_Z95 * deviation / distance) if is_known else math.pi
        return cls(
            name,
            _rate(angle),
            _rate(angle - off) if is_known else 0.0,
            _rate(angle + off) if is_known else 1.0,
            max(0, round(hits + misses)),
        )

    @classmethod
    def difference(
        cls, name: str, more: float, fewer: float, n: float, *, deviation: float
    ) -> Released:
        """The difference of two rates, from sums of users whom one of both hits.

        `more` and `fewer` are sums of the users whom only the first hits and only the
        second, `n` of all; the noise of the three is that of four cells.
        """
        across, along = (more - fewer) / math.sqrt(2), n / 2
        angle, distance = math.atan2(across, along), math.hypot(across, along)
        is_known = along > 0 and distance > _Z95 * deviation
        off = math.asin(_Z95 * deviation / distance) if is_known else math.pi
        return cls(
            name,
            _difference(angle),
            _difference(angle - off) if is_known else -1.0,
            _difference(angle + off) if is_known else 1.0,
            max(0, round(n)),
        )


@register("measured")
@dataclass(frozen=True)
class Measured(SumMethod):
    """A method that learns from all but one item of everyone, then counts who hit it.

    What is published is the inner method's model; the noisy sums are in the memory of
    the server.
    """

    mechanisms: ClassVar[Mechanisms] = {"central": CentralGaussian}

    inner: SumMethod
    metric: ReleasedMetric

    @classmethod
    def of(cls, method: Method, metric: ReleasedMetric, sampler: Sampler) -> Measured:
        """The method with a metric; refuses one whose budget cannot be divided."""
        if not isinstance(method, SumMethod):
            raise BadValue(
                f"{type(method).__name__} has no sums, of whose budget a hit rate "
                "could have a share"
            )
        if type(method).local_update is not SumMethod.local_update:
            raise BadValue(
                f"{type(method).__name__} keeps what it computes on clients, of which "
                "an item cannot be held out"
            )
        if not isinstance(method.privacy, CentralGaussian):
            raise BadValue(
                f"{type(method.privacy).__name__} has no noise on sums, of which a hit "
                "rate could have a share; use privacy.mechanism = 'central'"
            )
        if not isinstance(sampler, Everyone):
            raise BadValue(
                f"the sampler is {type(sampler).__name__}, and a hit rate has its "
                "share of a budget only if everyone is asked in every round; use "
                "run.sampler.name = 'everyone'"
            )
        if method.privacy.noise_multiplier is not None or method.privacy.scale:
            raise BadValue(
                "a hit rate has a share of one target for all: set privacy."
                "target_epsilon, and leave noise_multiplier and scale out"
            )
        if metric.against_popularity and not isinstance(method, Popular):
            raise BadValue(
                f"{type(method).__name__} releases no counts of items, beside which it "
                "could be measured; leave against_popularity out"
            )
        return cls(method, metric, privacy=method.privacy)

    @property
    def name(self) -> str:
        """As in evaluations: with one target it is the share of users with a hit."""
        return f"hr@{self.metric.k}"

    def released(self, server: Server) -> Released:
        """Line 3, of the model alone; refuses a run that is not over."""
        return self.all_released(server)[0]

    def all_released(self, server: Server) -> tuple[Released, ...]:
        """Line 3: the model's rate, then popularity's and the difference, if measured.

        Refuses a run that is not over.
        """
        if _TALLY not in server.memory:
            raise Refused(f"{self.name} is released in the last round, not before")
        deviation = self._deviation(server.plan)
        return self.figures(server.memory[_TALLY].tolist(), deviation=deviation)

    def figures(
        self, sums: Sequence[float], *, deviation: float
    ) -> tuple[Released, ...]:
        """What sums of tallies say, whose numbers have noise of this deviation."""
        name = self.name
        if not self.metric.against_popularity:
            return (Released.of(name, *sums, deviation=deviation),)
        both, only, missed, neither = sums
        wider = math.sqrt(2) * deviation  # of two cells that are added up
        n, popular = math.fsum(sums), f"{name} of popularity"
        return (
            Released.of(name, both + only, missed + neither, deviation=wider),
            Released.of(popular, both + missed, only + neither, deviation=wider),
            Released.difference(
                f"{name} {ABOVE}", only, missed, n, deviation=deviation
            ),
        )

    def shortfall(self, server: Server) -> str | None:
        """Why a model should not be published, if it is worse than popularity.

        It is where 95 % of the noise leaves no doubt: the interval of the difference
        lies below zero. A model that ties, such as one that is popularity itself, is
        called worse in a fortieth of releases, not in half of them.
        """
        if not self.metric.against_popularity:
            return None
        own, popular, difference = self.all_released(server)
        if difference.high >= 0:
            return None
        return (
            f"{own.name} is {own.value:.4f}, and {popular.value:.4f} for a list by the "
            f"released counts alone: the difference is between {difference.low:.4f} "
            f"and {difference.high:.4f} by 95 % of the noise"
        )

    def _deviation(self, plan: Plan) -> float:
        """The deviation of the noise on each sum of the tally."""
        *_, last = self.phases(plan)
        return math.sqrt(self.privacy.variance(last, users=1, size=self._cells))

    @property
    def _cells(self) -> int:
        return 4 if self.metric.against_popularity else 2

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """The method's own, over one round less; then the hit rate.

        Where the method chooses, one hit rate for each round that it may end before.
        """
        own, left = self.inner.phases(_own(plan)), 1 - self.metric.share
        scaled = (replace(phase, share=phase.share * left) for phase in own)
        if not self.chooses_phases:
            last = plan.rounds - 1
            return (*scaled, self._hit_rate(NAME, last, "held-out hits and misses"))
        later = (
            self._hit_rate(
                f"{_AFTER}{round_}", round_, f"held-out hits after round {round_}"
            )
            for round_ in range(1, plan.rounds)
        )
        return (*scaled, *later)

    def _hit_rate(self, name: str, round_: int, what: str) -> Phase:
        return Phase(
            name,
            range(round_, round_ + 1),
            what=what,
            share=self.metric.share,
            proof="a hit and a miss that add up to 1"
            if not self.metric.against_popularity
            else "four joint chances that add up to 1",
        )

    @property
    def chooses_phases(self) -> bool:
        """Whether the inner method does: the hit rate follows where it ends."""
        return self.inner.chooses_phases

    def next_phase(self, server: Server) -> Phase | None:
        """What the inner method chooses; after its last phase the hit rate, once."""
        if not self.chooses_phases:
            return super().next_phase(server)
        if _TALLY in server.memory:
            return None
        own, name = _of_inner(server), f"{_AFTER}{server.round}"
        if not self.inner.is_over(own):
            phase = self.inner.next_phase(own)
            name = phase.name if phase is not None else name
        return _named(self.phases(server.plan), name)

    def ways(self, plan: Plan) -> tuple[Way, ...]:
        """Those of the inner method, and the hit rate after each."""
        if not self.chooses_phases:
            return super().ways(plan)
        names = [phase.name for phase in self.phases(plan)]
        ways = self.inner.ways(_own(plan))
        return tuple((*way, (names.index(f"{_AFTER}{len(way)}"),)) for way in ways)

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """The inner method's leaves; for the hit rate, two numbers or four."""
        if _is_hit_rate(phase):
            return {_TALLY: Slot("float64", (self._cells,))}
        return self.inner.report_shape(phase, catalog)

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """As the inner method; in the last round, its finished model."""
        is_own = phase is not None and not _is_hit_rate(phase)
        return self.inner.public_shape(phase if is_own else None, catalog)

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Lines 1 and 2: the inner method's raw update, or each client's tally."""
        own = replace(clients, plan=_own(clients.plan))
        if _is_hit_rate(phase):
            return Tree.dense(**{_TALLY: self.tally(broadcast, own, shards, keys)})
        rest, _ = shards.leaving_last_out()
        inners = self._inners(phase, clients.plan)
        return self.inner.update(inners, broadcast, own, rest, keys)

    def _inners(self, phase: Phase, plan: Plan) -> Phase:
        """The phase as the inner method has it, whose share is of its own budget."""
        return _named(self.inner.phases(_own(plan)), phase.name)

    def tally(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tally:
        """Each client's raw hit and miss, or its joint chances, one row per client."""
        found, k = [np.zeros((0, self._cells))], self.metric.k
        for first in range(0, len(shards), _USERS_AT_ONCE):
            some = np.arange(first, min(first + _USERS_AT_ONCE, len(shards)))
            rest, held = shards.take(some).leaving_last_out()
            scores = self._scores(broadcast, clients.take(some), rest, keys[some])
            hits = _hits_and_misses(scores, rest.histories, held, k=k)
            if self.metric.against_popularity:
                popular = self._popularity(broadcast, len(some))
                beside = _hits_and_misses(popular, rest.histories, held, k=k)
                hits = joint_chances(hits, beside)
            found.append(hits)
        return np.concatenate(found)

    def _popularity(self, broadcast: Broadcast, n_users: int) -> Scores:
        """The same scores for everyone, by released counts."""
        assert isinstance(self.inner, Popular)  # by `of`
        scores = np.asarray(self.inner.popularity(broadcast), np.float64)
        last = np.where(np.isnan(scores), -np.inf, scores)
        return np.broadcast_to(last, (n_users, len(last)))

    def _scores(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Scores:
        """The scores of every item; a score that is NaN ranks last."""
        tastes = self.inner.represent(broadcast, clients, shards, keys)
        every = Candidates.all_of(_nameless(shards.n_items))
        scores = self.inner.score(broadcast, tastes, every).astype(np.float64)
        return np.where(np.isnan(scores), -np.inf, scores)

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The inner method for the target that the hit rate leaves it, and its noise.

        Refuses a plan without one target for all.
        """
        if isinstance(plan.target_epsilon, Mapping):
            raise Refused("a hit rate has a share of one target for all, not by group")
        whole = Phase(NAME, range(plan.rounds), what="everything")
        total = least_total(plan, [whole], EVERYONE) * (1 + _ROUNDING)
        assert plan.delta is not None  # by `least_total`
        counts = total / noise_of_the_sum(plan)  # in the view of the target
        left = gaussian_epsilon(
            counts / math.sqrt(1 - self.metric.share), delta=plan.delta
        )
        own = replace(_own(plan), target_epsilon=left, before=())
        inner = self.inner.calibrated(own)
        assert isinstance(inner.privacy, CentralGaussian)  # by `of`
        if inner.chooses_phases:
            privacy = replace(inner.privacy, total_noise=total)
            return replace(self, inner=inner, privacy=privacy)
        noise = {p.name: inner.privacy.noise_of(p) for p in inner.phases(own)}
        noise[NAME] = total / math.sqrt(self.metric.share)
        privacy = replace(inner.privacy, noise_multiplier=noise)
        return replace(self, inner=inner, privacy=privacy)

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """The inner method's server before the first round, under the whole plan."""
        return replace(self.inner.start(_own(plan), catalog, key), plan=plan)

    def public(self, server: Server, phase: Phase | None) -> Arrays:
        """As the inner method; in the last round, its finished model."""
        is_own = phase is not None and not _is_hit_rate(phase)
        return self.inner.public(_of_inner(server), phase if is_own else None)

    def robust(self, phase: Phase) -> Aggregator:
        """The inner method's aggregator; for the hit rate, the plain sum."""
        return (
            super().robust(phase) if _is_hit_rate(phase) else self.inner.robust(phase)
        )

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """As the inner method; in the last round nothing, but the sums are kept."""
        if _is_hit_rate(phase):
            kept = {**server.memory, _TALLY: total[_TALLY]}
            return server.after(weights=server.weights, memory=kept)
        inners = self._inners(phase, server.plan)
        after = self.inner.learn(_of_inner(server), inners, total)
        return replace(after, plan=server.plan)

    # as the inner method

    def enrol(self, profiles: Profiles, keys: Keys) -> Tree:
        """The inner method's private state of new clients."""
        return self.inner.enrol(profiles, keys)

    @property
    def liked(self) -> float:
        """The inner method's value of an item that somebody names, and likes."""
        return self.inner.liked

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """The inner method's representation of each user."""
        return self.inner.represent(broadcast, clients, shards, keys)

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """The inner method's scores."""
        return self.inner.score(broadcast, user, candidates)

    def outlook(self, plan: Plan, catalog: Catalog) -> str | None:
        """What can be learnt, and how well the hit rate will be known."""
        said = self.inner.outlook(_own(plan), catalog)
        off = _Z95 * self._deviation(plan) * math.sqrt(self._cells / 2)
        known = (
            f"{self.name} will be known to about ±{off / plan.population:.2g}, if all "
            f"{plan.population:,} have two items or more"
        )
        return known if said is None else f"{said}; {known}"


def _is_hit_rate(phase: Phase) -> bool:
    return phase.name == NAME or phase.name.startswith(_AFTER)


def _named(phases: Iterable[Phase], name: str) -> Phase:
    return next(phase for phase in phases if phase.name == name)


def _own(plan: Plan) -> Plan:
    """The plan as the inner method has it: without the last round."""
    if plan.rounds < 2:
        raise Refused(
            f"rounds={plan.rounds} must be 2 or more: the last measures what the "
            "others learnt"
        )
    return plan.over(plan.rounds - 1)


def _of_inner(server: Server) -> Server:
    return replace(server, plan=_own(server.plan))


def _hits_and_misses(
    scores: Scores, seen: Ragged, held: Int64[np.ndarray, "users"], *, k: int
) -> Hits:
    """The chances that a held-out item is among the first k, and that it is not."""
    has_one = held >= 0
    targets = Ragged.of_lengths(has_one.astype(np.int64), held[has_one])
    counts = count_ranks(np.ascontiguousarray(scores), seen, targets)
    hits = np.clip(k - counts.above, 0, counts.tied) / counts.tied
    found = np.zeros((len(held), 2))
    found[has_one] = np.stack([hits, 1.0 - hits], axis=1)
    return found


def joint_chances(model: Hits, popularity: Hits) -> Float64[np.ndarray, "users 4"]:
    """The chances that both hit, the model alone, popularity alone, and neither.

    >>> joint_chances(np.array([[1.0, 0.0]]), np.array([[0.25, 0.75]])).tolist()
    [[0.25, 0.75, 0.0, 0.0]]
    """
    parts = [model[:, :1] * popularity, model[:, 1:] * popularity]
    return np.concatenate(parts, axis=1)


def _difference(angle: float) -> float:
    """The difference of rates at a point of this angle: at most 1 either way."""
    if abs(angle) >= math.pi / 2:
        return math.copysign(1.0, angle)
    return min(max(math.tan(angle) / math.sqrt(2), -1.0), 1.0)


def _rate(angle: float) -> float:
    """The share of hits at a point of this angle."""
    kept = min(max(angle, 0.0), math.pi / 2)
    hits, misses = math.sin(kept), math.cos(kept)
    return hits / (hits + misses)


@lru_cache(1)
def _nameless(n_items: int) -> Catalog:
    """A catalog that knows item numbers alone: the rest is in the broadcast."""
    return Catalog.of_ids([str(item) for item in range(n_items)])
