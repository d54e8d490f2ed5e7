"""The bytes that a server sees: their types, their grid, and noise where nobody spoke.

The same run is played with nobody, with one user and with everyone, as a simulation
and as a release. Names, order, types, shapes and lengths of the totals, of what the
server keeps and of its broadcasts must agree. In a release every number lies on one
grid of powers of two, whoever took part: there are no low bits that could tell. The low
bits of a simulation's floating-point noise are not covered, and nothing is claimed.

An honest method fails the noise of nobody with probability 1e-7, the rest never. The
noise of a release is the operating system's, also here: no key repeats it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float64

from tacit.audits.canaries import Only
from tacit.audits.checks import Check
from tacit.audits.lower_bounds import variance_interval
from tacit.audits.lying_reports import EXACT, FLOATING, contexts, is_exact
from tacit.audits.small_world import in_one_group, small_data
from tacit.keys import Key
from tacit.method import Method, Server
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.transport.channels import Carrier, Delivery, RoundContext, SecureSum, Sum
from tacit.transport.codec import encode_broadcast
from tacit.transport.messages import Reports
from tacit.tree import Array, Arrays
from tacit.tree.symmetric import diagonal

ALARM = 1e-7
_FEW, _USERS = 20, 12  # items and users, where any number does
_PRESENT = {"nobody": 0, "one": 1, "everyone": _USERS}
_FINEST = 26  # bits: 2¹⁶ steps per bound, 2²⁴ and a few for products of factors
_ROUNDED_UP = 1.0201  # the variance on the exact path, whose noise is up to 1 % more


def check_delivered(method: Method, plan: Plan, *, key: Key) -> Iterator[Check]:
    """Checks that a delivery looks alike for nobody, for one and for everyone."""
    has_release = all(is_exact(one) for one in contexts(method, plan, key.at("kinds")))
    for path in (FLOATING, *([EXACT] if has_release else [])):
        seen = {who: _seen(method, plan, key, path, n) for who, n in _PRESENT.items()}
        yield _check_kinds(path, seen)
        if path == EXACT:
            yield _check_grid(seen)
        yield _check_nobody(path, seen["nobody"])


@dataclass(frozen=True, eq=False)
class _Seen:
    """Everything that a server saw in one run."""

    kinds: list[object]
    tap: _Tap


@dataclass
class _Tap:
    """A channel that keeps what it delivered, and what each round had agreed on."""

    channel: Carrier = field(default_factory=SecureSum)
    rounds: list[tuple[RoundContext, Arrays]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.channel.name

    @property
    def delivers(self) -> type[Delivery]:
        return self.channel.delivers

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        delivery = self.channel.carry(chunks, context)
        assert isinstance(delivery, Sum)
        self.rounds.append((context, delivery.total))
        return delivery


def _seen(method: Method, plan: Plan, key: Key, path: str, present: int) -> _Seen:
    plan = replace(in_one_group(plan, _USERS), channel="secure_sum")
    data, tap = small_data(_FEW).repeated(_USERS), _Tap()
    code = int(np.argmax([*plan.groups.values()]))  # the one group that has members
    simulation = Simulation(
        method,
        plan,
        data.catalog,
        data.profiles,
        data.shards,
        key.at("run"),
        groups=np.full(_USERS, code, np.int64),
        ledger=Only(np.arange(_USERS) < present),
        channel=tap,
        is_release=path == EXACT,
    )
    servers = [state.server for state, _ in simulation.run(simulation.start())]
    kinds: list[object] = [_kinds(total) for _, total in tap.rounds]
    kinds += [_told(method, server) for server in servers]
    return _Seen(kinds, tap)


def _told(method: Method, server: Server) -> object:
    length = len(encode_broadcast(method.broadcast(server)))
    return _kinds(server.weights), _kinds(server.memory), length


def _kinds(arrays: Arrays) -> object:
    return [(n, str(np.asarray(v).dtype), np.shape(v)) for n, v in arrays.items()]


def _check_kinds(path: str, seen: dict[str, _Seen]) -> Check:
    nobody = seen["nobody"].kinds
    differing = [
        f"{one} and {other} of {who}"
        for who, run in seen.items()
        for one, other in zip(nobody, run.kinds, strict=True)
        if one != other
    ]
    return Check.at_most(
        f"types and lengths that tell who took part, {path} sum",
        float(len(differing)),
        claimed=0.0,
        slack=0.0,
        detail=f"{nobody and differing[0]}"
        if differing
        else "names, order, types, shapes and bytes with nobody, one and everyone",
    )


def _check_grid(seen: dict[str, _Seen]) -> Check:
    off = {
        who: sum(_off_grid(*round_) for round_ in run.tap.rounds)
        for who, run in seen.items()
    }
    return Check.at_most(
        "numbers of a release with low bits",
        float(sum(off.values())),
        claimed=0.0,
        slack=0.0,
        detail=f"off a grid of 2^{_FINEST} steps per bound: "
        + ", ".join(f"{n} with {who}" for who, n in off.items()),
    )


def _off_grid(context: RoundContext, total: Arrays) -> int:
    """The count of numbers that lie between the steps of any exact sum."""
    assert context.mechanism is not None
    off = 0
    for part in context.mechanism.bounded([*total]):  # type: ignore[attr-defined]
        # A power of two: multiplying by it is exact in floating point.
        steps = 2.0 ** (_FINEST - math.floor(math.log2(part.bound)))
        for name in part.leaves:
            values = _pairs(total[name], context.layout.slots[name].side) * steps
            off += int((values != np.rint(values)).sum())
    return off


def _pairs(total: Array, side: int | None) -> Array:
    """Without the diagonal of a half, which is scaled by an irrational number."""
    if side is None:
        return total
    is_pair = np.ones(total.shape[-1], bool)
    is_pair[diagonal(side)] = False
    return total[..., is_pair]


def _check_nobody(path: str, nobody: _Seen) -> Check:
    noise = np.concatenate([_in_noise(*round_) for round_ in nobody.tap.rounds])
    low, high = variance_interval(len(noise), alarm=ALARM)
    high *= _ROUNDED_UP if path == EXACT else 1.0
    measured = float((noise**2).mean())
    return Check(
        f"noise variance where nobody took part, {path} sum",
        1.0,
        measured,
        low <= measured <= high,
        f"{len(noise)} draws; chi-square allows {low:.4f} to {high:.4f}, false alarm "
        f"{ALARM:g}",
        ALARM,
    )


def _in_noise(context: RoundContext, total: Arrays) -> Float64[np.ndarray, "n"]:
    assert context.mechanism is not None
    scales = {name: context.mechanism.scale(name) for name in total}
    parts = [np.ravel(total[name]) / scale for name, scale in scales.items()]
    return np.concatenate(parts).astype(np.float64)
