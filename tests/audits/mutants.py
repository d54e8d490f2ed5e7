"""Implementations that break their promise, each in one way. None is in the product.

Every mutant is a subclass of what the product has, with one thing wrong. An audit must
catch them all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from audits import broken_parts as parts
from audits.broken_parts import broken
from audits.subjects import (
    PLAN,
    POPULARITY,
    SCALE,
    STRICT,
    AdaptiveFactors,
    NoisyFactors,
    audited,
    reports_of,
    sums_of,
)
from runtime.chosen import choosing

from tacit import exact_sum
from tacit.accounting import profiles
from tacit.accounting.lattice import Lattice
from tacit.audits.audit_method import confirmed
from tacit.audits.checks import Check
from tacit.audits.likelihood_ratios import check_epsilon
from tacit.experiment.auditing import subjects_of
from tacit.experiment.registry import method_names
from tacit.keys import Key
from tacit.mechanisms import gaussian, sum_mechanism
from tacit.mechanisms.adaptive_clip import BIT, ClippedSumWithBits
from tacit.mechanisms.clipping import clip_by_norm
from tacit.mechanisms.gaussian import GaussianSum, gaussian_event
from tacit.mechanisms.label_choice import LabelChoice, negatives
from tacit.mechanisms.one_bit import OneBit, randomized_bits
from tacit.mechanisms.priv_unit import PrivUnit
from tacit.mechanisms.randomized_response import respond
from tacit.mechanisms.sum_mechanism import add_noise, filled
from tacit.method import SumMethod
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.methods.privaterec import PrivateRec
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalItem, LocalPrivUnit, guarantees
from tacit.privacy.guarantees import summed
from tacit.release import Release
from tacit.runtime import ledger, rounds
from tacit.statement import _Figures
from tacit.transport import (
    channels,
    exact_total,
    masked_sum,
    pairwise_masks,
    shared_sum,
)
from tacit.transport.channels import Each
from tacit.tree import Dense, Tree

# --- Mechanisms of sums ---------------------------------------------------------------


@dataclass(frozen=True)
class Quieter(GaussianSum):
    share: float = 1.0  # of the noise that is stated

    def add(self, total, key):
        noisy = super().add(total, key)
        return {n: v + self.share * (noisy[n] - v) for n, v in total.items()}


@dataclass(frozen=True)
class Unclipped(GaussianSum):
    def bound(self, tree):
        return tree


@dataclass(frozen=True)
class ClipsEachTensor(GaussianSum):
    def bound(self, tree):
        alone = [Tree({name: leaf}) for name, leaf in tree.leaves.items()]
        clipped = [clip_by_norm(leaf, self.clip).leaves for leaf in alone]
        return Tree({name: leaf for part in clipped for name, leaf in part.items()})


@dataclass(frozen=True)
class RepeatsItsNoise(GaussianSum):
    def add(self, total, key):
        return super().add(total, Key.from_seed(0))


@dataclass(frozen=True)
class UniformNoise(GaussianSum):
    def add(self, total, key):
        def draw(key, n):
            draws = iter(key.generator().uniform(-np.sqrt(3), np.sqrt(3), n))

            def fill(out):
                out[:] = [next(draws) for _ in out]

            return filled(fill)

        return add_noise(total, key, draw=draw, scale=self.scale)


@dataclass(frozen=True)
class HalvesItsSensitivity(GaussianSum):
    """As if one user moved the sum by half a clip."""

    @property
    def event(self):
        return gaussian_event(2 * self.noise_multiplier)


@dataclass(frozen=True)
class LateBits(ClippedSumWithBits):
    """Asks whether an update is within the clip after clipping it."""

    def bound(self, tree):
        clipped = clip_by_norm(tree, self.clip)
        bits = (clipped.norms() <= self.clip * (1 + 1e-6)) - 0.5
        return Tree({**clipped.leaves, BIT: Dense(bits)})


CENTRAL = GaussianSum(1.0, 1.5)
# 68 axes: a head with the 4,500 numbers that an audit of noise needs.
NEWS = {"content": ("title", "topics")}  # what the audit's catalog says of an item
GRADIENTS = {"learns": "gradients", "dimensions": 68, **NEWS}

# --- Methods --------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken(CentralGaussian):
    """Central privacy with another mechanism in the place of its own."""

    noise_multiplier: float = 1.5
    broken: GaussianSum = CENTRAL

    def mechanism(self, phase, told):
        return self.broken


def popularity(mechanism: GaussianSum) -> FederatedPopularity:
    """Central popularity that bounds and adds noise by this mechanism."""
    return FederatedPopularity(privacy=Broken(broken=mechanism))


@dataclass(frozen=True)
class ClaimsMore(FederatedPopularity):
    """Adds one noise and tells the ledger of another, twice as large."""

    def releases(self, plan):
        cells = summed(plan, gaussian_event(3.0), reason="so it says")
        return (Release("noisy sum of votes", "server", "each round", cells),)


@dataclass(frozen=True)
class CountsOneRound(FederatedPopularity):
    """Tells the ledger of one round, whatever the plan."""

    def releases(self, plan):
        return super().releases(replace(plan, rounds=1))


@dataclass(frozen=True)
class DividesByWhoCame(FederatedPopularity):
    def aggregate(self, server, delivery, context):
        if not isinstance(delivery, Each):
            return super().aggregate(server, delivery, context)
        chunks = [*delivery.chunks]
        after = super().aggregate(server, Each(chunks), context)
        came = sum(map(len, chunks)) / server.plan.cohort_size
        weights = {name: value / came for name, value in after.weights.items()}
        return replace(after, weights=weights)


@dataclass(frozen=True)
class TwoClips(FederatedPopularity):
    """Where the server sums by itself, bounds and noise come from another clip."""

    def aggregate(self, server, delivery, context):
        if isinstance(delivery, Each):
            context = replace(context, mechanism=GaussianSum(2.0, 1.5))
        return super().aggregate(server, delivery, context)


@dataclass(frozen=True)
class AddsNothing(FederatedPopularity):
    def noise(self, broadcast, plan):
        return None


@dataclass(frozen=True)
class KeepsItsKey(FederatedPopularity):
    """Draws a client's noise from a key that no round is part of."""

    def privatize(self, broadcast, clients, updates, keys):
        own = Key.from_seed(0).each(clients.numbers)
        return super().privatize(broadcast, clients, updates, own)


