"""Last.fm (HetRec 2011): how often users played their artists, their tags and friends.

Source: I. Cantador, P. Brusilovsky and T. Kuflik, "2nd Workshop on Information
Heterogeneity and Fusion in Recommender Systems (HetRec 2011)", RecSys 2011, and the
readme of the release. There are no times of listening. A tag is kept with the event of
the user who gave it; tags on artists that the user has no event with are left out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Int64

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Categories, Text
from tacit.data.interactions import Interactions
from tacit.data.parsing.archive_members import Members
from tacit.data.parsing.ids import (
    Ids,
    Listing,
    Places,
    find,
    gather,
    match,
    relations,
    texts,
)
from tacit.data.parsing.number_tables import Layout, numbers_of
from tacit.data.parsing.rows import plain_rows
from tacit.data.sources.source import Archived
from tacit.data.strings import Strings

_PLAYS = Layout(("userID", "artistID", "weight"), "\t", header=True)
_ARTISTS = Layout(("id", "name", "url", "pictureURL"), "\t", header=True)
_TAGS = Layout(("tagID", "tagValue"), "\t", header=True)
_TAGGED = Layout(
    ("userID", "artistID", "tagID", "day", "month", "year"), "\t", header=True
)
_FRIENDS = Layout(("userID", "friendID"), "\t", header=True)


def parse(archive: Path) -> Dataset:
    """The data set in the archive or in a folder with its files."""
    members = Members(archive, "")
    user, artist, weight = numbers_of(members, "user_artists.dat", _PLAYS).values()
    file = members.label("user_artists.dat")
    listed, catalog = _artists(members)
    items, rows = match(artist, listed, what="artist", file=file, first=2)
    user_ids, users = np.unique(user, return_inverse=True)
    tags = _tags(members, users, items, user_ids, listed[rows])
    log = Interactions.of_columns(
        users,
        items,
        values=weight,
        contexts={"tags": tags},
        n_users=len(user_ids),
        n_items=len(rows),
    )
    who, whom = numbers_of(members, "user_friends.dat", _FRIENDS).values()
    friends = {"friends": relations(who, whom, user_ids)}
    profiles = Profiles(texts(user_ids), friends)
    return Dataset("lastfm", log, catalog.take(rows), profiles, listed=catalog)


def _artists(members: Members) -> tuple[Ids, Catalog]:
    listing, names, urls = Listing(), [], []
    for row in plain_rows(members, "artists.dat", _ARTISTS):
        listing.add(row, "id")
        names.append(row["name"])
        urls.append(row["url"])
    features = {"url": Text(Strings.of(urls))}
    return listing.ids, Catalog(listing.strings(), Strings.of(names), features)


def _tags(
    members: Members,
    users: Places,
    items: Places,
    user_ids: Int64[np.ndarray, "users"],
    artists: Int64[np.ndarray, "artists"],
) -> Categories:
    """The tags of each event: those its user gave its artist."""
    listing, labels = Listing(), []
    for row in plain_rows(members, "tags.dat", _TAGS):
        listing.add(row, "tagID")
        labels.append(row["tagValue"])
    given = numbers_of(members, "user_taggedartists.dat", _TAGGED)
    file = members.label("user_taggedartists.dat")
    # Tags that nobody gave are not kept as labels.
    codes, rows = match(given["tagID"], listing.ids, what="tag", file=file, first=2)
    by, is_user = find(given["userID"], user_ids)
    to, is_artist = find(given["artistID"], artists)
    # User and artist as one number: each tag is looked up among the events.
    pairs, firsts = np.unique(users * len(artists) + items, return_index=True)
    event, is_event = find(by * len(artists) + to, pairs)
    is_kept = is_user & is_artist & is_event
    owners = firsts[event[is_kept]]  # of repeated events the first has the tags
    return Categories(
        gather(codes[is_kept], owners, len(users)), Strings.of(labels).take(rows)
    )


SOURCES = {
    "lastfm": Archived(
        name="lastfm",
        title="Last.fm (HetRec 2011)",
        home="https://grouplens.org/datasets/hetrec-2011/",
        terms="Non-commercial use (the readme in the archive has the text).",
        citation=(
            "Ivan Cantador, Peter Brusilovsky and Tsvi Kuflik. 2011. 2nd Workshop on "
            "Information Heterogeneity and Fusion in Recommender Systems (HetRec "
            "2011). RecSys. And Last.fm, http://www.lastfm.com."
        ),
        archives=("hetrec2011-lastfm-2k.zip",),
        folder="hetrec2011-lastfm-2k",
        parse=parse,
    )
}
