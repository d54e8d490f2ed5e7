"""CiteULike (citeulike-a): which articles users keep, with tags and citations.

Source: H. Wang, B. Chen and W.-J. Li, "Collaborative Topic Regression with Social
Regularization for Tag Recommendation", IJCAI 2013. Lines are counted from zero: line n
of `users.dat` is user n. Every line begins with how many numbers follow, which is not
an id. There are no times and no titles; an article's number is its title.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Categories, Features
from tacit.data.interactions import Interactions
from tacit.data.parsing.archive_members import Members
from tacit.data.parsing.ids import texts
from tacit.data.parsing.number_tables import MOST_DIGITS
from tacit.data.parsing.quote import quoted
from tacit.data.ragged import Ragged
from tacit.data.sources.source import Archived
from tacit.data.strings import Strings
from tacit.errors import BadData


def parse(archive: Path) -> Dataset:
    """The data set in the archive or in an unpacked folder."""
    members = Members(archive, "citeulike-a")
    catalog = _catalog(members)
    kept = _lists(members, "users.dat", below=len(catalog), what="article")
    user_ids = np.flatnonzero(kept.lengths)  # users who keep nothing have no events
    if not len(user_ids):
        raise BadData(members.label("users.dat"), None, "nobody keeps an article")
    # Articles that nobody keeps are dropped, and the others numbered anew.
    articles, items = np.unique(kept.values, return_inverse=True)
    log = Interactions.of_columns(
        np.searchsorted(user_ids, kept.owners),
        items,
        n_users=len(user_ids),
        n_items=len(articles),
    )
    profiles = Profiles(texts(user_ids))
    return Dataset("citeulike-a", log, catalog.take(articles), profiles)


def _catalog(members: Members) -> Catalog:
    """Every article, also those that nobody keeps."""
    labels = Strings.of(tag for _, tag in members.lines("tags.dat", encoding="utf-8"))
    tags = _lists(members, "item-tag.dat", below=len(labels), what="tag")
    ids = texts(np.arange(len(tags)))
    cited = _lists(members, "citations.dat", below=len(ids), what="article")
    if len(cited) != len(ids):
        problem = f"{len(cited)} lines, item-tag.dat has {len(ids)}"
        line = min(len(cited), len(ids)) + 1
        raise BadData(members.label("citations.dat"), line, problem)
    features: Features = {
        "tags": _labeled(tags, labels),
        "citations": _labeled(cited, ids),
    }
    return Catalog(ids, ids, features)


def _labeled(codes: Ragged, labels: Strings) -> Categories:
    return Categories(Ragged(codes.offsets, codes.values.astype(np.int32)), labels)


def _lists(members: Members, name: str, *, below: int, what: str) -> Ragged:
    """The numbers of each line after its first, which says how many there are."""
    file, lengths, values = members.label(name), list[int](), list[int]()
    for line, text in members.lines(name, encoding="ascii"):
        # The count is checked: without that a damaged line would pass for a short one.
        count, *numbers = (_whole(field, file, line) for field in text.split(" "))
        if count != len(numbers):
            problem = f"says that {count} numbers follow, there are {len(numbers)}"
            raise BadData(file, line, problem)
        if numbers and max(numbers) >= below:
            problem = f"{what} {max(numbers)} must be < {below}, how many there are"
            raise BadData(file, line, problem)
        lengths.append(count)
        values.extend(numbers)
    return Ragged.of_lengths(lengths, np.array(values, np.int64))


def _whole(text: str, file: str, line: int) -> int:
    if not (text.isdecimal() and len(text) <= MOST_DIGITS):
        problem = f"{quoted(text)} must be a whole number >= 0"
        raise BadData(file, line, problem)
    return int(text)


SOURCES = {
    "citeulike-a": Archived(
        name="citeulike-a",
        title="CiteULike (citeulike-a)",
        home="https://github.com/js05212/citeulike-a",
        terms="None stated; released for academic use.",
        citation=(
            "Hao Wang, Binyi Chen and Wu-Jun Li. 2013. Collaborative Topic Regression "
            "with Social Regularization for Tag Recommendation. IJCAI."
        ),
        archives=("citeulike-a.zip",),
        folder="citeulike-a",
        parse=parse,
    )
}
