"""A pass of many clients by the compiled kernel: its arguments, made ready once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int64

from tacit.data.ragged import offsets_of
from tacit.models.feature_mlp.examples import Examples
from tacit.models.feature_mlp.inputs import Encoded
from tacit.models.feature_mlp.network import Network, bias, block, weights
from tacit.models.feature_mlp.schedule import Schedule

if TYPE_CHECKING:
    from tacit.kernels import feature_mlp


class Compiled:
    """The same pass as `plain_pass.Client`, for a stack of clients."""

    def __init__(
        self,
        network: Network,
        home: Float[np.ndarray, "weights"],
        examples: Examples,
        schedule: Schedule,
    ) -> None:
        from tacit.kernels import feature_mlp

        self.home, self.lengths = home, examples.lengths
        self.layout, self.rule = _layout(network), _rule(network, schedule)
        self.given = feature_mlp.Given(
            _side(examples.users, network.dtype),
            _side(examples.situations, network.dtype),
            _side(examples.catalog, network.dtype),
            examples.items,
            examples.labels.astype(network.dtype),
        )

    def learn(
        self,
        stack: Float[np.ndarray, "some weights"],
        who: Int64[np.ndarray, "some"],
        places: Int64[np.ndarray, "examples"],
    ) -> None:
        """One pass over the examples of each client `who`, in the order of `places`.

        The weights in `stack` change in place, one row per client.
        """
        from tacit.kernels import feature_mlp

        ends = offsets_of(self.lengths[who])
        arguments = self.home, self.layout, self.rule, self.given
        feature_mlp.train(stack, *arguments, who, places, ends)


def _layout(network: Network) -> feature_mlp.Layout:
    from tacit.kernels import feature_mlp

    first = network.offsets
    others = [side for side in network.sides if side != "person"]
    size = network.embedding
    inputs = sum(network.sides[side].width(size) for side in others)
    later = range(2, network.n_layers + 2)  # with the output layer
    # The kernel adds a user's side once per batch, so it reads the other sides, which
    # stand one after another, as one block.
    return feature_mlp.Layout(
        network.n_rows,
        size,
        network.person.width(size),
        np.array([inputs, *network.widths, 1]),
        np.array([first[block(others[0])], *(first[weights(n)] for n in later)]),
        np.array([first[bias(n)] for n in (1, *later)]),
    )


def _rule(network: Network, schedule: Schedule) -> feature_mlp.Rule:
    from tacit.kernels import feature_mlp

    # Rates in the type of the weights, or the kernel would compute in float64.
    number = np.dtype(network.dtype).type
    return feature_mlp.Rule(
        schedule.batch,
        number(schedule.rate),
        number(schedule.pull),
        schedule.is_squared,
        network.activation == "relu",
        schedule.head == "sigmoid",
    )


def _side(of: Encoded, dtype: str) -> feature_mlp.Side:
    from tacit.kernels import feature_mlp

    held = of.shares
    return feature_mlp.Side(
        held.indptr.astype(np.int64),
        held.indices.astype(np.int64),
        held.data.astype(dtype),
        np.ascontiguousarray(of.numbers, dtype),
        of.n_fields,
    )
