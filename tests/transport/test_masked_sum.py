"""Masked sums: the numbers of a trusted sum, and noise in shares of the survivors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from tacit.errors import Refused
from tacit.exact_sum import squares
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT, ClippedSumWithBits
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.personal_budgets import ByClip
from tacit.mechanisms.skellam import LEAST_STEPS
from tacit.transport.channels import RoundContext, channel, masked_reports
from tacit.transport.masked_sum import MaskedReports
from tacit.transport.messages import Layout, Reports, Slot
from tacit.transport.neighbor_graph import GraphSize, NeighborGraph
from tacit.transport.pairwise_masks import (
    MaskedRound,
    MaskingClient,
    UnmaskingServer,
)
from tacit.transport.shared_sum import modulo
from tacit.tree import Dense, Factored, Symmetric, Tree

LAYOUT = Layout(
    {
        "a": Slot("float64", (3,)),
        "b": Slot("float32", (2, 2), rank=1),
        "c": Slot.symmetric("float64", 2),
    }
)
FALSE_ALARM = 1e-9


def context(n=20, *, least=16, z=1.5, seed=0, **changes) -> RoundContext:
    wanted = {"layout": LAYOUT, "mechanism": GaussianSum(1.0, z)} | changes
    key = Key.from_seed(seed)
    return RoundContext(
        **wanted, key=key, min_contributors=least, planned=n, most_reports=n
    )


def reports(n: int, seed=0, *, scale=1.0) -> Reports:
    rng = np.random.default_rng(seed)
    return Reports(
        Tree(
            {
                "a": Dense(scale * rng.normal(size=(n, 3))),
                "b": Factored(
                    rng.normal(size=(n, 1, 2)).astype(np.float32),
                    rng.normal(size=(n, 1, 2)).astype(np.float32),
                ),
                "c": Symmetric(rng.normal(size=(n, 1, 2))),
            }
        )
    )


# --- Exact ----------------------------------------------------------------------------


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 1000), st.integers(0, 4))
def test_the_protocol_sums_what_a_trusted_sum_of_the_same_integers_has(seed, n_gone):
    """Real masks, real shares of noise, real dropouts: equal in every number."""
    now, key = context(seed=seed), Key.from_seed(seed)
    masked, tree = masked_reports(now), reports(20, seed).tree
    whole = masked.encoded(tree)
    shares = np.stack([masked.noise(key.at("noise", i), 1) for i in range(20)])
    size = GraphSize.least(20, survivors=16, colluders=1)
    graph = NeighborGraph.drawn(size, key.at("graph"))
    agreed = MaskedRound(graph, 16, masked.size, bytes(16))
    clients = [MaskingClient(i, agreed, key.at(i)) for i in range(20)]
    adverts = {c.number: c.advertise() for c in clients}
    sealed = [c.share(adverts) for c in clients]
    server = UnmaskingServer(agreed, adverts, np.ones(20, bool))
    for client in clients:
        own = {int(j): sealed[int(j)][client.number] for j in client.neighbors}
        sent = client.mask(modulo((whole + shares)[client.number]), own)
        if client.number >= n_gone:
            server.add(client.number, sent)
    alive = server.survivors()
    try:
        total = server.unmasked(
            {i: clients[i].unmask(alive) for i in map(int, np.flatnonzero(alive))}
        )
    except Refused:
        return
    trusted = (whole + shares)[n_gone:].sum(axis=0)
    assert np.array_equal(total, modulo(trusted))
    found = masked.decoded(total)
    start = 0
    for name, slot in LAYOUT.slots.items():
        stop = start + math.prod(slot.shape)
        steps = masked.parts[0][1].steps
        flat = found[name].reshape(-1)
        assert np.array_equal(flat * steps, trusted[start:stop])
        start = stop


def test_a_simulated_round_is_the_sum_of_whole_reports_and_shares():
    now, some = context(), reports(18)
    masked = masked_reports(now)
    delivered = channel("masked_sum").carry([some], now)
    noise = masked.noise(now.key, 18)
    wanted = masked.decoded(modulo(masked.encoded(some.tree).sum(axis=0) + noise))
    assert delivered.contributors == 18
    for name, value in wanted.items():
        assert np.array_equal(delivered.total[name], value)
        assert value.shape == LAYOUT.slots[name].shape


def test_chunks_make_no_difference():
    now, some = context(), reports(20)
    halves = [some.select(slice(0, 7)), some.select(slice(7, 20)), Reports.nobody()]
    one, two = (channel("masked_sum").carry(c, now) for c in ([some], halves))
    for name, value in one.total.items():
        assert np.array_equal(value, two.total[name])


@given(st.floats(1e-3, 1e3), st.integers(0, 99))
def test_no_report_is_longer_than_the_limit(scale, seed):
    masked = masked_reports(context())
    whole = masked.encoded(reports(5, seed, scale=scale).tree)
    assert (squares(whole) <= masked.parts[0][1].limit).all()


# --- Noise ----------------------------------------------------------------------------


@pytest.mark.parametrize("survivors", [1, 16, 20])
def test_every_survivor_adds_the_same_variance(survivors):
    """Chi-square over 40,000 draws: V of all planned clients; false alarm 1e-9."""
    layout = Layout({"a": Slot("float64", (40_000,))})
    masked = masked_reports(context(layout=layout, z=2.0))
    [(_, part)] = masked.parts
    noise = masked.noise(Key.from_seed(5), survivors).astype(np.float64)
    wanted = 2.0**2 * part.limit * survivors / 20
    low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], len(noise)) / len(
        noise
    )
    # Excess kurtosis of Skellam is 1 / variance, which is below 1e-9 here.
    assert low <= (noise**2).mean() / wanted <= high


def test_a_sum_of_shares_has_the_law_of_the_draw_of_a_simulation():
    """Chi-square of 16 x 4,000 shares added up; false alarm once in 1e9."""
    layout = Layout({"a": Slot("float64", (4_000,))})
    masked = masked_reports(context(layout=layout))
    key = Key.from_seed(6)
    added = sum(masked.noise(key.at(i), 1) for i in range(16)).astype(np.float64)
    wanted = masked.parts[0][1].sigma ** 2 * 16 / 20
    low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 4_000) / 4_000
    assert low <= (added**2).mean() / wanted <= high


def test_parts_with_bounds_of_their_own_have_noise_of_their_own():
    """A clip that moves: its bit is a part beside the report."""
    layout = Layout({"a": Slot("float64", (3,)), BIT: Slot("float64", ())})
    mechanism = ClippedSumWithBits(2.0, 1.0, 5.0)
    masked = MaskedReports.of(mechanism, layout, planned=10, most_reports=10)
    assert [leaves for leaves, _ in masked.parts] == [("a",), (BIT,)]
    for (_, part), bounded in zip(
        masked.parts, mechanism.bounded([*layout.slots]), strict=True
    ):
        z = bounded.deviation / bounded.bound
        assert part.sigma / math.sqrt(part.limit) == pytest.approx(z, rel=1e-4)
        assert part.sigma >= z * math.sqrt(part.limit)


@pytest.mark.parametrize("n", [10, 10_000, 1_000_000])
@pytest.mark.parametrize("z", [0.5, 5.0, 50.0])
def test_there_is_room_for_every_report_and_twelve_deviations(n, z):
    layout = Layout({"a": Slot("float64", (50,))})
    masked = masked_reports(context(n, layout=layout, z=z))
    [(_, part)] = masked.parts
    assert n * math.sqrt(part.limit) + 12 * part.sigma < 2**31
    assert part.steps * part.bound >= LEAST_STEPS


# --- Refused --------------------------------------------------------------------------


def test_fewer_survivors_than_planned_are_never_unmasked():
    carrier = channel("masked_sum")
    with pytest.raises(Refused, match="15 survived"):
        carrier.carry([reports(15)], context())
    assert carrier.carry([reports(16)], context()).contributors == 16
    with pytest.raises(Refused, match="0 survived"):
        carrier.carry([], context())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mechanism": None}, "'central'"),
        ({"mechanism": ByClip(1.0, {"a": 1.0, "b": 2.0})}, "one target_epsilon"),
        ({"layout": Layout({"a": Slot("float64", (500_001,))})}, "500,000"),
        ({"secret": bytes(32)}, "simulated"),
        ({"is_partial": True}, "simulated"),
    ],
)
def test_what_has_no_masked_sum_is_refused(changes, words):
    with pytest.raises(Refused, match=words):
        channel("masked_sum").carry([], context(**changes))


def test_more_clients_than_the_steps_leave_room_for_are_refused():
    with pytest.raises(Refused, match="1,024"):
        masked_reports(context(3_000_000))
    with pytest.raises(Refused, match="wrap around"):
        channel("masked_sum").carry([reports(21)], context())
