"""More implementations that break their promise: in noise, sums, runtime and account.

Mutants of mechanisms and methods are subclasses, as in `mutants`. Where the fault is in
the runtime or in the account, the mutant is the product with one function exchanged for
as long as it is audited (`broken`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar
from unittest.mock import patch

import numpy as np
from audits.subjects import PLAN, sums_of

from tacit import exact_sum
from tacit.accounting import epsilon as accountant
from tacit.accounting import pld, shuffling
from tacit.accounting.dp_events import PoissonSampledDpEvent
from tacit.audits.audit_method import confirmed
from tacit.audits.cross_checks import check_books
from tacit.audits.delivered_bytes import check_delivered
from tacit.audits.local_reports import check_steps
from tacit.audits.lying_reports import check_liars
from tacit.audits.masked_clients import check_masks
from tacit.audits.noise_draws import check_draws
from tacit.audits.report_isolation import check_alone
from tacit.audits.sampled_cohorts import check_cohorts
from tacit.audits.server_replay import check_replay
from tacit.audits.shuffler_minimum import check_closing, check_minimum
from tacit.audits.small_world import small_data
from tacit.audits.two_aggregators import check_aggregators
from tacit.audits.whole_numbers import check_whole
from tacit.keys import Key
from tacit.ledger.budget import counted
from tacit.ledger.terms import Terms
from tacit.mechanisms import gaussian, priv_unit, sum_mechanism
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.sum_mechanism import add_noise
from tacit.method import SumMethod
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.methods.privaterec import EFFECTS, PrivateRec
from tacit.models.click_effects import click_effects
from tacit.models.item_relations import head_of
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.release import EVERYONE, View
from tacit.runtime import rounds
from tacit.sampling import FixedSize, Once, Poisson, composed
from tacit.statement import _Figures
from tacit.transport import (
    channels,
    exact_total,
    masked_sum,
    pairwise_masks,
    shared_sum,
)
from tacit.transport.channels import Each
from tacit.tree import Tree, mirrored

POISSON = Plan(2_000, 4, sampler=Poisson(0.1), channel="secure_sum", delta=1e-6)
MIXED = replace(PLAN, channel="shuffle", min_contributors=100)
DIRECT = replace(PLAN, channel="direct")
SHARED = replace(PLAN, channel="two_servers")
MASKED = replace(PLAN, channel="masked_sum", min_contributors=PLAN.population)

# --- Sections of an audit -------------------------------------------------------------


def draws_of(method, key, plan=PLAN):
    return confirmed(lambda key: check_draws(method, plan, key=key), key)


def liars_of(method, key, plan=PLAN):
    return [*check_liars(method, plan, key=key)]


def whole_of(method, key, plan=PLAN):
    return [*check_whole(method, plan, key=key)]


def bytes_of(method, key, plan=PLAN):
    return confirmed(lambda key: check_delivered(method, plan, key=key), key)


def replay_of(method, key, plan=PLAN):
    return [check_replay(method, plan, key=key)]


def alone_of(method, key, plan=PLAN):
    return [check_alone(method, plan, key=key)]


def relay_of(method, key, plan=PLAN):
    return [*check_minimum(method, plan, key=key)]


def cohorts_of(method, key, plan=POISSON):
    def ask(key):
        return check_cohorts(method, plan, group=EVERYONE, key=key)

    return confirmed(ask, key)


def books_of(method, key, plan=PLAN):
    return [*check_books(method, plan, group=EVERYONE)]


def shared_of(method, key, plan=SHARED):
    """What readers see, and what one of two aggregators sees of a victim."""

    def ask(key):
        yield from sums_of(method, key.at("sums"), plan)
        yield from check_aggregators(method, plan, key=key.at("aggregators"))

    return [*confirmed(ask, key), check_closing(method, plan, key=key.at("closing"))]


def masks_of(method, key, plan=MASKED):
    return confirmed(lambda key: check_masks(method, plan, key=key), key)


# --- Noise ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Redrawn(GaussianSum):
    """The standard normal draws of a leaf are changed before they are scaled."""

    def changed(self, draws, key):
        raise NotImplementedError

    def add(self, total, key):
        def draw(key, n):
            draws = self.changed(key.generator().standard_normal(n), key)

            def add(scale, values, out):
                out[:] = values + scale * draws

            return add

        return add_noise(total, key, draw=draw, scale=self.scale)


@dataclass(frozen=True)
class SharedByPairs(Redrawn):
    def changed(self, draws, key):
        return np.repeat(draws[::2], 2)[: len(draws)]


@dataclass(frozen=True)
class SharedAtLagThree(Redrawn):
    """Every draw of three is used twice, three places apart."""

    def changed(self, draws, key):
        place = np.arange(len(draws))
        return draws[np.where(place % 6 >= 3, place - 3, place)]


@dataclass(frozen=True)
class FreshSignsOnly(Redrawn):
    def changed(self, draws, key):
        signs = np.sign(key.at("signs").generator().standard_normal(len(draws)))
        return signs * np.abs(np.repeat(draws[::2], 2)[: len(draws)])


@dataclass(frozen=True)
class CutOff(Redrawn):
    """No draw is beyond four deviations."""

    def changed(self, draws, key):
        return np.clip(draws, -4.0, 4.0)


@dataclass(frozen=True)
class OfFewBits(Redrawn):
    kind: str = "float16"

    def changed(self, draws, key):
        return draws.astype(self.kind).astype(np.float64)


@dataclass(frozen=True)
class OneStreamForAll(GaussianSum):
    """Leaves are not told apart."""

    def add(self, total, key):
        return {
            name: add_noise(
                {"": value}, key, draw=gaussian.standard_normal, scale=self.scale
            )[""]
            for name, value in total.items()
        }


def _filled_once(fill):
    """Draws a block and adds it again and again."""

    def add(scale, values, out):
        noise = np.empty(min(sum_mechanism._AT_ONCE, len(out)))
        fill(noise)
        for start in range(0, len(out), len(noise)):
            some = slice(start, start + len(noise))
            out[some] = values[some] + scale * noise[: len(out[some])]

    return add


def _same_stream(self):
    """Every stream of a long leaf begins with the same key."""
    part = slice(
        self.number * sum_mechanism.STREAM, (self.number + 1) * sum_mechanism.STREAM
    )
    value, out = self.value.reshape(-1)[part], self.out.reshape(-1)[part]
    self.draw(self.key, len(out))(self.scale, value, out)


_DEVIATION = exact_total._Code.deviation.func


def _quieter(self):
    return round(0.97 * _DEVIATION(self))


class _NoiseOfASeed(exact_total.Noise):
    def __init__(self, seed):
        super().__init__(bytes(32))


# --- Sums -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Trusting(GaussianSum):
    """Takes reports as they come: an honest client has bounded its own."""

    def enforce(self, tree):
        return tree


@dataclass(frozen=True)
class TrustsNumbers(GaussianSum):
    """Scales what is too long, and what is no number stays none."""

    def enforce(self, tree):
        with np.errstate(all="ignore"):
            norms = tree.norms()
            return tree.scale(np.minimum(1.0, self.clip / norms))


@dataclass(frozen=True)
class SilentForNobody(GaussianSum):
    def add(self, total, key):
        if not any(np.any(value) for value in total.values()):
            return dict(total)
        return super().add(total, key)


def _narrow_if_somebody(trees, context, *, is_wide=False):
    trees = [*trees]
    kind = np.float32 if trees else np.float64
    total = _BOUNDED_SUM(trees, context, is_wide=is_wide)
    return {name: value.astype(kind) for name, value in total.items()}


_FOLDED, _BOUNDED_SUM = channels._folded, channels._bounded_sum
_SUMMED = channels.summed


def _floating_release(trees, context):
    mechanism, layout, secret = context.mechanism, context.layout, context.secret
    if secret is None:
        return _SUMMED(trees, context)
    bounded = (mechanism.enforce(tree) for tree in trees)
    total = _FOLDED(bounded, layout.zeros(), layout)
    wide = {name: value.astype(np.float64) for name, value in total.items()}
    return mechanism.add(wide, Key.from_secret(secret))


def _single_sum(leaf):
    single = leaf.dense().values.astype(np.float32)
    return single.sum(axis=0, dtype=np.float32).astype(np.int64)


# --- Whole numbers --------------------------------------------------------------------

_DRAW = exact_sum.Noise.draw
_LIMIT, _OVERWRITE = exact_sum.limit, exact_total._overwrite
_IS_LONG = exact_total._Code._is_long


def _another_limit(share, *modules):
    """A limit that is so many times what the formula says."""

    def limit(bound, n, *, steps):
        return round(share * _LIMIT(bound, n, steps=steps))

    @contextmanager
    def exchanged():
        with ExitStack() as patches:
            for module in modules:
                patches.enter_context(patch.object(module, "limit", limit))
            yield

    return exchanged


def _long_by_a_hundredth(self, leaves):
    """Enforces a limit that is 1 % beyond the one that the noise is for."""
    larger = replace(self)
    larger.__dict__["twice_limit"] = round(1.01 * self.twice_limit)
    return _IS_LONG(larger, leaves)


@contextmanager
def _never_truncated():
    """Reports are rounded to nearest, also those that pass the limit then."""

    def overwrite(leaves, rows, source, change):
        if change is not np.trunc:
            _OVERWRITE(leaves, rows, source, change)

    with (
        patch.object(exact_total, "_overwrite", overwrite),
        # Half a step per number beyond the bound is taken for honest.
        patch.object(exact_total._Code, "_is_long", _long_by_a_hundredth),
    ):
        yield


def _to_nearest(vectors, bound, *, steps):
    """As `encode`, without a look at the limit."""
    with np.errstate(all="ignore"):
        is_sound = np.linalg.norm(vectors, axis=1) <= bound * exact_sum.TOO_LONG
        sound = np.where(is_sound[:, None], vectors, 0.0)
    return np.rint(sound * steps).astype(np.int64)


def _noise_of_a_smaller_limit(self):
    return math.ceil(_DEVIATION(self) * 0.995)


def _from_the_first_block(self, variance, n):
    """Every call has the draws of the same blocks, so equal leaves have one noise."""
    return _DRAW(exact_sum.Noise(self._seed), variance, n)


def _half_as_far(self, variance, n):
    """Whoever asks for the noise asks rightly, and gets half of the deviation."""
    return _DRAW(self, max(1, variance // 4), n)


# --- Two aggregators ------------------------------------------------------------------

_PUBLISHED, _NOISY, _TOTAL = (
    shared_sum.published,
    shared_sum._noisy,
    shared_sum.SharedSum.total,
)


def _published_quietly(halves, *, sigma, seed):
    return _PUBLISHED(halves, sigma=round(0.95 * sigma), seed=seed)


def _helper_without_noise(halves, shared, key, role):
    return halves if role == "helper" else _NOISY(halves, shared, key, role)


def _one_seed_for_both(halves, shared, key, role):
    return _NOISY(halves, shared, key, "leader")


def _one_seed_for_all_rounds(halves, shared, key, role):
    return _NOISY(halves, shared, Key.from_seed(0), role)


def _helper_of_one_victim(halves, shared, key, role):
    """The helper adds up the half of one client, the leader those of all."""
    if role == "helper":
        halves = shared_sum.stream(key.at("victim").secret_of(), len(halves))
    return _NOISY(halves, shared, key, role)


def _no_halves(seed, n):
    """The stream of a seed that everybody knows: the leader sees the report."""
    return np.zeros(n, np.uint32)


@contextmanager
def _noise_by_report() -> Iterator[None]:
    """Noise for as many as reported, so that a lone victim has next to none."""
    came = []

    def counted_total(self, trees):
        total, n = _TOTAL(self, trees)
        came.append(n)
        return total, n

    def noisy(halves, shared, key, role):
        share = (came[-1] / shared.most_reports) ** 0.5
        fewer = replace(shared, sigma=max(1, round(share * shared.sigma)))
        return _NOISY(halves, fewer, key, role)

    with (
        patch.object(shared_sum.SharedSum, "total", counted_total),
        patch.object(shared_sum, "_noisy", noisy),
    ):
        yield


# --- Masks ----------------------------------------------------------------------------

_SHARES, _UNMASK = masked_sum.MaskedReports.noise, pairwise_masks.MaskingClient.unmask


def _shares_of_fewer(self, key, shares):
    """Each survivor adds 0.97 of the deviation of its share."""
    return np.rint(0.97 * _SHARES(self, key, shares)).astype(np.int64)


def _server_noise(self, key, shares):
    """The noise of all planned clients, whoever survives: a server would know it."""
    return (
        _SHARES(self, key, 1) if shares < self.planned else _SHARES(self, key, shares)
    )


def _any_step(self, step):
    """Every step may be taken again: an answer for each list of survivors."""


def _both_shares(self, survivors):
    """Shares of both secrets of every neighbor, which no honest client hands out."""
    found = _UNMASK(self, survivors)
    self._steps.remove("unmask")
    return found


def _steps_for_one(bound, deviation, *, most_reports):
    """Room for a single report without noise, so that a sum of many wraps around."""
    return 2.0**31 / bound / 2


def _never_too_few(self, chunks, context):
    return _CARRY(self, chunks, replace(context, min_contributors=0))


_CARRY = channels.MaskedSum.carry

# --- Reports that clients protect themselves ------------------------------------------


def steps_of(method, key, plan=PLAN):
    method = method.for_catalog(small_data(20).catalog)
    return [*check_steps(method, plan, key=key)]


def _unrounded(self, vectors, keys):
    """As `PrivUnit.privatize`, which then sends what it has computed as it is."""
    direction, length = priv_unit._polar(vectors.astype(np.float64), self.radius)
    forward = keys.at("sign").uniform(1)[:, 0] < (1.0 + length) / 2
    direction *= np.where(forward, 1.0, -1.0)[:, None]
    report, _ = priv_unit.drawn(direction, self.cap, keys)
    return (report * self.radius / self.cap.gain).astype(np.float32)


def _rounded_finely(self, vectors, keys):
    """In steps of half the length that the proof counts on."""
    step = priv_unit.STEP / 2 * self.radius / self.cap.gain
    said = _unrounded(self, vectors, keys).astype(np.float64)
    return (np.rint(said / step) * step).astype(np.float32)


# --- Servers that know more than they were told ---------------------------------------


class SeesBareSums:
    """Adds up, beside the channel, what clients report in one of the phases."""

    phase_seen: ClassVar[str]
    seen: ClassVar[dict[tuple[str, int], object]] = {}

    def update(self, phase, broadcast, clients, shards, keys):
        tree = super().update(phase, broadcast, clients, shards, keys)
        if phase.name == self.phase_seen:
            place = (phase.name, broadcast.round)
            self.seen[place] = self.seen.get(place, 0.0) + tree.sum()[phase.name]
        return tree

    def learn(self, server, phase, total):
        after = super().learn(server, phase, total)
        if phase.name != self.phase_seen:
            return after
        nothing = 0 * total[phase.name]
        bare = self.seen.pop((phase.name, server.round), nothing)
        return replace(after, weights={**after.weights, **self.from_bare(server, bare)})


@dataclass(frozen=True)
class BareDirection(SeesBareSums, Gram):
    """Takes the direction of popularity from counts without noise."""

    phase_seen: ClassVar[str] = "counts"

    def from_bare(self, server, bare):
        size = len(server.weights["head"])
        found = head_of(bare, size=size, exponent=self.weight_exponent)
        return {"popularity": found["popularity"]}


@dataclass(frozen=True)
class BareTastes(SeesBareSums, Gram):
    """Takes the directions that clients are loaded on from relations without noise."""

    phase_seen: ClassVar[str] = "relations"

    def from_bare(self, server, bare):
        # The strongest of a bare sum as they are: cleaned as if they had noise, a small
        # world of one seed in twenty has none, and nothing would be taken.
        n = server.weights["tastes"].shape[1]
        return {"tastes": np.linalg.eigh(mirrored(bare))[1][:, -n:]}


@dataclass(frozen=True)
class BareEffects(SeesBareSums, PrivateRec):
    """Takes the effects of news from clicks that were counted without noise."""

    phase_seen: ClassVar[str] = "clicks"

    def from_bare(self, server, bare):
        return {EFFECTS: click_effects(bare, deviation=0.0)}


@dataclass(frozen=True)
class ReadsBeforeTheNoise(FederatedPopularity):
    """Where the server has the reports, it keeps their bare sum too."""

    def aggregate(self, server, delivery, context):
        if not isinstance(delivery, Each):
            return super().aggregate(server, delivery, context)
        chunks = [*delivery.chunks]
        after = super().aggregate(server, Each(chunks), context)
        bare = channels.bare_sum((one.tree for one in chunks), context.layout)
        share = after.weights["share"] + 1e-3 * bare["votes"]
        return replace(after, weights={**after.weights, "share": share})


@dataclass(frozen=True)
class RemembersWhoCame(FederatedPopularity):
    """Divides by the cohort that it saw at work, not by the planned one."""

    came: ClassVar[list[int]] = []

    def update(self, phase, broadcast, clients, shards, keys):
        self.came.append(len(clients))
        return super().update(phase, broadcast, clients, shards, keys)

    def learn(self, server, phase, total):
        after = super().learn(server, phase, total)
        n = max(1, sum(self.came))
        self.came.clear()
        share = after.weights["share"] * server.plan.cohort_size / n
        return replace(after, weights={**after.weights, "share": share})


@dataclass(frozen=True)
class LooksAtTheCohort(FederatedPopularity):
    """A report that depends on who else is asked."""

    def update(self, phase, broadcast, clients, shards, keys):
        tree = super().update(phase, broadcast, clients, shards, keys)
        votes = tree["votes"]
        return Tree.dense(votes=(0.9 * votes + 0.1 * votes.mean(axis=0)))


# --- Samplers -------------------------------------------------------------------------


@dataclass(frozen=True)
class FixedUnderCoins(Poisson):
    def cohort(self, draw, plan):
        return FixedSize(round(self.rate * len(draw.keys))).cohort(draw, plan)


@dataclass(frozen=True)
class SharedCoins(Poisson):
    def cohort(self, draw, plan):
        coins = np.repeat(draw.coins()[::2], 2)[: len(draw.keys)]
        return np.flatnonzero(coins < self.rate)


@dataclass(frozen=True)
class KeptCoins(Poisson):
    """The coins of a round are those of the round before, every other time."""

    def cohort(self, draw, plan):
        return super().cohort(replace(draw, round=draw.round // 2), plan)


@dataclass(frozen=True)
class HigherRate(Poisson):
    def event(self, inner, *, group, plan):
        return composed(PoissonSampledDpEvent(self.rate / 1.2, inner), plan.rounds)


@dataclass(frozen=True)
class OnceAndAgain(Once):
    def cohort(self, draw, plan):
        own = draw.own_round(plan.rounds)
        return np.flatnonzero((own == draw.round) | (own == draw.round - 1))


def _fixed_cohort(state, population, keys):
    """The runtime's own idea of a cohort."""
    plan = state.server.plan
    draw = rounds.Draw(keys, state.clients.groups, state.server.round)
    return FixedSize(round(plan.cohort_size)).cohort(draw, plan)


