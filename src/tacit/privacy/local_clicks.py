"""Every client names an interest and a click of some slates, each by a random response.

    client   1  interest   the public interest nearest to the history, or any other
             2  labels     the clicked place of each slate, or any other of the slate

`epsilon` is that of a whole report: the interest has its share of it, and the labels
divide the rest among them. Slates are public: a server knows what it has shown to whom.
What is protected is the history, what was clicked, and whether anything was.

A kind may leave a part *open*, of which nothing is promised: open items of a history,
and open slates, whose clicks leave as they are. `public_items` says which items are
open, `mark_slates` marks the open slates, `are_open` and `are_marks` read the marks.
Here all is protected, and nothing is marked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Float32, Int32
from numpy import ndarray

from tacit.codes import Code
from tacit.data.catalog import Catalog
from tacit.data.ragged import Ragged
from tacit.errors import Refused
from tacit.keys import Keys
from tacit.mechanisms.label_choice import LabelChoice
from tacit.mechanisms.private_attention import LaplaceAttention
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.models.public_interests import (
    Attention,
    expected_after_noise,
    expected_after_response,
    marked,
)
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy.budgets import given
from tacit.privacy.guarantees import local
from tacit.privacy.local_report import LocalReport
from tacit.privacy.privacy import Codes, Legal, Slots, release
from tacit.release import Release
from tacit.tree import Array, Arrays, Tree
from tacit.wire_names import register

Interests = Float32[ndarray, "clients interests"]


@register("local_clicks")
@dataclass(frozen=True)
class LocalClicks(LocalReport):
    """Randomised response on an interest and on clicks; `epsilon` is of all of them."""

    is_releasable: ClassVar[bool] = True
    assumes: ClassVar[tuple[Code, ...]] = (Code("public_slates"),)

    # account

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """One release per part of a report; a part has the share of its phase."""
        from tacit.accounting.events import pure_local

        made = []
        for phase in phases:
            # Labels of several slates divide it: together they cost no more.
            event = pure_local(self._share(phase.share))
            cells = local(plan, event, reason=f"{phase.proof}; pure local privacy")
            public = {name: c.assuming(*self.assumes) for name, c in cells.items()}
            what = f"randomised {phase.what}"
            made.append(release(plan, what, public))
        return tuple(made)

    # client

    def interests(self, attention: Attention, keys: Keys, *, share: float) -> Interests:
        """Line 1: a one at the reported interest of each client."""
        mechanism = self._response(share, attention.shape[1])
        said = mechanism.privatize(attention.argmax(axis=1), keys)
        return marked(said, attention.shape[1])

    def labels(self, *, share: float, slates: int, negatives: int) -> LabelChoice:
        """Line 2: the mechanism of each of so many slates."""
        # Rounded down, so that the parts never add up to more than the whole.
        each = math.nextafter(self._share(share) / slates, 0.0)
        return LabelChoice(each, negatives)

    def open_part(self, histories: Ragged, public: Arrays) -> Ragged:
        """The part of each history that its interest is made of: all of it."""
        return histories

    def mark_slates(
        self, shown: Int32[ndarray, "clients slates items"], public: Arrays
    ) -> dict[str, Array]:
        """Marks of a client's slates, for `are_open`; items count from 1, 0 is none."""
        return {}

    def report(
        self, tree: Tree, phase: Phase, told: Arrays, *, codes: Codes, keys: Keys
    ) -> Tree:
        """Refused: interests and clicks are no sum; see `interests` and `labels`."""
        raise Refused(
            "interests and clicks are for methods that read single reports; see "
            "privaterec_local"
        )

    # client and server

    def marks(self, slates: int) -> Slots:
        """The arrays that `mark_slates` adds to a report of this many slates."""
        return {}

    def are_open(
        self, sizes: Int32[ndarray, "reports slates"], marks: Arrays
    ) -> Bool[ndarray, "reports slates"]:
        """Slates whose click leaves as it is, by the marks of a report."""
        return np.zeros(sizes.shape, bool)

    # server

    def public_items(self, catalog: Catalog) -> dict[str, Array]:
        """A broadcast array of a 0 or a 1 for each item, if some items are open."""
        return {}

    def are_marks(
        self, messages: Arrays, catalog: Catalog
    ) -> Bool[ndarray, "messages slates"]:
        """Slates whose marks an honest client may have sent."""
        return np.ones(messages["sizes"].shape, bool)

    def expected(
        self, said: Float[ndarray, "reports interests"], *, share: float
    ) -> Attention:
        """The attention to expect of each client, given what all have said."""
        how = self._response(share, said.shape[1])
        return expected_after_response(said, keep=how.keep, other=how.other)

    def are_interests(self, said: Float[ndarray, "reports interests"]) -> Legal:
        """Which rows name one interest, once."""
        is_marked = said == 1
        return (is_marked.sum(axis=1) == 1) & (is_marked | (said == 0)).all(axis=1)

    # details

    def _share(self, share: float) -> float:
        """The epsilon of a part that has this share."""
        whole = given(self.epsilon, "epsilon")
        return whole if share == 1 else math.nextafter(share * whole, 0.0)

    def _response(self, share: float, interests: int) -> RandomizedResponse:
        return RandomizedResponse(self._share(share), interests)


@register("local_noisy_clicks")
@dataclass(frozen=True)
class LocalNoisyClicks(LocalClicks):
    """The same, with Laplace noise on the attention over all interests.

    Its noise is in floats, whose low bits are not covered: it is there to compare.
    """

    is_releasable: ClassVar[bool] = False
    assumes: ClassVar[tuple[Code, ...]] = (*LocalClicks.assumes, Code("float_noise"))

    def interests(self, attention: Attention, keys: Keys, *, share: float) -> Interests:
        """The attention with noise on every weight."""
        noisy = self._laplace(share, attention.shape[1]).noisy(attention, keys)
        return noisy.astype("float32")

    def are_interests(self, said: Float[ndarray, "reports interests"]) -> Legal:
        """Refused: noise has no longest draw, so nobody can say what is too much."""
        raise Refused(
            "Laplace noise may be of any size, so a message that is a lie cannot be "
            "told; use mechanism = 'local'"
        )

    def expected(
        self, said: Float[ndarray, "reports interests"], *, share: float
    ) -> Attention:
        """The best linear estimate of each client's attention."""
        scale = self._laplace(share, said.shape[1]).scale
        return expected_after_noise(said, variance=2 * scale**2)

    def _laplace(self, share: float, interests: int) -> LaplaceAttention:
        # An attention sums to one, so its norm is 1 at most: nothing is clipped.
        return LaplaceAttention(self._share(share), interests, theta=1.0)


@dataclass(frozen=True)
class OpenClicks(LocalClicks):
    """All is open: interests and clicks leave as they are, and nothing is promised.

    A method whose mechanism is `none` reports in this way; its releases are those of
    `Unprotected`.
    """

    is_releasable: ClassVar[bool] = False

    def are_open(
        self, sizes: Int32[ndarray, "reports slates"], marks: Arrays
    ) -> Bool[ndarray, "reports slates"]:
        """Every slate of every report."""
        return np.ones(sizes.shape, bool)

    def interests(self, attention: Attention, keys: Keys, *, share: float) -> Interests:
        """The interest nearest to what is open of the history, as it is."""
        return marked(attention.argmax(axis=1), attention.shape[1])

    def expected(
        self, said: Float[ndarray, "reports interests"], *, share: float
    ) -> Attention:
        """The interests of the reports: they are true."""
        return said.astype(np.float64)


OPEN_CLICKS = OpenClicks()
