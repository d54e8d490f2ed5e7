"""Texts of a catalog as numbers of words, and vectors of these words from a file.

    0            the padding token: fills a text that is too short; e_0 in the weights
    1            a word that is not known
    2, 3, …      the words of the vocabulary, in sorted order

The vocabulary is made of the public catalog alone, of what is read of its texts: words
that several texts have, or, with a file of vectors, those that the file has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.features import Category, Text
from tacit.data.metadata_vectors import read_words
from tacit.data.strings import Strings
from tacit.data.text_vectors import TITLE
from tacit.errors import BadValue
from tacit.tree import Array

WORDS = "words"  # the vectors of a file: row i is the word with the number i + 1
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Vocabulary:
    """How words become vectors: from a file of word vectors, or learnt.

    A file is a text with a word and its numbers on each line, such as GloVe's, or an
    archive with nothing else in it. Its vectors are scaled to length one.
    """

    file: str | None = None
    width: int = 50
    is_trained: bool = True  # else only the vector of the padding token is
    least_texts: int = 2  # that have a word, for one that is learnt

    def __post_init__(self) -> None:
        check.count(width=self.width, least_texts=self.least_texts)
        if self.file is None and not self.is_trained:
            raise BadValue(
                "is_trained=False leaves words without vectors; name a file of word "
                "vectors, or train them"
            )

    def inputs(self, texts: Mapping[str, tuple[Strings, int]]) -> dict[str, Array]:
        """Numbers of the first words of texts, and the file's vectors if there is one.

        Each text comes with how many words of it are read. The last row of the numbers
        has padding tokens only: the padding news.
        """
        read = {
            name: [_WORD.findall(text.lower())[:most] for text in column]
            for name, (column, most) in texts.items()
        }
        having = Counter(w for rows in read.values() for row in rows for w in {*row})
        found = {} if self.file is None else self._vectors(having)
        enough = (w for w, n in having.items() if n >= self.least_texts)
        known = sorted(enough if self.file is None else found)
        number = {word: i for i, word in enumerate(known, start=2)}
        numbers: dict[str, Array] = {
            name: _numbers(rows, number, texts[name][1]) for name, rows in read.items()
        }
        if self.file is None:
            return numbers
        unknown = np.zeros((1, self.width))
        vectors = np.concatenate([unknown, [found[word] for word in known]])
        return {**numbers, WORDS: vectors.astype(np.float32)}

    def _vectors(self, wanted: Mapping[str, int]) -> dict[str, np.ndarray]:
        found = read_words(Path(str(self.file)), wanted)
        width = len(next(iter(found.values())))
        if width != self.width:
            raise BadValue(
                f"width={self.width}, but the vectors of {Path(str(self.file)).name} "
                f"have {width} numbers; set width={width}, or name another file"
            )
        return found


def text_of(catalog: Catalog, name: str, *, reader: str) -> Strings:
    """A text of all items; `title` or a feature."""
    known = {n: f.texts for n, f in catalog.features.items() if isinstance(f, Text)}
    known[TITLE] = catalog.titles
    if name not in known:
        raise _lacking(reader, "text", name, sorted(known))
    return known[name]


def label_of(catalog: Catalog, name: str, *, reader: str) -> Int32[np.ndarray, "rows"]:
    """The number of each item's label from 1 on; 0 is unknown, and the padding news."""
    known = {n: f for n, f in catalog.features.items() if isinstance(f, Category)}
    if name not in known:
        raise _lacking(reader, "label", name, sorted(known))
    return np.append(known[name].codes + 1, 0).astype(np.int32)


def _lacking(reader: str, kind: str, name: str, known: Sequence[str]) -> BadValue:
    return BadValue(
        f"{reader} reads the {kind} '{name}', which the catalog lacks; it has "
        f"{', '.join(known) or 'none'}; use NRMS, which reads titles alone"
    )


def _numbers(
    rows: Sequence[Sequence[str]], number: Mapping[str, int], most: int
) -> Int32[np.ndarray, "rows most"]:
    out = np.zeros((len(rows) + 1, most), np.int32)
    for place, row in enumerate(rows):
        out[place, : len(row)] = [number.get(word, 1) for word in row]
    return out
