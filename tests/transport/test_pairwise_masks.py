"""The protocol of a masked sum: right sums, and what a server is refused."""

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from tacit.errors import BadMessage, Refused
from tacit.keys import Key
from tacit.transport.neighbor_graph import GraphSize, NeighborGraph
from tacit.transport.pairwise_masks import (
    MaskedRound,
    MaskingClient,
    Unmasking,
    UnmaskingServer,
    derive,
)
from tacit.transport.shared_sum import stream

N, LEAST, SIZE = 14, 10, 6
FALSE_ALARM = 1e-9


class Played:
    """A round up to line 3: who shares, who sends, and all that was said."""

    def __init__(self, *, seed=0, silent=(), gone=(), n=N, least=LEAST, size=SIZE):
        key = Key.from_seed(seed)
        graph = GraphSize.least(n, survivors=least, colluders=1)
        drawn = NeighborGraph.drawn(graph, key.at("graph"))
        self.agreed = MaskedRound(drawn, least, size, bytes([seed % 256]) * 16)
        self.clients = [MaskingClient(i, self.agreed, key.at(i)) for i in range(n)]
        self.adverts = {c.number: c.advertise() for c in self.clients}
        self.sharing = np.ones(n, bool)
        self.sharing[[*silent]] = False
        sealed = {
            i: self.clients[i].share(self.adverts) for i in self.who(self.sharing)
        }
        self.envelopes = {
            i: {j: text[i] for j, text in sealed.items() if i in text} for i in range(n)
        }
        self.numbers = key.at("numbers").alone().bits(-(-n * size // 1))[0]
        self.numbers = self.numbers[: n * size].astype(np.uint32).reshape(n, size)
        self.server = UnmaskingServer(self.agreed, self.adverts, self.sharing)
        self.sent = {}
        for i in self.who(self.sharing):
            self.sent[i] = self.clients[i].mask(self.numbers[i], self.envelopes[i])
            if i not in gone:
                self.server.add(i, self.sent[i])

    @staticmethod
    def who(flags):
        return [int(i) for i in np.flatnonzero(flags)]

    def replies(self, survivors=None):
        alive = self.server.survivors() if survivors is None else survivors
        return {i: self.clients[i].unmask(alive) for i in self.who(alive)}

    def wanted(self):
        alive = self.server.survivors()
        return self.numbers[alive].sum(axis=0, dtype=np.uint64).astype(np.uint32)


def assert_sums(played, replies=None):
    replies = played.replies() if replies is None else replies
    assert np.array_equal(played.server.unmasked(replies), played.wanted())


# --- Sums -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.data())
def test_the_sum_is_that_of_the_survivors_whoever_drops_out(seed, data):
    away = data.draw(st.permutations(range(N)))[: data.draw(st.integers(0, N - LEAST))]
    cut = data.draw(st.integers(0, len(away)))
    try:
        played = Played(seed=seed, silent=away[:cut], gone=away[cut:])
        replies = played.replies()
        found = played.server.unmasked(replies)
    except Refused:  # too few neighbors of somebody are left: never a wrong sum
        return
    assert np.array_equal(found, played.wanted())


@pytest.mark.parametrize("away", [{}, {"gone": [3]}, {"silent": [0], "gone": [5, 13]}])
def test_dropouts_before_and_after_sharing(away):
    assert_sums(Played(seed=7, **away))


def test_some_survivors_need_not_reply():
    played = Played(seed=1)
    replies = played.replies()
    spare = played.agreed.graph.size.neighbors - played.agreed.threshold
    for i in [*replies][:spare]:
        del replies[i]
    assert_sums(played, replies)


def test_what_one_client_sends_is_uniform():
    """Kolmogorov-Smirnov over 4,096 numbers of one client whose own are all zero.

    A false alarm once in 1e9.
    """
    played = Played(seed=2, size=4096)
    masked = played.sent[0] - played.numbers[0]
    assert kstest(masked / 2.0**32, "uniform").pvalue > FALSE_ALARM


def test_masks_of_a_pair_cancel_and_its_own_does_not():
    played = Played(seed=3)
    total = np.sum([*played.sent.values()], axis=0, dtype=np.uint64).astype(np.uint32)
    own = sum(stream(c._own_mask, SIZE).astype(np.uint64) for c in played.clients)
    assert np.array_equal(total - own.astype(np.uint32), played.wanted())


def test_keys_are_derived_as_rfc_5869_says():
    for purpose in (b"", b"tacit masks of pairs" + bytes(16)):
        theirs = HKDF(SHA256(), 32, salt=None, info=purpose).derive(b"k" * 32)
        assert derive(b"k" * 32, purpose) == theirs


# --- A server that asks for more ------------------------------------------------------


def both_shares(client, alive, neighbor):
    """What a server learns of a neighbor that it says lives, and then says is gone."""
    first = client.unmask(alive)
    dead = alive.copy()
    dead[neighbor] = False
    second = client.unmask(dead)
    return first.of_own_masks[neighbor], second.of_pairs[neighbor]


def test_a_server_that_asks_for_both_shares_is_refused():
    played = Played(seed=4)
    client = played.clients[0]
    neighbor = int(client.neighbors[0])
    with pytest.raises(Refused, match="none"):
        both_shares(client, played.server.survivors(), neighbor)


def test_both_shares_of_a_threshold_of_neighbors_would_open_a_report(monkeypatch):
    """The attack that answering once prevents, with clients that answer twice."""
    monkeypatch.setattr(MaskingClient, "_take", lambda *_: None)
    played = Played(seed=5)
    victim, alive = 2, played.server.survivors()
    twice = {}
    for j in map(int, played.clients[victim].neighbors):
        own, pair = both_shares(played.clients[j], alive, victim)
        twice[j] = Unmasking({victim: own}, {victim: pair})
    opened = played.sent[victim] - stream(played.server._own_mask(victim, twice), SIZE)
    plus, minus = np.zeros_like(opened), np.zeros_like(opened)
    played.server._restore_pairs(victim, twice, alive, plus, minus)
    # What its neighbors would have to be rid of is what it added itself.
    assert np.array_equal(opened - (plus - minus), played.numbers[victim])


def test_a_server_that_lies_to_some_about_a_survivor_gets_one_secret_at_most():
    """It tells half of the victim's neighbors that the victim is gone."""
    played = Played(seed=6)
    victim, alive = 1, played.server.survivors()
    neighbors = [int(j) for j in played.clients[victim].neighbors]
    for told_gone in range(len(neighbors) + 1):
        shares = len(neighbors) - told_gone, told_gone
        assert min(shares) < played.agreed.threshold
    lied = alive.copy()
    lied[victim] = False
    half = len(neighbors) // 2
    replies = {j: played.clients[j].unmask(alive) for j in neighbors[:half]}
    replies |= {j: played.clients[j].unmask(lied) for j in neighbors[half:]}
    with pytest.raises(Refused, match="are needed"):
        played.server._own_mask(victim, replies)
    zero = np.zeros(SIZE, np.uint32)
    with pytest.raises(Refused, match="are needed"):
        played.server._restore_pairs(victim, replies, alive, zero, zero.copy())


def test_a_client_that_is_said_to_be_gone_hands_out_nothing():
    played = Played(seed=7)
    alive = played.server.survivors()
    alive[3] = False
    with pytest.raises(Refused, match="dropped out"):
        played.clients[3].unmask(alive)


def test_too_few_survivors_unmask_nothing():
    with pytest.raises(Refused, match="too little"):
        Played(seed=8, gone=range(N - LEAST + 1)).server.survivors()
    played = Played(seed=8)
    few = np.zeros(N, bool)
    few[: LEAST - 1] = True
    with pytest.raises(Refused, match=f"needs {LEAST}"):
        played.clients[0].unmask(few)


def test_too_few_neighbors_that_shared_stop_a_client():
    played = Played(seed=9)
    lonely = MaskingClient(0, played.agreed, Key.from_seed(9).at(0))
    lonely.share(played.adverts)
    some = dict([*played.envelopes[0].items()][: played.agreed.threshold - 1])
    with pytest.raises(Refused, match="nothing is sent"):
        lonely.mask(played.numbers[0], some)


def test_numbers_are_masked_once():
    """Two vectors under the same masks would show their difference."""
    played = Played(seed=10)
    with pytest.raises(Refused, match="asked to mask"):
        played.clients[0].mask(played.numbers[0], played.envelopes[0])
    with pytest.raises(Refused, match="asked to share"):
        played.clients[0].share(played.adverts)


# --- Forged, replayed and broken ------------------------------------------------------


def test_an_envelope_of_the_server_or_of_another_round_is_refused():
    played, other = Played(seed=11), Played(seed=12)
    fresh = MaskingClient(0, played.agreed, Key.from_seed(11).at(0))
    fresh.share(played.adverts)
    honest = played.envelopes[0]
    first = next(iter(honest))
    forged = bytes([honest[first][0] ^ 1]) + honest[first][1:]
    second = [*honest][1]
    for wrong in (forged, honest[second], other.clients[0]._seal(first, bytes(64))):
        again = MaskingClient(0, played.agreed, Key.from_seed(11).at(0))
        again.share(played.adverts)
        with pytest.raises(BadMessage, match="did not seal"):
            again.mask(played.numbers[0], {**honest, first: wrong})
    stranger = next(i for i in range(N) if i and i not in fresh.neighbors)
    with pytest.raises(BadMessage, match="no neighbor"):
        fresh.mask(played.numbers[0], {**honest, stranger: honest[first]})


@pytest.mark.parametrize("kind", ["of_own_masks", "of_pairs"])
def test_a_forged_share_is_found_and_nothing_is_unmasked(kind):
    played = Played(seed=13, gone=[4])
    replies = played.replies()
    victim = 4 if kind == "of_pairs" else 6
    liar = next(i for i, r in replies.items() if victim in getattr(r, kind))
    shares = dict(getattr(replies[liar], kind))
    shares[victim] = bytes([shares[victim][0] ^ 1]) + shares[victim][1:]
    replies[liar] = replace(replies[liar], **{kind: shares})
    with pytest.raises(BadMessage, match=f"client {victim} do not fit"):
        played.server.unmasked(replies)


def test_a_client_counts_once_and_only_with_shares():
    played = Played(seed=14, silent=[2], gone=[3])
    with pytest.raises(BadMessage, match="already"):
        played.server.add(0, played.sent[0])
    with pytest.raises(BadMessage, match="shared no secrets"):
        played.server.add(2, played.numbers[2])
    with pytest.raises(BadMessage, match="everyone sends 6"):
        played.server.add(3, played.sent[3][:-1])


def test_too_few_replies_unmask_nothing():
    played = Played(seed=15)
    replies = played.replies()
    some = dict([*replies.items()][: played.agreed.threshold - 1])
    with pytest.raises(Refused, match="nothing is unmasked"):
        played.server.unmasked(some)
