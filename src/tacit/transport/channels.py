"""How reports reach the server, and what it sees of them.

    direct       every report, with its sender                     -> Each
    shuffle      messages in random order, senders gone            -> Unlinked
    secure_sum   the sum, with the round's noise already in it     -> Sum
    two_servers  the same and how many, from two who see no report -> Sum
    masked_sum   the same from one, who sees masks; clients' noise -> Sum

`Each` is read once and lazily: a chunk of clients computes when the aggregator asks for
it, so the memory of a round is one chunk, whatever the size of the cohort.

`secure_sum` is an ideal functionality in this version: somebody trusted sums and adds
the noise, and whoever relies on it says `assumes: trusted aggregator`. `two_servers`
is the twin of two real aggregators: the same whole numbers, in one process.
`masked_sum` is the twin of the protocol in `pairwise_masks`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from tacit import check
from tacit.codes import Code
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.sum_mechanism import SumMechanism
from tacit.transport.codec import Stored, broadcast_size, wire_size
from tacit.transport.exact_total import exact_noise, exact_sum
from tacit.transport.masked_sum import MaskedReports
from tacit.transport.messages import Layout, Reports
from tacit.transport.neighbor_graph import GraphSize, bytes_of
from tacit.transport.shared_sum import SharedSum, modulo, play, sealed_size
from tacit.transport.sum_views import SumViews, bare
from tacit.tree import Array, Arrays, Dense, Tree
from tacit.wire_names import register


@dataclass(frozen=True)
class Each:
    """Every report as it was sent, in chunks stacked on the client axis; read once."""

    chunks: Iterable[Reports]


@dataclass(frozen=True)
class Unlinked:
    """Messages in random order, cut along the declared axis; senders are gone."""

    messages: Tree
    contributors: int


@dataclass(frozen=True)
class Sum:
    """The sum over the cohort, and nothing about anybody in it.

    How many contributed is known only where the account allows it: over two servers
    both aggregators count reports, and taking part is visible.
    """

    total: Arrays
    contributors: int | None = None


Delivery = Each | Unlinked | Sum


@dataclass(frozen=True)
class RoundContext:
    """What one round has agreed on, derived once, whoever computes the sum.

    The trusted sum and a server that sums by itself get the same object. Neither can
    bound reports or draw noise in a way of its own, and both draw the same noise.
    """

    layout: Layout
    key: Key
    mechanism: SumMechanism | None = None  # None: reports are summed as they are
    min_contributors: int = 1
    planned: float = 1.0  # the planned size of the cohort
    most_reports: int | None = None  # that may come; None: as many as planned
    secret: bytes | None = None  # of the noise in a release, which is summed exactly
    is_partial: bool = False  # of a release, on a machine that adds no noise

    @property
    def is_exact(self) -> bool:
        """Whether bounded reports are summed in whole numbers, as in a release."""
        return self.secret is not None or self.is_partial


class Carrier(Protocol):
    """Carries one cohort's reports to the server."""

    @property
    def name(self) -> str:
        """The name of the channel in a plan."""
        ...

    @property
    def delivers(self) -> type[Delivery]:
        """The kind of delivery that the server gets."""
        ...

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        """The delivery of what the clients say."""
        ...


class Channel(Carrier, Protocol):
    """A way to the server by its name in a plan, with all that it declares."""

    noise_shares: ClassVar[int]  # operators that add noise to a sum; 0: the server does
    masks: ClassVar[bool]  # whether clients hide reports, and add the noise themselves
    mixes: ClassVar[bool]  # whether messages lose their sender among those of others
    sums: ClassVar[SumViews]  # who sees what of a noisy sum
    third: ClassVar[str]  # with whom the server would have to collude, if there is one
    # What a release needs that one process is not, and what to do; empty: it may.
    in_one_process: ClassVar[str]


@register("direct")
@dataclass(frozen=True)
class Direct:
    """Each client speaks to the server itself: the server sees every report."""

    name: str = "direct"
    delivers: type[Delivery] = Each
    noise_shares: ClassVar[int] = 0
    masks: ClassVar[bool] = False
    mixes: ClassVar[bool] = False
    sums: ClassVar[SumViews] = bare("direct")
    third: ClassVar[str] = ""
    in_one_process: ClassVar[str] = ""

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        """Hand the reports over as they are; any noise is left to the server."""
        return Each(chunks)


