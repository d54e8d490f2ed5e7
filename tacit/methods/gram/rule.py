"""What follows from people and noise alone: the head, the budget, what to expect.

Nothing here looks at data, so all of it is known before anything is spent. The figures
were found on MovieLens 1M and are not tuned per epsilon (docs/methods/gram.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.models.spectrum import noise_edge
from tacit.tree import Arrays

COUNT_SHARE = 0.1  # of the budget, for the counting
_HEAD, _PEOPLE_TO_NOISE = 600, 4743.0  # the head is 600 where people / s is 4743
_FEWEST_HEAD = 16
_POPULARITY, _BROAD = 0.06, 0.02  # shares at the noise's edge
_EXPECT = (  # where tastes begin to be learnt
    (
        _POPULARITY,
        "popularity, the same for everyone; it takes more people or more epsilon",
    ),
    (_BROAD, "broad tastes; more people or a larger epsilon would bring finer ones"),
    (0.0, "personal lists"),
)


@dataclass(frozen=True)
class Evidence:
    """What a sum of relations rests on: how many people, under how much noise."""

    people: float
    variance: float  # of the noise on its diagonal

    @classmethod
    def of(cls, memory: Arrays) -> Evidence:
        """As a server keeps it."""
        return cls(float(memory["people"][0]), float(memory["variance"][0]))

    def arrays(self) -> dict[str, np.ndarray]:
        """For a server to keep."""
        return {
            "people": np.array([self.people]),
            "variance": np.array([self.variance]),
        }

    def __add__(self, other: Evidence) -> Evidence:
        """Of two sums added up; their noise is independent."""
        return Evidence(self.people + other.people, self.variance + other.variance)

    def times(self, weight: float) -> Evidence:
        """Of a sum times a number."""
        return Evidence(self.people * weight, self.variance * weight**2)

    def rounds(self, n: int) -> Evidence:
        """Of so many sums like this one, added up."""
        return Evidence(self.people * n, self.variance * n)

    @property
    def deviation(self) -> float:
        """Of the noise on the diagonal."""
        return math.sqrt(self.variance)

    def edge(self, side: int) -> float:
        """The largest eigenvalue that noise makes, over the number of people."""
        return noise_edge(side, self.deviation) / self.people

    def weight_beside(self, other: Evidence) -> float:
        """What to multiply this sum by before the other is added to it.

        Of all weights a, a = people / variance makes the most of the two: the people
        counted, over the deviation of the noise, are then the root of the sum of both
        squares (Cauchy and Schwarz), so neither sum is ever worse off for the other.
        Without noise everyone counts once.
        """
        if self.variance == 0 or other.variance == 0:
            return 1.0
        return self.people / self.variance / (other.people / other.variance)


def head_size(known: Evidence, *, most: int) -> int:
    """How many items can be related: more people or less noise, more items."""
    if known.variance == 0:
        return most
    size = _HEAD * math.sqrt(known.people / known.deviation / _PEOPLE_TO_NOISE)
    return min(most, max(_FEWEST_HEAD, int(size)))


def hides_tastes(edge: float) -> bool:
    """Whether nothing but popularity would stand out from the noise."""
    return edge > _POPULARITY


def lean(edge: float) -> float:
    """How far to lean on content: from 0 without noise to 1."""
    return min(1.0, edge / _BROAD)


def outlook(edge: float) -> str:
    """How widely a taste must be shared to stand out from the noise."""
    expect = next(words for least, words in _EXPECT if edge > least)
    return (
        "a taste stands out from the noise if it makes up "
        f"{edge:.1%} of what people have in common: expect {expect}"
    )
