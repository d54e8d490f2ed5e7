"""Models of news recommendation: a news encoder, a user encoder, and their gradients.

    batch        what clients learn from in one step
    interests    a user vector as a noisy mixture of basis vectors
    plm_nr       PLM-NR: heads over fixed vectors of a language model

Weights are named arrays without a client axis; gradients are trees, one row per client.
Nothing is drawn inside: whatever is random comes in as arrays. Ranking needs numpy
only: the vectors of the news are published with a model.
"""

from tacit.models.news_encoders.batch import (
    NO_NEWS,
    NO_SLATE,
    Batch,
    as_rows,
    last_read,
    with_padding,
)
from tacit.models.news_encoders.interests import attention
from tacit.models.news_encoders.plm_nr import PlmNr

__all__ = [
    "NO_NEWS",
    "NO_SLATE",
    "Batch",
    "PlmNr",
    "as_rows",
    "attention",
    "last_read",
    "with_padding",
]
