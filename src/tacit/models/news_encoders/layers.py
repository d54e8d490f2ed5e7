"""Layers that run in numpy and in torch alike: what differs comes in as `Ops`.

A model that ranks on a device needs numpy only; gradients need torch. One formula for
both cannot drift apart. Axes: (…, rows, width); anything may stand in front of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from tacit.models.news_encoders.interests import softmax

Values = Any  # an array of numpy, or a tensor of torch
_TINY = 1e-12  # BERT's, under the root of a variance
_NEVER = -1e30  # the logit of an empty place; finite, so that slopes stay finite


class Ops(NamedTuple):
    """What numpy and torch call differently."""

    tanh: Callable[[Values], Values]
    relu: Callable[[Values], Values]
    softmax: Callable[[Values], Values]  # along the last axis
    where: Callable[[Values, Values, Values], Values]
    concatenate: Callable[[list[Values], int], Values]
    normal: Callable[[Values], Values]  # the distribution function


NUMPY = Ops(
    np.tanh,
    lambda x: np.maximum(x, 0),
    softmax,
    np.where,
    lambda a, n: np.concatenate(a, n),
    ndtr,
)


def additive_attention(
    ops: Ops,
    weights: Mapping[str, Values],
    name: str,
    rows: Values,
    is_there: Values | None = None,
) -> Values:
    """The sum of rows by softmax(q · tanh(row A + a)); zeros where no row is there.

    The weights are `name.attention`, `name.offset` and `name.query`.
    """
    attention, offset = weights[f"{name}.attention"], weights[f"{name}.offset"]
    logits = ops.tanh(rows @ attention + offset) @ weights[f"{name}.query"]
    shares = _shares(ops, logits, is_there)
    return (shares[..., None, :] @ rows)[..., 0, :]


def self_attention(
    ops: Ops,
    weights: Mapping[str, Values],
    name: str,
    rows: Values,
    is_there: Values | None = None,
    *,
    heads: int,
) -> Values:
    """Rows as mixtures of each other, by several heads side by side.

    Source: Vaswani et al. 2017. The weights are `name.queries`, `.keys`, `.values`.
    """
    query, key, value = (
        _by_head(rows @ weights[f"{name}.{kind}"], heads)
        for kind in ("queries", "keys", "values")
    )
    logits = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
    among = None if is_there is None else is_there[..., None, None, :]
    mixed = (_shares(ops, logits, among) @ value).swapaxes(-2, -3)
    return mixed.reshape(*rows.shape[:-1], -1)


def convolution(
    ops: Ops, weights: Mapping[str, Values], name: str, rows: Values
) -> Values:
    """The ReLU of a filter over each row and its two neighbours; zeros at the ends.

    The weights are `name.filters`, of shape (3 widths, filters), and `name.bias`.
    """
    zero = 0.0 * rows[..., :1, :]
    before = ops.concatenate([zero, rows[..., :-1, :]], -2)
    after = ops.concatenate([rows[..., 1:, :], zero], -2)
    three = ops.concatenate([before, rows, after], -1)
    return ops.relu(three @ weights[f"{name}.filters"] + weights[f"{name}.bias"])


def adapted(
    ops: Ops, weights: Mapping[str, Values], name: str, sums: Values, inner: Values
) -> Values:
    """What a transformer's layer ends in, with an adapter beside its network.

    `inner` is what that network makes of each row, `sums` the same with what skips it.
    The weights are `name.down`, `.down_bias`, `.up`, `.up_bias`, and `.scale` and
    `.shift` of the normalisation. With `.up` and `.up_bias` zero it changes nothing.

    Source: Houlsby et al. 2019, the second adapter of a layer.
    """
    narrow = inner @ weights[f"{name}.down"] + weights[f"{name}.down_bias"]
    narrow = narrow * ops.normal(narrow)  # gelu
    rows = sums + narrow @ weights[f"{name}.up"] + weights[f"{name}.up_bias"]
    rows = rows - rows.mean(-1)[..., None]
    deviation = ((rows**2).mean(-1) + _TINY) ** 0.5
    return (
        rows / deviation[..., None] * weights[f"{name}.scale"]
        + weights[f"{name}.shift"]
    )


def _shares(ops: Ops, logits: Values, is_there: Values | None) -> Values:
    if is_there is None:
        return ops.softmax(logits)
    return ops.softmax(ops.where(is_there, logits, _NEVER)) * is_there


def _by_head(rows: Values, heads: int) -> Values:
    """Axes (…, rows, width) as (…, heads, rows, width / heads)."""
    return rows.reshape(*rows.shape[:-1], heads, -1).swapaxes(-2, -3)
