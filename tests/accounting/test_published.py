"""DP-PrivRec's tables, all 36 cells; and what can be proven instead."""

import math

import pytest

from tacit.accounting.published import (
    PRIVREC_TABLES,
    effective_noise,
    fixed_size_epsilons,
    privrec_epsilon,
    wbk_epsilon,
    wbk_rdp,
)
from tacit.errors import BadValue

CELLS = [
    (table.population, size, delta, published)
    for table in PRIVREC_TABLES
    for size, row in table.rows.items()
    for delta, published in zip(table.deltas, row, strict=True)
]


def cut(x):
    return math.floor(x * 10_000) / 10_000


def test_the_tables_are_whole():
    assert len(CELLS) == 36
    assert len({published for *_, published in CELLS}) == 36


@pytest.mark.parametrize(("population", "size", "delta", "published"), CELLS)
def test_every_published_cell(population, size, delta, published):
    assert cut(privrec_epsilon(size, population=population, delta=delta)) == published


def test_the_text_has_a_thousand_rounds_not_a_thousand_times_the_cohort():
    stated = wbk_epsilon(30 / 4800, noise_multiplier=1.0, count=1000, delta=1e-6)
    assert stated == pytest.approx(2.8384, abs=5e-4)
    assert cut(stated) != 16.6081


def test_what_can_be_proven():
    found = fixed_size_epsilons(
        30, population=4800, noise_multiplier=1.0, rounds=1000, delta=1e-6
    )
    assert found.rdp == pytest.approx(2.4460, abs=5e-4)
    assert found.pld == pytest.approx(1.5244, abs=5e-4)


def test_the_bound_by_hand_at_the_second_order():
    """log(1 + q² · min(4 (e - 1), 2 e)) for noise 1, where e is Euler's."""
    q = 0.1
    by_hand = math.log1p(q**2 * min(4 * (math.e - 1), 2 * math.e))
    assert wbk_rdp(q, noise_multiplier=1.0, most_order=2)[0] == pytest.approx(by_hand)
    # with much noise the other side of the minimum is taken
    by_hand = math.log1p(q**2 * 4 * math.expm1(1 / 25))
    assert wbk_rdp(q, noise_multiplier=5.0, most_order=2)[0] == pytest.approx(by_hand)


@pytest.mark.parametrize(("step", "expected"), [(0.1, 1.1927), (1, 1.0), (2, 0.7255)])
def test_a_step_outside_the_noise(step, expected):
    found = effective_noise(1.0, step=step, shared=0.7)
    assert found == pytest.approx(expected, abs=5e-5)
    doubled = effective_noise(2.0, step=step, shared=0.7)
    assert doubled == pytest.approx(2 * found)


@pytest.mark.parametrize(
    "call",
    [
        lambda: wbk_epsilon(0.0, noise_multiplier=1.0, count=1, delta=1e-6),
        lambda: wbk_epsilon(0.1, noise_multiplier=0.0, count=1, delta=1e-6),
        lambda: wbk_epsilon(0.1, noise_multiplier=1.0, count=0, delta=1e-6),
        lambda: wbk_epsilon(0.1, noise_multiplier=1.0, count=1, delta=0.0),
        lambda: effective_noise(1.0, step=0.0, shared=0.5),
        lambda: effective_noise(1.0, step=1.0, shared=1.5),
        lambda: effective_noise(1.0, step=1.0, shared=math.nan),
    ],
)
def test_nonsense_is_refused(call):
    with pytest.raises(BadValue):
        call()
