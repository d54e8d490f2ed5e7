"""Many small networks, each trained for a pass; twin of `plain_pass.Client`.

A network is one flat array: a table, then the layers, laid out as `Layout` says. A
thing's inputs are rows of the table and numbers, as `Side` says. Products are by BLAS,
and what a network works on stays in the processor's cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit


class Side(NamedTuple):
    """Inputs of things: `fields` runs of shares of rows each, then numbers."""

    ends: Any  # of runs
    rows: Any
    shares: Any
    numbers: Any  # things × numbers
    fields: int


class Layout(NamedTuple):
    """Where the weights of a network begin, and their sizes."""

    rows: int  # of the table, which comes first
    size: int  # of a row
    common: int  # inputs that all examples of a client share: the next weights
    widths: Any  # inputs of each layer without the common ones; 1 at last
    weights: Any  # where those of each layer begin
    biases: Any


class Rule(NamedTuple):
    """The settings by which a network is trained."""

    batch: int
    rate: Any  # of the type of the weights
    pull: Any
    is_squared: bool  # the distance that pulls
    is_relu: bool  # or sigmoid
    is_odds: bool  # the last sum; or a value


class Given(NamedTuple):
    """The examples that networks are trained on."""

    common: Side  # one thing per client
    each: Side  # one per example
    shared: Side  # which examples share,
    kinds: Any  # and which of them each has
    labels: Any


class Room(NamedTuple):
    """Arrays that every step writes over, so that none is allocated in the loop."""

    inputs: Any  # of every layer, the last sums at last; one after another
    slopes: Any  # there
    moves: Any  # of a layer's weights
    common: Any  # inputs that are common
    common_slope: Any
    hidden: Any  # the sums, or slopes, of the first layer that are common
    wanted: Any


@njit(cache=True, nogil=True, error_model="numpy")
def train(stack, home, layout, rule, given, who, taken, ends):  # type: ignore[no-untyped-def]
    """One pass of each network of `stack`, in place.

    Network i is of client who[i] and learns from the examples taken[ends[i]:ends[i+1]],
    `batch` at a time.
    """
    room = _room(layout, rule, home)
    for i in range(len(stack)):
        for first in range(ends[i], ends[i + 1], rule.batch):
            some = taken[first : min(first + rule.batch, ends[i + 1])]
            _step(stack[i], home, layout, rule, given, who[i], some, room)


@njit(cache=True, nogil=True, error_model="numpy")
def _room(layout, rule, home):  # type: ignore[no-untyped-def]
    every, widest = 0, 0
    for layer in range(len(layout.widths)):
        every += rule.batch * layout.widths[layer]
        if layer:
            widest = max(widest, layout.widths[layer - 1] * layout.widths[layer])
    number, hidden = home.dtype, layout.widths[1]
    return Room(
        np.empty(every, number),
        np.empty(every, number),
        np.empty(widest, number),
        np.empty(layout.common, number),
        np.empty(layout.common, number),
        np.empty(hidden, number),
        np.empty(rule.batch, number),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _step(theta, home, layout, rule, given, who, some, room):  # type: ignore[no-untyped-def]
    n, table_end = len(some), layout.rows * layout.size
    table = theta[:table_end].reshape(layout.rows, layout.size)
    common = theta[table_end : table_end + layout.common * layout.widths[1]]
    common = common.reshape(layout.common, layout.widths[1])
    _read(given.common, who, table, room.common, 0)
    x = _part(room.inputs, layout, 0, n)
    for k in range(n):
        place = _read(given.each, some[k], table, x[k], 0)
        _read(given.shared, given.kinds[some[k]], table, x[k], place)
        room.wanted[k] = given.labels[some[k]]
    _forward(theta, layout, rule, common, n, room)
    _backward(theta, layout, rule, common, n, room)
    if rule.pull > 0:
        _pull(theta, home, rule)
    _descend(theta, layout, common, n, room)
    _write(given.common, who, table, room.common_slope, 0)
    x = _part(room.slopes, layout, 0, n)
    for k in range(n):
        place = _write(given.each, some[k], table, x[k], 0)
        _write(given.shared, given.kinds[some[k]], table, x[k], place)


@njit(cache=True, nogil=True, error_model="numpy")
def _read(side, thing, table, x, place):  # type: ignore[no-untyped-def]
    """Write the inputs of a thing into x[place:]; gives where the next begins."""
    size = table.shape[1]
    for run in range(thing * side.fields, (thing + 1) * side.fields):
        own = x[place : place + size]
        own[:] = 0
        for held in range(side.ends[run], side.ends[run + 1]):
            row, share = table[side.rows[held]], side.shares[held]
            for j in range(size):
                own[j] += share * row[j]
        place += size
    for number in side.numbers[thing]:
        x[place] = number
        place += 1
    return place


@njit(cache=True, nogil=True, error_model="numpy")
def _write(side, thing, table, slope, place):  # type: ignore[no-untyped-def]
    """Move the rows that a thing holds down the slope at its inputs."""
    size = table.shape[1]
    for run in range(thing * side.fields, (thing + 1) * side.fields):
        for held in range(side.ends[run], side.ends[run + 1]):
            row, share = table[side.rows[held]], side.shares[held]
            for j in range(size):
                row[j] -= share * slope[place + j]
        place += size
    return place + side.numbers.shape[1]


@njit(cache=True, nogil=True, error_model="numpy")
def _part(room, layout, layer, n):  # type: ignore[no-untyped-def]
    """The view of `room` that holds a layer's inputs for `n` examples."""
    first, width = 0, layout.widths[layer]
    for below in range(layer):
        first += n * layout.widths[below]
    return room[first : first + n * width].reshape(n, width)


