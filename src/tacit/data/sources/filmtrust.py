"""FilmTrust: half a star to four, and who trusts whom.

Source: G. Guo, J. Zhang and N. Yorke-Smith, "A Novel Bayesian Similarity Measure for
Recommender Systems", IJCAI 2013. Three pairs are rated twice; both ratings are kept.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.interactions import Interactions
from tacit.data.parsing.archive_members import Members
from tacit.data.parsing.ids import Ids, relations, texts
from tacit.data.parsing.number_tables import Layout, check_scale, numbers_of
from tacit.data.sources.source import Archived

_RATINGS = Layout(("user", "item", "rating"), " ", decimals=frozenset({"rating"}))
_TRUST = Layout(("truster", "trustee", "trust"), " ")


def parse(archive: Path) -> Dataset:
    """The data set in the archive or in a folder with its files."""
    members = Members(archive, "")
    user, item, rating = numbers_of(members, "ratings.txt", _RATINGS).values()
    file = members.label("ratings.txt")
    check_scale(rating, "rating", step=0.5, most=4, file=file, first=1)
    user_ids, users = np.unique(user, return_inverse=True)
    films, items = np.unique(item, return_inverse=True)
    log = Interactions.of_columns(
        users, items, values=rating, n_users=len(user_ids), n_items=len(films)
    )
    return Dataset(
        "filmtrust",
        log,
        Catalog(texts(films), texts(films)),
        _profiles(members, user_ids),
    )


def _profiles(members: Members, user_ids: Ids) -> Profiles:
    # Every statement of trust is a 1; anything else is refused.
    who, whom, trust = numbers_of(members, "trust.txt", _TRUST).values()
    file = members.label("trust.txt")
    check_scale(trust, "trust", step=1, most=1, file=file, first=1)
    return Profiles(texts(user_ids), {"trusts": relations(who, whom, user_ids)})


SOURCES = {
    "filmtrust": Archived(
        name="filmtrust",
        title="FilmTrust",
        home="https://guoguibing.github.io/librec/datasets.html",
        terms="None stated; research use.",
        citation=(
            "Guibing Guo, Jie Zhang and Neil Yorke-Smith. 2013. A Novel Bayesian "
            "Similarity Measure for Recommender Systems. IJCAI."
        ),
        archives=("filmtrust.zip",),
        folder="filmtrust",
        parse=parse,
    )
}
