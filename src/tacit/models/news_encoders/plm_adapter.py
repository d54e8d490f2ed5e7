"""PLM-NR with an adapter in the last layer of its language model.

    s_t, f_t   what that layer adds up for token t, and its network's part
    D, U       the adapter: 384 numbers to `units` and back; U starts at zero
    x_n        mean over tokens of norm(s_t + gelu(f_t D + d) U + v), of length one
    r_n        x_n H + c, the news vector
    u          attention over r_n of what was read, as in PLM-NR

Before training x_n is the sentence vector of the frozen model, and c takes away the
mean of all of them. All but s and f is trained; they are public and computed once
(`models.token_states`). The padding news is a text of one token, e_0.

Source: Wu et al. 2021 trains the last two layers of its language model; an adapter is
what fits here (Houlsby et al. 2019).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.text_vectors import TITLE
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.content_similarity import unit_rows
from tacit.models.news_encoders import word_encoder
from tacit.models.news_encoders.layers import Ops, Values, adapted, additive_attention
from tacit.models.news_encoders.word_encoder import PADDING
from tacit.models.news_encoders.word_model import WordModel
from tacit.models.news_encoders.words import WORDS
from tacit.models.token_states import TokenStates
from tacit.tree import Array, Arrays

ADAPTER = "adapter"  # begins the names of what the language model learns
HEAD, BIAS = "news.head", "news.bias"
_CENTRE = "centre"  # the mean of all news before training
_AT_ONCE = 1024  # news of a block


@dataclass(frozen=True)
class PlmAdapter(WordModel):
    """An adapter over states of tokens, a head, and attention over what was read."""

    tokens: TokenStates  # of the titles, in the order of the catalog
    units: int = 32  # of the adapter
    width: int = 64  # of a news vector
    attention: int = 16  # hidden units of the user encoder
    scale: float = 5.0  # of the scores at the start

    def __post_init__(self) -> None:
        check.count(units=self.units, width=self.width, attention=self.attention)
        check.positive(scale=self.scale)

    @property
    def texts(self) -> Mapping[str, int]:
        """The title, and how many of its tokens are read."""
        return {TITLE: self.tokens.numbers.shape[1]}

    @property
    def columns(self) -> tuple[str, ...]:
        """The tokens of the title."""
        return (TITLE,)

    def inputs(self, catalog: Catalog) -> dict[str, Array]:
        """The tokens of the titles as numbers, their states, and a centre."""
        numbers, states = self.tokens.numbers, self.tokens.states
        if len(numbers) != len(catalog):
            raise BadValue(
                f"there are tokens of {len(numbers)} titles, and the catalog has "
                f"{len(catalog)}; make them of the titles of this catalog"
            )
        none = np.zeros((1, numbers.shape[1]), numbers.dtype)
        return {
            TITLE: np.concatenate([numbers, none]),
            WORDS: states,
            _CENTRE: self._centre(),
        }

    def start(
        self, key: Key, inputs: Arrays, *, interests: int = 0, dtype: str = "float64"
    ) -> dict[str, Array]:
        """A random head over sentence vectors; a basis if there are interests."""
        check.one_of(("float32", "float64"), dtype=dtype)
        both, width = inputs[WORDS].shape[1], self.width
        text = both // 2
        head = word_encoder.start_matrix(key, HEAD, (text, width))[HEAD]
        head *= math.sqrt(self.scale * text / width)  # keeps lengths, then scales
        norm = self.tokens.norm
        weights = {
            PADDING: inputs[WORDS].mean(axis=0, dtype=np.float64),
            **word_encoder.start_matrix(key, f"{ADAPTER}.down", (text, self.units)),
            f"{ADAPTER}.down_bias": np.zeros(self.units),
            f"{ADAPTER}.up": np.zeros((self.units, text)),
            f"{ADAPTER}.up_bias": np.zeros(text),
            f"{ADAPTER}.scale": norm.scale,
            f"{ADAPTER}.shift": norm.shift,
            HEAD: head,
            BIAS: -inputs[_CENTRE] @ head,
            **word_encoder.start_attention(
                key, "user", width=width, units=self.attention
            ),
            **word_encoder.start_basis(key, interests, width),
        }
        return {name: value.astype(dtype) for name, value in weights.items()}

    def encode(
        self,
        ops: Ops,
        weights: Mapping[str, Values],
        words: Values,
        columns: Mapping[str, Values],
    ) -> Values:
        """The vectors of news, from the states of the tokens of their titles."""
        numbers = columns[TITLE]
        rows, text = words[numbers], len(weights[f"{ADAPTER}.shift"])
        sums, inner = rows[..., :text], rows[..., text:]
        tokens = adapted(ops, weights, ADAPTER, sums, inner)
        # The first place counts always: that of a text without a token is e_0.
        is_there = ops.concatenate([numbers[..., :1] >= 0, numbers[..., 1:] > 0], -1)
        total = (tokens * is_there[..., None]).sum(-2)
        unit = total / ((total**2).sum(-1) ** 0.5)[..., None]
        return unit @ weights[HEAD] + weights[BIAS]

    def pool(
        self, ops: Ops, weights: Mapping[str, Values], read: Values, is_there: Values
    ) -> Values:
        """Vectors of users; zeros for who has read nothing."""
        return additive_attention(ops, weights, "user", read, is_there)

    def _centre(self) -> Array:
        """The mean over news of the sentence vectors of the frozen model."""
        numbers, states = self.tokens.numbers, self.tokens.states
        text = states.shape[1] // 2
        total = np.zeros(text)
        for first in range(0, len(numbers), _AT_ONCE):
            some = numbers[first : first + _AT_ONCE]
            rows = self.tokens.norm(states[np.maximum(some, 1) - 1, :text])
            means = (rows * (some > 0)[..., None]).sum(axis=1)
            total += unit_rows(means).sum(axis=0, dtype=np.float64)
        return total / len(numbers)
