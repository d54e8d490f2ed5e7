"""Tables that list something once: all items there are, or what is known of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tacit import check
from tacit.data import cache as cached
from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category, Feature, Text
from tacit.data.parsing.bad_lines import BadLines
from tacit.data.parsing.csv_rows import Layout
from tacit.data.parsing.numbered_ids import Ids
from tacit.data.parsing.quote import quoted
from tacit.data.parsing.table_rows import Keep, batches, only
from tacit.data.strings import Strings
from tacit.errors import BadData, BadValue, MissingData


@dataclass(frozen=True)
class ItemsTable(Layout):
    """The declared catalog: a table with a line for each item.

    `columns` become categories of the items, `lists` columns of several labels such as
    genres, and `texts` free text. An item without a title shows its id.
    """

    path: Path
    item: str
    title: str | None = None
    columns: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    separator: str = "|"  # between the labels of a list

    def __post_init__(self) -> None:
        super().__post_init__()
        described = (*self.columns, *self.lists, *self.texts)
        twice = [name for name in described if described.count(name) > 1]
        if twice:
            raise BadValue(
                f"column {twice[0]!r} is named twice among columns, lists and texts; "
                "it can be one of them"
            )
        if not self.separator:
            raise BadValue("separator='' must be at least one character, such as '|'")

    def parse(self, bad: BadLines | None = None) -> Catalog:
        """The catalog of every row, in the order of the file."""
        titles = filter(None, [self.title])
        named = [self.item, *titles, *self.columns, *self.lists, *self.texts]
        ids, columns = _listed(self, self.path, self.item, named, bad)
        titled = ids if self.title is None else columns[self.title]
        shown = [title or text for title, text in zip(titled, ids, strict=True)]
        features: dict[str, Feature] = {
            n: Category.of(columns[n]) for n in self.columns
        }
        for name in self.lists:
            rows = (text.split(self.separator) for text in columns[name])
            features[name] = Categories.of([label.strip() for label in r] for r in rows)
        features |= {name: Text(Strings.of(columns[name])) for name in self.texts}
        return Catalog(Strings.of(ids), Strings.of(shown), features)


@dataclass(frozen=True)
class UsersTable(Layout):
    """What is known of users: a table with a line for each.

    `columns` become categories of their profiles, which may name public groups. Who is
    not listed has none of them, and who is listed without an event is left out.
    `labels` are all that a column may have. Without them they are those that occur,
    which somebody who holds some of the users cannot know.
    """

    path: Path
    user: str
    columns: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] | None = None  # by column

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, labels in (self.labels or {}).items():
            check.one_of(self.columns, labels=name)
            if not all(labels) or len({*labels}) != len(labels) or not labels:
                raise BadValue(
                    f"labels of {name!r} must be one or more that differ and are not "
                    f"blank, not {[*labels]}"
                )

    def parse(
        self, users: Strings, bad: BadLines | None = None, *, keep: Keep | None = None
    ) -> Mapping[str, Category]:
        """The columns for these users, in this order.

        With `keep`, the lines of other users are in memory for one batch only.
        """
        named = [self.user, *self.columns]
        ids, columns = _listed(self, self.path, self.user, named, bad, keep)
        place = {text: number for number, text in enumerate(ids)}
        rows = [place.get(text, -1) for text in users]
        return {
            name: self._category(
                name, [columns[name][row] if row >= 0 else "" for row in rows]
            )
            for name in self.columns
        }

    def nobody(self) -> dict[str, Category]:
        """The columns of no user at all, with the labels that are declared."""
        return {name: self._category(name, []) for name in self.columns}

    def _category(self, name: str, values: Sequence[str]) -> Category:
        """A column with its declared labels; refuses a value that is none of them."""
        labels = (self.labels or {}).get(name)
        if labels is None:
            return Category.of(values)
        unknown = sorted({*values} - {*labels, ""})
        if unknown:
            raise BadData(
                self.path,
                None,
                f"column {name!r} has {quoted(unknown[0])}, and its labels are "
                f"{', '.join(sorted(labels))}; declare every label that it may have",
            )
        known = Category.of([*labels, *values])  # numbers the declared ones
        return replace(known, codes=known.codes[len(labels) :])


def _listed(
    layout: Layout,
    path: Path,
    key: str,
    named: Sequence[str],
    bad: BadLines | None,
    keep: Keep | None = None,
) -> tuple[list[str], dict[str, list[str]]]:
    """The ids of a table that lists each once, and its columns."""
    must_exist(path)
    columns: dict[str, list[str]] = {name: [] for name in named}
    ids, n_lines = Ids(), 0
    for batch in batches(path, [*columns], layout, bad=bad):
        n_lines += len(batch.kept)
        read = ids.add_once(batch if keep is None else only(batch, key, keep), key)
        for name, texts in read.columns.items():
            columns[name] += texts
    if not n_lines or (keep is None and not ids.numbers):
        raise no_lines(path, layout, bad)
    return list(ids.numbers), columns


def must_exist(path: Path) -> None:
    """Refuse a path that is not a file."""
    if path.is_file():
        return
    if path.is_relative_to(cached.frames(cached.folder())):
        raise MissingData(
            f"{path} is gone: it held a frame that a Python program handed over; hand "
            "it over again"
        )
    raise MissingData(f"{path} is not a file; give the path of a table")


def no_lines(path: Path, layout: Layout, bad: BadLines | None) -> BadData:
    """The error for a table without a line that can be used."""
    if bad and bad.count:
        problem = f"has no line that can be used; the first bad one is {bad.first[0]}"
        return BadData(path, None, problem)
    problem = "has a header and no lines after it" if layout.header else "has no lines"
    return BadData(path, None, problem)