# --- Mechanisms on one device ---------------------------------------------------------

BITS, LABELS = OneBit(1.0, 4, 1), LabelChoice(1.0, 1)
VECTORS = {f"e{i}": np.eye(4)[i] for i in (0, 3)}
CLICKS = {"the first": 0, "the second": 1}


def honest_bits(vector, keys):
    reports = BITS.privatize(np.tile(vector, (len(keys), 1)), keys)
    return np.hstack([reports.coordinates, reports.bits]).astype(np.float64)


def bits_where_it_matters(vector, keys):
    """Reports a coordinate that the data chose, not chance."""
    at = np.full((len(keys), 1), int(np.argmax(vector)))
    bits = randomized_bits(vector[at], keys, epsilon=BITS.epsilon)
    return np.hstack([at, bits]).astype(np.float64)


def honest_labels(click, keys):
    n = len(keys)
    shown = LABELS.privatize(np.full(n, click), keys, sizes=np.full(n, 4))
    return shown.values.reshape(n, -1).astype(np.float64)


def candidates_around_the_click(click, keys):
    """Negatives drawn from what the true click left over."""
    n, sizes = len(keys), np.full(len(keys), 4)
    clicks = np.full(n, click)
    labels = respond(clicks, keys.at("label"), sizes=sizes, epsilon=LABELS.epsilon)
    others = negatives(clicks, keys.at("negatives"), sizes=sizes, count=1).values
    return np.stack([labels, others], axis=1).astype(np.float64)


