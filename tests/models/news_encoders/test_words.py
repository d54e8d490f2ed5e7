"""Texts as numbers of words: the vocabulary, and files of vectors good and bad."""

import numpy as np
import pytest

from tacit.data.strings import Strings
from tacit.errors import BadData, BadValue, MissingData
from tacit.models.news_encoders.words import WORDS, Vocabulary, label_of, text_of
from tests.models.news_encoders.small import N_NEWS, catalog

TEXTS = {"title": (Strings.of(["The storm, the coast", "", "storm again"]), 4)}
FILE = "the 3 4\nstorm 0 2\nphone 1 1\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(FILE, "utf-8")
    return path


def test_words_of_several_texts_have_a_number_and_the_padding_news_has_none():
    """A word counts once per text; `coast` would have been the fifth word."""
    found = Vocabulary(least_texts=2).inputs(TEXTS)
    assert found["title"].tolist() == [[1, 2, 1, 1], [0] * 4, [2, 1, 0, 0], [0] * 4]
    every = Vocabulary(least_texts=1).inputs(TEXTS)["title"]
    assert every.max() == 5  # "," "again" "storm" "the", from 2 on
    assert WORDS not in found


def test_with_a_file_its_words_are_known_and_have_its_directions(file):
    found = Vocabulary(str(file), width=2).inputs(TEXTS)
    assert found["title"][0].tolist() == [3, 2, 1, 3]
    np.testing.assert_allclose(found[WORDS], [[0, 0], [0, 1], [0.6, 0.8]], rtol=1e-6)


def test_files_that_cannot_be_used_are_refused(file, tmp_path):
    with pytest.raises(BadValue, match="set width=2"):
        Vocabulary(str(file), width=50).inputs(TEXTS)
    with pytest.raises(MissingData, match="no file of word vectors"):
        Vocabulary(str(tmp_path / "none.txt"), width=2).inputs(TEXTS)
    file.write_text("storm 0 x\n", "utf-8")
    with pytest.raises(BadData, match="storm"):
        Vocabulary(str(file), width=2).inputs(TEXTS)
    file.write_bytes(b"\xff\xfe\n")
    with pytest.raises(BadData, match="damaged"):
        Vocabulary(str(file), width=2).inputs(TEXTS)
    with pytest.raises(BadValue, match="name a file"):
        Vocabulary(is_trained=False)


def test_a_text_or_label_that_a_catalog_lacks_is_named():
    assert [*text_of(catalog(), "title", reader="X")] == [*catalog().titles]
    assert label_of(catalog(), "category", reader="X").shape == (N_NEWS + 1,)
    with pytest.raises(BadValue, match="NAML reads the text 'lead', which the catalog"):
        text_of(catalog(), "lead", reader="NAML")
    with pytest.raises(BadValue, match="NAML reads the label 'topic'"):
        label_of(catalog(), "topic", reader="NAML")
