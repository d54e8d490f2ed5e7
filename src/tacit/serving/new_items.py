"""Items that a model does not know yet get a place in a client's list, without a round.

    where the method uses public content   the score is the mean of those of the known
                                           items whose labels are most alike
    otherwise, or if none is alike         behind all known items, in the given order

How alike two items are is the cosine of their sets of labels (genres, topics). Numbers,
texts and vectors take no side here. All of it is public and happens on the device: a
new item is not learnt, and nobody is asked about it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category
from tacit.method import Method
from tacit.records import Records
from tacit.serving.recommender import Recommendation

Labels = frozenset[tuple[str, str]]  # a feature's name, and one of its labels


@dataclass(frozen=True)
class NewItem:
    """An item that came after the catalog of a model."""

    id: str
    title: str
    labels: Labels = frozenset()


def content_names(method: Method) -> tuple[str, ...]:
    """The public features by which a method knows items that are alike, if any."""
    return tuple(getattr(method, "content", ()))


def items_of(catalog: Catalog, names: Sequence[str]) -> Iterator[NewItem]:
    """The items of a catalog with their labels of these features."""
    columns = {
        name: column
        for name in names
        if isinstance(column := catalog.features.get(name), Category | Categories)
    }
    for row in range(len(catalog)):
        found: set[tuple[str, str]] = set()
        for name, column in columns.items():
            own = column[row]
            found |= {(name, one) for one in ([own] if isinstance(own, str) else own)}
        yield NewItem(catalog.ids[row], catalog.titles[row], frozenset(found))


def with_new_items(
    ranked: Sequence[Recommendation],
    new: Iterable[NewItem],
    known: Iterable[NewItem],
    *,
    held: Iterable[str] = (),
) -> Records[Recommendation]:
    """A whole ranking with new items in their places.

    `known` are the items of the model's catalog. A new item that is known, or that the
    user has, is left out. Behind an equal score stands what is new.
    """
    catalog = {one.id: one.labels for one in known}
    left_out = {*catalog, *held}
    fresh = [one for one in new if one.id not in left_out]
    scored = [(line.score, catalog.get(line.id, frozenset())) for line in ranked]
    lowest = min((line.score for line in ranked), default=0.0)
    placed: list[Recommendation] = []
    tail: list[Recommendation] = []
    for one in fresh:
        score = _score(one.labels, scored)
        is_alike = score is not None
        line = Recommendation(one.id, one.title, lowest if score is None else score)
        (placed if is_alike else tail).append(line)
    both = sorted([*ranked, *placed], key=lambda line: -line.score)
    return Records([*both, *tail])


def _score(labels: Labels, scored: Sequence[tuple[float, Labels]]) -> float | None:
    """The mean score of those that are most alike; None if none is."""
    alike = [(_cosine(labels, own), score) for score, own in scored]
    most = max((one for one, _ in alike), default=0.0)
    if not most > 0:
        return None
    nearest = [score for one, score in alike if one >= most * (1 - 1e-12)]
    return math.fsum(nearest) / len(nearest)


def _cosine(one: Labels, other: Labels) -> float:
    shared = len(one & other)
    return shared / math.sqrt(len(one) * len(other)) if shared else 0.0
