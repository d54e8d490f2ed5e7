"""Gradients of models that read words, by torch: of every client, or of all together.

    gradients   one per client, by `torch.func`: every client encodes its own news
    total       their sum, by one backward pass: each news is encoded once

The embeddings of words that a client has not met have no gradient: a leaf of touched
rows holds the others. Needs the extra `train`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Int, Int32

from tacit.errors import BadValue
from tacit.models.deterministic_torch import deterministic, load_torch
from tacit.models.news_encoders.batch import NO_NEWS, NO_SLATE, Batch, DistinctNews
from tacit.models.news_encoders.layers import Ops
from tacit.models.news_encoders.word_encoder import (
    BASIS,
    PADDING,
    TABLE,
    WordEncoder,
    table_of,
    touched,
)
from tacit.tree import Array, Arrays, Dense, Leaf, TouchedRows, Tree
from tacit.tree.touched_rows import NO_ROW

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_CLIENTS_AT_ONCE = 16
_NEVER = -1e30  # the score of an empty place


class _Slates(NamedTuple):
    """What a loss needs beside vectors: places that count, clicks and noise."""

    is_read: Tensor  # (…, read)
    is_shown: Tensor  # (…, slates, shown)
    clicked: Tensor  # 1 for the click; zeros where no slate is
    noise: Tensor  # (…, interests); of width 0 if there is none


@deterministic()
def gradients(
    encoder: WordEncoder, weights: Arrays, inputs: Arrays, batch: Batch
) -> Tree:
    """The gradient of each client's summed cross-entropy, by every weight."""
    _check(encoder, weights, inputs, batch)
    blocks = [
        _block(encoder, weights, inputs, some)
        for some in batch.blocks(_CLIENTS_AT_ONCE)
    ]
    return Tree.concatenate(blocks)


@deterministic()
def total(
    encoder: WordEncoder, weights: Arrays, inputs: Arrays, batch: Batch
) -> dict[str, Array]:
    """The sum over clients of their gradients."""
    torch = load_torch()
    _check(encoder, weights, inputs, batch)
    theta = {n: torch.tensor(v, requires_grad=True) for n, v in weights.items()}
    local = DistinctNews.of(batch)
    numbers = {name: inputs[name][local.numbers] for name in encoder.columns}
    table, numbers = table_of(encoder, weights, inputs, numbers)
    known = {TABLE: torch.tensor(table), **theta}
    news = _news(encoder, known, _longs(numbers))
    slates = _slates(batch, news.dtype)
    read, shown = news[local.histories], news[local.candidates]
    loss = _loss(encoder, theta, read, shown, slates, limit=batch.theta)
    slopes = torch.autograd.grad(loss, [*theta.values()], materialize_grads=True)
    return {name: slope.numpy() for name, slope in zip(theta, slopes, strict=True)}


def _check(encoder: WordEncoder, weights: Arrays, inputs: Arrays, batch: Batch) -> None:
    batch.check(len(inputs[encoder.columns[0]]) - 1)  # the last is the padding news
    if batch.noise is not None and BASIS not in weights:
        raise BadValue("noise was given, but no basis; start with interests=B")


def _block(encoder: WordEncoder, weights: Arrays, inputs: Arrays, batch: Batch) -> Tree:
    """Some clients at once, by torch's vectorised map of a gradient."""
    torch = load_torch()
    shown = batch.candidates.reshape(len(batch), -1)
    places = np.concatenate([batch.histories, shown], axis=1)
    # NO_NEWS is -1, the last row: the padding news, which has no word of any client.
    columns = {name: inputs[name][places] for name in encoder.columns}
    theta, axes, rows = dict(weights), dict.fromkeys(weights), None
    table, columns = table_of(encoder, weights, inputs, columns)
    if TABLE in weights:  # of this a client has the rows that it touches
        most = touched(encoder, weights, most_news=places.shape[1])
        rows, columns = _local_words(encoder, columns, most)
        theta[TABLE], axes[TABLE] = weights[TABLE][np.maximum(rows, 0)], 0
    fixed, n_read = _tensors({TABLE: table}), batch.histories.shape[1]
    loss = partial(_client_loss, encoder, fixed, n_read, batch.theta)
    mapped = torch.func.vmap(torch.func.grad(loss), in_dims=(axes, 0, 0))
    slates = _slates(batch, _tensors(theta)[PADDING].dtype)
    found = mapped(_tensors(theta), _longs(columns), slates)
    leaves: dict[str, Leaf] = {name: Dense(found[name].numpy()) for name in weights}
    if rows is not None:
        # Without a slate the values are zero, but the rows would tell what was read.
        rows[(batch.labels == NO_SLATE).all(axis=1)] = NO_ROW
        values = found[TABLE].numpy()
        leaves[TABLE] = TouchedRows(rows, values, len(weights[TABLE]))
    return Tree(leaves)


