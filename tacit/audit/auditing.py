"""All that a method claims about one public group, in one call."""

from __future__ import annotations

from dataclasses import replace

from tacit.audit.checks import Audit
from tacit.audit.claims import read_claims
from tacit.audit.devices import check_devices
from tacit.audit.observing import CANARIES, ROUNDS, Tick
from tacit.audit.one_shot import one_shot
from tacit.audit.sums import check_sums, is_bare
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.method import Method
from tacit.plan import Plan
from tacit.release import EVERYONE
from tacit.sampling import Everyone
from tacit.transport.channels import Sum

DELTA = 1e-6  # where the plan has none
TICKS = 2 * ROUNDS + 1  # of an audit, at the most


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

    The method has its noise already. Of `plan`, delta and the public groups count: the
    audit plays rounds of its own, in an invented place, in which everyone is asked.
    """
    method = method.for_any_catalog()
    own = _own_plan(method, plan, group)
    claims = read_claims(method, own, group=group)
    name = subject or type(method).__name__
    if claims.mu is None:
        reports = check_devices(method, own, claims, key=key, tick=tick)
        return Audit(name, tuple(reports), not_audited=claims.others)
    mu, delta = claims.mu, plan.delta or DELTA
    checks = check_sums(
        method, own, mu=mu, delta=delta, key=key.at("sums"), group=group, tick=tick
    )
    found = tuple(checks)
    if is_bare(method, own):
        return Audit(name, found, not_audited=claims.others)
    watched = one_shot(
        method, own, mu=mu, delta=delta, key=key.at("one shot"), group=group, tick=tick
    )
    return Audit(name, found, (watched,), claims.others)


def groups_of(method: Method, plan: Plan) -> list[str]:
    """The public groups whose claims differ: the plan's, if a release names one."""
    named = {release.group for release in method.releases(plan)}
    return [EVERYONE] if named <= {EVERYONE} else [*plan.groups]


def _reads_sums(method: Method, plan: Plan) -> bool:
    return all(Sum in reader.accepts for reader in method.aggregators(plan))


def _own_plan(method: Method, plan: Plan, group: str) -> Plan:
    """Some rounds in which everyone is asked; as many as `plan` if others are refused.

    Over a channel that hides reports, if the method can read a sum.
    """
    others = () if group == EVERYONE else plan.groups
    own = Plan(
        CANARIES,
        ROUNDS,
        Everyone(),
        channel="secure_sum" if _reads_sums(method, plan) else "direct",
        delta=plan.delta,
        groups={other: CANARIES * (other == group) for other in others},
    )
    try:
        method.releases(own)
    except (BadValue, Refused):
        return replace(own, rounds=plan.rounds)
    return own
