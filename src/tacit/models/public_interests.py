"""Interests that are public: centres of the vectors of a catalog's items.

    v    public vector of an item, length one       B   number of interests
    b_j  centre of the items of interest j          h   mean of v over a history

    attention_j = softmax over j of (h · b_j) / temperature

A client says, under noise, where its attention is. The server then expects an attention
given what was said, with the prior that all that was said together gives. That reads
released values only, so it costs no privacy.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Float32, Float64, Int64

from tacit.data.catalog import Catalog
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.news_vectors import news_vectors

Vectors = Float[np.ndarray, "items axes"]
Basis = Float64[np.ndarray, "interests axes"]
Attention = Float64[np.ndarray, "clients interests"]
Said = Float[np.ndarray, "reports interests"]

_PASSES = 20  # of k-means; centres hardly move after ten
_RARE = 1e-3  # the least prior of an interest, so that none is ruled out by noise


@lru_cache(maxsize=2)  # the layout of a broadcast needs them as well as the weights
def public_interests(
    catalog: Catalog, names: tuple[str, ...], dimensions: int | None, n: int
) -> Basis:
    """At most `n` interests of a catalog, the same on every machine that has it."""
    return centres(news_vectors(catalog, names, dimensions=dimensions), n)


def centres(vectors: Vectors, n: int) -> Basis:
    """Unit centres of k-means; fewer than `n` if there are fewer different items.

    Source: k-means++ (Arthur and Vassilvitskii 2007), with public draws.
    """
    known = vectors[np.any(vectors != 0, axis=1)].astype(np.float64)
    if not len(known):
        raise BadValue(
            "no item of the catalog has a vector, so there are no public interests; "
            "name other features in content"
        )
    found = _spread(known, n)
    for _ in range(_PASSES):
        member = (known @ found.T).argmax(axis=1)
        sums = np.zeros_like(found)
        np.add.at(sums, member, known)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        # A centre that nobody is nearest to stays where it is.
        found = np.where(norms > 0, sums / np.where(norms > 0, norms, 1.0), found)
    return found


def attention(
    histories: Float64[np.ndarray, "clients axes"],
    basis: Basis,
    *,
    temperature: float,
) -> Attention:
    """The softmax of each mean history over the interests."""
    # Row by row: a product of matrices rounds a row by how many others there are.
    near = np.einsum("ij,kj->ik", histories, basis) / temperature
    apart = np.exp(near - near.max(axis=1, keepdims=True))
    return np.asarray(apart / apart.sum(axis=1, keepdims=True))


def marked(
    numbers: Int64[np.ndarray, "clients"], n: int
) -> Float32[np.ndarray, "clients n"]:
    """A one at each client's number, else zeros."""
    rows = np.zeros((len(numbers), n), np.float32)
    rows[np.arange(len(numbers)), numbers] = 1
    return rows


def expected_after_response(said: Said, *, keep: float, other: float) -> Attention:
    """The chance of each interest, given the one that randomised response gave.

    `said` has a one at the reported interest. `keep` is the chance of a true report,
    `other` that of each false one.
    """
    if not len(said):
        return said.astype(np.float64)
    frequency = (said.mean(axis=0, dtype=np.float64) - other) / (keep - other)
    prior = np.maximum(frequency, _RARE)
    chances = np.full((len(prior), len(prior)), other)
    np.fill_diagonal(chances, keep)
    joint = chances * prior[:, None]  # interest by report
    posterior = (joint / joint.sum(axis=0)).T
    return np.asarray(posterior[said.argmax(axis=1)])


def expected_after_noise(said: Said, *, variance: float) -> Attention:
    """The best linear estimate of attention that got noise of this variance.

    The covariance of attention is that of the reports less the noise, and at least 0.
    """
    if len(said) < 2:
        return said.astype(np.float64)
    noisy = said.astype(np.float64)
    mean = noisy.mean(axis=0)
    values, axes = np.linalg.eigh(np.atleast_2d(np.cov(noisy, rowvar=False)))
    kept = np.maximum(values - variance, 0.0) / np.maximum(values, 1e-300)
    return np.asarray(mean + (noisy - mean) @ (axes * kept) @ axes.T)


def _spread(known: Vectors, n: int) -> Basis:
    """Different items far from each other, to start from."""
    draws = Key.from_seed(0).at("public interests").generator()
    chosen = known[:1].copy()
    while len(chosen) < n:
        # The squared distance of two unit vectors is 2 - 2 cos.
        gap = np.maximum(1.0 - (known @ chosen.T).max(axis=1), 0.0)
        if gap.max() < 1e-6:  # every item is a centre already
            break
        item = draws.choice(len(known), p=gap / gap.sum())
        chosen = np.concatenate([chosen, known[item : item + 1]])
    return chosen
