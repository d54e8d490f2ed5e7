"""Steam: who bought which games, and for how many hours they played them.

Source: Tamber, "Steam Video Games", Kaggle. An event is a purchase; what the file says
of playing is the context `hours`. A game that is bought again is a repeat. There are no
times; events keep the order of the file. A game's title is its id.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tacit.data.catalog import Catalog
from tacit.data.dataset import Dataset
from tacit.data.features import Category, Numeric
from tacit.data.interactions import Interactions
from tacit.data.parsing.archive_members import Members
from tacit.data.parsing.ids import anyone, find
from tacit.data.parsing.number_tables import Layout
from tacit.data.parsing.rows import Row, quoted_rows
from tacit.data.sources.source import Archived
from tacit.errors import BadData

_FILE = "steam-200k.csv"
_LAYOUT = Layout(("user", "game", "behavior", "value", "last"), ",")

Purchase = tuple[int, str]


def parse(archive: Path) -> Dataset:
    """The data set in the archive or in a folder with its file."""
    bought, hours = _purchases(quoted_rows(Members(archive, ""), _FILE, _LAYOUT))
    user = np.array([user for user, _ in bought], np.int64)
    user_ids, profiles = anyone(user)
    games = Category.of([game for _, game in bought])
    log = Interactions.of_columns(
        find(user, user_ids)[0],
        games.codes,
        contexts={"hours": Numeric(np.array(hours, np.float32))},
        n_users=len(user_ids),
        n_items=len(games.labels),
    )
    return Dataset("steam-200k", log, Catalog(games.labels, games.labels), profiles)


def _purchases(rows: Iterator[Row]) -> tuple[list[Purchase], list[float]]:
    """Who bought what, in order, and the hours in the line of play after each."""
    bought: list[Purchase] = []
    hours: list[float] = []
    # A purchase and its play are two lines; the second is the first's context.
    is_played = True  # nothing to play before the first purchase
    for row in rows:
        purchase = (row.whole("user"), row["game"])
        if not row["game"].strip():
            row.refuse("game", "a title")
        row.one_of("last", ("0",))  # a column without meaning, always 0
        if row.one_of("behavior", ("purchase", "play")) == "purchase":
            row.one_of("value", ("1.0",))  # a purchase always says 1.0
            bought.append(purchase)
            hours.append(0.0)
        elif is_played or purchase != bought[-1]:
            problem = "a line of play must follow the purchase of the same game"
            raise BadData(row.file, row.line, problem)
        else:
            hours[-1] = row.decimal("value")
        is_played = row["behavior"] == "play"
    return bought, hours


SOURCES = {
    "steam-200k": Archived(
        name="steam-200k",
        title="Steam video games, 200,000 lines",
        home="https://www.kaggle.com/datasets/tamber/steam-video-games",
        terms="As stated on the home page (Open Database License when last looked at).",
        citation="Tamber. Steam Video Games. Kaggle.",
        archives=("steam-200k.zip",),
        folder="steam-200k",
        parse=parse,
    )
}
