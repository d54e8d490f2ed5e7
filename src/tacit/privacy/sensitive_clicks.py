"""A budget for sensitive categories alone; what is open is told as it is.

    sensitive slate   one that shows an item of a sensitive category, or one whose
                      category is not known; all others are open
    open history      the items of a history that are of no such category

    open slates       a click of each leaves as it is
    sensitive slates  a click of each by randomised response over the whole slate
    interest          that of the open history leaves as it is; sensitive items do not
                      enter it

Two people are neighbours if they were shown the same, their open histories are equal,
and so is what they clicked in open slates. Sensitive items of their histories, and what
they clicked in sensitive slates, may be anything. Then every part of a report but the
labels of sensitive slates is drawn alike, and those divide `epsilon`: the report is
`epsilon`-DP for neighbours. Open items and slates cost nothing, since nothing is
promised of them. So nothing is promised of a whole history, nor of "one interaction",
which may be an open one: every cell is NONE, and the figure stands in the reason.

A click in a sensitive slate on an open item may stand in a later history. There it is
an open item like others.

Source: Liu et al. 2022, Section 3.1: "spend privacy budget only for sensitive ones".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Bool, Int32

from tacit.data.catalog import Catalog
from tacit.data.marked_items import marked_items
from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy.budgets import given
from tacit.privacy.guarantees import unprotected
from tacit.privacy.local_clicks import OpenClicks
from tacit.privacy.privacy import Slots, release
from tacit.release import Release
from tacit.transport.messages import Slot
from tacit.tree import Array, Arrays
from tacit.wire_names import register

OPEN = "open"  # of items, and of slates that show no other


@register("sensitive_clicks")
@dataclass(frozen=True)
class SensitiveClicks(OpenClicks):
    """Randomised response on clicks in slates that show sensitive items, only there.

    Guarantee: `epsilon` pure local DP for the sensitive part of a history and of
        clicks, with equal open parts; nothing for a whole user or one interaction.
    Assumes: slates and categories are public, and those that the server sends are the
        agreed ones.
    """

    sensitive: tuple[str, ...] = ()  # labels
    feature: str = "category"  # of the catalog, which has these labels

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sensitive:
            raise BadValue(
                "sensitive is empty, and nothing would be protected; name labels of "
                f"the feature '{self.feature}', or use mechanism = 'local'"
            )

    def calibrated(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> Self:
        """Itself: a target is of a whole user, to whom this promises nothing."""
        if plan.target_epsilon is not None:
            raise BadValue(
                f"target_epsilon={plan.target_epsilon} is of whole users, and here "
                "sensitive categories alone are protected; leave it out and set "
                "privacy.epsilon, of a report"
            )
        return self

    def open_items(self, catalog: Catalog) -> Bool[np.ndarray, "items"]:
        """Which items are of no sensitive category."""
        return ~marked_items(catalog, self.feature, self.sensitive)

    # account

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """One release, of which nothing holds for whole users; the reason says what."""
        rounds = plan.sampler.most_participations(plan)
        total = rounds * given(self.epsilon, "epsilon")
        named = " and ".join(self.sensitive)
        reason = (
            f"only the sensitive part is protected, {named} of '{self.feature}': two "
            "people who differ in that part alone are told apart by all messages of a "
            f"client ({rounds} reports) with epsilon {total:.4g} at most, pure, "
            "replace_one (randomised response over slates, docs/methods/"
            "privaterec_local.md); open items, a whole history and any one interaction "
            "have no promise"
        )
        what = f"clicks and interests, with noise on {named} alone"
        return (release(plan, what, unprotected("open_part_bare", reason)),)

    # client

    def open_part(self, histories: Ragged, public: Arrays) -> Ragged:
        """The histories without sensitive items."""
        is_open = public[OPEN][histories.values] == 1
        lengths = np.bincount(histories.owners[is_open], minlength=len(histories))
        return Ragged.of_lengths(lengths, histories.values[is_open])

    def mark_slates(
        self, shown: Int32[np.ndarray, "clients slates items"], public: Arrays
    ) -> dict[str, Array]:
        """A one for each slate that shows open items alone."""
        is_open = np.append(True, public[OPEN] == 1)  # 0: no item
        are_open = is_open[shown].all(axis=2) & shown.any(axis=2)
        return {OPEN: are_open.astype(np.int32)}

    # client and server

    def marks(self, slates: int) -> Slots:
        """A number for each slate."""
        return {OPEN: Slot("int32", (slates,))}

    def are_open(
        self, sizes: Int32[np.ndarray, "reports slates"], marks: Arrays
    ) -> Bool[np.ndarray, "reports slates"]:
        """The slates that are marked so."""
        return np.asarray(marks[OPEN] == 1)

    # server

    def public_items(self, catalog: Catalog) -> dict[str, Array]:
        """A one for each open item."""
        return {OPEN: self.open_items(catalog).astype(np.int32)}

    def are_marks(
        self, messages: Arrays, catalog: Catalog
    ) -> Bool[np.ndarray, "messages slates"]:
        """No mark, or that of a slate of which only open items were sent."""
        said, sent = messages[OPEN], messages["candidates"]
        is_open = np.append(True, self.open_items(catalog))  # 0: no item
        may_be_open = is_open[np.clip(sent, 0, len(catalog))].all(axis=2)
        may_be_open &= sent.any(axis=2)
        return np.asarray((said == 0) | ((said == 1) & may_be_open))

    def _share(self, share: float) -> float:
        """Labels have all of it: interests cost nothing."""
        return given(self.epsilon, "epsilon")