# --- Accounts -------------------------------------------------------------------------


@contextmanager
def _forgetting() -> Iterator[None]:
    """Nothing that was computed before is remembered, nor afterwards."""
    known = (accountant._by_loss, pld._repeated, shuffling.shuffled)

    def forget():
        accountant._answers.clear()
        for one in known:
            clear = getattr(one, "cache_clear", None)
            if clear is not None:
                clear()

    forget()
    try:
        yield
    finally:
        forget()


def _optimistic(*, rate, noise_multiplier, grid):
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_gaussian_mechanism(
        noise_multiplier,
        sampling_prob=rate,
        value_discretization_interval=grid,
        pessimistic_estimate=False,
        use_connect_dots=False,
    )


def _rounded_down(self, step):
    """As `Lattice.rounded`, towards less."""
    losses = (self.lowest + np.arange(len(self.masses))) * (self.step / step)
    places = np.floor(losses).astype(np.int64)
    lowest = int(places[0])
    masses = np.bincount(places - lowest, self.masses)
    return replace(self, step=step, lowest=lowest, masses=masses)


_LINE, _LINES = _Figures._line, _Figures.lines


def _without_the_last(self, own, past=(), *, what, group):
    kept = own[:-1] if what == "everything" else own
    return _LINES(self, kept, past, what=what, group=group)


