"""What the last layer of a language model ends in, for every token of some texts.

    s   what the last layer adds up before it normalises, a + f
    f   what its network makes of a                          (`models.bert`)

Everything below an adapter in the last layer is fixed, so s and f are computed once for
a text and are as public as the text. Token numbers are rows, counted from 1; 0 stands
where a text has ended. Longer texts are cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int32

from tacit.data import cache
from tacit.data.archives import Stamp
from tacit.data.digest import content_digest
from tacit.data.features import Vectors
from tacit.data.strings import Strings
from tacit.data.text_vectors import Progress
from tacit.models.bert import Norm
from tacit.models.sentence_encoder import SentenceEncoder


@dataclass(frozen=True, eq=False)
class TokenStates:
    """s and f of every token, side by side, and which tokens each text has."""

    states: Float32[np.ndarray, "tokens both"]
    numbers: Int32[np.ndarray, "texts longest"]
    norm: Norm  # of the last layer

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        encoder: SentenceEncoder,
        *,
        longest: int,
        digest: str | None = None,
        folder: Path | None = None,
        progress: Progress | None = None,
    ) -> TokenStates:
        """Those of the first `longest` tokens of each text.

        With the `digest` of a model they are kept in the cache `folder`.
        """
        pieces = [row[:longest] for row in encoder.pieces([*texts])]

        def build() -> Vectors:
            return Vectors(encoder.states(pieces, progress=progress))

        if digest is None:
            kept = build()
        else:
            named = content_digest(Strings.of(texts))
            stamp: Stamp = {"model": digest, "states of": longest, "texts": named}
            place = cache.folder(folder)
            kept = cache.vectors_through(place, stamp=stamp, build=build)
        return cls(kept.values, _numbers(pieces, longest), encoder.bert.last_norm)


def _numbers(
    pieces: Sequence[Sequence[int]], longest: int
) -> Int32[np.ndarray, "texts longest"]:
    lengths = np.array([len(row) for row in pieces], np.int32)
    places = np.arange(longest, dtype=np.int32)
    first = np.cumsum(lengths, dtype=np.int32) - lengths
    is_there = places < lengths[:, None]
    return np.where(is_there, first[:, None] + places + 1, 0).astype(np.int32)
