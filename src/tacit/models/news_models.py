"""Models that rank news, trained from impressions: one interface for two kinds.

    Similarity   a matrix between public vectors: `news_similarity`
    Encoded      a news encoder and a user encoder: `news_encoders`

    inputs       public arrays, made of the catalog alone
    start        the weights before training
    shapes       weights of these shapes, whose values say nothing
    slots        what a client's gradient looks like
    gradients    the gradient of each client, from its impressions
    served       what ranking needs of inputs and weights
    users, news  vectors whose inner products are scores, from what is served

Weights and inputs are named arrays; all of them together are a broadcast, and `served`
is the finished model.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
from jaxtyping import Float, Float64, Int64

from tacit.data.catalog import Catalog
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.keys import Key, Keys
from tacit.mechanisms.private_attention import normalized, to_weights
from tacit.mechanisms.published import PublishedAttention
from tacit.models.content_similarity import unit_rows
from tacit.models.news_encoders.batch import Batch, last_read
from tacit.models.news_encoders.drawn_batch import Draws
from tacit.models.news_encoders.interests import attention
from tacit.models.news_encoders.plm_nr import BASIS
from tacit.models.news_similarity import Head, Slated, gradient, mean_rows
from tacit.models.news_vectors import news_vectors
from tacit.models.public_interests import centres
from tacit.transport.messages import Slot
from tacit.tree import Array, Arrays, Tree

NEWS = "news"  # vectors of all news, of a model that is served
INPUT, USER = "input.", "user."  # begin the names of inputs, and of a user encoder
_USER_ATTENTION = "user.attention"  # a weight that every user encoder has
Rows = Float[np.ndarray, "some axes"]
Effects = Float64[np.ndarray, "items"]
Activation = Literal["softplus", "relu"]
BasisStart = Literal["clusters", "random"]
_ANY = Key.from_seed(0)  # for weights of which only the shapes are looked at


class NewsModel(Protocol):
    """What is trained from impressions and ranks news."""

    def inputs(self, catalog: Catalog) -> dict[str, Array]:
        """Public arrays that every client needs, made of the catalog alone."""

    def start(self, key: Key, inputs: Arrays) -> dict[str, Array]:
        """The weights before training."""

    def shapes(self, inputs: Arrays) -> dict[str, Array]:
        """Weights of the types and shapes of `start`; their values say nothing."""

    def slots(self, weights: Arrays) -> dict[str, Slot]:
        """The leaves of one client's gradient."""

    def gradients(
        self, known: Arrays, impressions: Impressions, keys: Keys, *, effects: Effects
    ) -> Tree:
        """The gradient of each client's loss; `known` has inputs and weights."""

    def served(self, known: Arrays) -> dict[str, Array]:
        """What ranking needs; of arrays that are served already, the same."""

    def served_like(self, known: Arrays, n_news: int) -> dict[str, Array]:
        """Arrays of the types and shapes that are served; their values say nothing."""

    def users(self, served: Arrays, histories: Ragged) -> Rows:
        """The vector of each user, from what they have read."""

    def news(self, served: Arrays, items: Int64[np.ndarray, "some"]) -> Rows:
        """The vectors of these news."""


