"""Which features a network reads and how large it is; one network per catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from tacit.data.catalog import Catalog, Profiles
from tacit.data.features import Feature, Numeric
from tacit.errors import BadMessage
from tacit.keys import Key
from tacit.models.feature_mlp.cohort import VALUE, Cohort
from tacit.models.feature_mlp.inputs import Fields
from tacit.models.feature_mlp.item_description import described
from tacit.models.feature_mlp.items import Items
from tacit.models.feature_mlp.labels import Labelling
from tacit.models.feature_mlp.network import Activation, Network
from tacit.transport.messages import PublicSlot, Slot
from tacit.tree import Array, Arrays, Tree

_COUNTS = "(counts)"  # no catalog has a feature of this name


@dataclass(frozen=True)
class Blueprint:
    """A network before its catalog is known.

    `people` and `situations` say how many labels each feature has, 0 for a number. The
    labels of items are read from the catalog, which is public.
    """

    items: tuple[str, ...] = ()  # features of the catalog; see `described`
    by_value: tuple[str, ...] = ()  # numbers of items with a label for each value
    people: Mapping[str, int] = field(default_factory=dict)
    situations: Mapping[str, int] = field(default_factory=dict)
    uses_value: bool = False  # an event's value belongs to its situation
    has_counts: bool = False  # how often an item is liked is one of its features
    is_scaled: bool = True  # whether numbers of items are standardised
    embedding: int = 64
    widths: tuple[int, ...] = (64, 32, 16, 8)
    activation: Activation = "relu"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        any_item = Fields({"any": 1}, self._first_item_row)
        self._network(any_item)  # refuses widths and types that cannot be

    def network(self, catalog: Catalog) -> Network:
        """The network for these items."""
        features = self._described(catalog)
        first = self._first_item_row
        return self._network(Fields.of(features, tuple(features), first=first))

    def read(
        self, catalog: Catalog, counts: Float64[np.ndarray, "items"] | None = None
    ) -> Items:
        """The items as the network reads them; without `counts` all counts are zero."""
        network = self.network(catalog)
        return Items.of(
            self._described(catalog, counts),
            network.item,
            n=len(catalog),
            rows=network.n_rows,
            scaled=self.is_scaled,
        )

    def start(self, catalog: Catalog, key: Key) -> dict[str, Array]:
        """Random weights, and the items as the network reads them."""
        return {**self.network(catalog).start(key), **self.read(catalog).arrays()}

    def public_shape(self, catalog: Catalog) -> dict[str, PublicSlot]:
        """The layout of a broadcast: the network's weights, and the items."""
        network = self.network(catalog)
        weights = {n: PublicSlot(self.dtype, s) for n, s in network.shapes.items()}
        return {**weights, **self.read(catalog).public_shape(rows=network.n_rows)}

    def report_shape(self, catalog: Catalog) -> dict[str, Slot]:
        """The layout of a report with one number per weight."""
        shapes = self.network(catalog).shapes
        return {name: Slot(self.dtype, shape) for name, shape in shapes.items()}

    def cohort(self, arrays: Arrays, labelling: Labelling) -> Cohort:
        """The network and items of a broadcast, and how clients read a history."""
        first = self._first_item_row
        items = Items.from_broadcast(arrays, first=first, dtype=self.dtype)
        network = self._network(items.fields)
        own = {name: arrays[name] for name in network.shapes}
        for name, shape in network.shapes.items():  # a kernel checks no bounds
            if own[name].shape != shape:
                raise BadMessage(
                    f"'{name}' has shape {own[name].shape}; items with these labels "
                    f"need {shape}"
                )
        return Cohort(network, own, items, labelling)

    def profile_columns(self, profiles: Profiles) -> Tree:
        """The profile of each user as arrays, for their client to keep."""
        columns = self._person.columns(profiles.features, len(profiles))
        return Tree.dense(**columns)

    @property
    def _person(self) -> Fields:
        return Fields(self.people)

    @property
    def _situation(self) -> Fields:
        own = {VALUE: 0} if self.uses_value else {}
        return Fields({**self.situations, **own}, self._person.n_rows)

    @property
    def _first_item_row(self) -> int:
        return self._person.n_rows + self._situation.n_rows

    def _described(
        self, catalog: Catalog, counts: Float64[np.ndarray, "items"] | None = None
    ) -> dict[str, Feature]:
        features = described(catalog, self.items, self.by_value)
        if not self.has_counts:
            return features
        known = np.zeros(len(catalog)) if counts is None else counts
        return {**features, _COUNTS: Numeric(known.astype(np.float32))}

    def _network(self, items: Fields) -> Network:
        return Network(
            self._person,
            self._situation,
            items,
            embedding=self.embedding,
            widths=self.widths,
            activation=self.activation,
            dtype=self.dtype,
        )


def size(network: Network) -> int:
    """The number of weights of a network, all layers together."""
    return sum(int(np.prod(shape)) for shape in network.shapes.values())