@register("shuffle")
@dataclass(frozen=True)
class Shuffle:
    """A relay strips senders, cuts reports into messages, and mixes them all.

    Guarantee: the server cannot tell who sent a message, nor which belong together.
    Assumes: a relay that does not collude with the server; at least the agreed number
    of honest contributors, which is enforced here.
    """

    name: str = "shuffle"
    delivers: type[Delivery] = Unlinked
    noise_shares: ClassVar[int] = 0
    masks: ClassVar[bool] = False
    mixes: ClassVar[bool] = True
    sums: ClassVar[SumViews] = bare("shuffle")
    third: ClassVar[str] = "the relay"
    in_one_process: ClassVar[str] = (
        "two operators, and this process would be both: it would know whose report is "
        "whose; run a relay and a collector with `tacit serve`, use channel = "
        "'direct', where each report protects itself, or simulate"
    )

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        """Wait for all reports, cut them into messages, and mix these."""
        trees = [chunk.tree for chunk in chunks if len(chunk)]
        contributors = sum(len(tree) for tree in trees)
        if contributors < max(context.min_contributors, 1):
            raise Refused(
                f"{contributors} contributed and the plan promises at least "
                f"{context.min_contributors}: nothing is delivered"
            )
        messages = cut(Tree.concatenate(trees), context.layout)
        order = context.key.permutation(len(messages))
        return Unlinked(messages.select(order), contributors)


@register("secure_sum")
@dataclass(frozen=True)
class SecureSum:
    """Somebody trusted adds contributions and noise, and shows the noisy sum alone.

    Guarantee: what the server sees is a function of the sum plus the method's noise.
    Assumes: trusted aggregator.
    """

    name: str = "secure_sum"
    delivers: type[Delivery] = Sum
    noise_shares: ClassVar[int] = 1
    masks: ClassVar[bool] = False
    mixes: ClassVar[bool] = False
    sums: ClassVar[SumViews] = SumViews(
        (Code("trusted_aggregator"),),
        (Code("trusted_aggregator"),),
        "aggregator_colludes",
    )
    third: ClassVar[str] = "the aggregator"
    in_one_process: ClassVar[str] = ""

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        """Add up the reports, add the noise, forget the rest.

        Reports are bounded here as well: a client that lies moves the sum no further
        than an honest one.
        """
        return Sum(summed((chunk.tree for chunk in chunks if len(chunk)), context))


@register("two_servers")
@dataclass(frozen=True)
class TwoServers:
    """Two aggregators add up halves of reports, and each adds noise of its own.

    Guarantee: whoever sees all that one aggregator and all other clients see, and what
    is published, sees one user's report under the noise of the other aggregator. Who
    sees what is published alone sees it under the noise of both: the method's noise.
    Assumes: one of the aggregators is honest. Clients bound their own reports, for
    nobody can look into a half: a client that lies can spoil a sum.
    Source: docs/two_servers.md.
    """

    name: str = "two_servers"
    delivers: type[Delivery] = Sum
    noise_shares: ClassVar[int] = 2
    masks: ClassVar[bool] = False
    mixes: ClassVar[bool] = False
    # Of two aggregators one may collude with the server: the noise of the other stays.
    sums: ClassVar[SumViews] = SumViews(
        (Code("both_aggregators_add_noise"),),
        (Code("one_honest_aggregator"), Code("sealed_halves")),
        "aggregators_collude",
        how="each of two aggregators adds noise in whole numbers (docs/two_servers.md)",
    )
    third: ClassVar[str] = "both aggregators"
    in_one_process: ClassVar[str] = (
        "two operators, and this process would be both: it could open every report; "
        "run two aggregators with `tacit serve`, use channel = 'secure_sum', which "
        "says so, or simulate"
    )

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        """The sum of what both aggregators publish."""
        shared = shared_sum(context)
        trees = (chunk.tree for chunk in chunks if len(chunk))
        total, contributors = shared.total(trees)
        if contributors < context.min_contributors and context.min_contributors > 1:
            raise Refused(
                f"{contributors} contributed and the plan promises at least "
                f"{context.min_contributors}: no aggregator publishes anything"
            )
        both = play(total, shared, _noise_key(context))
        return Sum(shared.decoded(one.published for one in both), contributors)