def _local_words(
    encoder: WordEncoder, columns: Mapping[str, Int[np.ndarray, "..."]], most: int
) -> tuple[Int32[np.ndarray, "clients most"], dict[str, Array]]:
    """The rows of the table that each client touches, and words numbered by these.

    The padding token, number 0, stays what it is.
    """
    clients = len(next(iter(columns.values())))
    local = {name: np.array(value, np.int64) for name, value in columns.items()}
    rows = np.full((clients, most), NO_ROW, np.int32)
    for client in range(clients):
        own = [local[name][client] for name in encoder.texts]
        words = np.unique(np.concatenate([tokens.ravel() for tokens in own]))
        words = words[words > 0]
        rows[client, : len(words)] = words - 1
        for tokens in own:  # views: what is written stands in `local`
            tokens[:] = np.where(tokens > 0, np.searchsorted(words, tokens) + 1, 0)
    return rows, local


def _client_loss(
    encoder: WordEncoder,
    fixed: Mapping[str, Tensor],
    n_read: int,
    limit: float,
    theta: Mapping[str, Tensor],
    columns: Mapping[str, Tensor],
    slates: _Slates,
) -> Tensor:
    """The loss of one client, which encodes what it has read and was shown."""
    news = _news(encoder, {**fixed, **theta}, columns)
    shown = news[n_read:].reshape(*slates.is_shown.shape, -1)
    return _loss(encoder, theta, news[:n_read], shown, slates, limit=limit)


def _news(
    encoder: WordEncoder, theta: Mapping[str, Tensor], columns: Mapping[str, Tensor]
) -> Tensor:
    words = load_torch().cat([theta[PADDING][None], theta[TABLE]])
    found: Tensor = encoder.encode(_ops(), theta, words, columns)
    return found


def _loss(
    encoder: WordEncoder,
    theta: Mapping[str, Tensor],
    read: Tensor,
    shown: Tensor,
    slates: _Slates,
    *,
    limit: float,
) -> Tensor:
    """The summed cross-entropy of all slates; clients may stand in front."""
    torch = load_torch()
    users = encoder.pool(_ops(), theta, read, slates.is_read)
    if slates.noise.shape[-1]:
        users = _mixture(users, theta[BASIS], slates.noise, limit=limit)
    scores = (shown @ users[..., None, :, None])[..., 0]
    scores = torch.where(slates.is_shown, scores, _NEVER)
    return -(slates.clicked * torch.log_softmax(scores, -1)).sum()


def _mixture(users: Tensor, basis: Tensor, noise: Tensor, *, limit: float) -> Tensor:
    """The mixture of `interests`, as torch differentiates it."""
    torch = load_torch()
    alpha = torch.softmax(users @ basis.T / math.sqrt(basis.shape[1]), -1)
    norm = torch.linalg.vector_norm(alpha, dim=-1, keepdim=True)
    kept = torch.relu(alpha / torch.clamp(norm / limit, min=1.0) + noise)
    total = kept.sum(-1, keepdim=True)
    is_lost = total == 0
    even = torch.full_like(kept, 1.0 / len(basis))
    shares = torch.where(is_lost, even, kept / torch.where(is_lost, 1.0, total))
    return shares @ basis


def _slates(batch: Batch, dtype: torch.dtype) -> _Slates:
    torch = load_torch()
    places = np.arange(batch.candidates.shape[2])
    labels = np.where(batch.labels == NO_SLATE, len(places), batch.labels)
    none = np.zeros((len(batch), 0))
    noise = none if batch.noise is None else batch.noise
    return _Slates(
        torch.tensor(batch.histories != NO_NEWS),
        torch.tensor(batch.candidates != NO_NEWS),
        torch.tensor(labels[:, :, None] == places, dtype=dtype),
        torch.tensor(noise, dtype=dtype),
    )


def _tensors(values: Arrays) -> dict[str, Tensor]:
    torch = load_torch()
    return {name: torch.tensor(value) for name, value in values.items()}


def _longs(values: Arrays) -> dict[str, Tensor]:
    return {name: value.long() for name, value in _tensors(values).items()}


def _ops() -> Ops:
    torch = load_torch()
    softmax = partial(torch.softmax, dim=-1)
    functions = torch.tanh, torch.relu, softmax, torch.where, torch.cat
    return Ops(*functions, torch.special.ndtr)
