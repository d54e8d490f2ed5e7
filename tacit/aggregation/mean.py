"""The mean of a cohort's reports, over the planned cohort size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tacit import check
from tacit.errors import Refused
from tacit.keys import Key
from tacit.transport.channels import Delivery, Each, Noise, Sum, bare_sum, noisy_sum
from tacit.transport.messages import Layout
from tacit.tree import Array


class Aggregator(Protocol):
    """Says which deliveries it can work with; a plan refuses the others."""

    @property
    def accepts(self) -> tuple[type[Delivery], ...]:
        """The deliveries it can read."""
        ...

    @property
    def is_plain_sum(self) -> bool:
        """Whether it adds reports and divides by a public number, and does no more.

        Only then does one person move the result by one clip: a filter that looks at
        the reports (Krum, a median) or a weight that depends on the data may not come
        before the noise.
        """
        ...


@dataclass(frozen=True)
class Mean:
    """Folds reports as they come; never holds more than one chunk of them."""

    accepts: tuple[type[Delivery], ...] = (Each, Sum)
    is_plain_sum: bool = True

    def total(
        self,
        delivery: Delivery,
        layout: Layout,
        *,
        noise: Noise | None = None,
        key: Key | None = None,
    ) -> dict[str, Array]:
        """The sum of all reports; zero where nobody contributed.

        `noise` is the method's. A `Sum` has it already; over `Each` it is added here,
        by a server that has seen every report: what is published is protected, the
        server's own view is not.
        """
        if isinstance(delivery, Sum):
            layout.check_total(delivery.total)
            return {**delivery.total}
        if not isinstance(delivery, Each):
            raise Refused(
                f"Mean cannot read {type(delivery).__name__}; use a channel that "
                "delivers Each or Sum"
            )
        trees = (chunk.tree for chunk in delivery.chunks if len(chunk))
        if noise is None:
            return bare_sum(trees, layout)
        assert key is not None, "noise needs a key"
        return noisy_sum(trees, layout, noise, key)

    def mean(
        self,
        delivery: Delivery,
        layout: Layout,
        *,
        planned: float,
        noise: Noise | None = None,
        key: Key | None = None,
    ) -> dict[str, Array]:
        """The sum over the *planned* cohort size, so that a refusal counts as zero.

        Dividing by the realised size would make one person's absence move everyone
        else's weight, and the sensitivity of the sum would no longer be one clip.
        """
        check.positive(planned=planned)
        total = self.total(delivery, layout, noise=noise, key=key)
        return {name: value / planned for name, value in total.items()}
