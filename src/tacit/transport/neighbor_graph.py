"""Which clients mask with which: a random graph, and how large its threshold must be.

    n   clients           k   neighbors of each, even     c   of them with the server
    m   least survivors   t   shares that give a secret back

Clients stand on a ring in random order, and the neighbors of each are the k / 2 next on
either side (a Harary graph). Three events may spoil a round, and k and t make the first
two rarer than 2⁻⁴⁰ together and the third rarer than 2⁻²⁰:

    1  honest survivors fall into two parts, whose sums would be seen apart. That needs
       k / 2 others in a row at two places, which are k given clients of the n - m + c
       that drop out or side with the server: n (n - k - 1) / 2 pairs of places.
    2  some client has X >= 2 t - k neighbors who side with the server. The server gets
       both secrets of a client from t shares of each: X neighbors give it both, and
       each of the k - X others one of its choice, even if the server lies to them
       about who survived.
    3  some client has fewer than t neighbors who survive: nothing can be unmasked.

X and the number of survivors are hypergeometric, of k draws among n - 1 others. Those
who drop out and who side with the server are chosen without knowledge of the ring.

Source: Bell, Bonawitz, Gascón, Lepoint and Raykova 2020, "Secure single-server
aggregation with (poly)logarithmic overhead", section 3. The second event is that of
their semi-malicious server; 40, 20 and the union over pairs of places are those of the
`graph_parameter_finder` in Google's federated-compute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.special import gammaln

from tacit import check
from tacit.errors import Refused
from tacit.keys import Key

_PRIVACY = 2.0**-41  # of each of the first two events
_FAILURE = 2.0**-20

_ADVERT_BYTES = 96  # two keys and a hash
_SHARE_BYTES = 32
_ENVELOPE_BYTES = 2 * _SHARE_BYTES + 16  # of one neighbor, with a tag
_NUMBER_BYTES = 4

Tail = Float64[np.ndarray, "counts"]


@dataclass(frozen=True)
class GraphSize:
    """How many clients a round has, how many neighbors each, and the threshold."""

    clients: int
    neighbors: int
    threshold: int

    @classmethod
    def least(cls, clients: int, *, survivors: int, colluders: int = 0) -> Self:
        """The fewest neighbors with which all three events are rare enough.

        >>> GraphSize.least(1000, survivors=950, colluders=330)
        GraphSize(clients=1000, neighbors=132, threshold=109)
        """
        check.count(clients=clients, survivors=survivors)
        check.not_negative(colluders=colluders)
        sizes = _least(clients, survivors, colluders)
        if sizes is None:
            raise Refused(
                f"masks of {clients:,} clients keep no sum private that {survivors:,} "
                f"can unmask, {colluders:,} of them on the server's side: raise "
                "privacy.min_contributors, the least number of survivors, to well "
                f"above {(clients + colluders) // 2:,}, or assume fewer colluders "
                "(privacy.assumed_sybils)"
            )
        return cls(clients, *sizes)

    @property
    def is_complete(self) -> bool:
        """Whether everyone is everyone's neighbor."""
        return self.neighbors == self.clients - 1


def bytes_of(size: GraphSize, numbers: int) -> tuple[int, int]:
    """The bytes that one client sends and receives in a round without dropouts.

    Received are the adverts and envelopes of its neighbors, and a bit per client that
    says who survived.

    >>> bytes_of(GraphSize(1000, neighbors=96, threshold=67), 3533)
    (24980, 17021)
    """
    k = size.neighbors
    shares = k * (_ENVELOPE_BYTES + _SHARE_BYTES)
    sent = _ADVERT_BYTES + shares + numbers * _NUMBER_BYTES
    return sent, k * (_ADVERT_BYTES + _ENVELOPE_BYTES) + -(-size.clients // 8)


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """The graph of one round; the server draws it, and everyone may know it."""

    size: GraphSize
    ring: Int64[np.ndarray, "clients"]  # the client at each place
    place: Int64[np.ndarray, "clients"]  # of each client

    @classmethod
    def drawn(cls, size: GraphSize, key: Key) -> Self:
        """A graph of this size with a random ring."""
        ring = key.permutation(size.clients)
        return cls(size, ring, np.argsort(ring))

    def neighbors(self, client: int) -> Int64[np.ndarray, "neighbors"]:
        """The neighbors of a client, ascending."""
        if self.size.is_complete:
            return np.delete(np.arange(self.size.clients), client)
        half = self.size.neighbors // 2
        steps = np.delete(np.arange(-half, half + 1), half)
        places = (self.place[client] + steps) % self.size.clients
        return np.sort(self.ring[places])


@cache
def _least(clients: int, survivors: int, colluders: int) -> tuple[int, int] | None:
    """Neighbors and threshold; of few clients everyone is everyone's neighbor."""
    if not colluders < survivors <= clients or survivors < 2:
        return None
    # By the second event t > (X + k) / 2, and by the third t <= the survivors.
    if clients + colluders >= 2 * survivors + 2:
        return None
    even = np.arange(2, clients - 1, 2)
    for k in even[_is_connected(clients, even, clients - survivors + colluders)]:
        threshold = _threshold(clients, int(k), survivors, colluders)
        if threshold is not None:
            return int(k), threshold
    k = clients - 1
    threshold = (min(colluders, k) + k) // 2 + 1
    return (k, threshold) if threshold <= survivors - 1 else None


def _is_connected(
    n: int, k: Int64[np.ndarray, "degrees"], removed: int
) -> Bool[np.ndarray, "degrees"]:
    """Whether the first event is rare enough, for each number of neighbors."""
    left = np.maximum(removed - k, 0)
    # That k given clients are all among those removed: C(n - k, removed - k) / C(n,
    # removed), in logarithms.
    chance = gammaln(removed + 1) - gammaln(left + 1) - gammaln(n + 1)
    chance += gammaln(n - k + 1)
    pairs = np.log(n) + np.log(np.maximum(n - k - 1, 1)) - math.log(2.0)
    return np.asarray((k > removed) | (pairs + chance < math.log(_PRIVACY)))


def _threshold(n: int, k: int, survivors: int, colluders: int) -> int | None:
    """The least t for the second event, if it is low enough for the third."""
    above = _above(n - 1, min(colluders, n - 1), k)
    # The least number that no more than a share of the clients pass.
    most = int(np.argmax(above <= _PRIVACY / n))
    threshold = (most + k) // 2 + 1
    # Fewer than t of k survive, if more than k - t do not.
    fails = _above(n - 1, n - survivors, k)[k - threshold] if threshold <= k else 1.0
    return threshold if fails <= _FAILURE / n else None


def _above(n: int, marked: int, k: int) -> Tail:
    """The chance that more than 0 … k of k draws are marked, of n without return."""
    x = np.arange(k + 1)
    is_possible = (x <= marked) & (k - x <= n - marked)
    i = x[is_possible]
    logs = _log_choose(marked, i) + _log_choose(n - marked, k - i)
    mass = np.zeros(k + 2)
    mass[i] = np.exp(logs - _log_choose(n, np.array([k])))
    return np.asarray(np.cumsum(mass[::-1])[::-1][1:])  # the smallest first


def _log_choose(n: int, k: Int64[np.ndarray, "k"]) -> Float64[np.ndarray, "k"]:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