@register("masked_sum")
@dataclass(frozen=True)
class MaskedSum:
    """Clients add up under masks that cancel, and add shares of the noise themselves.

    Guarantee: what the server sees is the sum of the survivors' reports and shares of
    noise. Those of the plan's fewest honest survivors are the noise of the account.
    Assumes: a server that follows the protocol, a directory of keys that it cannot
    change, and no more colluding clients than the plan says. Clients bound their own
    reports. Simulation only: numpy draws the Poissons of the noise.
    Source: docs/adding-a-channel.md.
    """

    name: str = "masked_sum"
    delivers: type[Delivery] = Sum
    noise_shares: ClassVar[int] = 0
    masks: ClassVar[bool] = True
    mixes: ClassVar[bool] = False
    sums: ClassVar[SumViews] = SumViews(
        (Code("honest_but_curious_server"), Code("pki")),
        (Code("honest_but_curious_server"), Code("pki")),
        "keys_forged",
        how="clients add it in shares, to whole numbers (Agarwal, Kairouz and Liu "
        "2021; docs/adding-a-channel.md)",
    )
    third: ClassVar[str] = "the directory of keys"
    in_one_process: ClassVar[str] = (
        "clients that mask their own reports, and this process would be all of them, "
        "with noise that is for simulation: use channel = 'two_servers', or "
        "'secure_sum', which says what is trusted, or simulate"
    )

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        """The unmasked sum, if enough clients survive."""
        if context.is_exact:
            raise Refused(
                "a masked sum is simulated on one machine, and nothing is released "
                "over it; use channel = 'secure_sum' or 'two_servers'"
            )
        masked = masked_reports(context)
        total, survivors = masked.total(c.tree for c in chunks if len(c))
        if survivors < context.min_contributors:
            raise Refused(
                f"{survivors} survived and the plan promises at least "
                f"{context.min_contributors}: their noise would be too little, and "
                "nothing is unmasked"
            )
        noise = modulo(masked.noise(context.key, survivors))
        return Sum(masked.decoded(total + noise), survivors)


def masked_reports(context: RoundContext) -> MaskedReports:
    """The whole numbers of a round under masks; refuses what has none."""
    most_reports = context.most_reports or math.ceil(context.planned)
    return MaskedReports.of(
        context.mechanism,
        context.layout,
        planned=context.planned,
        most_reports=most_reports,
    )


def shared_sum(context: RoundContext) -> SharedSum:
    """The whole numbers of a round over two servers; refuses what has none."""
    most_reports = context.most_reports or math.ceil(context.planned)
    return SharedSum.of(context.mechanism, context.layout, most_reports=most_reports)


def _noise_key(context: RoundContext) -> Key:
    return context.key if context.secret is None else Key.from_secret(context.secret)


def bare_sum(trees: Iterable[Tree], layout: Layout) -> dict[str, Array]:
    """The sum of reports; zero if there are none.

    Its types follow from the layout alone, never from who reported. Several chunks are
    added up in double precision and rounded to these types at the end.
    """
    return _narrowed(_folded(trees, layout.zeros(), layout), layout.zeros())


def _folded(trees: Iterable[Tree], zero: Arrays, layout: Layout) -> dict[str, Array]:
    chunks = iter(trees)
    one = next(chunks, None)
    total = dict(zero) if one is None else one.sum()
    layout.check_total(total)
    for tree in chunks:
        total = {name: _widened(value) for name, value in total.items()}
        tree.add_to(total)
    return total


def _widened(total: Array) -> Array:
    wide = np.float64 if total.dtype.kind == "f" else total.dtype
    return total.astype(wide, copy=False)


def _narrowed(total: Arrays, zero: Arrays) -> dict[str, Array]:
    return {
        name: value.astype(zero[name].dtype, casting="same_kind", copy=False)
        for name, value in total.items()
    }


def summed(trees: Iterable[Tree], context: RoundContext) -> dict[str, Array]:
    """The sum of a round's reports: each bounded, with noise, as the round has agreed.

    A report is bounded whoever sent it: a client that lies moves the sum no further
    than an honest one.
    """
    return _noisy(_bounded_sum(trees, context), context)


