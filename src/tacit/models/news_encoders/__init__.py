"""Models of news recommendation: a news encoder, a user encoder, and their gradients.

    batch            what clients learn from in one step
    interests        a user vector as a noisy mixture of basis vectors
    plm_nr           PLM-NR: heads over fixed vectors of a language model
    plm_adapter      the same, whose language model learns by an adapter
    words            texts as numbers of words, and vectors of words from a file
    layers           attention and filters, in numpy and in torch alike
    word_encoder     what models that read words have in common
    torch_gradients  their gradients, by torch
    naml             NAML: words and labels, as several views of a news
    nrms             NRMS: self-attention over words and over news

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
from tacit.models.news_encoders.naml import Naml
from tacit.models.news_encoders.nrms import Nrms
from tacit.models.news_encoders.plm_nr import PlmNr
from tacit.models.news_encoders.words import Vocabulary

__all__ = [
    "NO_NEWS",
    "NO_SLATE",
    "Batch",
    "Naml",
    "Nrms",
    "PlmNr",
    "Vocabulary",
    "as_rows",
    "attention",
    "last_read",
    "with_padding",
]
