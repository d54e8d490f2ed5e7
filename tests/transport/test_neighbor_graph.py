"""The graph of a masked sum: its bounds against those published, and by brute force."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from tacit.errors import Refused
from tacit.keys import Key
from tacit.testing.statistics import assert_frequencies
from tacit.transport.neighbor_graph import (
    GraphSize,
    NeighborGraph,
    _above,
    _is_connected,
    bytes_of,
)

# Neighbors and threshold as Google's federated-compute pins them for its semi-malicious
# server (fcp/secagg/server/graph_parameter_finder_test_params.h): clients, colluding
# share, share that drops out. It draws neighbors among n clients, here they are drawn
# among the n - 1 others, which moves the second of these by six neighbors in 4,822.
PUBLISHED = {
    (100, 0.30, 0.30): (92, 62),
    (1_000, 0.30, 0.30): (872, 584),
    (10_000, 0.30, 0.30): (4822, 3230),
    (10, 0.05, 0.33): (8, 5),
    (100, 0.05, 0.33): (72, 39),
    (1_000, 0.05, 0.33): (398, 223),
    (10_000, 0.05, 0.33): (746, 420),
    (100, 0.33, 0.05): (42, 37),
    (1_000, 0.33, 0.05): (132, 109),
    (10_000, 0.33, 0.05): (178, 146),
    (100_000, 0.33, 0.05): (196, 160),
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_neighbors_and_threshold_are_the_published_ones(case):
    clients, colluding, gone = case
    size = GraphSize.least(
        clients,
        survivors=math.ceil((1 - gone) * clients - 1e-9),
        colluders=math.floor(colluding * clients + 1e-9),
    )
    neighbors, threshold = PUBLISHED[case]
    assert 0 <= size.neighbors - neighbors <= 0.002 * neighbors
    assert 0 <= size.threshold - threshold <= 0.002 * threshold


@given(
    st.integers(2, 60).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))
    )
)
def test_tails_are_those_of_the_hypergeometric(case):
    n, marked, k = case
    wanted = hypergeom(n, marked, k).sf(np.arange(k + 1))
    np.testing.assert_allclose(_above(n, marked, k), wanted, rtol=1e-9, atol=1e-15)


@given(st.integers(5, 400), st.data())
def test_a_size_keeps_all_three_events_rare(n, data):
    """Each bound anew from scipy's distribution, whatever search found the size."""
    survivors = data.draw(st.integers(2, n))
    colluders = data.draw(st.integers(0, survivors - 1))
    try:
        size = GraphSize.least(n, survivors=survivors, colluders=colluders)
    except Refused:
        return
    k, t = size.neighbors, size.threshold
    assert 2 * t > k  # else a server that lies about survivors gets both secrets
    if size.is_complete:
        assert 2 * t - k > colluders
        assert t <= survivors - 1
        return
    assert k % 2 == 0
    assert k < n - 1
    with_server = hypergeom(n - 1, colluders, k)
    assert n * with_server.sf(2 * t - k - 1) <= 2.0**-41 * (1 + 1e-6)
    assert n * hypergeom(n - 1, survivors - 1, k).cdf(t - 1) <= 2.0**-20 * (1 + 1e-6)
    assert _is_connected(n, np.array([k]), n - survivors + colluders)[0]


def test_the_chance_that_a_ring_falls_apart_is_bounded_by_what_is_drawn():
    """200,000 rings of 12 with 4 neighbors and 5 clients gone: fewer than the bound."""
    n, k, gone = 12, 4, 5
    bound = n * (n - k - 1) / 2 * math.comb(n - k, gone - k) / math.comb(n, gone)
    rng = np.random.default_rng(0)
    places = rng.random((200_000, n)).argsort(axis=1)[:, :gone]
    present = np.ones((len(places), n), bool)
    np.put_along_axis(present, places, False, axis=1)
    # Two in a row missing is a gap that no edge of the ring passes over.
    gaps = ~present & ~np.roll(present, -1, axis=1)
    starts = gaps & ~np.roll(gaps, 1, axis=1)
    share = (starts.sum(axis=1) >= 2).mean()
    assert 0 < share <= bound


def test_neighbors_are_mutual_and_as_many_as_said():
    graph = NeighborGraph.drawn(
        GraphSize(11, neighbors=4, threshold=3), Key.from_seed(1)
    )
    near = [set(map(int, graph.neighbors(i))) for i in range(11)]
    assert all(len(some) == 4 and i not in some for i, some in enumerate(near))
    assert all(i in near[j] for i, some in enumerate(near) for j in some)
    whole = NeighborGraph.drawn(
        GraphSize(4, neighbors=3, threshold=2), Key.from_seed(1)
    )
    assert whole.neighbors(2).tolist() == [0, 1, 3]


def test_every_pair_of_others_is_as_often_that_of_the_neighbors():
    """Chi-square over 3,000 rings of 9 with 2 neighbors; false alarm once in 1e9."""
    size, seen = GraphSize(9, neighbors=2, threshold=2), Counter()
    for seed in range(3000):
        graph = NeighborGraph.drawn(size, Key.from_seed(seed))
        seen[tuple(map(int, graph.neighbors(4)))] += 1
    counts = np.array([*seen.values()])
    assert len(counts) == 28
    assert all(4 not in pair for pair in seen)
    assert_frequencies(counts, np.full(28, 1 / 28), false_alarm=1e-9)


@pytest.mark.parametrize(
    "crowd",
    [
        {"survivors": 1, "colluders": 0},  # what a plan says that leaves it out
        {"survivors": 50, "colluders": 0},
        {"survivors": 80, "colluders": 70},
        {"survivors": 80, "colluders": 80},
        {"survivors": 101, "colluders": 0},
    ],
)
def test_too_few_survivors_or_too_many_colluders_are_refused(crowd):
    with pytest.raises(Refused, match="min_contributors"):
        GraphSize.least(100, **crowd)


def test_more_colluders_or_dropouts_need_no_fewer_neighbors():
    sizes = [GraphSize.least(500, survivors=450, colluders=c) for c in (0, 25, 50, 75)]
    assert sizes == sorted(sizes, key=lambda size: size.neighbors)
    sizes = [GraphSize.least(500, survivors=s, colluders=25) for s in (490, 450, 400)]
    assert sizes == sorted(sizes, key=lambda size: size.neighbors)


def test_bytes_grow_with_numbers_and_neighbors():
    assert bytes_of(GraphSize(8, neighbors=2, threshold=2), 1) == (
        96 + 2 * 112 + 4,
        353,
    )
