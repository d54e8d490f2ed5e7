"""PLM-NR: news by fixed vectors of a language model, with heads that are trained.

    x_n  public text vector of a news          e_0   that of the padding news, trained
    r_n  = x_n H + c                           news vector, H and c the head
    g_n  = q · tanh(r_n A + a)                 attention of the user encoder
    u    = Σ softmax(g)_n r_n over the history; zeros if nothing was read
    s_n  = u · r_n                             score of a candidate

With H = sqrt(scale) I, c = 0 and q = 0 the score is `scale` times the content
similarity: attention is the same for all that was read, and u is their mean.

The gradient of a client by H is short. With p the softmax of a slate and y the click,

    w  = Σ (p - y)_n x_n over candidates       v   = ∂loss/∂u
    h  = Σ softmax(g)_n x_n over the history   t_n = tanh(r_n A + a)
    M  = Σ x_n (∂loss/∂g_n q (1 - t_n²))ᵀ over the history

    ∂loss/∂H = w ũᵀ + h vᵀ + M Aᵀ              rank 2 + the width of the attention

ũ is u, or its noisy mixture (`interests`). Each news of a batch meets the head once,
and a client's gradient by H is never written out. All of it is numpy.

Source: Wu et al. 2021, "Empowering News Recommendation with Pre-trained Language
Models"; its language model is fixed here. The user encoder is that of NAML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int64

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.news_encoders.batch import NO_NEWS, NO_SLATE, Batch, DistinctNews
from tacit.models.news_encoders.interests import Mixture, ragged_softmax, softmax
from tacit.models.news_vectors import news_vectors
from tacit.transport.messages import Slot
from tacit.tree import Array, Arrays, Dense, Factored, Tree

VECTORS = "vectors"
HEAD, BIAS, PADDING = "news.head", "news.bias", "news.padding"
ATTENTION, OFFSET, QUERY = "user.attention", "user.offset", "user.query"
BASIS = "basis"
_AT_ONCE = 2**22  # numbers of the histories of some clients: 32 MiB of float64


@dataclass(frozen=True)
class PlmNr:
    """Heads over fixed text vectors, and attention over what was read."""

    content: tuple[str, ...] = ("title_vector",)  # features; `title`: words of titles
    dimensions: int | None = None  # principal axes that are kept; None: all
    starts_at: Literal["content", "random"] = "content"
    width: int = 64  # of a news vector that starts at random; else that of the text
    attention: int = 16  # hidden units of the user encoder
    scale: float = 1.0  # of the scores at the start

    def __post_init__(self) -> None:
        check.one_of(("content", "random"), starts_at=self.starts_at)
        check.count(width=self.width, attention=self.attention)
        check.positive(scale=self.scale)
        if not self.content:
            raise BadValue(
                "content is empty; name public features of the catalog, such as "
                "'title_vector' (data.text_vectors = ['title']) or 'title'"
            )
        if self.dimensions is not None:
            check.count(dimensions=self.dimensions)

    def inputs(self, catalog: Catalog) -> dict[str, Array]:
        """The text vector of each news, centred and of length one."""
        return {
            VECTORS: news_vectors(catalog, self.content, dimensions=self.dimensions)
        }

    def start(
        self, key: Key, inputs: Arrays, *, interests: int = 0, dtype: str = "float64"
    ) -> dict[str, Array]:
        """Weights at content similarity or at random; a basis if there are interests.

        Basis vectors are random, of length one on average.
        """
        check.one_of(("float32", "float64"), dtype=dtype)
        draw = {name: key.at(name).generator() for name in (HEAD, ATTENTION, BASIS)}
        axes = inputs[VECTORS].shape[1]
        width = axes if self.starts_at == "content" else self.width
        head = np.eye(axes)
        if self.starts_at == "random":
            head = draw[HEAD].standard_normal((axes, width)) / math.sqrt(width)
        attention = draw[ATTENTION].standard_normal((width, self.attention))
        weights = {
            HEAD: math.sqrt(self.scale) * head,
            BIAS: np.zeros(width),
            PADDING: np.zeros(axes),
            ATTENTION: attention / math.sqrt(width),
            OFFSET: np.zeros(self.attention),
            QUERY: np.zeros(self.attention),
        }
        if interests:
            basis = draw[BASIS].standard_normal((interests, width))
            weights[BASIS] = basis / math.sqrt(width)
        return {name: value.astype(dtype) for name, value in weights.items()}

    def slots(self, weights: Arrays, *, most_news: int) -> dict[str, Slot]:
        """The layout of one client's gradient; how many news it has does not matter."""
        rank = {HEAD: 2 + len(weights[QUERY])}
        return {
            name: Slot(str(value.dtype), value.shape, rank.get(name))
            for name, value in weights.items()
        }

    def news(
        self, weights: Arrays, inputs: Arrays
    ) -> Float[np.ndarray, "news_and_padding axes"]:
        """The vector r of each news, and of the padding news last."""
        every = np.arange(len(inputs[VECTORS]) + 1)
        return _texts(weights, inputs, every) @ weights[HEAD] + weights[BIAS]

    def users(
        self,
        weights: Arrays,
        news: Float[np.ndarray, "some axes"],
        histories: Ragged,
    ) -> Float[np.ndarray, "users axes"]:
        """The vector u of each history, from the vectors of the news."""
        logits = np.tanh(news @ weights[ATTENTION] + weights[OFFSET]) @ weights[QUERY]
        shares = ragged_softmax(logits[histories.values], histories)
        cells = (shares, histories.values, histories.offsets)
        read = sp.csr_array(cells, shape=(len(histories), len(news)))
        return np.asarray(read @ news)

    def gradients(self, weights: Arrays, inputs: Arrays, batch: Batch) -> Tree:
        """The gradient of each client's summed cross-entropy, by every weight."""
        batch.check(len(inputs[VECTORS]))
        if batch.noise is not None and BASIS not in weights:
            raise BadValue("noise was given, but no basis; start with interests=B")
        local = DistinctNews.of(batch)
        known = _News.of(weights, inputs, local.numbers)
        widest = max(weights[HEAD].shape)
        step = max(1, _AT_ONCE // (widest * max(1, batch.histories.shape[1])))
        trees = [
            _Clients(known, batch, local).gradients()
            for batch, local in zip(batch.blocks(step), local.blocks(step), strict=True)
        ]
        return trees[0] if len(trees) == 1 else Tree.concatenate(trees)

    def total(self, weights: Arrays, inputs: Arrays, batch: Batch) -> dict[str, Array]:
        """The sum of the gradients of all clients."""
        return self.gradients(weights, inputs, batch).sum()


@dataclass(frozen=True, eq=False)
class _News:
    """The weights, and what they make of each news of a batch, once."""

    weights: Arrays
    is_padding: Bool[np.ndarray, "news"]
    texts: Float[np.ndarray, "news inputs"]  # x
    vectors: Float[np.ndarray, "news axes"]  # r
    hidden: Float[np.ndarray, "news units"]  # t
    logits: Float[np.ndarray, "news"]  # g
    slopes: Float[np.ndarray, "news units"]  # of g by r A + a

    @classmethod
    def of(
        cls, weights: Arrays, inputs: Arrays, numbers: Int64[np.ndarray, "news"]
    ) -> _News:
        texts = _texts(weights, inputs, numbers)
        vectors = texts @ weights[HEAD] + weights[BIAS]
        hidden = np.tanh(vectors @ weights[ATTENTION] + weights[OFFSET])
        logits, slopes = hidden @ weights[QUERY], weights[QUERY] * (1 - hidden**2)
        is_padding = numbers == len(inputs[VECTORS])
        return cls(weights, is_padding, texts, vectors, hidden, logits, slopes)


@dataclass(frozen=True, eq=False)
class _Clients:
    """Forward and backward pass of some clients, from the vectors of their news."""

    news: _News
    batch: Batch
    local: DistinctNews

    def gradients(self) -> Tree:
        news, weights, places = self.news, self.news.weights, self.local.histories
        read = news.vectors[places]  # (clients, read, axes)
        shares = self._shares()
        users = (shares[:, None] @ read)[:, 0]
        mixture = self._mixture(users)
        mixed = users if mixture is None else mixture.vectors
        errors = self._errors(mixed)  # (clients, slates * shown)
        by_user, by_basis = self._shown_sums(errors, news.vectors), None
        if mixture is not None:
            by_user, by_basis = mixture.backward(by_user)
        elif BASIS in weights:
            by_basis = np.zeros((len(users), *weights[BASIS].shape), users.dtype)
        by_logit = _through_softmax(shares, (read @ by_user[:, :, None])[:, :, 0])
        by_hidden = by_logit[:, :, None] * news.slopes[places]  # by r A + a
        by_offset = by_hidden.sum(axis=1)
        leaves = {
            BIAS: by_offset @ weights[ATTENTION].T
            + by_user * shares.sum(axis=1, keepdims=True),
            PADDING: self._by_padding(shares, by_user, by_hidden),
            ATTENTION: (by_hidden.swapaxes(1, 2) @ read).swapaxes(1, 2),
            OFFSET: by_offset,
            QUERY: (by_logit[:, None] @ news.hidden[places])[:, 0],
            **({} if by_basis is None else {BASIS: by_basis}),
        }
        history = np.concatenate([shares[:, :, None], by_hidden], axis=2)
        head = self._head(errors, history, mixed, by_user)
        return Tree({HEAD: head, **{n: Dense(value) for n, value in leaves.items()}})

    def _head(
        self, errors: Array, history: Array, mixed: Array, by_user: Array
    ) -> Factored:
        """The outer products w ũᵀ, h vᵀ and M Aᵀ of each client.

        Without a slate all factors are zero: their product is, but h alone would tell
        what was read.
        """
        has_slate = (self.batch.labels != NO_SLATE).any(axis=1)[:, None, None]
        w = self._shown_sums(errors, self.news.texts)[:, None]
        h_and_m = history.swapaxes(1, 2) @ self.news.texts[self.local.histories]
        attention = self.news.weights[ATTENTION].T
        alike = np.broadcast_to(attention, (len(errors), *attention.shape))
        left = np.concatenate([w, h_and_m], axis=1)
        right = np.concatenate([mixed[:, None], by_user[:, None], alike], axis=1)
        left *= has_slate
        right *= has_slate
        return Factored(left, right)

    def _shares(self) -> Float[np.ndarray, "clients read"]:
        """The attention of each client over what it has read."""
        logits = self.news.logits[self.local.histories]
        return softmax(np.where(self.batch.histories == NO_NEWS, -np.inf, logits))

    def _mixture(self, users: Array) -> Mixture | None:
        batch = self.batch
        if batch.noise is None:
            return None
        basis = self.news.weights[BASIS]
        return Mixture.of(users, basis, noise=batch.noise, theta=batch.theta)

    def _errors(self, users: Array) -> Float[np.ndarray, "clients places"]:
        """The softmax less the click of every candidate; zeros where no slate is."""
        batch, shown = self.batch, self.news.vectors[self.local.candidates]
        scores = np.einsum("csnd,cd->csn", shown, users)
        errors = softmax(np.where(batch.candidates == NO_NEWS, -np.inf, scores))
        client, slate = np.nonzero(batch.labels != NO_SLATE)
        errors[client, slate, batch.labels[client, slate]] -= 1.0
        errors[batch.labels == NO_SLATE] = 0.0
        return errors.reshape(len(errors), -1)

    def _shown_sums(self, errors: Array, rows: Array) -> Array:
        """Errors times rows of the candidates, added up for each client."""
        shown = self.local.candidates.reshape(len(errors), -1)
        return (errors[:, None] @ rows[shown])[:, 0]

    def _by_padding(self, shares: Array, by_user: Array, by_hidden: Array) -> Array:
        """The padding news has its text vector from the weights: e_0."""
        weights = self.news.weights
        is_padding = self.news.is_padding[self.local.histories]
        is_padding &= self.batch.histories != NO_NEWS
        by_news = (shares * is_padding).sum(axis=1, keepdims=True) * by_user
        inner = (by_hidden * is_padding[:, :, None]).sum(axis=1)
        return (by_news + inner @ weights[ATTENTION].T) @ weights[HEAD].T


def _through_softmax(shares: Array, slopes: Array) -> Array:
    """Slopes by logits, from those by their softmax."""
    mean = (shares * slopes).sum(axis=1, keepdims=True)
    return shares * (slopes - mean)


def _texts(weights: Arrays, inputs: Arrays, numbers: Int64[np.ndarray, "n"]) -> Array:
    """The text vectors of some news; the number after the last is the padding news."""
    vectors, padding = inputs[VECTORS], weights[PADDING]
    last = len(vectors)
    found = vectors[np.minimum(numbers, last - 1)].astype(padding.dtype)
    found[numbers == last] = padding
    return found
