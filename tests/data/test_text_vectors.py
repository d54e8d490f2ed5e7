from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category, Text, Vectors
from tacit.data.interactions import Interactions
from tacit.data.public_inputs import undeclared
from tacit.data.splits import everyone_trains
from tacit.data.strings import Strings
from tacit.data.text_vectors import with_text_vectors
from tacit.errors import BadValue


class Letters:
    """How often a text has each of three letters; remembers what it was asked."""

    def __init__(self, digest: str = "letters") -> None:
        self.digest = digest
        self.asked: list[list[str]] = []

    def encode(self, texts, *, progress=None):
        self.asked.append([*texts])
        if progress is not None:
            progress(len(texts), len(texts))
        counts = [[text.count(letter) for letter in "abc"] for text in texts]
        return np.array(counts, np.float32).reshape(len(texts), 3)


def catalog(ids: str, titles: list[str]) -> Catalog:
    about = Text(Strings.of([f"about {title}" for title in titles]))
    features = {"about": about, "kind": Category.of(["x"] * len(ids))}
    return Catalog(Strings.of(ids), Strings.of(titles), features)


def shop(*, is_listed: bool = True) -> Dataset:
    """Two of four listed items are in the catalog, and two share a title."""
    listed = catalog("1234", ["cab", "", "aa", "cab"])
    log = Interactions.of_columns([0, 0], [0, 1], n_users=1, n_items=2)
    people = Profiles(Strings.of("u"))
    known = listed if is_listed else None
    return Dataset("shop", log, listed.take([3, 1]), people, None, known)


def vectors(of: Catalog, name: str = "title") -> list[list[float]]:
    column = of.features[f"{name}_vector"]
    assert isinstance(column, Vectors)
    return column.values.tolist()


def test_every_item_has_the_vector_of_its_text(tmp_path):
    made = with_text_vectors(shop(), ["title"], Letters(), folder=tmp_path)
    assert vectors(made.catalog) == [[1, 1, 1], [0, 0, 0]]
    assert made.listed is not None
    assert vectors(made.listed) == [[1, 1, 1], [0, 0, 0], [2, 0, 0], [1, 1, 1]]
    assert [*made.catalog.features] == ["about", "kind", "title_vector"]
    alone = with_text_vectors(
        shop(is_listed=False), ["title"], Letters(), folder=tmp_path
    )
    assert alone.listed is None
    assert vectors(alone.catalog) == vectors(made.catalog)


def test_a_text_is_encoded_once_and_kept(tmp_path):
    told, encoder = [], Letters()

    def again(data: Dataset, model: Letters) -> Dataset:
        return with_text_vectors(
            data,
            ["title"],
            model,
            folder=tmp_path,
            progress=lambda *counts: told.append(counts),
        )

    first = again(shop(), encoder)
    assert encoder.asked == [["", "aa", "cab"]]
    assert told == [(3, 3)]
    # What is kept follows from the texts: not from who has which, nor from the order.
    fewer = replace(shop(), catalog=shop().catalog.take([1, 0]))
    second = again(fewer, encoder)
    assert len(encoder.asked) == len(told) == 1
    assert vectors(second.catalog) == vectors(first.catalog)[::-1]
    other = Letters("other letters")  # another model has vectors of its own
    again(shop(), other)
    assert len(other.asked) == 1
    again(shop(is_listed=False), encoder)  # and so have other texts
    assert encoder.asked[1:] == [["", "cab"]]


def test_a_damaged_entry_is_made_anew(tmp_path, caplog):
    encoder = Letters()
    first = with_text_vectors(shop(), ["title"], encoder, folder=tmp_path)
    (column,) = tmp_path.glob("vectors/*/0000.npy")
    raw = bytearray(column.read_bytes())
    raw[-1] ^= 1
    column.write_bytes(raw)
    second = with_text_vectors(shop(), ["title"], encoder, folder=tmp_path)
    assert len(encoder.asked) == 2
    assert vectors(second.catalog) == vectors(first.catalog)
    assert "is damaged" in caplog.text


def test_features_of_text_have_vectors_too(tmp_path):
    made = with_text_vectors(shop(), ["title", "about"], Letters(), folder=tmp_path)
    assert vectors(made.catalog, "about") == [[2, 2, 1], [1, 1, 0]]
    assert vectors(made.catalog) == [[1, 1, 1], [0, 0, 0]]


def test_vectors_of_a_declared_catalog_are_public(tmp_path):
    whole = shop().declared()
    made = with_text_vectors(whole, ["title"], Letters(), folder=tmp_path)
    assert not undeclared(made, everyone_trains(made), population=5)


def test_what_is_no_text_is_refused(tmp_path):
    with pytest.raises(BadValue, match=r"text_vectors='kind' is not known.*about, tit"):
        with_text_vectors(shop(), ["kind"], Letters(), folder=tmp_path)
    twice = with_text_vectors(shop(), ["title"], Letters(), folder=tmp_path)
    with pytest.raises(BadValue, match="has a feature 'title_vector' already; rename"):
        with_text_vectors(twice, ["title"], Letters(), folder=tmp_path)
