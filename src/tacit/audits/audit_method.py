"""All that a method claims about one public group, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from tacit.audits.canary_run import CANARIES, ROUNDS, Tick
from tacit.audits.checks import Audit, Check, Estimate
from tacit.audits.claims import Claims, read_claims
from tacit.audits.cross_checks import check_books
from tacit.audits.delivered_bytes import check_delivered
from tacit.audits.local_reports import check_local_reports
from tacit.audits.lying_reports import check_liars
from tacit.audits.masked_clients import check_masks
from tacit.audits.noise_draws import check_draws
from tacit.audits.noisy_sums import check_sums, is_bare
from tacit.audits.one_shot import one_shot
from tacit.audits.report_isolation import check_alone
from tacit.audits.sampled_cohorts import check_cohorts
from tacit.audits.server_replay import check_replay
from tacit.audits.shuffler_minimum import check_closing, check_minimum
from tacit.audits.small_world import small_data
from tacit.audits.two_aggregators import check_aggregators
from tacit.audits.whole_numbers import check_whole
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.release import EVERYONE
from tacit.sampling import Everyone
from tacit.transport.channels import channel

DELTA = 1e-6  # where the plan has none
TICKS = 2 * ROUNDS + 6  # steps of a progress bar that one audit takes at the most

Ask = Callable[[Key], Iterable[Check]]


def audit(
    method: Method,
    plan: Plan,
    *,
    key: Key,
    group: str = EVERYONE,
    subject: str = "",
    tick: Tick = lambda: None,
) -> Audit:
    """Hold what a method claims against what it does.

    The method has its noise already. Only delta and the public groups of `plan` count:
    the audit plays rounds of its own, on invented data, in which everyone is asked.
    """
    method = method.for_catalog(small_data(20).catalog)
    plan = playable(method, plan)
    own = _own_plan(method, plan, group)
    claims = read_claims(method, own, group=group)
    subject = subject or type(method).__name__
    stage = _Stage(method, plan, own, claims, key, group, tick)
    if claims.mu is not None:
        return Audit(subject, (*stage.sums(),), (*stage.watched(),), claims.others)
    if claims.report_epsilon is None and claims.report_mu is None:
        return Audit(subject, (), not_audited=claims.others)
    return Audit(subject, (*stage.reports(),), not_audited=claims.others)


@dataclass(frozen=True)
class _Stage:
    """A method about to be audited: under its own plan, and under the audit's."""

    method: Method
    plan: Plan
    own: Plan  # of the audit: everyone is asked, on invented data
    claims: Claims
    key: Key
    group: str
    tick: Tick

    def sums(self) -> Iterator[Check]:
        """Every check of noise on sums."""
        assert self.claims.mu is not None
        mu, own, method = self.claims.mu, self.own, self.method
        ask = partial(check_sums, method, own, mu=mu, delta=self._delta)
        yield from self._asked(
            lambda key: ask(key=key, group=self.group, tick=self.tick), "sums"
        )
        if is_bare(method, own):  # the check above has failed: nothing else to draw
            return
        for name, check in _OF_SUMS.items():
            yield from self._asked(partial(_with_key, check, method, own), name)
            self.tick()
        if own.noise_shares > 1:
            yield from self._asked(
                lambda key: check_aggregators(method, own, key=key), "aggregators"
            )
            yield check_closing(method, own, key=self.key.at("closing"))
        if self.plan.is_masked:
            yield from self._asked(
                lambda key: check_masks(method, own, key=key), "masks"
            )
        yield from self._of_all()

    def reports(self) -> Iterator[Check]:
        """Every check of reports that clients protect themselves."""
        method, own, claims = self.method, self.own, self.claims
        # As in earlier versions, the first draws are those of the key itself.
        ask = partial(check_local_reports, method, own, claims, tick=self.tick)
        yield from confirmed(lambda key: ask(key=key), self.key)
        yield from check_minimum(method, own, key=self.key.at("minimum"))
        yield from self._of_all()

    def watched(self) -> Iterator[Estimate]:
        """Estimates to watch a run by, which are printed and refute nothing."""
        # Nothing is claimed of a consenting group, so that nothing can be watched.
        if is_bare(self.method, self.own) or self.group in self.plan.consenting:
            return
        assert self.claims.mu is not None
        yield one_shot(
            self.method,
            self.own,
            mu=self.claims.mu,
            delta=self._delta,
            key=self.key.at("one shot"),
            group=self.group,
            tick=self.tick,
        )

    def _of_all(self) -> Iterator[Check]:
        """The checks that sums and local reports have in common."""
        method, plan, group = self.method, self.plan, self.group
        seen = _unmasked(plan)
        yield check_replay(method, self.own, key=self.key.at("replay"))
        yield check_alone(method, self.own, key=self.key.at("alone"))
        yield from self._asked(
            lambda key: check_cohorts(method, seen, group=group, key=key), "cohorts"
        )
        yield from check_books(method, plan, group=group)
        self.tick()

    def _asked(self, ask: Ask, name: str) -> list[Check]:
        return confirmed(ask, self.key.at(name))

    @property
    def _delta(self) -> float:
        return self.plan.delta or DELTA


_OF_SUMS: dict[str, Callable[..., Iterable[Check]]] = {
    "draws": check_draws,
    "liars": check_liars,
    "delivered": check_delivered,
    "whole": check_whole,
}


def _with_key(
    check: Callable[..., Iterable[Check]], method: Method, plan: Plan, key: Key
) -> Iterable[Check]:
    return check(method, plan, key=key)


def confirmed(ask: Ask, key: Key) -> list[Check]:
    """The checks; one that chance may fail has failed if it fails with fresh draws too.

    An honest method then fails with the square of the chance that the check states.
    """
    first = [*ask(key)]
    if all(check.ok or not check.alarm for check in first):
        return first
    again = {check.name: check for check in ask(key.at("again"))}
    return [
        one if one.ok or not one.alarm else _second(one, again[one.name])
        for one in first
    ]


def _second(first: Check, again: Check) -> Check:
    found = f"{again.detail}; asked again, since {first.measured:.6g} did not hold"
    return replace(again, detail=found)


def groups_of(method: Method, plan: Plan) -> list[str]:
    """The public groups whose claims differ: the plan's, if a release names one."""
    named = {release.group for release in method.releases(plan)}
    return [EVERYONE] if named <= {EVERYONE} else [*plan.groups]


def playable(method: Method, plan: Plan) -> Plan:
    """The plan itself; over `direct` if the method cannot read its channel."""
    delivers = channel(plan.channel).delivers
    if all(delivers in reader.accepts for reader in method.aggregators(plan)):
        return plan
    return replace(plan, channel="direct")


def _unmasked(plan: Plan) -> Plan:
    """The plan over a trusted sum, if its own sums are masked."""
    return replace(plan, channel="secure_sum") if plan.is_masked else plan


def _own_plan(method: Method, plan: Plan, group: str) -> Plan:
    """Some rounds in which everyone is asked; as many as `plan` if others are refused.

    Over the plan's channel; where that delivers no sum, canaries are looked at in one,
    and where it masks, in a trusted one: what masks change is in `masked_clients`.
    """
    others = () if group == EVERYONE else plan.groups
    own = Plan(
        CANARIES,
        ROUNDS,
        Everyone(),
        channel=_unmasked(plan).channel,
        delta=plan.delta,
        groups={other: CANARIES * (other == group) for other in others},
    )
    try:
        method.releases(own)
    except (BadValue, Refused):  # such as noise that is calibrated to its rounds
        return replace(own, rounds=plan.rounds)
    return own
