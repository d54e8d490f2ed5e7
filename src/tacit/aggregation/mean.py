"""The sum of a cohort's reports: what nearly every method learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tacit.errors import Refused
from tacit.transport.channels import Delivery, Each, RoundContext, Sum, Unlinked, summed
from tacit.tree import Array


class Aggregator(Protocol):
    """Says which deliveries it can work with; a plan refuses the others."""

    @property
    def accepts(self) -> tuple[type[Delivery], ...]:
        """The types of delivery that it can read; a plan is checked against them."""
        ...

    @property
    def is_plain_sum(self) -> bool:
        """Whether it adds reports and divides by a public number, and does no more.

        Only then does one user move the result by one clip: a filter that looks at
        the reports (Krum, a median) or a weight that depends on the data may not come
        before the noise.
        """
        ...

    def total(self, delivery: Delivery, context: RoundContext) -> dict[str, Array]:
        """What stands for the sum of the reports; over `planned` it is their mean."""
        ...


@dataclass(frozen=True)
class Mean:
    """Folds reports as they come; never holds more than one chunk of them.

    A client that refuses counts as zero: whoever divides the total divides by the
    *planned* size. The realised one would make one user's absence move everyone
    else's weight, and the sensitivity of the sum would no longer be one clip.
    """

    accepts: tuple[type[Delivery], ...] = (Each, Sum)
    is_plain_sum: bool = True

    def total(self, delivery: Delivery, context: RoundContext) -> dict[str, Array]:
        """The sum of all reports; zero where nobody contributed.

        A `Sum` has its noise already. Over `Each` it is added here, by a server that
        has seen every report: what is published is protected, the server's own view is
        not.
        """
        if type(delivery) not in self.accepts:
            named = " or ".join(kind.__name__ for kind in self.accepts)
            raise Refused(
                f"Mean cannot read {type(delivery).__name__}; use a channel that "
                f"delivers {named}"
            )
        if isinstance(delivery, Sum):
            context.layout.check_total(
                delivery.total
            )  # a channel may be somebody else's
            return {**delivery.total}
        if isinstance(delivery, Unlinked):
            return summed([delivery.messages], context)
        return summed((chunk.tree for chunk in delivery.chunks if len(chunk)), context)
