"""From the ideal account to what is proven: noise on sums is drawn by a cipher.

Under words that are random, noise has exactly the law that the account assumes. A
release draws it from AES-256 under a secret. An attacker has some advantage a in
telling the cipher from random words, if only by trying secrets. Of two neighbours D and
D', a counts in both worlds, and in the second e^epsilon times:

    Pr[says "D" | D]  <=  e^epsilon Pr[says "D" | D'] + delta + (1 + e^epsilon) a

So beyond some epsilon nothing is proven of a sum, however its noise is drawn. The
addition is part of delta: a figure is composed at what it leaves, and where it is more
than a thousandth of delta, there is no figure (docs/release.md has the proof).

Pure figures of reports that clients protect themselves stay as they are: they speak of
random words, and have no delta that an addition could be a part of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tacit.accounting.decomposition import Part, distance, take_apart
from tacit.accounting.epsilon import LEAST_DELTA, Epsilon, compose_once
from tacit.errors import Refused
from tacit.release import Cell

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

ADVANTAGE = 2.0**-127  # of the cipher 2^-128; the rest: its blocks are distinct
SHARE = 1e-3  # of delta, the most that the addition may take
MOST_DISTANCE = 9.0  # 1/z of a release; distinct blocks cost next to nothing up to it
_HUGE = 700.0  # e^709 is the largest float

Releases = Sequence[tuple["DpEvent", str]]


def cipher_cost(epsilon: float) -> float:
    """What the cipher adds to delta at this epsilon; constant up to a whole number.

    >>> cipher_cost(8.0) == cipher_cost(7.5)
    True
    """
    return ADVANTAGE * (1.0 + math.exp(min(math.ceil(epsilon), _HUGE)))


def most_epsilon(delta: float) -> int:
    """The largest epsilon that is proven of a noisy sum at this delta.

    >>> [most_epsilon(delta) for delta in (1e-5, 1e-6, 1e-10)]
    [69, 67, 58]
    """
    return math.floor(math.log(max(SHARE * delta / ADVANTAGE - 1.0, 1.0)))


def ideal_delta(epsilon: float, *, delta: float) -> float:
    """The delta of ideal noise that leaves room for the cipher at this epsilon.

    Refuses an epsilon beyond those that are proven. At an everyday one the room is so
    small that the difference is no float.
    """
    most = most_epsilon(delta)
    if epsilon > most:
        raise Refused(
            f"epsilon={epsilon:.2f} of noisy sums is not proven, and at delta={delta:g}"
            f" none above {most} is, since their noise follows from secrets of 256 "
            "bits: ask for a smaller one (docs/release.md)"
        )
    return delta - cipher_cost(epsilon)


def compose_cells(cells: Iterable[Cell], *, delta: float) -> Epsilon:
    """What is proven of all these cells together: plans, ledgers and caps ask here.

    Refuses sums whose epsilon is beyond what is proven, with the reason.
    """
    cells = [*cells]
    every = _releases(cells)
    sums = _releases(cell for cell in cells if not (cell.is_local and _is_pure(cell)))
    ideal = compose_once(every, delta=delta)
    if ideal.value is None or not delta or not sums:
        return ideal
    try:
        left = ideal_delta(ideal.value, delta=delta)
    except Refused:
        room = SHARE * delta / 2
        if len(sums) == len(every) or not _fits(sums, room):
            raise
        left = delta - 2 * room
    _check_distances(sums)
    return compose_once(every, delta=left)


def _is_pure(cell: Cell) -> bool:
    return compose_once(_releases([cell]), delta=0.0).value is not None


def _fits(sums: Releases, room: float) -> bool:
    """Whether the cipher's part of these sums fits twice into this delta.

    Then it does so beside any reports of clients' own: of what these tell, all but
    `room` of delta meets the sums at no more than the epsilon that they have there.
    """
    if room < LEAST_DELTA:
        return False
    alone = compose_once(sums, delta=room).value
    return alone is not None and cipher_cost(alone) <= room


def _check_distances(sums: Releases) -> None:
    farthest = max(map(_distance, take_apart(sums) or ()), default=0.0)
    if farthest > MOST_DISTANCE:
        raise Refused(
            f"a release has noise of {1 / farthest:.3g} of its sensitivity, and the "
            f"proof covers 1/{MOST_DISTANCE:g} and more; use more noise"
        )


def _distance(part: Part) -> float:
    """1/z of one release, or more: how many deviations neighbours are apart."""
    event = getattr(part.event, "event", part.event)  # what was sampled, or itself
    return distance(part.adjacency) / getattr(event, "noise_multiplier", math.inf)


def _releases(cells: Iterable[Cell]) -> Releases:
    return [(cell.event, str(cell.adjacency)) for cell in cells if cell.event]