def _noisy(total: Arrays, context: RoundContext) -> dict[str, Array]:
    """A whole round's sum with its noise: the one place where noise is added."""
    mechanism, layout = context.mechanism, context.layout
    if mechanism is None:
        return {**total}
    if context.secret is not None:
        return exact_noise(total, mechanism, layout, context.secret)
    return mechanism.add(total, context.key)


def _bounded_sum(
    trees: Iterable[Tree], context: RoundContext, *, is_wide: bool = False
) -> dict[str, Array]:
    mechanism, layout = context.mechanism, context.layout
    if mechanism is not None and context.is_exact:
        return exact_sum(trees, mechanism, layout)
    zero = _no_reports(context)
    if mechanism is None:
        total = _folded(trees, zero, layout)
    else:
        total = _folded((mechanism.enforce(tree) for tree in trees), zero, layout)
    if is_wide:
        return {name: _widened(value) for name, value in total.items()}
    return _narrowed(total, zero)


def _no_reports(context: RoundContext) -> dict[str, Array]:
    """The sum of no reports, of the types that any sum of the round has."""
    if context.mechanism is None:
        return context.layout.zeros()
    # Bounding may widen a type, so the types of an empty sum are asked of it as well.
    return context.mechanism.enforce(context.layout.nobody()).zero()


# --- A sum in parts -------------------------------------------------------------------


def partial_sum(trees: Iterable[Tree], context: RoundContext) -> dict[str, Array]:
    """The sum of some of a round's reports, each bounded, without any noise.

    For a machine that holds some of the users. Floats are in double precision, in a
    release bounded reports are whole numbers: parts add up to what one machine has.
    """
    return _bounded_sum(trees, context, is_wide=True)


def partial_slots(context: RoundContext) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The dtype and shape of every array of a partial sum, by name."""
    if context.mechanism is not None and context.is_exact:
        return {n: ("int64", slot.shape) for n, slot in context.layout.slots.items()}
    zero = {name: _widened(value) for name, value in _no_reports(context).items()}
    return {name: (str(value.dtype), value.shape) for name, value in zero.items()}


def total_of_parts(parts: Iterable[Arrays], context: RoundContext) -> dict[str, Array]:
    """The sum of a round from the partial sums of all machines, with its noise."""
    total = {n: np.zeros(shape, d) for n, (d, shape) in partial_slots(context).items()}
    for part in parts:
        for name, value in part.items():
            total[name] += value
    if context.mechanism is not None and context.is_exact:
        return _noisy(total, context)
    return _noisy(_narrowed(total, _no_reports(context)), context)


def count_bytes(
    name: str,
    layout: Layout,
    public: Stored,
    *,
    clients: int,
    survivors: int,
    colluders: int,
) -> tuple[int, int]:
    """The bytes that one client sends, and receives, in a round over this channel.

    `public` are the dtypes and shapes of the arrays of the broadcast. A plan and the
    count of a simulated round both come from here. `clients` are all of the plan; how
    many survive at the least, and collude at the most, matters under masks alone.
    """
    if name == MaskedSum.name:
        size = GraphSize.least(clients, survivors=survivors, colluders=colluders)
        numbers = sum(math.prod(slot.shape) for slot in layout.slots.values())
        sent, received = bytes_of(size, numbers)
        return sent, received + broadcast_size(public)
    sent = sealed_size(layout) if name == TwoServers.name else wire_size(layout)
    return sent, broadcast_size(public)


_CHANNELS: Mapping[str, Channel] = {
    c.name: c for c in (Direct(), Shuffle(), SecureSum(), TwoServers(), MaskedSum())
}
CHANNELS = (*_CHANNELS,)  # their names


def channel(name: str) -> Channel:
    """The channel of this name."""
    if name not in _CHANNELS:
        raise BadValue(f"channel {check.unknown(name, _CHANNELS)}")
    return _CHANNELS[name]


def cut(tree: Tree, layout: Layout) -> Tree:
    """Every report cut along the declared axis: one row per message, not per client."""
    axis = layout.split_axis
    if axis is None:
        return tree
    dense = tree.to_dense()
    # Axis 0 is the client, so a report's own axis stands one further on.
    first = {name: np.moveaxis(dense[name], axis + 1, 1) for name in dense.leaves}
    return Tree({n: Dense(v.reshape(-1, *v.shape[2:])) for n, v in first.items()})
