"""MIND, the news of Microsoft, and Adressa in its format: impressions, not ratings.

Sources: F. Wu et al., "MIND: A Large-scale Dataset for News Recommendation", ACL 2020,
and the description at its home; J. A. Gulla et al., "The Adressa Dataset for News
Recommendation", WI 2017.

All news that a table lists stand in the catalog, shown or not, in the order of the
table. The log is what `impressions.clicks` makes of histories and impressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tacit.data.dataset import Dataset
from tacit.data.impressions import clicks
from tacit.data.parsing.archive_members import Members
from tacit.data.sources.mind_tables import BEHAVIORS, BehaviorTable, NewsTable
from tacit.data.sources.source import Archived
from tacit.errors import BadData

_HOME = "https://msnews.github.io/"
_TERMS = (
    "Microsoft Research licence terms: non-commercial research only; do not pass it on."
)
_CITATION = (
    "Fangzhao Wu et al. 2020. MIND: A Large-scale Dataset for News Recommendation. "
    "Proceedings of ACL 2020, 3597-3606."
)
_ADRESSA_PARTS = ("train", "valid", "test")

Part = tuple[str, Members]  # the name of a published file pair, and its files


def read(place: Path, *, name: str = "mind") -> Dataset:
    """The data set in a zip or a folder with `behaviors.tsv` and `news.tsv`."""
    return read_parts([("train", _members(place))], name=name)


def read_parts(parts: Sequence[Part], *, name: str) -> Dataset:
    """Several parts as one data set; each has its own two tables."""
    news = NewsTable()
    for _, members in parts:  # all news first: a history may name those of any part
        news.read(members)
    behaviors = BehaviorTable(news.indices)
    for part, members in parts:
        behaviors.read(members, part)
    impressions, catalog = behaviors.impressions(), news.catalog()
    return Dataset(
        name,
        clicks(impressions),
        catalog,
        behaviors.profiles(),
        impressions,
        listed=catalog,
    )


def _with_dev(name: str, dev: tuple[str, ...], train: Path) -> Dataset:
    """The training archive, and the first of the dev archives that lies beside it."""
    beside = [train.with_name(file) for file in dev]
    found = [("dev", _members(path)) for path in beside if path.exists()]
    # The zip and its unpacked folder may both be there; one of them is enough.
    return read_parts([("train", _members(train)), *found[:1]], name=name)


def _adressa(place: Path) -> Dataset:
    """One pair of tables, or one in each of the folders train, valid and test."""
    inner = [(part, _inside(place, part)) for part in _ADRESSA_PARTS]
    parts = [(part, members) for part, members in inner if _is_there(members)]
    return read_parts(parts or [("train", _members(place))], name="adressa")


def _members(place: Path) -> Members:
    """Files at the root of an archive, or in a folder named like it."""
    inner = _inside(place, place.stem)
    return inner if _is_there(inner) else Members(place, "")


def _inside(place: Path, folder: str) -> Members:
    return Members(place / folder if place.is_dir() else place, folder)


def _is_there(members: Members) -> bool:
    try:
        with members.open(BEHAVIORS):
            return True
    except BadData:
        return False


def _mind(name: str, title: str, *, archive: str) -> Archived:
    dev = archive.replace("_train", "_dev")
    companions = (f"{dev}.zip", dev)
    return Archived(
        name=name,
        title=title,
        home=_HOME,
        terms=_TERMS,
        citation=_CITATION,
        archives=(f"{archive}.zip",),
        folder=archive,
        parse=partial(_with_dev, name, companions),
        companions=companions,
    )


_ALL = (
    Archived(
        name="mind-small-sample",
        title="MIND-small, 5,000 impressions of its training part",
        home=_HOME,
        terms=_TERMS,
        citation=_CITATION,
        archives=("MINDsmall_train_sample.zip",),
        folder="MINDsmall_train_sample",
        parse=partial(read, name="mind-small-sample"),
    ),
    _mind("mind-small", "MIND-small", archive="MINDsmall_train"),
    _mind("mind-large", "MIND-large", archive="MINDlarge_train"),
    Archived(
        name="adressa",
        title="Adressa, one week, in MIND's format",
        home="http://reclab.idi.ntnu.no/dataset/",
        terms="As its home page states; check them before use.",
        citation=(
            "Jon Atle Gulla et al. 2017. The Adressa Dataset for News Recommendation. "
            "Proceedings of WI 2017, 1042-1048."
        ),
        archives=("adressa.zip",),
        folder="adressa",
        parse=_adressa,
    ),
)
SOURCES = {source.name: source for source in _ALL}
