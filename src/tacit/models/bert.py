"""BERT's encoder, forward only: token numbers in, one vector per token out.

    e     word + position + kind of sentence, normalised          (tokens, width)
    Q K V a W + b for each head, a slice of the width
    A     softmax(Q Kᵀ / sqrt(width of a head)) V, heads side by side
    a     norm(a + A W_o + b_o);  then norm(a + gelu(a W_1 + b_1) W_2 + b_2)

    norm  (x - mean) / sqrt(variance + tiny) over the width, times a scale, plus a shift
    gelu  x Φ(x), with the exact normal distribution function

Source: Devlin et al. 2019, and Vaswani et al. 2017 for a layer. Texts of a batch have
one length, so nothing is padded and no token has to be kept from looking at another.
Parameters have the names under which such models are published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from jaxtyping import Float32, Int, Shaped
from scipy.special import ndtr

from tacit import check
from tacit.errors import BadValue

Hidden = Float32[np.ndarray, "texts length width"]
# Whatever a file has, whole numbers of positions too; `_taken` reads what is needed.
Parameters = Mapping[str, Shaped[np.ndarray, "..."]]


@dataclass(frozen=True, eq=False)
class Linear:
    """The map x W + b."""

    weight: Float32[np.ndarray, "inputs outputs"]
    bias: Float32[np.ndarray, "outputs"]

    @classmethod
    def of(cls, found: Parameters, *names: str) -> Linear:
        """The maps of these names side by side; published ones are outputs × inputs."""
        weights = [_taken(found, f"{name}.weight") for name in names]
        biases = [_taken(found, f"{name}.bias") for name in names]
        turned = np.ascontiguousarray(np.concatenate(weights).T)
        return cls(turned, np.concatenate(biases))

    def __call__(
        self, x: Float32[np.ndarray, "texts length inputs"]
    ) -> Float32[np.ndarray, "texts length outputs"]:
        """The image of every vector."""
        rows = x.reshape(-1, x.shape[-1]) @ self.weight  # one product for all texts
        rows += self.bias
        return rows.reshape(*x.shape[:-1], -1)


@dataclass(frozen=True, eq=False)
class Norm:
    """Every vector with mean 0 and variance 1, then scaled and shifted."""

    scale: Float32[np.ndarray, "width"]
    shift: Float32[np.ndarray, "width"]
    tiny: float

    @classmethod
    def of(cls, found: Parameters, name: str, tiny: float) -> Norm:
        """The normalisation of this name."""
        return cls(_taken(found, f"{name}.weight"), _taken(found, f"{name}.bias"), tiny)

    def __call__(self, x: Hidden) -> Hidden:
        """The normalised vectors."""
        x = x - x.mean(axis=-1, keepdims=True)
        variance = np.square(x).mean(axis=-1, keepdims=True)
        x /= np.sqrt(variance + np.float32(self.tiny))
        x *= self.scale
        x += self.shift
        return x


@dataclass(frozen=True, eq=False)
class Layer:
    """Attention of a text's tokens to each other, then a network for each token."""

    queries_keys_values: Linear  # in one product
    attended: Linear
    first_norm: Norm
    widened: Linear
    narrowed: Linear
    second_norm: Norm
    heads: int

    @classmethod
    def of(cls, found: Parameters, name: str, *, heads: int, tiny: float) -> Layer:
        """The layer of this name."""
        own = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        return cls(
            Linear.of(found, *own),
            Linear.of(found, f"{name}.attention.output.dense"),
            Norm.of(found, f"{name}.attention.output.LayerNorm", tiny),
            Linear.of(found, f"{name}.intermediate.dense"),
            Linear.of(found, f"{name}.output.dense"),
            Norm.of(found, f"{name}.output.LayerNorm", tiny),
            heads,
        )

    def __call__(self, x: Hidden) -> Hidden:
        """The vectors after this layer."""
        attended, narrowed = self.before_norm(x)
        return self.second_norm(attended + narrowed)

    def before_norm(self, x: Hidden) -> tuple[Hidden, Hidden]:
        """The two terms of the last line: a, and what the network makes of it."""
        attended = self.first_norm(x + self.attended(self._attention(x)))
        return attended, self.narrowed(_gelu(self.widened(attended)))

    def _attention(self, x: Hidden) -> Hidden:
        texts, length, width = x.shape
        parts = self.queries_keys_values(x).reshape(texts, length, 3, self.heads, -1)
        query, key, value = parts.transpose(2, 0, 3, 1, 4)  # texts, heads, length, own
        scores = query @ key.swapaxes(-1, -2)
        scores /= np.float32(sqrt(width // self.heads))
        mixed = _softmax(scores) @ value
        return mixed.transpose(0, 2, 1, 3).reshape(texts, length, width)


@dataclass(frozen=True, eq=False)
class Bert:
    """A trained encoder; its parameters never change."""

    words: Float32[np.ndarray, "vocabulary width"]
    places: Float32[np.ndarray, "longest width"]  # position + the first kind of text
    norm: Norm
    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, found: Parameters, *, heads: int, tiny: float = 1e-12) -> Bert:
        """The encoder with these parameters; those it does not use are left alone."""
        check.at_least(1, heads=heads)
        words = _taken(found, "embeddings.word_embeddings.weight")
        if words.shape[1] % heads:
            raise BadValue(
                f"heads={heads} must divide the width of the model, {words.shape[1]}"
            )
        kinds = _taken(found, "embeddings.token_type_embeddings.weight")
        places = _taken(found, "embeddings.position_embeddings.weight") + kinds[0]
        norm = Norm.of(found, "embeddings.LayerNorm", tiny)
        depth = len({name.split(".")[2] for name in found if _is_of_layer(name)})
        layers = [
            Layer.of(found, f"encoder.layer.{i}", heads=heads, tiny=tiny)
            for i in range(depth)
        ]
        return cls(words, places, norm, tuple(layers))

    @property
    def width(self) -> int:
        """The length of a token's vector."""
        return self.words.shape[1]

    @property
    def longest(self) -> int:
        """The most tokens that a text may have."""
        return len(self.places)

    @property
    def last_norm(self) -> Norm:
        """The normalisation that the last layer ends in."""
        return self.layers[-1].second_norm

    def hidden(self, tokens: Int[np.ndarray, "texts length"]) -> Hidden:
        """The vectors of the last layer, for texts of one length."""
        return self._through(self.layers, tokens)

    def before_last_norm(
        self, tokens: Int[np.ndarray, "texts length"]
    ) -> tuple[Hidden, Hidden]:
        """The two terms that the last layer adds up and normalises."""
        return self.layers[-1].before_norm(self._through(self.layers[:-1], tokens))

    def _through(self, layers: Sequence[Layer], tokens: np.ndarray) -> Hidden:
        length = tokens.shape[1]
        if not 0 < length <= self.longest:
            raise BadValue(f"texts have {length} tokens; from 1 to {self.longest} fit")
        x = self.norm(self.words[tokens] + self.places[:length])
        for layer in layers:
            x = layer(x)
        return x


def _is_of_layer(name: str) -> bool:
    return name.startswith("encoder.layer.")


def _taken(found: Parameters, name: str) -> Float32[np.ndarray, "..."]:
    if name not in found:
        raise BadValue(f"parameter {name} is missing; this is no BERT encoder")
    return found[name]


def _gelu(x: Hidden) -> Hidden:
    x *= ndtr(x)  # in float32, as everything here
    return x


def _softmax(scores: Float32[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores
