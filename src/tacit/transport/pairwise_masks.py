"""Secure aggregation: a server adds up vectors of which it sees none.

    x_i  a client's numbers, modulo 2³²     a_i  its key of pairs
    N_i  its neighbors                      e_i  its key of envelopes
    s_ij the seed of a pair's mask          b_i  the seed of its own mask

    client    1  advertises the public halves of a_i and e_i, and a hash of b_i
              2  shares a_i and b_i among N_i, each share sealed for one neighbor
              3  sends y_i = x_i + stream(b_i) ± stream(s_ij) for every j in N_i,
                 with s_ij from a_i and the public half of a_j: + for i < j, else -
    server    4  adds up the y_i of the survivors, and says who they are
    client    5  hands out, for every neighbor, one share: of b_j if it survived, else
                 of a_j. It answers once, so that nobody gets both from it
    server    6  subtracts stream(b_j) of the survivors, and for each j that shared and
                 dropped out the masks that its neighbors had with it

The masks of two survivors cancel. What the server has of a survivor is x_i under a mask
that t neighbors would have to give away, and of a client that dropped out nothing.

Assumes: the server follows the protocol. Its clients see each other's public halves as
they were advertised (a directory of keys, which is not here). The graph's bounds hold.
A client refuses all the same what an honest server never asks: two answers, survivors
that are too few or that do not include it, and envelopes that no neighbor sealed.

Source: Bonawitz et al. 2017, "Practical secure aggregation for privacy-preserving
machine learning"; with the graph of Bell et al. 2020, Algorithm 2.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from jaxtyping import Bool, Int64

from tacit.errors import BadMessage, Refused
from tacit.keys import Key
from tacit.transport.neighbor_graph import NeighborGraph
from tacit.transport.secret_shares import SECRET_BYTES, join, split
from tacit.transport.shared_sum import Numbers, add_stream

_PAIRS, _ENVELOPES = b"tacit masks of pairs", b"tacit envelopes of shares"
_NONCE = bytes(12)  # every key of an envelope seals one

Survivors = Bool[np.ndarray, "clients"]


@dataclass(frozen=True, eq=False)
class MaskedRound:
    """What everyone knows of a round: its graph, its survivors at the least, its id."""

    graph: NeighborGraph
    survivors: int
    size: int  # how many numbers everyone sends
    name: bytes  # of 16 bytes, of this round alone

    @property
    def threshold(self) -> int:
        """How many shares give a secret back."""
        return self.graph.size.threshold


@dataclass(frozen=True)
class Advert:
    """Line 1: what a client says of itself to everyone."""

    pairs: bytes
    envelopes: bytes
    own_mask: (
        bytes  # SHA-256 of b_i: the server knows a wrong one when it has joined it
    )


@dataclass(frozen=True)
class Unmasking:
    """Line 5: one share per neighbor, by its number."""

    of_own_masks: Mapping[int, bytes]
    of_pairs: Mapping[int, bytes]


class MaskingClient:
    """One client in one round; every step can be taken once."""

    def __init__(self, number: int, agreed: MaskedRound, key: Key) -> None:
        self.number, self.agreed = number, agreed
        self.neighbors = agreed.graph.neighbors(number)
        self._key = key
        self._pairs, self._envelopes = (
            X25519PrivateKey.from_private_bytes(key.at(purpose).secret_of())
            for purpose in ("pairs", "envelopes")
        )
        self._own_mask = key.at("own mask").secret_of()
        self._adverts: Mapping[int, Advert] = {}
        self._shares: dict[int, bytes] = {}  # of the neighbors that shared
        self._steps: list[str] = []

    def advertise(self) -> Advert:
        """Line 1: public halves and a hash, for the server and the neighbors."""
        return Advert(
            self._pairs.public_key().public_bytes_raw(),
            self._envelopes.public_key().public_bytes_raw(),
            hashlib.sha256(self._own_mask).digest(),
        )

    def share(self, adverts: Mapping[int, Advert]) -> dict[int, bytes]:
        """Line 2: an envelope for every neighbor, by its number."""
        self._take("share")
        self._adverts = {int(j): adverts[int(j)] for j in self.neighbors}
        secrets = [self._pairs.private_bytes_raw(), self._own_mask]
        shares = split(
            secrets,
            _points(self.neighbors),
            threshold=self.agreed.threshold,
            key=self._key.at("shares"),
        )
        texts = shares.transpose(1, 0, 2).astype("<u2")
        return {
            j: self._seal(j, text.tobytes())
            for j, text in zip(self._adverts, texts, strict=True)
        }

    def mask(self, numbers: Numbers, envelopes: Mapping[int, bytes]) -> Numbers:
        """Line 3; `envelopes` are those of the neighbors that shared."""
        self._take("mask")
        if len(envelopes) < self.agreed.threshold:
            raise Refused(
                f"{len(envelopes)} neighbors shared their secrets, and "
                f"{self.agreed.threshold} are needed to unmask: nothing is sent"
            )
        if len(numbers) != self.agreed.size:
            raise BadMessage(
                f"{len(numbers):,} numbers; everyone sends {self.agreed.size:,}"
            )
        for j, envelope in envelopes.items():
            self._shares[j] = self._open(j, envelope)
        plus, minus = numbers.copy(), np.zeros_like(numbers)
        add_stream(plus, self._own_mask)
        for j in envelopes:
            seed = _pair_seed(self._pairs, self._adverts[j].pairs, self.agreed.name)
            add_stream(plus if self.number < j else minus, seed)
        return plus - minus

    def unmask(self, survivors: Survivors) -> Unmasking:
        """Line 5: of every neighbor that shared one share, and never a second one."""
        self._take("unmask")
        alive = int(survivors.sum())
        if alive < self.agreed.survivors:
            raise Refused(
                f"{alive} clients survived, and the round needs "
                f"{self.agreed.survivors}: nothing is unmasked"
            )
        if not survivors[self.number]:
            raise Refused(
                f"client {self.number} sent its numbers and is said to have dropped "
                "out: nothing is unmasked"
            )
        own_masks, pairs = {}, {}
        for j, text in self._shares.items():
            if survivors[j]:
                own_masks[j] = text[SECRET_BYTES:]
            else:
                pairs[j] = text[:SECRET_BYTES]
        return Unmasking(own_masks, pairs)

    def _take(self, step: str) -> None:
        """Note that a step is taken; refuse one that is not the next."""
        [wanted] = ["share", "mask", "unmask"][len(self._steps) :][:1] or ["none"]
        if step != wanted:
            raise Refused(
                f"client {self.number} was asked to {step}, and its next step is "
                f"{wanted}: a step taken twice could show what a mask hides"
            )
        self._steps.append(step)

    def _seal(self, receiver: int, text: bytes) -> bytes:
        return self._cipher(receiver, self.number, receiver).encrypt(_NONCE, text, None)

    def _open(self, sender: int, envelope: bytes) -> bytes:
        if sender not in self._adverts:
            raise BadMessage(f"client {sender} is no neighbor of {self.number}")
        try:
            return self._cipher(sender, sender, self.number).decrypt(
                _NONCE, envelope, None
            )
        except InvalidTag:
            raise BadMessage(
                f"client {sender} did not seal this envelope for {self.number} in this "
                "round"
            ) from None

    def _cipher(self, other: int, sender: int, receiver: int) -> ChaCha20Poly1305:
        public = X25519PublicKey.from_public_bytes(self._adverts[other].envelopes)
        ends = f"{sender}>{receiver}".encode()
        secret = self._envelopes.exchange(public)
        return ChaCha20Poly1305(derive(secret, _ENVELOPES + self.agreed.name + ends))


@dataclass(eq=False)
class UnmaskingServer:
    """The server of one round: it adds up, and unmasks the sum of the survivors."""

    agreed: MaskedRound
    adverts: Mapping[int, Advert]
    sharing: Survivors  # who sent envelopes: the others have no masks with anybody
    _sent: dict[int, bool] = field(default_factory=dict, init=False)

    @cached_property
    def _total(self) -> Numbers:
        return np.zeros(self.agreed.size, np.uint32)

    def add(self, client: int, masked: Numbers) -> None:
        """Line 4: the numbers of a client, which are added up at once."""
        if client in self._sent or not self.sharing[client]:
            raise BadMessage(
                f"client {client} sent its numbers already, or shared no secrets"
            )
        if masked.shape != (self.agreed.size,):
            raise BadMessage(
                f"{masked.size:,} numbers; everyone sends {self.agreed.size:,}"
            )
        self._sent[client] = True
        self._total[:] += masked

    def survivors(self) -> Survivors:
        """Whose numbers arrived; refuses to go on with too few."""
        if len(self._sent) < self.agreed.survivors:
            raise Refused(
                f"{len(self._sent)} clients survived, and the round needs "
                f"{self.agreed.survivors}: its noise would be too little, and nothing "
                "is unmasked"
            )
        alive = np.zeros(self.agreed.graph.size.clients, bool)
        alive[[*self._sent]] = True
        return alive

    def unmasked(self, replies: Mapping[int, Unmasking]) -> Numbers:
        """Line 6: the sum of the survivors' numbers."""
        alive = self.survivors()
        plus, minus = self._total.copy(), np.zeros_like(self._total)
        for j in map(int, np.flatnonzero(self.sharing)):
            if alive[j]:
                add_stream(minus, self._own_mask(j, replies))
            else:
                self._restore_pairs(j, replies, alive, plus, minus)
        return plus - minus

    def _own_mask(self, client: int, replies: Mapping[int, Unmasking]) -> bytes:
        shares = {i: reply.of_own_masks for i, reply in replies.items()}
        secret = self._joined(client, shares)
        if hashlib.sha256(secret).digest() != self.adverts[client].own_mask:
            raise _misfit(client)
        return secret

    def _restore_pairs(
        self,
        gone: int,
        replies: Mapping[int, Unmasking],
        alive: Survivors,
        plus: Numbers,
        minus: Numbers,
    ) -> None:
        """Take out the masks that survivors had with a client that dropped out."""
        shares = {i: reply.of_pairs for i, reply in replies.items()}
        pairs = X25519PrivateKey.from_private_bytes(self._joined(gone, shares))
        if pairs.public_key().public_bytes_raw() != self.adverts[gone].pairs:
            raise _misfit(gone)
        for i in map(int, self.agreed.graph.neighbors(gone)):
            if alive[i]:
                seed = _pair_seed(pairs, self.adverts[i].pairs, self.agreed.name)
                # The survivor added it if its own number is the smaller one.
                add_stream(minus if i < gone else plus, seed)

    def _joined(self, client: int, shares: Mapping[int, Mapping[int, bytes]]) -> bytes:
        neighbors = self.agreed.graph.neighbors(client)
        points = _points(neighbors)
        arrived = [
            (point, shares[j][client])
            for j, point in zip(map(int, neighbors), points, strict=True)
            if client in shares.get(j, {})
        ][: self.agreed.threshold]
        if len(arrived) < self.agreed.threshold:
            raise Refused(
                f"{len(arrived)} shares of a secret of client {client} came, and "
                f"{self.agreed.threshold} are needed: nothing is unmasked"
            )
        at, texts = zip(*arrived, strict=True)
        words = np.frombuffer(b"".join(texts), "<u2").reshape(1, len(at), -1)
        return join(words.astype(np.uint16), np.array(at))[0]


def derive(secret: bytes, purpose: bytes) -> bytes:
    """A key of 32 bytes by HKDF-SHA256 without salt (RFC 5869)."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, purpose + b"\x01", "sha256")


def _pair_seed(private: X25519PrivateKey, public: bytes, name: bytes) -> bytes:
    secret = private.exchange(X25519PublicKey.from_public_bytes(public))
    return derive(secret, _PAIRS + name)


def _points(neighbors: Int64[np.ndarray, "neighbors"]) -> np.ndarray:
    """The point of each neighbor of a client: its place among them, from 1."""
    return np.arange(1, len(neighbors) + 1).astype(np.uint16)


def _misfit(client: int) -> BadMessage:
    return BadMessage(
        f"the shares of a secret of client {client} do not fit what it advertised: "
        "some of them are forged, and nothing is unmasked"
    )
