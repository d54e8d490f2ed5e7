"""DP-PrivRec's tables, all 36 cells; and what can be proven instead."""

import math

import pytest
from dp_accounting import (
    GaussianDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)

from tacit.accounting.decomposition import REPLACE_ONE
from tacit.accounting.epsilon import epsilon
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


def test_what_can_be_proven_with_a_true_bit():
    found = fixed_size_epsilons(
        30, population=4800, noise_multiplier=1.0, rounds=1000, delta=1e-6
    )
    assert found.rdp == pytest.approx(2.4460, abs=5e-4)
    assert found.pld == pytest.approx(1.5244, abs=5e-4)


AS_PUBLISHED = (1 - 0.7) ** -0.5  # z of the update alone: its bit is always 1


@pytest.mark.parametrize(
    ("step", "rdp", "pld"),
    [(0.1, 0.0913, 0.0378), (1.0, 1.1035, 0.5670), (2.0, 2.8876, 1.8800)],
)
def test_what_can_be_proven_as_published(step, rdp, pld):
    found = fixed_size_epsilons(
        30,
        population=4800,
        noise_multiplier=AS_PUBLISHED / step,
        rounds=1000,
        delta=1e-6,
    )
    assert found.rdp == pytest.approx(rdp, abs=5e-4)
    assert found.pld == pytest.approx(pld, abs=5e-4)


AT_A_MILLIONTH = [cell for cell in CELLS if cell[2] == 1e-6]


def tight(size, *, population, noise_multiplier, delta):
    """Epsilon of 1000 rounds by the tight profile alone, which is half the work."""
    one = GaussianDpEvent(noise_multiplier)
    sampled = SampledWithoutReplacementDpEvent(population, size, one)
    event = SelfComposedDpEvent(sampled, 1000)
    return epsilon(event, delta=delta, adjacency=REPLACE_ONE).value


@pytest.mark.parametrize(("population", "size", "delta", "published"), AT_A_MILLIONTH)
def test_a_step_of_two_keeps_the_stated_budget(population, size, delta, published):
    """Even were the bit a true one, all 12: 30 of 4800 spends 3.6267 of 16.6081."""
    z = effective_noise(1.0, step=2.0, shared=0.7)
    found = tight(size, population=population, noise_multiplier=z, delta=delta)
    assert found < published
    if (population, size) == (4800, 30):
        assert found == pytest.approx(3.6267, abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("population", "size", "delta", "published"), CELLS)
def test_no_published_cell_is_passed_at_a_step_of_two(
    population, size, delta, published
):
    """As published, all 36."""
    z = AS_PUBLISHED / 2.0
    found = tight(size, population=population, noise_multiplier=z, delta=delta)
    assert found < published


@pytest.mark.parametrize(
    ("size", "population", "delta", "step", "provable", "published"),
    [
        (2, 760, 1e-8, 2.0, 1.2000, 2.2994),
        (2, 760, 1e-8, 2.5, 2.7952, 2.2994),
        (30, 4800, 1e-6, 4.0, 15.8139, 16.6081),
    ],
)
def test_how_large_a_step_the_stated_budgets_allow(
    size, population, delta, step, provable, published
):
    """The cell with the least room, and the largest of the first table's."""
    z = AS_PUBLISHED / step
    found = tight(size, population=population, noise_multiplier=z, delta=delta)
    assert found == pytest.approx(provable, abs=5e-4)
    assert (size, population, delta, published) in [
        (size, population, delta, value) for population, size, delta, value in CELLS
    ]


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
