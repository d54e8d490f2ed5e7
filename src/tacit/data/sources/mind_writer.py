"""A data set with impressions as files in MIND's format; `mind.read` reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tacit.data.dataset import Dataset
from tacit.data.impressions import Impressions
from tacit.data.sources.mind_tables import BEHAVIORS, NEWS, NULL, written_time
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.files import draft


def write(dataset: Dataset, folder: Path) -> None:
    """Write `news.tsv` and `behaviors.tsv` into a folder, which is made if need be.

    What the format cannot hold is left out: profiles, features other than
    category, subcategory and abstract, the names of parts. A user without an impression
    or a text with a tab in it is refused.
    """
    impressions = dataset.impressions
    if impressions is None:
        raise BadValue(f"{dataset.name} has no impressions to write")
    if not (impressions.per_user > 0).all():
        user = dataset.profiles.ids[int(impressions.per_user.argmin())]
        raise BadValue(f"user {user!r} has no impression, so the files would lose them")
    _check_ids(dataset.profiles.ids)
    _check_ids(dataset.catalog.ids)
    _write_lines(folder / NEWS, _news(dataset))
    _write_lines(folder / BEHAVIORS, _behaviors(dataset, impressions))


def _news(dataset: Dataset) -> Iterator[str]:
    catalog = dataset.catalog
    names = ("category", "subcategory", "abstract")
    columns = [catalog.features.get(name) for name in names]
    for row, (news, title) in enumerate(zip(catalog.ids, catalog.titles, strict=True)):
        told = ["" if column is None else str(column[row]) for column in columns]
        fields = (news, told[0], told[1], title, told[2], "", "[]", "[]")
        if any(c in field for field in fields for c in "\t\n\r"):
            raise BadValue(f"news {news!r} has a tab or a line end in its text")
        yield "\t".join(fields)


def _behaviors(dataset: Dataset, impressions: Impressions) -> Iterator[str]:
    slates = impressions.slates
    users, news = list(dataset.profiles.ids), list(dataset.catalog.ids)
    labeled = [(f"{name}-0", f"{name}-1") for name in news]  # made once, not per line
    histories = [" ".join(news[i] for i in row) for row in slates.histories]
    clicked = impressions.clicked.tolist()
    for row, candidates in enumerate(slates.shown):
        start = slates.shown.offsets[row]
        shown = (
            labeled[item][clicked[start + number]]
            for number, item in enumerate(candidates)
        )
        time = NULL if slates.times is None else written_time(int(slates.times[row]))
        history = histories[slates.history_of[row]]
        user = users[slates.users[row]]
        yield "\t".join((str(row + 1), user, time, history, " ".join(shown)))


def _check_ids(ids: Strings) -> None:
    odd = [name for name in ids if name.split() != [name]]
    if odd:
        raise BadValue(
            f"id {odd[0]!r} is blank or has a space; the format has no place"
        )


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with draft(path, is_private=True) as out:  # histories of users stand in it
        out.writelines(f"{line}\n".encode() for line in lines)
