"""What a model that reads words does with its two formulas: rank, and learn."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from tacit.data.ragged import Ragged
from tacit.models.news_encoders import torch_gradients, word_encoder
from tacit.models.news_encoders.batch import Batch
from tacit.models.news_encoders.word_encoder import WordEncoder
from tacit.transport.messages import Slot
from tacit.tree import Array, Arrays, Tree


class WordModel(WordEncoder):
    """An encoder with its vectors in numpy and its gradients by torch."""

    def slots(self, weights: Arrays, *, most_news: int) -> dict[str, Slot]:
        """The layout of the gradient of a client that has so many news at the most."""
        return word_encoder.slots(self, weights, most_news=most_news)

    def news(
        self, weights: Arrays, inputs: Arrays
    ) -> Float[np.ndarray, "news_and_padding axes"]:
        """The vector of each news, and of the padding news last."""
        return word_encoder.news(self, weights, inputs)

    def users(
        self, weights: Arrays, news: Float[np.ndarray, "some axes"], histories: Ragged
    ) -> Float[np.ndarray, "users axes"]:
        """The vector of each history, from the vectors of the news."""
        return word_encoder.users(self, weights, news, histories)

    def gradients(self, weights: Arrays, inputs: Arrays, batch: Batch) -> Tree:
        """The gradient of each client's summed cross-entropy; needs torch."""
        return torch_gradients.gradients(self, weights, inputs, batch)

    def total(self, weights: Arrays, inputs: Arrays, batch: Batch) -> dict[str, Array]:
        """The sum of the gradients of all clients, each news encoded once."""
        return torch_gradients.total(self, weights, inputs, batch)