def _ten_deltas(says: bool):
    def line(self, own, past, unit, view, *, what, group):
        if view is not View.SERVER:
            return _LINE(self, own, past, unit, view, what=what, group=group)
        loose = replace(self.plan, delta=10 * self.plan.delta)
        other = _Figures(loose, self.runs, self.earlier)
        found = _LINE(other, own, past, unit, view, what=what, group=group)
        return found if says else replace(found, delta=self.plan.delta)

    return line


def _terms_without_the_last(releases, **fields):
    return Terms(releases[:-1], **fields)


def _one_less(cell, times):
    return counted(cell, max(1, times - 1))


_CONTEXT = SumMethod.context


def _context_without_minimum(self, server, broadcast, key):
    return replace(_CONTEXT(self, server, broadcast, key), min_contributors=1)


@dataclass(frozen=True)
class TrustsTheServer(CentralGaussian):
    """Claims of a server that sees the reports what holds for a trusted sum."""

    def releases(self, plan, phases, *, is_chosen=False):
        hidden = replace(plan, channel="secure_sum")
        return super().releases(hidden, phases, is_chosen=is_chosen)


@dataclass(frozen=True)
class SamplesAgainstTheServer(CentralGaussian):
    """Counts sampling for those who know whom they asked."""

    def releases(self, plan, phases, *, is_chosen=False):
        found = super().releases(plan, phases, is_chosen=is_chosen)
        return tuple(replace(one, cells=self._as_published(one.cells)) for one in found)

    def _as_published(self, cells):
        return {
            (unit, view): replace(cell, event=cells[unit, View.RELEASE].event)
            if cell.has_epsilon
            else cell
            for (unit, view), cell in cells.items()
        }


