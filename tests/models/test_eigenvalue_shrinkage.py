"""Noise is removed, what was there is found, and nothing is made up."""

import numpy as np
import pytest

from tacit.models.eigenvalue_shrinkage import cleaned, noise_edge, without_noise


def noise(side, deviation, seed):
    draws = np.random.default_rng(seed).normal(size=(side, side))
    upper = np.triu(draws, 1) * deviation / np.sqrt(2)
    return upper + upper.T + np.diag(np.diag(draws)) * deviation


def spikes(side, strengths, seed):
    drawn = np.random.default_rng(seed).normal(size=(side, len(strengths)))
    vectors = np.linalg.qr(drawn)[0]
    return vectors, (vectors * strengths) @ vectors.T


def test_without_noise_it_is_the_decomposition():
    vectors, matrix = spikes(12, [5.0, 3.0, 1.0], seed=0)
    found = cleaned(matrix, deviation=0.0, rank=12)
    assert found.strengths == pytest.approx([5, 3, 1])
    assert np.abs(found.vectors.T @ vectors) == pytest.approx(np.eye(3), abs=1e-9)


def test_noise_alone_has_its_edge():
    """The largest eigenvalue is within 10 % of the edge at side 400.

    Its deviation is of order side^(-2/3), below 1 % here (Tracy and Widom): an edge
    that is sqrt(2) off is seen, and a false alarm has odds below 1e-9.
    """
    edge = noise_edge(400, 3.0)
    for seed in range(3):
        largest = np.linalg.eigvalsh(noise(400, 3.0, seed))[-1]
        assert largest == pytest.approx(edge, rel=0.1)


def test_what_stands_out_is_found_at_its_own_strength():
    """Three spikes beyond the edge and one below it; side 400, one draw.

    The estimate of a spike of 4 v has deviation about s (Gavish and Donoho 2017); 15 %
    is six of them. Without shrinkage the smallest would be 25 % too long.
    """
    side, deviation = 400, 1.0
    v = deviation * np.sqrt(side / 2)
    strengths = np.array([8 * v, 4 * v, 2 * v, 0.5 * v])
    vectors, matrix = spikes(side, strengths, seed=1)
    found = cleaned(matrix + noise(side, deviation, 2), deviation=deviation, rank=50)
    kept = found.strengths[:3]
    # What is best to believe of a direction seen at an angle is a little less than it.
    seen = strengths[:3] + v**2 / strengths[:3]
    assert kept == pytest.approx(np.sqrt(seen**2 - 4 * v**2), rel=0.15)
    assert (found.strengths[3:] < v).all()
    assert (np.diag(np.abs(found.vectors[:, :2].T @ vectors[:, :2])) > 0.9).all()


def test_only_so_many_directions_are_kept():
    _, matrix = spikes(12, [5.0, 3.0, 1.0], seed=0)
    assert cleaned(matrix, deviation=0.0, rank=2).strengths == pytest.approx([5, 3])
    assert len(cleaned(np.zeros((4, 4)), deviation=0.0, rank=4).strengths) == 0


def test_every_strength_is_what_its_direction_has_without_the_noise():
    """A spectrum that falls slowly into the noise, side 300; the truth is known here.

    The sum is unbiased; a growing fit is a little low at its lower end and high at its
    upper one (measured: 3 % of the edge over the last 20 directions, under 1 % in the
    middle). Eigenvalues as they are seen are off by up to 85 %.
    """
    side, deviation = 300, 1.0
    edge = noise_edge(side, deviation)
    _, matrix = spikes(side, 2 * edge / np.arange(1, side + 1) ** 0.7, seed=3)
    wrong, naive = np.zeros(side), np.zeros(side)
    for seed in range(20):
        values, vectors = np.linalg.eigh(matrix + noise(side, deviation, seed))
        truth = np.einsum("ij,ij->j", vectors, matrix @ vectors)
        wrong += (without_noise(values, deviation) - truth) / 20
        naive += (values - truth) / 20
    runs = np.abs(wrong.reshape(15, 20).mean(axis=1))
    assert runs.max() < 0.05 * edge
    assert runs[4:11].max() < 0.02 * edge
    assert np.abs(naive.reshape(15, 20).mean(axis=1)).max() > 0.5 * edge


def test_what_lies_within_a_few_directions_is_found_there():
    """A spike of 0.3 of the edge is lost among 300 directions, and not among 10."""
    side, deviation = 300, 1.0
    basis = np.linalg.qr(np.random.default_rng(4).normal(size=(side, 10)))[0]
    spike = basis @ np.ones(10) / np.sqrt(10)
    weak = 0.6 * noise_edge(side, deviation) / 2
    seen = weak * np.outer(spike, spike) + noise(side, deviation, 5)
    alone = cleaned(seen, deviation=deviation, rank=1)
    told = cleaned(seen, deviation=deviation, rank=1, within=basis)
    assert abs(alone.vectors[:, 0] @ spike) < 0.5
    assert abs(told.vectors[:, 0] @ spike) > 0.7


def test_what_any_direction_has_is_the_rest():
    _, matrix = spikes(12, [5.0, 3.0], seed=0)
    found = cleaned(matrix + 0.5 * np.eye(12), deviation=0.0, rank=12)
    assert found.rest == pytest.approx(0.5)
    assert found.strengths[:2] == pytest.approx([5.5, 3.5])
