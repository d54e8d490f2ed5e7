"""Loadings on known directions: exact without noise, and better with it."""

import numpy as np
import pytest

from tacit.models.eigenvalue_shrinkage import Spectrum, cleaned
from tacit.models.item_loadings import taste_directions, with_loadings

ITEMS, SIDE, FEW, PEOPLE = 60, 30, 3, 4000


def people(rng):
    """Unit vectors with three tastes, over all items."""
    basis = np.linalg.qr(rng.normal(size=(ITEMS, FEW)))[0]
    tastes = rng.normal(size=(PEOPLE, FEW)) * [3.0, 2.0, 1.5]
    x = tastes @ basis.T + 0.3 * rng.normal(size=(PEOPLE, ITEMS))
    return basis, x / np.linalg.norm(x, axis=1, keepdims=True)


def sums(rng, q, *, deviation, load_deviation):
    z = q[:, :SIDE] / np.linalg.norm(q[:, :SIDE], axis=1, keepdims=True)
    noise = rng.normal(size=(SIDE, SIDE)) * deviation / 2**0.5
    noise = np.triu(noise, 1) + np.triu(noise, 1).T
    noise[np.diag_indices(SIDE)] = rng.normal(size=SIDE) * deviation
    found = cleaned(z.T @ z + noise, deviation=deviation, rank=10)
    t = q[:, :SIDE] @ taste_directions(found, FEW)
    t /= np.linalg.norm(t, axis=1, keepdims=True)
    loads = q.T @ t + load_deviation * rng.normal(size=(ITEMS, t.shape[1]))
    return found, loads


def caught(basis, found, few=FEW):
    """How much of the true directions lies in the span of the strongest found."""
    strongest = found.vectors[:, np.argsort(-found.strengths)[:few]]
    span = np.linalg.qr(strongest)[0]
    return np.linalg.norm(span.T @ basis) ** 2 / FEW


def test_without_noise_the_head_keeps_its_directions_and_the_tail_gets_its_own():
    rng = np.random.default_rng(0)
    basis, q = people(rng)
    found, loads = sums(rng, q, deviation=0.0, load_deviation=0.0)
    full = with_loadings(
        found, loads, deviation=0.0, load_deviation=0.0, lengths=np.ones(ITEMS)
    )
    assert full.vectors.shape == (ITEMS, len(found.strengths))
    assert caught(basis, full) > 0.98
    head = full.vectors[:SIDE, :FEW]
    span = np.linalg.qr(head)[0]
    kept = np.linalg.norm(span.T @ found.vectors[:, :FEW]) ** 2 / FEW
    assert kept == pytest.approx(1.0, abs=1e-9)


def test_under_noise_loadings_find_more_than_relations_alone():
    more = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        basis, q = people(rng)
        found, loads = sums(rng, q, deviation=60.0, load_deviation=60.0)
        full = with_loadings(
            found, loads, deviation=60.0, load_deviation=60.0, lengths=np.ones(ITEMS)
        )
        alone = Spectrum(
            np.vstack(
                [found.vectors, np.zeros((ITEMS - SIDE, found.vectors.shape[1]))]
            ),
            found.strengths,
            found.rest,
        )
        more.append(caught(basis, full) - caught(basis, alone))
    assert np.mean(more) > 0.1


def test_loadings_of_noise_alone_change_little():
    """A direction along which no taste is seen keeps its own loadings."""
    rng = np.random.default_rng(3)
    _, q = people(rng)
    found, loads = sums(rng, q, deviation=1.0, load_deviation=1.0)
    full = with_loadings(
        found,
        0 * loads,
        deviation=1.0,
        load_deviation=1.0,
        lengths=np.ones(ITEMS),
    )
    assert not full.vectors[SIDE:].any()
    assert np.isfinite(full.vectors).all()
    kept = np.linalg.qr(full.vectors[:SIDE, :FEW])[0].T @ found.vectors[:, :FEW]
    assert np.linalg.norm(kept) ** 2 / FEW > 0.999


def test_a_spectrum_without_directions_has_nothing_to_load():
    nothing = Spectrum(np.zeros((SIDE, 0)), np.zeros(0), 0.0)
    assert not taste_directions(nothing, 2).any()
    full = with_loadings(
        nothing,
        np.ones((ITEMS, 2)),
        deviation=1.0,
        load_deviation=1.0,
        lengths=np.ones(ITEMS),
    )
    assert full.vectors.shape == (ITEMS, 0)


def test_weak_directions_are_lifted_a_little():
    found = Spectrum(np.eye(SIDE)[:, :3], np.array([17.0, 2.0, 1.0]), 1.0)
    lifted = taste_directions(found, 4)
    lengths = np.linalg.norm(lifted, axis=0)
    assert lengths.tolist() == pytest.approx([1.0, 2.0, 1e-3**-0.25, 0.0])


def test_items_that_are_alike_lend_each_other_their_loadings():
    """Half of the items twice: under noise a pair is known better than an item."""
    more = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        basis, q = people(rng)
        twin = np.arange(ITEMS) // 2 * 2
        q = q[:, twin] / np.linalg.norm(q[:, twin], axis=1, keepdims=True)
        basis = np.linalg.qr(basis[twin])[0]
        found, loads = sums(rng, q, deviation=30.0, load_deviation=60.0)
        given = {"deviation": 30.0, "load_deviation": 60.0, "lengths": np.ones(ITEMS)}
        alike = 0.95 * (twin[:, None] == twin) + 0.05 * np.eye(ITEMS)
        lent = with_loadings(found, loads, **given, alike=alike)
        alone = with_loadings(found, loads, **given)
        more.append(caught(basis, lent) - caught(basis, alone))
    assert np.mean(more) > 0.02


def test_items_that_are_alike_to_none_are_shrunk_as_without_content():
    rng = np.random.default_rng(1)
    _, q = people(rng)
    found, loads = sums(rng, q, deviation=30.0, load_deviation=30.0)
    given = {"deviation": 30.0, "load_deviation": 30.0, "lengths": np.ones(ITEMS)}
    one = with_loadings(found, loads, **given, alike=np.eye(ITEMS))
    other = with_loadings(found, loads, **given)
    one_sum = (one.vectors * one.strengths) @ one.vectors.T
    other_sum = (other.vectors * other.strengths) @ other.vectors.T
    assert np.allclose(one_sum, other_sum, atol=1e-8 * np.abs(other_sum).max())
