"""The features of items for a network: as given, numbers as labels, title words."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category, Feature, Features, Numeric
from tacit.data.strings import Strings
from tacit.errors import BadValue

TITLE = "title"  # the words of titles, where a catalog has no such feature

_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"\(\d{4}\)")


def described(
    catalog: Catalog, names: tuple[str, ...], by_value: tuple[str, ...]
) -> dict[str, Feature]:
    """The features of these names; none named: all but text and vectors.

    A number in `by_value` gets one label per value, so that a network may learn each
    value on its own.
    """
    known: dict[str, Feature] = {**catalog.features}
    if TITLE in names and TITLE not in known:
        known[TITLE] = shared_words(catalog.titles)
    chosen = names or tuple(
        n for n, f in known.items() if isinstance(f, Category | Categories | Numeric)
    )
    for name in chosen:
        check.one_of({**known, TITLE: None}, feature=name)
    for name in by_value:
        check.one_of(chosen, by_value=name)
    return {n: _labelled(n, known) if n in by_value else known[n] for n in chosen}


def shared_words(titles: Strings) -> Categories:
    """The words that at least two titles have; a word of one title would be an id.

    >>> shared_words(Strings.of(["Toy Story (1995)", "Toy Story 2 (1999)"]))[1]
    ('story', 'toy')
    """
    words = [set(_WORD.findall(_YEAR.sub("", title).lower())) for title in titles]
    having = Counter(word for row in words for word in row)
    return Categories.of([sorted(w for w in row if having[w] > 1) for row in words])


def _labelled(name: str, known: Features) -> Category:
    column = known[name]
    if not isinstance(column, Numeric):
        raise BadValue(f"by_value: feature '{name}' has labels already; name numbers")
    return Category.of(["" if np.isnan(v) else _shortest(v) for v in column.values])


def _shortest(value: np.float32) -> str:
    """The fewest digits that tell a number from all others: 1995, 0.1, 1234567."""
    return np.format_float_positional(value + 0, trim="-")  # + 0 makes -0.0 a 0.0