@dataclass(frozen=True)
class CountsACrowd(LocalPrivUnit):
    """Counts on ten times the contributors that the plan promises."""

    def releases(self, plan, phases, *, is_chosen=False):
        crowd = replace(plan, min_contributors=10 * plan.min_contributors)
        return super().releases(crowd, phases, is_chosen=is_chosen)


# --- All of them ----------------------------------------------------------------------

Broken = Callable[[], object]  # a context in which a part of the product is exchanged


def broken(target, name: str, value) -> Broken:
    """The product with one of its functions exchanged."""

    @contextmanager
    def exchanged():
        with _forgetting(), patch.object(target, name, value):
            yield

    return exchanged


@contextmanager
def _unbounded_release():
    def unbounded(tree, bound):
        return tree

    def nobody(self, leaves):
        return np.zeros(len(next(iter(leaves.values())).parts[""]), bool)

    with (
        patch.object(exact_total, "_within", unbounded),
        patch.object(exact_total._Code, "_is_long", nobody),
    ):
        yield


LOCAL = FederatedPopularity(privacy=LocalPrivUnit(1.0))
# --- Budgets of groups ----------------------------------------------------------------


@dataclass(frozen=True)
class SwapsBounds(CentralGaussian):
    """Bounds the members of each group as those of another."""

    def report(self, tree, phase, told, *, codes, keys):
        other = len(self.scale) - 1 - codes
        return super().report(tree, phase, told, codes=other, keys=keys)


@dataclass(frozen=True)
class GroupsByActivity(CentralGaussian):
    """Treats whoever says little as open, whatever was chosen."""

    def report(self, tree, phase, told, *, codes, keys):
        said = [
            leaf.dense().values.reshape(len(tree), -1) for leaf in tree.leaves.values()
        ]
        is_quiet = (np.concatenate(said, axis=1) != 0).sum(axis=1) < 5
        own = np.where(is_quiet, [*self.scale].index("open"), codes)
        return super().report(tree, phase, told, codes=own, keys=keys)


GRAM = {"head": 12, "privacy": CentralGaussian(1.5), "count_share": 0.1}
LOADED = {**GRAM, "load_rounds": 1, "load_items": 16, "load_rank": 3}