# --- All of them ----------------------------------------------------------------------

Run = Callable[[Key], list[Check]]


@dataclass(frozen=True)
class Mutant:
    name: str
    run: Run
    broken: parts.Broken = nullcontext  # what of the product is exchanged meanwhile

    def caught_by(self, key: Key) -> list[str]:
        """The names of the checks that fail."""
        with self.broken():
            return [check.name for check in self.run(key) if not check.ok]


def _sums(method) -> Run:
    return lambda key: confirmed(partial(sums_of, method), key)


def _summed(mechanism: type[GaussianSum], **fields) -> Run:
    return _sums(popularity(mechanism(1.0, 1.5, **fields)))


def _popularity(method: type[FederatedPopularity]) -> Run:
    return _sums(method(privacy=CentralGaussian(1.5)))


def _told(say, inputs, epsilon) -> Run:
    def ask(key):
        return [check_epsilon(say, inputs, epsilon=epsilon, key=key)]

    return partial(confirmed, ask)


def _bits(say) -> Run:
    return _told(say, VECTORS, BITS.total_epsilon)


def _labels(say) -> Run:
    return _told(say, CLICKS, LABELS.epsilon)


def _of_strict(method) -> Run:
    """The checks of the sums of those who chose the strict group."""
    return lambda key: confirmed(
        partial(sums_of, method, plan=STRICT, group="strict"), key
    )


def _sampled(sampler) -> Plan:
    return replace(parts.POISSON, sampler=sampler)


HONEST = (
    Mutant("popularity, central", _sums(POPULARITY)),
    Mutant("two leaves, one factored", _sums(NoisyFactors())),
    Mutant("adaptive clip", _sums(AdaptiveFactors())),
    Mutant(
        "popularity, local",
        partial(reports_of, FederatedPopularity(privacy=LocalPrivUnit(1.0))),
    ),
    Mutant(
        "popularity, local_item",
        partial(reports_of, FederatedPopularity(privacy=LocalItem(1.0))),
    ),
    Mutant(
        "popularity, phases chosen as it goes",
        _sums(choosing("dear", "cheap", "cheap")),
    ),
    Mutant(
        "popularity, central, a strict group",
        _of_strict(FederatedPopularity(privacy=CentralGaussian(1.5, scale=SCALE))),
    ),
    *(
        Mutant(
            f"gram, central, the {group} group, all of an audit",
            partial(
                audited,
                Gram(**{**parts.GRAM, "privacy": CentralGaussian(1.5, scale=SCALE)}),
                plan=replace(PLAN, groups={"strict": 1_000, "open": 1_000}),
                group=group,
            ),
        )
        for group in SCALE
    ),
    Mutant("one-bit reports", _bits(honest_bits)),
    Mutant("label choice", _labels(honest_labels)),
    Mutant(
        "popularity, central, all of an audit", partial(audited, POPULARITY, plan=PLAN)
    ),
    Mutant(
        "popularity, central, two servers, all of an audit",
        partial(audited, POPULARITY, plan=parts.SHARED),
    ),
    Mutant(
        "gram, central, two servers, all of an audit",
        partial(audited, Gram(**parts.GRAM), plan=parts.SHARED),
    ),
    Mutant(
        "popularity, central, masks, all of an audit",
        partial(audited, POPULARITY, plan=parts.MASKED),
    ),
    Mutant(
        "popularity, central, Poisson",
        partial(audited, POPULARITY, plan=parts.POISSON),
    ),
    Mutant(
        "popularity, local, mixed by a relay",
        partial(audited, parts.LOCAL, plan=parts.MIXED),
    ),
)


def every_form() -> tuple[Mutant, ...]:
    """Every method under every protection that it offers, in a whole audit."""
    return tuple(
        Mutant(subject.name, partial(audited, subject.method, plan=subject.plan))
        for name in method_names()
        for subject in subjects_of(name)
    )


