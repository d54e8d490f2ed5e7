"""From the ideal account to what is proven: noise on sums is drawn by a cipher.

Under words that are random, noise has exactly the law that the account assumes. A
release draws it from AES-256 under a secret. An attacker has some advantage a in
telling the cipher from random words, if only by trying secrets. Of two neighbours D and
D', a counts in both worlds, and in the second e^epsilon times:

    Pr[says "D" | D]  <=  e^epsilon Pr[says "D" | D'] + delta + (1 + e^epsilon) a

So beyond some epsilon nothing is proven of a sum, however its noise is drawn. The
addition is part of delta: a figure is composed at what it leaves, and where it is more
than a thousandth of delta, there is no figure (docs/release.md has the proof). Beside
clients' own reports it may be 2e-10, if that is no more than a tenth of delta.

Pure figures of reports that clients protect themselves stay as they are: they speak of
random words, and have no delta that an addition could be a part of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tacit.accounting.decomposition import deviations, take_apart, without_failures
from tacit.accounting.epsilon import LEAST_DELTA, Epsilon, compose_once
from tacit.errors import Refused
from tacit.release import Cell

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

ADVANTAGE = 2.0**-127  # of the cipher 2^-128; the rest: its blocks are distinct
SHARE = 1e-3  # of delta, the most that the addition may take
MOST_BESIDE = 0.1  # of delta, where it is so small that a share cannot be computed
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
    return _most(SHARE * delta)


def _most(addition: float) -> int:
    """The largest epsilon at which the cipher adds no more than this."""
    return math.floor(math.log(max(addition / ADVANTAGE - 1.0, 1.0)))


def ideal_delta(epsilon: float, *, delta: float) -> float:
    """The delta of ideal noise that leaves room for the cipher at this epsilon.

    Refuses an epsilon beyond those that are proven. At an everyday one the room is so
    small that the difference is no float.
    """
    most = most_epsilon(delta)
    if epsilon > most:
        raise _beyond(epsilon, most, f"delta={delta:g}")
    return delta - cipher_cost(epsilon)


def _beyond(epsilon: float, most: int, where: str) -> Refused:
    return Refused(
        f"epsilon={epsilon:.2f} of noisy sums is not proven, and at {where} none above "
        f"{most} is, since their noise follows from secrets of 256 bits: ask for a "
        "smaller one (docs/release.md)"
    )


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
        found = _with_cipher(every, ideal, delta)
    except Refused:
        if len(sums) == len(every):
            raise
        found = compose_once(every, delta=delta - _cost_beside_reports(sums, delta))
    _check_distances(sums)
    return found


def _with_cipher(every: Releases, ideal: Epsilon, delta: float) -> Epsilon:
    """The figure at the delta that the cipher leaves, which is priced at the figure.

    Less delta is a larger epsilon, and each whole number that it passes costs more.
    """
    found, priced = ideal, -1
    while found.value is not None and math.ceil(found.value) > priced:
        priced = math.ceil(found.value)
        found = compose_once(every, delta=ideal_delta(found.value, delta=delta))
    return found


def _is_pure(cell: Cell) -> bool:
    return compose_once(_releases([cell]), delta=0.0).value is not None


def _cost_beside_reports(sums: Releases, delta: float) -> float:
    """What the cipher takes of delta however much clients' own reports tell.

    Of what these tell, all but `room` of delta meets the sums at no more than the
    epsilon that they have alone, and there the cipher adds `room` at the most.
    """
    room = max(SHARE * delta / 2, LEAST_DELTA)
    if room > MOST_BESIDE * delta / 2:
        raise Refused(
            f"at delta={delta:g} nothing is proven of noisy sums beside clients' own "
            f"reports above epsilon={most_epsilon(delta)} in all; use a delta of "
            f"{2 * LEAST_DELTA / MOST_BESIDE:g} or more"
        )
    # A failure tells all under any noise, and the account of all has it already.
    _, failure = without_failures(take_apart(sums) or {})
    alone = compose_once(sums, delta=failure + (1.0 - failure) * room).value
    if alone is None or cipher_cost(alone) > room:
        where = f"delta={room:g} beside clients' own reports"
        raise _beyond(math.inf if alone is None else alone, _most(room), where)
    return 2 * room


def _check_distances(sums: Releases) -> None:
    farthest = max(map(deviations, take_apart(sums) or ()), default=0.0)
    if farthest > MOST_DISTANCE:
        raise Refused(
            f"a release has noise of {1 / farthest:.3g} of its sensitivity, and the "
            f"proof covers 1/{MOST_DISTANCE:g} and more; use more noise"
        )


def _releases(cells: Iterable[Cell]) -> Releases:
    return [(cell.event, str(cell.adjacency)) for cell in cells if cell.event]
