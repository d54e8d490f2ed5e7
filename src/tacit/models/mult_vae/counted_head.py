"""The most counted items, which a network knows; the others follow in the ranking.

counts   the sum of users' histories of norm 1, with noise
head     the items with the largest counts: the network's inputs and outputs
tail     all others: below every score of the head, in the order of their counts
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float64, Int64

from tacit.models.histories import log_counts
from tacit.models.item_relations import places_by_count
from tacit.models.mult_vae.network import Network
from tacit.models.onnx_graph import Formula
from tacit.tree import Arrays

Counts = Float64[np.ndarray, "items"]
Head = Int64[np.ndarray, "head"]


def most_counted(counts: Counts, size: int) -> Head:
    """The head; stable, so that ties fall the same way on every machine."""
    return np.argsort(-counts, kind="stable")[:size]


def output_bias(
    counts: Counts, head: Head, *, floor: float
) -> Float64[np.ndarray, "head"]:
    """The logarithm of the head's counts, with a mean of zero.

    With it a softmax begins at popularity, so training need not learn it. Counts below
    `floor`, the deviation of their noise, are read as the floor.
    """
    logs = log_counts(counts[head], floor=floor)
    return np.asarray(logs - logs.mean())  # a softmax does not see a constant


def with_tail(
    found: Float[np.ndarray, "users head"], head: Head, counts: Counts
) -> Float[np.ndarray, "users items"]:
    """Scores of the whole catalog, from those of its head."""
    scores = found.min(axis=1, keepdims=True) + _after(counts)
    scores[:, head] = found
    return scores


def space_with_tail(
    network: Network, weights: Arrays
) -> tuple[Float[np.ndarray, "items inputs"], Float[np.ndarray, "items"]]:
    """Vectors and offsets that order the whole catalog as `with_tail` does.

    They are the decoder's last layer. Without counts there is nothing but the head.
    """
    vectors, offsets = network.last_layer(weights)
    if "counts" not in weights:
        return vectors, offsets
    head, counts = weights["head"], weights["counts"]
    # No user vector is longer than the reach: the tail lies below any score of it.
    longest = network.reach(weights) * np.linalg.norm(vectors, axis=1)
    everything = np.zeros((len(counts), vectors.shape[1]))
    below = float((offsets - longest).min()) + _after(counts)
    everything[head], below[head] = vectors, offsets
    return everything, below


def formula_with_tail(found: Formula, head: Head, counts: Counts) -> Formula:
    """`with_tail` as a graph."""
    after = found.smallest() + _after(counts)
    return found.placed(head, among=after, n_items=len(counts))


def _after(counts: Counts) -> Counts:
    """Between 1 and 2 below the lowest score of the head, in the order of counts."""
    return -1 - places_by_count(counts) / len(counts)
