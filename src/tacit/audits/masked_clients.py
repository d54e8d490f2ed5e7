"""Sums under masks: what hides one client, and what a server is refused.

A crowd of 20 clients is planned, of whom 18 survive at the least and one sides with the
server. For each kind of round of the plan:

    report    no report in whole steps, however it was made, is longer than the limit
    noise     the shares of the 17 honest survivors have the variance of the account
    law       which is normal to a Kolmogorov-Smirnov test, for thousands of steps
    account   events claim no more noise than the objects that state it, in all rounds
    room      reports and twelve deviations of the noise stay below 2³¹
    minimum   nothing is unmasked of 17 clients
    protocol  real masks give the sum of the whole numbers, with a client that drops out
    answers   no client answers twice, so that none hands out both shares of another

An honest channel fails one of these checks once in about 900; an audit asks again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from tacit.audits.canaries import probes
from tacit.audits.checks import Check
from tacit.audits.lower_bounds import ALARM, normal_p_value, variance_interval
from tacit.audits.lying_reports import contexts
from tacit.audits.small_world import in_one_group, small_data
from tacit.errors import Refused
from tacit.exact_sum import squares
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.release import Unit, View
from tacit.transport.channels import MaskedSum, RoundContext, masked_reports
from tacit.transport.masked_sum import MaskedReports
from tacit.transport.messages import Layout, Reports, Slot, zeros
from tacit.transport.neighbor_graph import GraphSize, NeighborGraph
from tacit.transport.pairwise_masks import (
    MaskedRound,
    MaskingClient,
    UnmaskingServer,
)
from tacit.transport.shared_sum import modulo, signed

_CLIENTS, _SURVIVORS, _COLLUDERS = 20, 18, 1
_HONEST = _SURVIVORS - _COLLUDERS
_NUMBERS = 2**15  # of a leaf, so that noise of 0.97 of its deviation is seen
_LEAST_P = 1e-4  # of a Kolmogorov-Smirnov test; its chance of a false alarm
_ROUNDING = 1e-4  # relative: σ in whole steps
_SAME = 1e-9  # what rounding may change, relatively

Draws = Float64[np.ndarray, "draws"]


def check_masks(method: Method, plan: Plan, *, key: Key) -> Iterator[Check]:
    """Every check of clients that add up under masks."""
    crowd = replace(
        in_one_group(plan, _CLIENTS),
        channel=MaskedSum.name,
        min_contributors=_SURVIVORS,
        assumed_sybils=_COLLUDERS,
    )
    views = [
        _View.of(_of_crowd(context), key.at("view", number))
        for number, context in enumerate(contexts(method, crowd, key.at("kinds")))
    ]
    yield _check_reports(views)
    yield _check_variance(views)
    yield _check_law(views)
    yield _check_account(method, crowd)
    yield _check_room(views)
    yield _check_minimum(views)
    rounds = [_Protocol(view.context, key.at("protocol")) for view in views[:1]]
    yield _check_protocol(rounds)
    yield _check_answers(rounds)


def _of_crowd(context: RoundContext) -> RoundContext:
    return replace(
        context,
        min_contributors=_SURVIVORS,
        planned=_CLIENTS,
        most_reports=_CLIENTS,
    )


@dataclass(frozen=True, eq=False)
class _View:
    """A kind of round, and the shares that hide one client in it."""

    context: RoundContext
    largest: float  # the longest report in whole steps over its limit
    noise: Draws  # of the honest survivors, in units of the account's deviation
    room: float  # of sums and noise, over what can be read

    @classmethod
    def of(cls, context: RoundContext, key: Key) -> _View:
        mechanism: Any = context.mechanism
        slots = {name: Slot("float64", (_NUMBERS,)) for name in context.layout.slots}
        masked = masked_reports(replace(context, layout=Layout(slots)))
        sizes = dict.fromkeys(slots, mechanism.sensitivity)
        with np.errstate(all="ignore"):  # some are not finite
            reports = masked.encoded(probes(zeros(slots, 1), sizes, key.at("probes")))
        drawn = masked.noise(key.at("noise"), _HONEST).astype(np.float64)
        lengths, units, room, start = [0.0], [], [0.0], 0
        bounds = mechanism.bounded([*slots])
        for (_, part), bounded in zip(masked.parts, bounds, strict=True):
            columns = slice(start, start + part.size)
            lengths.append(float(squares(reports[:, columns]).max()) / part.limit)
            # The account: z over the bound in whole steps, of the honest ones alone.
            z = bounded.deviation / bounded.bound * math.sqrt(_HONEST / _CLIENTS)
            units.append(drawn[columns] / (z * math.sqrt(part.limit)))
            most = _CLIENTS * math.sqrt(part.limit) + 12 * part.sigma
            room.append(most / 2**31)
            start += part.size
        return cls(context, max(lengths), np.concatenate(units), max(room))


def _check_reports(views: list[_View]) -> Check:
    return Check.at_most(
        "squared norm of a masked report over its limit",
        max(view.largest for view in views),
        claimed=1.0,
        slack=0.0,
        detail=f"probes of {_NUMBERS:,} numbers a leaf, from small to not finite",
    )


def _check_variance(views: list[_View]) -> Check:
    variances = [float((view.noise**2).mean()) for view in views]
    intervals = [
        variance_interval(v.noise.size, alarm=ALARM / len(views)) for v in views
    ]
    return Check(
        "noise variance of the honest survivors over the claimed one",
        1.0,
        max(variances, key=lambda variance: abs(variance - 1)),
        all(
            low - _ROUNDING <= variance <= high + _ROUNDING
            for variance, (low, high) in zip(variances, intervals, strict=True)
        ),
        f"{_HONEST} of {_CLIENTS} shares, {len(views)} kinds of rounds; chi-square, "
        f"false alarm {ALARM:g}",
        ALARM,
    )


def _check_law(views: list[_View]) -> Check:
    chances = [normal_p_value(view.noise) for view in views]
    least = _LEAST_P / len(chances)
    return Check(
        "p-value of normal noise of the honest survivors, at least",
        least,
        min(chances),
        min(chances) > least,
        "Kolmogorov-Smirnov; Skellam noise of thousands of steps is normal to it, "
        f"false alarm {_LEAST_P:g}",
        _LEAST_P,
    )


def _check_account(method: Method, plan: Plan) -> Check:
    """The events promise no more than the objects that state the noise."""
    stated, claimed = 0.0, 0.0
    for context in _every_round(method, plan):
        mechanism: Any = context.mechanism
        stated += mechanism.event.noise_multiplier**-2 * _CLIENTS / _HONEST
    for release in method.releases(plan):
        for event, count in _flat(release.cells[Unit.USER, View.SERVER].event):
            claimed += count * event.l2**2 / event.variance
    return Check.at_most(
        "mu of the honest survivors' shares",
        math.sqrt(stated),
        claimed=math.sqrt(claimed),
        slack=_SAME,
        detail="claimed: the events of the account, server's view; measured: the "
        "objects that state the noise, all rounds",
    )


def _every_round(method: Method, plan: Plan) -> Iterator[RoundContext]:
    key, channel = Key.from_seed(4), MaskedSum()
    server = method.start(plan, small_data(_CLIENTS).catalog, key.at("start"))
    while not method.is_over(server):
        context = method.context(server, method.broadcast(server), key.at(server.round))
        yield context
        nothing = [Reports(zeros(context.layout.slots, _CLIENTS))]
        server = method.aggregate(server, channel.carry(nothing, context), context)


def _flat(event: Any) -> Iterable[tuple[Any, int]]:
    is_repeated = hasattr(event, "count")
    return [(event.event, event.count)] if is_repeated else [(event, 1)]


def _check_room(views: list[_View]) -> Check:
    return Check.at_most(
        "largest masked sum over what can be read",
        max(view.room for view in views),
        claimed=1.0,
        slack=0.0,
        detail="all planned reports at their limit, and twelve deviations of noise",
    )


def _check_minimum(views: list[_View]) -> Check:
    return Check.at_most(
        "rounds unmasked with too few survivors",
        float(sum(_is_unmasked(view.context) for view in views)),
        claimed=0.0,
        slack=0.0,
        detail=f"{_SURVIVORS - 1} clients where {_SURVIVORS} are promised",
    )


def _is_unmasked(context: RoundContext) -> bool:
    few = Reports(zeros(context.layout.slots, _SURVIVORS - 1))
    try:
        MaskedSum().carry([few], context)
    except Refused:
        return False
    return True


class _Protocol:
    """Real masks over the whole numbers of one round; the last client drops out."""

    def __init__(self, context: RoundContext, key: Key) -> None:
        masked: MaskedReports = masked_reports(context)
        size = GraphSize.least(_CLIENTS, survivors=_SURVIVORS, colluders=_COLLUDERS)
        graph = NeighborGraph.drawn(size, key.at("graph"))
        agreed = MaskedRound(graph, _SURVIVORS, masked.size, bytes(16))
        self.clients = [MaskingClient(i, agreed, key.at(i)) for i in range(_CLIENTS)]
        noise = [masked.noise(key.at("noise", i), 1) for i in range(_CLIENTS)]
        self.whole: Int64[np.ndarray, "clients numbers"] = np.stack(noise)
        adverts = {client.number: client.advertise() for client in self.clients}
        sealed = [client.share(adverts) for client in self.clients]
        self.server = UnmaskingServer(agreed, adverts, np.ones(_CLIENTS, bool))
        for i, client in enumerate(self.clients):
            envelopes = {int(j): sealed[int(j)][i] for j in client.neighbors}
            masked_numbers = client.mask(modulo(self.whole[i]), envelopes)
            if i < _CLIENTS - 1:
                self.server.add(i, masked_numbers)

    def difference(self) -> float:
        """The largest number by which the unmasked sum is not that of the survivors."""
        alive = self.server.survivors()
        replies = {i: self.clients[i].unmask(alive) for i in range(_CLIENTS - 1)}
        unmasked = signed(self.server.unmasked(replies))
        return float(np.abs(unmasked - self.whole[:-1].sum(axis=0)).max())

    def second_answers(self) -> float:
        """How many clients answer again, with one who was alive said to be gone."""
        lie = self.server.survivors()
        lie[0] = False
        return float(sum(_answers(client, lie) for client in self.clients[1:-1]))


def _answers(client: MaskingClient, alive: Any) -> bool:
    try:
        client.unmask(alive)
    except Refused:
        return False
    return True


def _check_protocol(rounds: list[_Protocol]) -> Check:
    return Check.at_most(
        "difference between masked and trusted sums",
        max(protocol.difference() for protocol in rounds),
        claimed=0.0,
        slack=0.0,
        detail=f"whole numbers of {_CLIENTS} clients through keys, shares and masks, "
        "one of them gone",
    )


def _check_answers(rounds: list[_Protocol]) -> Check:
    return Check.at_most(
        "clients that hand out both shares of another",
        max(protocol.second_answers() for protocol in rounds),
        claimed=0.0,
        slack=0.0,
        detail="asked again with another list of survivors",
    )
