"""Frappe: which apps users used, how often, and in what situation.

Source: L. Baltrunas, K. Church, A. Karatzoglou and N. Oliver, "Frappe: Understanding
the Usage and Perception of Mobile App Recommendations In-The-Wild", arXiv:1505.03014.
An event is a line: the value is how often the app was used in that situation, which
stands in the contexts. `unknown` is unknown, in contexts and of apps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tacit.data.catalog import Catalog
from tacit.data.dataset import Dataset
from tacit.data.features import Category, Features, Numeric, Text
from tacit.data.interactions import Interactions
from tacit.data.parsing.archive_members import Members
from tacit.data.parsing.ids import Ids, Listing, anyone, find, match
from tacit.data.parsing.number_tables import Layout
from tacit.data.parsing.rows import Row, plain_rows, quoted_rows
from tacit.data.sources.source import Archived
from tacit.data.strings import Strings
from tacit.errors import BadData

_LOG, _APPS = "frappe/frappe.csv", "frappe/meta.csv"
_CONTEXTS = (
    *("daytime", "weekday", "isweekend", "homework", "cost"),
    *("weather", "country", "city"),
)
_LOG_LAYOUT = Layout(("user", "item", "cnt", *_CONTEXTS), "\t", header=True)
_APPS_LAYOUT = Layout(
    (
        *("item", "package", "category", "downloads", "developer", "icon", "language"),
        *("description", "name", "price", "rating", "short desc"),
    ),
    "\t",
    header=True,
)
_UNKNOWN = "unknown"  # how the release writes a missing value
# Prices in other money cannot be compared with dollars, so they count as unknown.
_DOLLARS = re.compile(r"\$([0-9]{1,6}(\.[0-9]{1,2})?)")
_OTHER_MONEY = re.compile(r"€\s[0-9]+,[0-9]{2}|[0-9]+,[0-9]{2}\s(€|руб\.)")


def parse(archive: Path) -> Dataset:
    """The data set in the archive or in an unpacked folder."""
    members = Members(archive, "Mobile_Frappe")
    rows = list(plain_rows(members, _LOG, _LOG_LAYOUT))
    file = members.label(_LOG)
    if not rows:
        raise BadData(file, 1, "there are no lines after the header")
    listed, catalog = _catalog(members)
    user, app = _numbers(rows, "user"), _numbers(rows, "item")
    items, used = match(app, listed, what="app", file=file, first=2)
    user_ids, profiles = anyone(user)  # the release tells nothing of its users
    log = Interactions.of_columns(
        find(user, user_ids)[0],
        items,
        values=_numbers(rows, "cnt"),
        contexts={name: _category(rows, name) for name in _CONTEXTS},
        n_users=len(user_ids),
        n_items=len(used),
    )
    return Dataset("frappe", log, catalog.take(used), profiles, listed=catalog)


def _catalog(members: Members) -> tuple[Ids, Catalog]:
    """The apps; one without a name has its number as its title."""
    listing, rows = Listing(), list(quoted_rows(members, _APPS, _APPS_LAYOUT))
    for row in rows:
        listing.add(row, "item")
    names = ("category", "developer", "downloads", "language")
    features: Features = {
        **{name: _category(rows, name) for name in names},
        "price": Numeric(np.array([_price(row) for row in rows], np.float32)),
        "rating": Numeric(np.array([_rating(row) for row in rows], np.float32)),
        "summary": Text(Strings.of(_known(row, "short desc") for row in rows)),
        "description": Text(Strings.of(_known(row, "description") for row in rows)),
    }
    titles = Strings.of(_known(row, "name") or row["item"] for row in rows)
    return listing.ids, Catalog(listing.strings(), titles, features)


def _numbers(rows: Sequence[Row], column: str) -> Ids:
    return np.fromiter((row.whole(column) for row in rows), np.int64, len(rows))


def _category(rows: Sequence[Row], column: str) -> Category:
    return Category.of([_known(row, column) for row in rows])


def _known(row: Row, column: str) -> str:
    return "" if row[column] == _UNKNOWN else row[column]


def _rating(row: Row) -> float:
    is_unknown = row["rating"] == _UNKNOWN
    return math.nan if is_unknown else row.decimal("rating", most=5)


def _price(row: Row) -> float:
    """US dollars; NaN where the price is unknown or in other money."""
    text = row["price"]
    if text == "Free":
        return 0.0
    if found := _DOLLARS.fullmatch(text):
        return float(found[1])
    if text == _UNKNOWN or _OTHER_MONEY.fullmatch(text):
        return math.nan
    row.refuse("price", "Free, unknown, such as $0.99, or in € or руб.")


SOURCES = {
    "frappe": Archived(
        name="frappe",
        title="Frappe (use of apps in context)",
        home="https://www.baltrunas.info/research-menu/frappe",
        terms=(
            "Research use with acknowledgement; no redistribution without permission; "
            "no attempt to identify users; no commercial use without permission."
        ),
        citation=(
            "Linas Baltrunas, Karen Church, Alexandros Karatzoglou and Nuria Oliver. "
            "2015. Frappe: Understanding the Usage and Perception of Mobile App "
            "Recommendations In-The-Wild. arXiv:1505.03014."
        ),
        archives=("Mobile_Frappe.zip",),
        folder="Mobile_Frappe",
        parse=parse,
    )
}