@dataclass(frozen=True)
class Similarity:
    """A head between public vectors, at the start content similarity."""

    head: Head
    content: tuple[str, ...]
    dimensions: int | None
    scale: float
    most_impressions: int

    def inputs(self, catalog: Catalog) -> dict[str, Array]:
        """The public vector of each news, of length one."""
        names, dimensions = self.content, self.dimensions
        return {"vectors": news_vectors(catalog, names, dimensions=dimensions)}

    def start(self, key: Key, inputs: Arrays) -> dict[str, Array]:
        """The head that leaves content similarity as it is."""
        return {"head": self.head.start(inputs["vectors"].shape[1])}

    def shapes(self, inputs: Arrays) -> dict[str, Array]:
        """The head itself, which costs nothing to make."""
        return self.start(_ANY, inputs)

    def slots(self, weights: Arrays) -> dict[str, Slot]:
        """The factors of the head, so many for each impression."""
        rank = self.head.rank * self.most_impressions
        return {"head": Slot("float64", weights["head"].shape, rank)}

    def gradients(
        self, known: Arrays, impressions: Impressions, keys: Keys, *, effects: Effects
    ) -> Tree:
        """The gradient of each client by the head, from all that it was shown."""
        vectors, most = known["vectors"].astype(np.float64), self.most_impressions
        found = gradient(
            self.head,
            known["head"],
            Slated.of(impressions, vectors, most=most, keys=keys),
            vectors,
            scale=self.scale,
            effects=effects,
            n_clients=len(keys),
            most=most,
        )
        return Tree({"head": found})

    def served(self, known: Arrays) -> dict[str, Array]:
        """The vectors and the head."""
        return {name: known[name] for name in ("vectors", "head")}

    def served_like(self, known: Arrays, n_news: int) -> dict[str, Array]:
        """The vectors and the head, of whatever values."""
        return self.served(known)

    def users(self, served: Arrays, histories: Ragged) -> Rows:
        """The mean of what was read as the head sees it, times the scale."""
        read = mean_rows(histories, served["vectors"].astype(np.float64))
        return self.scale * self.head.users(served["head"], read)

    def news(self, served: Arrays, items: Int64[np.ndarray, "some"]) -> Rows:
        """The vectors as the head sees them."""
        vectors = served["vectors"][items].astype(np.float64)
        return self.head.news(served["head"], vectors)


class Encoder(Hashable, Protocol):
    """A network of `news_encoders`."""

    def inputs(self, catalog: Catalog) -> dict[str, Array]:
        """Texts or their vectors, as arrays."""

    def start(
        self, key: Key, inputs: Arrays, *, interests: int = 0, dtype: str = "float64"
    ) -> dict[str, Array]:
        """The weights before training."""

    def slots(self, weights: Arrays, *, most_news: int) -> dict[str, Slot]:
        """The layout of one client's gradient."""

    def news(self, weights: Arrays, inputs: Arrays) -> Rows:
        """The vector of each news, and of the padding news last."""

    def users(self, weights: Arrays, news: Rows, histories: Ragged) -> Rows:
        """The vector of each history, from the vectors of the news."""

    def gradients(self, weights: Arrays, inputs: Arrays, batch: Batch) -> Tree:
        """The gradient of each client's summed cross-entropy."""

    def total(self, weights: Arrays, inputs: Arrays, batch: Batch) -> dict[str, Array]:
        """The sum of the gradients of all clients."""


