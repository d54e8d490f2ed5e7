"""A public vector for each item of a catalog, from its texts and labels.

    a feature of vectors      as it is, such as the sentence vectors of titles
    texts                     one bag of words of all texts together, weighted by how
                              rare a word is, hashed into a few hundred columns
    labels                    one column for each label

Each kind is centred over the catalog and scaled to length one. Side by side they are
rotated to their principal axes, of which the first `dimensions` are kept, and scaled to
length one again. No event of any user is read, so nothing of it is private.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float32

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category, Feature, Text, Vectors
from tacit.data.strings import Strings
from tacit.data.text_vectors import TITLE
from tacit.errors import BadValue
from tacit.models.content_similarity import bag_of_words, indicator, unit_rows

Rows = Float32[np.ndarray, "items axes"]


def news_vectors(
    catalog: Catalog, names: Sequence[str], *, dimensions: int | None = None
) -> Rows:
    """One vector of length one per item; zeros for an item of which nothing is known.

    `names` are features of the catalog; `title` stands for the words of the titles.
    """
    return _news_vectors(catalog, tuple(names), dimensions)


def described_by(catalog: Catalog) -> tuple[str, ...]:
    """The titles, and the features of a catalog that vectors can be made of."""
    kinds = (Category, Categories, Text, Vectors)
    found = [n for n, column in catalog.features.items() if isinstance(column, kinds)]
    return (TITLE, *found)


def centred(vectors: Rows) -> Rows:
    """Vectors less their mean; an item without a text keeps its zeros."""
    is_known = np.any(vectors != 0, axis=1)
    if not is_known.any():
        return vectors
    mean = vectors[is_known].mean(axis=0, dtype=np.float64).astype(np.float32)
    return np.where(is_known[:, None], vectors - mean, np.float32(0))


def reduced(vectors: Rows, dimensions: int) -> Float32[np.ndarray, "items fewer"]:
    """The vectors along the axes on which they differ most, the first axis first."""
    if dimensions >= vectors.shape[1]:
        return vectors
    wide = vectors.astype(np.float64)
    _, axes = np.linalg.eigh(wide.T @ wide)  # eigenvalues in ascending order
    return (wide @ axes[:, ::-1][:, :dimensions]).astype(np.float32)


@lru_cache(maxsize=2)  # the layout of a broadcast needs them as well as the weights
def _news_vectors(
    catalog: Catalog, names: tuple[str, ...], dimensions: int | None
) -> Rows:
    kinds = [unit_rows(centred(kind)) for kind in _kinds(catalog, names)]
    joined = np.concatenate(kinds, axis=1)
    return unit_rows(joined if dimensions is None else reduced(joined, dimensions))


def _kinds(catalog: Catalog, names: tuple[str, ...]) -> list[Rows]:
    """The rows of each feature; all texts together are one of them."""
    texts, others = list[Strings](), list[Rows]()
    for name in names:
        column = _column(catalog, name)
        if isinstance(column, Text):
            texts.append(column.texts)
        elif isinstance(column, Vectors):
            others.append(column.values)
        elif isinstance(column, Category | Categories):
            others.append(indicator(column))
        else:
            raise BadValue(
                f"content: '{name}' is a number, and says no direction; name a "
                "feature of vectors, texts or labels"
            )
    if texts:
        joined = [" ".join(row) for row in zip(*texts, strict=True)]
        others.append(bag_of_words(Text(Strings.of(joined))))
    return others


def _column(catalog: Catalog, name: str) -> Feature:
    known: dict[str, Feature] = {TITLE: Text(catalog.titles), **catalog.features}
    if name not in known and name.endswith("_vector"):
        text = name.removesuffix("_vector")
        raise BadValue(
            f"content: the catalog has no feature '{name}', but "
            f"{', '.join(sorted(known))}; set data.text_vectors = ['{text}'] to have "
            "it made, or name another"
        )
    check.one_of(known, content=name)
    return known[name]
