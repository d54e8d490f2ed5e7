"""Metadata as word vectors: words of labels, the file, vectors and means."""

from __future__ import annotations

from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

from tacit.data.catalog import Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category, Numeric
from tacit.data.metadata_vectors import MetadataVectors, read_words, words_of
from tacit.data.strings import Strings
from tacit.data.synthetic.world import World
from tacit.errors import BadData, BadValue, MissingData

FILE = """\
the 1 1 1
male 3 0 4
female 0 2 0
ohio 1 0 0
michigan 0 0 5
writer 0 0 -1
"""


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(FILE, "utf-8")
    return path


def dataset() -> Dataset:
    made = World(users=4, items=10, events_per_user=5).dataset("tiny")
    features = {
        "gender": Category.of(["M", "F", "M", ""]),
        "zip": Category.of(["48067", "M5V", "9", "44"]),
        "occupation": Category.of(["writer", "poet", "writer", "writer"]),
        "age": Numeric(np.array([1, 2, 3, 4], np.float32)),
    }
    log, catalog = made.interactions, made.catalog
    return Dataset("tiny", log, catalog, Profiles(Strings.of("abcd"), features))


def test_words_of_labels():
    assert words_of("gender", "F") == ("female",)
    assert words_of("age_group", "25-34") == ("25", "34")
    assert words_of("occupation", "K-12 student") == ("k", "12", "student")
    assert words_of("zip", "02139")[:2] == ("connecticut", "massachusetts")
    assert words_of("zip", "V6T1Z4") == ()
    assert words_of("zip", "") == ()


@pytest.mark.parametrize("is_packed", [False, True])
def test_vectors_of_a_file_have_norm_one(words, tmp_path, is_packed):
    path = words
    if is_packed:
        path = tmp_path / "words.zip"
        with ZipFile(path, "w") as archive:
            archive.write(words, "words.txt")
    found = read_words(path, {"male", "female", "unheard"})
    assert {*found} == {"male", "female"}
    np.testing.assert_allclose(found["male"], [0.6, 0, 0.8])


def test_vectors_and_means_over_labels(words):
    made = MetadataVectors(str(words), of=("gender", "zip", "occupation"))
    features = made.joined(dataset()).profiles.features
    gender = features["gender_vector"].values
    np.testing.assert_allclose(
        gender, [[0.6, 0, 0.8], [0, 1, 0], [0.6, 0, 0.8], [0, 0, 0]], atol=1e-6
    )
    half = np.array([0.3, 0.5, 0.4])  # of two labels, however many users have each
    np.testing.assert_allclose(features["gender_mean"].values, [half] * 4, atol=1e-6)
    ohio_and_michigan = np.array([1, 0, 1]) / np.sqrt(2)
    found = features["zip_vector"].values
    np.testing.assert_allclose(found[[0, 3]], [ohio_and_michigan] * 2, atol=1e-6)
    assert not found[[1, 2]].any()  # no states, or none that the file has
    assert not features["occupation_vector"].values[1].any()
    assert "age_vector" not in features


def test_means_over_users(words):
    """Two of four are men, one is a woman, one says nothing."""
    made = MetadataVectors(str(words), of=("gender",), means="users")
    found = made.joined(dataset()).profiles.features["gender_mean"].values
    np.testing.assert_allclose(found, [[0.3, 0.25, 0.4]] * 4, atol=1e-6)


def test_what_is_wrong_is_named(words, tmp_path):
    with pytest.raises(BadValue, match=r"'age'.*gender"):
        MetadataVectors(str(words), of=("age",)).joined(dataset())
    with pytest.raises(BadValue, match="once"):
        MetadataVectors(str(words), of=("zip", "zip"))
    with pytest.raises(BadValue, match="means"):
        MetadataVectors(str(words), means="medians")
    with pytest.raises(MissingData, match="glove"):
        read_words(tmp_path / "nowhere.txt", {"male"})
    with pytest.raises(BadData, match="none of the words"):
        read_words(words, {"unheard"})
    for bad in (
        "male 1 2 x",
        "male 0 0 0",
        "male 1 2 nan",
        "the 1\nmale 1\nfemale 1 2",
    ):
        words.write_text(bad + "\n", "utf-8")
        with pytest.raises(BadData, match="male"):
            read_words(words, {"male", "female"})
    with ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.txt", FILE)
        archive.writestr("b.txt", FILE)
    with pytest.raises(BadData, match="2 text files"):
        read_words(tmp_path / "two.zip", {"male"})


def test_a_damaged_file_is_refused_by_name(words, tmp_path):
    words.write_bytes(b"male 1 2 3\n\xff\xfe 1 2 3\n")
    with pytest.raises(BadData, match=r"words.txt: is damaged"):
        read_words(words, {"male", "female"})
    packed = tmp_path / "words.zip"
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr("words.txt", FILE * 50)
    held = bytearray(packed.read_bytes())
    held[45:60] = bytes(15)
    packed.write_bytes(held)
    with pytest.raises(BadData, match=r"words.zip: is damaged"):
        read_words(packed, {"unheard"})
