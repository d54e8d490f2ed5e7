"""What users say about themselves as word vectors, from a file of public vectors.

    label            words                        vector
    "gender" "F"     female                       the vector of the word
    "occupation"     "college/grad student"       the mean of the vectors it has
    "zip" "48067"    the states of region 4       likewise
    unknown          none                         zeros

All vectors have norm 1 before and after a mean is taken. `gender` becomes two features
of the profiles: `gender_vector`, private like the gender, and `gender_mean`, the same
row for everyone. A mean over the labels of a kind is public. A mean over users, as in
DP-VAE, tells what others said, so it belongs into a simulation only.

Source of the file: Pennington, Socher and Manning 2014, GloVe; any file with a word and
its numbers on each line will do.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.data.catalog import Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category, Vectors
from tacit.errors import BadData, BadValue, MissingData

Words = Mapping[str, Float64[np.ndarray, "axes"]]

_WORD = re.compile(r"[a-z]+|[0-9]+")
_SOURCE = "GloVe's vectors are at https://nlp.stanford.edu/projects/glove/"
_MEANT = {  # labels of MovieLens that are no words
    "gender": {"F": "female", "M": "male"},
}
_REGIONS = (  # the states of a zip code's first digit, as the postal service has them
    "connecticut massachusetts maine vermont rhode island jersey",
    "delaware york pennsylvania",
    "maryland virginia carolina washington",
    "alabama florida georgia mississippi tennessee",
    "indiana kentucky michigan ohio",
    "iowa minnesota montana dakota wisconsin",
    "illinois kansas missouri nebraska",
    "arkansas louisiana oklahoma texas",
    "arizona colorado idaho nevada utah wyoming mexico",
    "alaska california hawaii oregon washington",
)


def vector_name(kind: str) -> str:
    """The feature with each user's vector: `gender_vector` for `gender`."""
    return f"{kind}_vector"


def mean_name(kind: str) -> str:
    """The feature with the mean vector, the same for all: `gender_mean`."""
    return f"{kind}_mean"


@dataclass(frozen=True)
class MetadataVectors:
    """Which metadata become vectors, by which file, and over whom means are taken."""

    words: str  # the path of the file, or of an archive with nothing else in it
    of: tuple[str, ...] = ("gender", "age_group", "occupation", "zip")
    means: Literal["labels", "users"] = "labels"

    def __post_init__(self) -> None:
        check.one_of(("labels", "users"), means=self.means)
        if not self.of or len({*self.of}) < len(self.of):
            raise BadValue(f"of={[*self.of]} must name each kind of metadata once")

    def joined(self, dataset: Dataset) -> Dataset:
        """The data set whose profiles have a vector and a mean for each kind."""
        columns = {kind: _category(dataset.profiles, kind) for kind in self.of}
        meant = {
            kind: [words_of(kind, label) for label in column.labels]
            for kind, column in columns.items()
        }
        wanted = {word for rows in meant.values() for row in rows for word in row}
        known = read_words(Path(self.words), wanted)
        features = dict(dataset.profiles.features)
        for kind, column in columns.items():
            table = np.array([_unit_mean(row, known) for row in meant[kind]])
            own = np.where(column.codes[:, None] >= 0, table[column.codes], 0)
            mean = (table if self.means == "labels" else own).mean(axis=0)
            features[vector_name(kind)] = Vectors(own.astype(np.float32))
            alike = np.broadcast_to(mean, own.shape)
            features[mean_name(kind)] = Vectors(alike.astype(np.float32))
        profiles = Profiles(dataset.profiles.ids, features)
        return replace(dataset, profiles=profiles)


def words_of(kind: str, label: str) -> tuple[str, ...]:
    """The words that a label stands for.

    >>> words_of("occupation", "college/grad student")
    ('college', 'grad', 'student')
    >>> words_of("zip", "48067")
    ('indiana', 'kentucky', 'michigan', 'ohio')
    """
    meant = _MEANT.get(kind, {}).get(label, label)
    if kind == "zip":
        meant = _REGIONS[int(label[0])] if label[:1] in set("0123456789") else ""
    return tuple(_WORD.findall(meant.lower()))


def read_words(path: Path, wanted: Iterable[str]) -> dict[str, np.ndarray]:
    """The vectors of these words, of norm 1, as far as the file has them."""
    left, found, size = set(wanted), {}, None
    for number, line in enumerate(_lines(path), start=1):
        word, _, rest = line.rstrip().partition(" ")
        if word not in left:
            continue
        try:
            vector = np.array(rest.split(), np.float64)
        except ValueError:
            vector = np.zeros(0)
        norm = float(np.linalg.norm(vector))
        if not 0 < norm < np.inf or size not in (None, len(vector)):
            raise BadData(
                path.name,
                number,
                f"'{word}' must be followed by {size or 'some'} finite numbers that "
                "are not all zero",
            )
        left.discard(word)
        found[word], size = vector / norm, len(vector)
    if not found:
        raise BadData(path.name, None, "has none of the words that are asked for")
    return found


def _lines(path: Path) -> Iterator[str]:
    if not path.is_file():
        raise MissingData(f"there is no file of word vectors at {path}; {_SOURCE}")
    try:
        yield from _text_lines(path) if not is_zipfile(path) else _packed_lines(path)
    except (UnicodeDecodeError, BadZipFile, zlib.error, EOFError) as error:
        problem = f"is damaged or no text in UTF-8: {error}; {_SOURCE}"
        raise BadData(path.name, None, problem) from error


def _text_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        yield from file


def _packed_lines(path: Path) -> Iterator[str]:
    with ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.endswith(".txt")]
        if len(names) != 1:
            raise BadData(path.name, None, f"has {len(names)} text files, not one")
        with archive.open(names[0]) as binary:
            for line in binary:
                yield line.decode("utf-8")


def _category(profiles: Profiles, kind: str) -> Category:
    known = {n: f for n, f in profiles.features.items() if isinstance(f, Category)}
    if kind not in known:
        raise BadValue(f"metadata {check.unknown(kind, known)}")
    return known[kind]


def _unit_mean(words: Iterable[str], known: Words) -> Float64[np.ndarray, "axes"]:
    """The mean of the vectors that words have, of norm 1; zeros if they have none."""
    size = len(next(iter(known.values())))
    total = np.sum([np.zeros(size), *(known[w] for w in words if w in known)], axis=0)
    norm = float(np.linalg.norm(total))
    return total / norm if norm > 0 else total