@njit(cache=True, nogil=True, error_model="numpy")
def _layer(theta, layout, layer):  # type: ignore[no-untyped-def]
    """The weights of a layer, of the first without those of common inputs; biases."""
    first, last = layout.weights[layer], layout.biases[layer]
    inputs, outputs = layout.widths[layer], layout.widths[layer + 1]
    w = theta[first : first + inputs * outputs].reshape(inputs, outputs)
    return w, theta[last : last + outputs]


@njit(cache=True, nogil=True, error_model="numpy")
def _forward(theta, layout, rule, common, n, room):  # type: ignore[no-untyped-def]
    """The inputs of every layer from those of the first."""
    layers = len(layout.weights)
    for layer in range(layers):
        x, z = (
            _part(room.inputs, layout, layer, n),
            _part(room.inputs, layout, layer + 1, n),
        )
        w, bias = _layer(theta, layout, layer)
        np.dot(x, w, z)
        if layer == 0:
            room.hidden[:] = bias
            for i in range(len(common)):
                for j in range(len(bias)):
                    room.hidden[j] += room.common[i] * common[i, j]
            bias = room.hidden
        for i in range(n):
            for j in range(len(bias)):
                z[i, j] += bias[j]
                if layer + 1 < layers:
                    z[i, j] = _active(z[i, j], rule.is_relu)


@njit(cache=True, nogil=True, error_model="numpy")
def _active(z, is_relu):  # type: ignore[no-untyped-def]
    if is_relu:
        return max(z, type(z)(0))
    return type(z)(1 / (1 + np.exp(-z)))


@njit(cache=True, nogil=True, error_model="numpy")
def _backward(theta, layout, rule, common, n, room):  # type: ignore[no-untyped-def]
    """Rate times the slope of the mean loss, at the inputs of every layer."""
    layers = len(layout.weights)
    said = _part(room.inputs, layout, layers, n)
    slope = _part(room.slopes, layout, layers, n)
    for i in range(n):
        value = _active(said[i, 0], False) if rule.is_odds else said[i, 0]
        slope[i, 0] = rule.rate * (value - room.wanted[i]) / n
    for layer in range(layers - 1, -1, -1):
        w, _ = _layer(theta, layout, layer)
        below = _part(room.slopes, layout, layer, n)
        np.dot(slope, w.T, below)
        if layer > 0:
            h = _part(room.inputs, layout, layer, n)
            for i in range(n):
                for j in range(h.shape[1]):
                    if rule.is_relu:
                        below[i, j] *= h[i, j] > 0
                    else:
                        below[i, j] *= h[i, j] * (1 - h[i, j])
            slope = below
    room.hidden[:] = 0
    for i in range(n):
        for j in range(len(room.hidden)):
            room.hidden[j] += slope[i, j]
    for i in range(len(common)):
        total = room.hidden[0] * 0
        for j in range(len(room.hidden)):
            total += room.hidden[j] * common[i, j]
        room.common_slope[i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _pull(theta, home, rule):  # type: ignore[no-untyped-def]
    """One step back towards `home`; none if the distance, not squared, is zero."""
    share = rule.rate * rule.pull
    if not rule.is_squared:
        total = 0.0
        for i in range(len(theta)):
            away = np.float64(theta[i]) - home[i]
            total += away * away
        if total == 0.0:
            return
        share = type(share)(share / (2.0 * np.sqrt(total)))
    for i in range(len(theta)):
        theta[i] += share * (home[i] - theta[i])


@njit(cache=True, nogil=True, error_model="numpy")
def _descend(theta, layout, common, n, room):  # type: ignore[no-untyped-def]
    """Move the weights of every layer down their slope."""
    for layer in range(len(layout.weights)):
        x, slope = (
            _part(room.inputs, layout, layer, n),
            _part(room.slopes, layout, layer + 1, n),
        )
        w, bias = _layer(theta, layout, layer)
        move = room.moves[: w.size].reshape(w.shape)
        np.dot(x.T, slope, move)
        for i in range(len(w)):
            for j in range(len(bias)):
                w[i, j] -= move[i, j]
        for i in range(n):
            for j in range(len(bias)):
                bias[j] -= slope[i, j]
    for i in range(len(common)):
        for j in range(len(room.hidden)):
            common[i, j] -= room.common[i] * room.hidden[j]
