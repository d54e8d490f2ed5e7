"""States of tokens, of which the last layer of a language model makes its vectors."""

import numpy as np

from tacit.models.bert import Bert
from tacit.models.sentence_encoder import SentenceEncoder
from tacit.models.token_states import TokenStates
from tests.models.small_bert import HEADS, LONGEST, WIDTH, literal, parameters
from tests.models.test_sentence_encoder import by_letter

TEXTS = ["abc", "", "abcdefgh", "b", "abc"]


def encoder() -> SentenceEncoder:
    return SentenceEncoder(Bert.of(parameters(), heads=HEADS), by_letter)


def test_normalised_they_are_the_vectors_of_the_last_layer():
    found = TokenStates.of(TEXTS, encoder(), longest=LONGEST)
    for row, pieces in zip(found.numbers, by_letter(TEXTS), strict=True):
        assert (row > 0).sum() == len(pieces)
        assert not row[len(pieces) :].any()
        states = found.states[row[: len(pieces)] - 1]
        [vectors] = found.norm(states[None, :, :WIDTH])
        want = literal(parameters(), pieces)
        np.testing.assert_allclose(vectors, want, atol=2e-5)


def test_longer_texts_are_cut_off_after_their_first_tokens():
    found = TokenStates.of(TEXTS, encoder(), longest=3)
    assert found.numbers.shape == (5, 3)
    assert len(found.states) == found.numbers.max() == 3 + 2 + 3 + 3 + 3


def test_with_a_digest_they_are_made_once(tmp_path):
    told = []

    def of(texts, digest="one"):
        return TokenStates.of(
            texts,
            encoder(),
            longest=LONGEST,
            digest=digest,
            folder=tmp_path,
            progress=lambda *counts: told.append(counts),
        )

    first = of(TEXTS)
    made = len(told)
    again = of(TEXTS)
    assert len(told) == made
    np.testing.assert_array_equal(first.states, again.states)
    of(TEXTS[:2])
    of(TEXTS, "another model")
    assert len(told) > made + 1


def test_no_text_has_no_state():
    found = TokenStates.of([], encoder(), longest=4)
    assert found.states.shape == (0, 2 * WIDTH)
    assert found.numbers.shape == (0, 4)