@dataclass(frozen=True)
class Encoded:
    """Encoders of news and users, with or without a mixture of interests.

    With `interests` a user vector is a mixture of so many basis vectors, in training
    under the noise of `attention` if there is any. Effects of news are not looked at.

    The longer the basis vectors, the further the attention of a user can be from even:
    u·b / sqrt(d) is its logit. At length one all users have nearly the same attention,
    and with it the same ranking.
    """

    encoder: Encoder
    draws: Draws
    interests: int = 0  # B; 0: the user vector as it is
    basis_starts_at: BasisStart = "clusters"  # of the vectors of news, by k-means
    basis_length: float = 1.0  # of a basis vector at the start; on average, if random
    attention: PublishedAttention | None = None
    serving: Activation = "softplus"  # makes the weights of a mixture positive
    dtype: str = "float64"

    def inputs(self, catalog: Catalog) -> dict[str, Array]:
        """What the encoder reads of each news."""
        return {INPUT + n: v for n, v in _read(self.encoder, catalog).items()}

    def start(self, key: Key, inputs: Arrays) -> dict[str, Array]:
        """The encoder's weights, and a basis if there are interests."""
        _, read = _apart(inputs)
        weights = self._random(key, read)
        if self.interests:
            basis = weights[BASIS]
            if self.basis_starts_at == "clusters":
                basis = self._clusters(weights, read)
            weights[BASIS] = (self.basis_length * basis).astype(self.dtype)
        return weights

    def shapes(self, inputs: Arrays) -> dict[str, Array]:
        """Random weights, without the clusters of the news, which take longer."""
        return self._random(_ANY, _apart(inputs)[1])

    def _random(self, key: Key, read: Arrays) -> dict[str, Array]:
        return self.encoder.start(key, read, interests=self.interests, dtype=self.dtype)

    def _clusters(self, weights: Arrays, read: Arrays) -> Rows:
        """Unit centres of the vectors of all news, as the untrained encoder has them.

        Catalog and start are public, so nothing of a user is in them.
        """
        news = self.encoder.news(weights, read)[:-1]  # the last is the padding news
        found = centres(unit_rows(news.astype(np.float32)), self.interests)
        if len(found) < self.interests:
            raise BadValue(
                f"interests={self.interests} and the news have only {len(found)} "
                "different vectors; use fewer interests, or basis_starts_at='random'"
            )
        return found

    def slots(self, weights: Arrays) -> dict[str, Slot]:
        """The layout of one client's gradient by every weight."""
        draws = self.draws
        shown = draws.most_impressions * (1 + draws.labels.negatives)
        return self.encoder.slots(weights, most_news=draws.most_read + shown)

    def gradients(
        self, known: Arrays, impressions: Impressions, keys: Keys, *, effects: Effects
    ) -> Tree:
        """The gradient of each client by every weight, from what it draws."""
        return self.encoder.gradients(*_apart(known), self.batch(impressions, keys))

    def total(
        self, known: Arrays, impressions: Impressions, keys: Keys
    ) -> dict[str, Array]:
        """The sum of these gradients, in which every news is encoded once."""
        return self.encoder.total(*_apart(known), self.batch(impressions, keys))

    def batch(self, impressions: Impressions, keys: Keys) -> Batch:
        """What each client draws: candidates, histories and noise on its attention."""
        noise = None
        if self.attention is not None:
            noise = self.attention.drawn(keys)
        elif self.interests:
            noise = np.zeros((len(keys), self.interests))
        return self.draws.batch(impressions, keys, noise=noise)

    def served(self, known: Arrays) -> dict[str, Array]:
        """The vectors of all news, and the weights of the user encoder."""
        if NEWS in known:
            return dict(known)
        weights, inputs = _apart(known)
        vectors = self.encoder.news(weights, inputs).astype(np.float32)
        return {**_of_users(weights), NEWS: vectors}

    def served_like(self, known: Arrays, n_news: int) -> dict[str, Array]:
        """Unset vectors for all news, one more for padding, and the user encoder."""
        width = len(known[_USER_ATTENTION])  # reads vectors of news
        vectors = np.empty((n_news + 1, width), np.float32)
        return {**_of_users(known), NEWS: vectors}

    def users(self, served: Arrays, histories: Ragged) -> Rows:
        """The vector of each user, as a mixture of the basis if there is one."""
        users = self.encodings(served, histories)
        if not self.interests:
            return users
        basis, positive = served[BASIS], _POSITIVE[self.serving]
        return positive(attention(users, basis)) @ basis

    def encodings(self, served: Arrays, histories: Ragged) -> Rows:
        """What the user encoder makes of each history, before any mixture."""
        read = last_read(histories, self.draws.most_read)
        return self.encoder.users(served, served[NEWS].astype(np.float64), read)

    def news(self, served: Arrays, items: Int64[np.ndarray, "some"]) -> Rows:
        """The vectors of these news."""
        return served[NEWS][items].astype(np.float64)


_POSITIVE = {"softplus": to_weights, "relu": normalized}


@lru_cache(maxsize=2)  # the layouts of a run need them as well as its start
def _read(encoder: Encoder, catalog: Catalog) -> dict[str, Array]:
    return encoder.inputs(catalog)


def _of_users(weights: Arrays) -> dict[str, Array]:
    """The weights that make a user vector of vectors of news."""
    return {n: v for n, v in weights.items() if n.startswith(USER) or n == BASIS}


def _apart(known: Arrays) -> tuple[dict[str, Array], dict[str, Array]]:
    """The weights and the inputs of an encoder, under its own names."""
    weights = {n: v for n, v in known.items() if not n.startswith(INPUT)}
    inputs = {n.removeprefix(INPUT): v for n, v in known.items() if n.startswith(INPUT)}
    return weights, inputs