MUTANTS = (
    Mutant("noise × 0.95", _summed(Quieter, share=0.95)),
    Mutant("noise × 0.9", _summed(Quieter, share=0.9)),
    Mutant("noise × 0.5", _summed(Quieter, share=0.5)),
    Mutant("no noise in the sum", _summed(Quieter, share=0.0)),
    Mutant("no noise given to the channel", _popularity(AddsNothing)),
    Mutant("no clip", _summed(Unclipped)),
    Mutant(
        "clip per tensor, not jointly",
        _sums(NoisyFactors(mechanism=ClipsEachTensor(0.7, 1.5))),
    ),
    Mutant("the same noise in every round", _summed(RepeatsItsNoise)),
    Mutant("uniform noise of the same variance", _summed(UniformNoise)),
    Mutant("sensitivity halved", _summed(HalvesItsSensitivity)),
    Mutant("another noise told to the ledger", _popularity(ClaimsMore)),
    Mutant("one round told to the ledger", _popularity(CountsOneRound)),
    Mutant("divided by the realised cohort", _popularity(DividesByWhoCame)),
    Mutant("the server's own noise from another clip", _popularity(TwoClips)),
    Mutant(
        "clip bit computed after the clip",
        _sums(AdaptiveFactors(kind=LateBits)),
    ),
    Mutant("coordinates that depend on the data", _bits(bits_where_it_matters)),
    Mutant("label candidates around the click", _labels(candidates_around_the_click)),
    Mutant(
        "a client key used in two rounds",
        partial(reports_of, KeepsItsKey(privacy=LocalPrivUnit(1.0))),
    ),
    *(
        Mutant(
            name,
            partial(parts.steps_of, parts.LOCAL),
            broken(PrivUnit, "privatize", how),
        )
        for name, how in {
            "PrivUnit without rounding": parts._unrounded,
            "PrivUnit rounded to half a step": parts._rounded_finely,
        }.items()
    ),
    *(
        Mutant(name, partial(parts.draws_of, popularity(mechanism)))
        for name, mechanism in {
            "draws shared by pairs of coordinates": parts.SharedByPairs(1.0, 1.5),
            "draws shared at lag 3": parts.SharedAtLagThree(1.0, 1.5),
            "pairs of draws of which the signs alone are fresh": parts.FreshSignsOnly(
                1.0, 1.5
            ),
            "noise cut off at 4 deviations": parts.CutOff(1.0, 1.5),
            "noise drawn in half precision": parts.OfFewBits(1.0, 1.5),
            "noise drawn in single precision": parts.OfFewBits(1.0, 1.5, "float32"),
        }.items()
    ),
    Mutant(
        "noise that repeats every 32,768 draws",
        partial(parts.draws_of, POPULARITY),
        broken(gaussian, "filled", parts._filled_once),
    ),
    Mutant(
        "noise that repeats with every stream of a long leaf",
        partial(parts.draws_of, POPULARITY),
        broken(sum_mechanism._Block, "fill", parts._same_stream),
    ),
    Mutant(
        "the same noise on every leaf",
        partial(
            parts.draws_of, NoisyFactors(mechanism=parts.OneStreamForAll(0.7, 1.5))
        ),
    ),
    Mutant(
        "noise of a release from a known seed",
        partial(parts.draws_of, POPULARITY),
        broken(exact_total, "Noise", parts._NoiseOfASeed),
    ),
    Mutant(
        "noise of a release × 0.97",
        partial(parts.draws_of, POPULARITY),
        broken(exact_total._Code, "deviation", property(parts._quieter)),
    ),
    *(
        Mutant(name, _of_strict(FederatedPopularity(privacy=kind(1.5, scale=SCALE))))
        for name, kind in {
            "a group's bound swapped with another's": parts.SwapsBounds,
            "a group derived from activity": parts.GroupsByActivity,
        }.items()
    ),
    Mutant(
        "a sum that does not enforce its bound",
        partial(parts.liars_of, popularity(parts.Trusting(1.0, 1.5))),
    ),
    Mutant(
        "a sum that lets through what is no number",
        partial(parts.liars_of, popularity(parts.TrustsNumbers(1.0, 1.5))),
    ),
    Mutant(
        "an exact sum that does not enforce its bound",
        partial(parts.liars_of, POPULARITY),
        parts._unbounded_release,
    ),
    Mutant(
        "an exact sum added up in single precision",
        partial(parts.liars_of, POPULARITY),
        broken(exact_total, "_whole_sum", parts._single_sum),
    ),
    *(
        Mutant(name, partial(parts.whole_of, Gram(**parts.GRAM), plan=plan), how)
        for name, plan, how in (
            (
                "a limit 1 % too large",
                PLAN,
                parts._another_limit(1.01, exact_total),
            ),
            (
                "a limit 1 % too small",
                PLAN,
                parts._another_limit(0.99, exact_total),
            ),
            ("no truncation of what passes the limit", PLAN, parts._never_truncated),
            (
                "two servers: a limit 1 % too large",
                parts.SHARED,
                parts._another_limit(1.01, exact_sum, shared_sum),
            ),
            (
                "two servers: a limit 1 % too small",
                parts.SHARED,
                parts._another_limit(0.99, exact_sum, shared_sum),
            ),
            (
                "two servers: no truncation of what passes the limit",
                parts.SHARED,
                broken(shared_sum, "encode", parts._to_nearest),
            ),
        )
    ),
    Mutant(
        "an enforced limit 1 % beyond that of the noise",
        partial(parts.whole_of, POPULARITY),
        broken(exact_total._Code, "_is_long", parts._long_by_a_hundredth),
    ),
    Mutant(
        "noise of a limit 1 % too small",
        partial(parts.whole_of, POPULARITY),
        broken(
            exact_total._Code, "deviation", property(parts._noise_of_a_smaller_limit)
        ),
    ),
    Mutant(
        "a stream that restarts at each draw call",
        partial(parts.whole_of, Gram(**parts.LOADED)),
        broken(exact_sum.Noise, "draw", parts._from_the_first_block),
    ),
    Mutant(
        "half the deviation inside the draws",
        partial(parts.whole_of, POPULARITY),
        broken(exact_sum.Noise, "draw", parts._half_as_far),
    ),
    Mutant(
        "two servers: half the deviation inside the draws",
        partial(parts.whole_of, POPULARITY, plan=parts.SHARED),
        broken(exact_sum.Noise, "draw", parts._half_as_far),
    ),
    Mutant(
        "the type of a sum tells whether anybody spoke",
        partial(parts.bytes_of, POPULARITY),
        broken(channels, "_bounded_sum", parts._narrow_if_somebody),
    ),
    Mutant(
        "no noise where nobody took part",
        partial(parts.bytes_of, popularity(parts.SilentForNobody(1.0, 1.5))),
    ),
    Mutant(
        "floating-point sums in a release",
        partial(parts.bytes_of, POPULARITY),
        broken(channels, "summed", parts._floating_release),
    ),
    Mutant(
        "Gram's popularity direction from bare counts",
        partial(parts.replay_of, parts.BareDirection(**parts.GRAM)),
    ),
    Mutant(
        "Gram's tastes from bare relations",
        partial(parts.replay_of, parts.BareTastes(**parts.LOADED)),
    ),
    Mutant(
        "PrivateRec's effects from bare clicks",
        partial(
            parts.replay_of, parts.BareEffects(**NEWS, privacy=CentralGaussian(1.5))
        ),
    ),
    Mutant(
        "PrivateRec's gradients without a clip",
        _sums(PrivateRec(**GRADIENTS, privacy=Broken(broken=Unclipped(1.5, 1.5)))),
    ),
    Mutant(
        "a server that keeps sums from before the noise",
        partial(
            parts.replay_of, parts.ReadsBeforeTheNoise(privacy=CentralGaussian(1.5))
        ),
    ),
    Mutant(
        "an object that remembers who came",
        partial(parts.replay_of, parts.RemembersWhoCame(privacy=CentralGaussian(1.5))),
    ),
    Mutant(
        "a report that depends on who else is asked",
        partial(parts.alone_of, parts.LooksAtTheCohort(privacy=CentralGaussian(1.5))),
    ),
    Mutant(
        "a runtime that never tells the relay its minimum",
        partial(parts.relay_of, parts.LOCAL),
        broken(SumMethod, "context", parts._context_without_minimum),
    ),
    Mutant(
        "shuffling claimed over every channel",
        partial(parts.books_of, parts.LOCAL),
        broken(Plan, "is_mixed", True),
    ),
    Mutant(
        "more contributors claimed than promised",
        partial(parts.books_of, FederatedPopularity(privacy=parts.CountsACrowd(1.0))),
    ),
    Mutant(
        "a trusted sum claimed over direct",
        partial(
            parts.books_of,
            FederatedPopularity(privacy=parts.TrustsTheServer(1.5)),
            plan=parts.DIRECT,
        ),
    ),
    Mutant(
        "sampling claimed against the server",
        partial(
            parts.books_of,
            FederatedPopularity(privacy=parts.SamplesAgainstTheServer(1.5)),
            plan=parts.POISSON,
        ),
    ),
    *(
        Mutant(name, partial(parts.cohorts_of, POPULARITY, plan=_sampled(sampler)))
        for name, sampler in {
            "a fixed number drawn under a Poisson event": parts.FixedUnderCoins(0.1),
            "neighbours who share a coin": parts.SharedCoins(0.1),
            "coins kept for two rounds": parts.KeptCoins(0.1),
            "a rate 1.2 times that of the event": parts.HigherRate(0.12),
            "asked again after the only round": parts.OnceAndAgain(),
        }.items()
    ),
    Mutant(
        "a runtime that draws a fixed number",
        partial(parts.cohorts_of, POPULARITY),
        broken(rounds, "_cohort", parts._fixed_cohort),
    ),
    Mutant(
        "a release left out of the total",
        partial(parts.books_of, Gram(**parts.GRAM)),
        broken(_Figures, "lines", parts._without_the_last),
    ),
    Mutant(
        "a release left out of the ledger",
        partial(parts.books_of, POPULARITY),
        broken(ledger, "Terms", parts._terms_without_the_last),
    ),
    Mutant(
        "a ledger that forgets a round",
        partial(parts.books_of, POPULARITY),
        broken(ledger, "counted", parts._one_less),
    ),
    Mutant(
        "optimistic loss distributions",
        partial(parts.books_of, POPULARITY, plan=parts.POISSON),
        broken(profiles, "poisson_loss", parts._optimistic),
    ),
    Mutant(
        "losses of shuffled reports rounded down",
        partial(parts.books_of, parts.LOCAL, plan=parts.MIXED),
        broken(Lattice, "rounded", parts._rounded_down),
    ),
    Mutant(
        "delta × 10 in one view",
        partial(parts.books_of, POPULARITY),
        broken(_Figures, "_line", parts._ten_deltas(says=True)),
    ),
    Mutant(
        "delta × 10 in one view, unsaid",
        partial(parts.books_of, POPULARITY),
        broken(_Figures, "_line", parts._ten_deltas(says=False)),
    ),
    *(
        Mutant(f"two servers: {name}", partial(parts.shared_of, POPULARITY), how)
        for name, how in {
            "noise of both × 0.95": broken(
                shared_sum, "published", parts._published_quietly
            ),
            "no noise of the helper": broken(
                shared_sum, "_noisy", parts._helper_without_noise
            ),
            "one seed for both": broken(shared_sum, "_noisy", parts._one_seed_for_both),
            "one seed for all rounds": broken(
                shared_sum, "_noisy", parts._one_seed_for_all_rounds
            ),
            "a helper that adds up one victim": broken(
                shared_sum, "_noisy", parts._helper_of_one_victim
            ),
            "noise for as many as reported": parts._noise_by_report,
            "a round of one victim is closed": broken(
                SumMethod, "context", parts._context_without_minimum
            ),
            "a seed that everybody knows": broken(
                shared_sum, "stream", parts._no_halves
            ),
        }.items()
    ),
    Mutant(
        "two servers: noise of both claimed against one",
        partial(
            parts.shared_of,
            FederatedPopularity(privacy=parts.SamplesAgainstTheServer(1.5)),
        ),
    ),
    *(
        Mutant(f"masks: {name}", partial(parts.masks_of, POPULARITY), how)
        for name, how in {
            "shares × 0.97": broken(
                masked_sum.MaskedReports, "noise", parts._shares_of_fewer
            ),
            "noise of a single survivor": broken(
                masked_sum.MaskedReports, "noise", parts._server_noise
            ),
            "noise of everyone claimed": broken(
                guarantees, "share_that_hides", lambda plan: 1.0
            ),
            "any number of answers": broken(
                pairwise_masks.MaskingClient, "_take", parts._any_step
            ),
            "both shares handed out": broken(
                pairwise_masks.MaskingClient, "unmask", parts._both_shares
            ),
            "a modulus too small for the sum": broken(
                masked_sum, "step_size", parts._steps_for_one
            ),
            "too few survivors are unmasked": broken(
                channels.MaskedSum, "carry", parts._never_too_few
            ),
        }.items()
    ),
)

