"""The texts of a catalog as vectors: made once, kept in the cache, public as the texts.

A text is the title of an item or a feature of free text, and `title` becomes the
feature `title_vector`. What makes the vectors is handed in. They are kept under the
content of the texts and the digest of the model, so no filter and no split makes them
anew. An empty text has a vector of zeros: unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import Float32

from tacit import check
from tacit.data import cache
from tacit.data.catalog import Catalog
from tacit.data.dataset import Dataset
from tacit.data.digest import content_digest
from tacit.data.features import Text, Vectors
from tacit.data.strings import Strings
from tacit.errors import BadValue

TITLE = "title"
Progress = Callable[[int, int], None]  # texts done, texts in all


class Encoder(Protocol):
    """What makes vectors of texts; the same digest means the same vectors."""

    @property
    def digest(self) -> str:
        """What tells this model from any other."""

    def encode(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> Float32[np.ndarray, "texts width"]:
        """One vector per text."""


def vector_name(text: str) -> str:
    """The feature that holds the vectors of a text: `title_vector` for `title`."""
    return f"{text}_vector"


def with_text_vectors(
    dataset: Dataset,
    names: Sequence[str],
    encoder: Encoder,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """The data set with vectors of these texts, in its catalog and its list of items.

    They are kept in the cache `folder`. What is made is told to `progress`.
    """

    def vectors_of(texts: Strings) -> Vectors:
        return cache.vectors_through(
            cache.folder(folder),
            stamp={"model": encoder.digest, "texts": content_digest(texts)},
            build=lambda: Vectors(encoder.encode([*texts], progress=progress)),
        )

    for name in names:
        texts = _distinct(dataset, name)
        dataset = _joined(dataset, name, texts, vectors_of(texts))
    return dataset


def _distinct(dataset: Dataset, name: str) -> Strings:
    """Every text once and sorted: so neither a filter nor an order counts."""
    catalogs = [dataset.catalog, *([dataset.listed] if dataset.listed else [])]
    return Strings.of(sorted({t for c in catalogs for t in _texts(c, name)}))


def _joined(dataset: Dataset, name: str, texts: Strings, made: Vectors) -> Dataset:
    """The vectors beside the other features, also of items that nobody has."""
    catalog = _with(dataset.catalog, name, texts, made)
    listed = dataset.listed
    if listed is None or listed is dataset.catalog:
        return replace(dataset, catalog=catalog, listed=listed and catalog)
    listed = _with(listed, name, texts, made)
    return replace(dataset, catalog=catalog, listed=listed)


def _with(catalog: Catalog, name: str, texts: Strings, made: Vectors) -> Catalog:
    feature = vector_name(name)
    if feature in catalog.features:
        raise BadValue(
            f"the catalog has a feature '{feature}' already; rename it, or leave "
            f"'{name}' out of text_vectors"
        )
    rows = [texts.positions[text] for text in _texts(catalog, name)]
    features = {**catalog.features, feature: made.take(rows)}
    return Catalog(catalog.ids, catalog.titles, features)


def _texts(catalog: Catalog, name: str) -> Strings:
    known = {n: f.texts for n, f in catalog.features.items() if isinstance(f, Text)}
    known[TITLE] = catalog.titles
    check.one_of(known, text_vectors=name)
    return known[name]