BY_TESTS = {  # variants that a test of its own catches; the audit need not see them
    "a kernel or its twin in numpy, chosen by the size of the cohort": (
        "tests/methods/test_others_do_not_matter.py::"
        "test_removing_one_leaves_the_others_as_they_are"
    ),
    "a method whose types tell who took part": (
        "tests/methods/test_types_of_totals.py::"
        "test_nobody_one_and_all_give_the_same_types"
    ),
    "float32 sums of neighbours that lie two clips apart": (
        "tests/transport/test_exact_total.py::"
        "test_neighbours_whose_float32_sums_lie_more_than_a_clip_apart"
    ),
    "low bits that tell an empty coordinate from one that somebody has": (
        "tests/transport/test_exact_total.py::"
        "test_low_bits_do_not_tell_whether_anybody_has_an_item"
    ),
    "a release whose rounds share a secret": (
        "tests/runtime/test_secrets.py::"
        "test_every_round_has_a_secret_of_its_own_and_the_last_state_none"
    ),
    "a history that moves another client's report in a release": (
        "tests/runtime/test_secrets.py::test_nobodys_history_moves_anothers_report"
    ),
    "a relay whose order tells the senders": (
        "tests/transport/test_channels.py::test_the_order_says_nothing"
    ),
    "a tail of the noise that ends": (
        "tests/mechanisms/test_true_normal.py::test_quantiles_of_logarithms_however_far"
    ),
    "a cohort of fixed size that favours some": (
        "tests/test_sampling.py::test_a_fixed_size_gives_every_subset_equally_often"
    ),
    "a group that follows from events at enrolment": (
        "tests/experiment/test_assemble.py::test_no_group_follows_from_events"
    ),
    "PrivateRec's clicks at their whole length": (
        "tests/methods/test_privaterec.py::"
        "test_clicks_have_length_one_before_anything_clips_them"
    ),
    "a client that puts its messages into another order at each try": (
        "tests/service/relay/test_end_to_end.py::"
        "test_a_client_whose_answers_are_lost_is_counted_once"
    ),
    "a client that reports once and takes no round of its own": (
        "tests/service/relay/test_end_to_end.py::"
        "test_clients_that_report_once_take_rounds_of_their_own"
    ),
    "a paper's figure counted as if it were proven": (
        "tests/test_release.py::test_only_what_is_proven_is_counted"
    ),
}
