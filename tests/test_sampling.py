"""Cohorts follow the law that the account is told."""

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import pytest
from dp_accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.plans import Plan
from tacit.sampling import (
    Draw,
    Everyone,
    FixedSize,
    Once,
    Poisson,
    PoissonByGroup,
    Sampler,
)
from tacit.testing.statistics import assert_frequencies

GROUPS = {"young": 4, "old": 6}
SAMPLERS = [
    Poisson(0.3),
    PoissonByGroup({"young": 0.2, "old": 0.7}),
    FixedSize(3),
    Everyone(),
    Once(),
]
each_sampler = pytest.mark.parametrize(
    "sampler", SAMPLERS, ids=lambda s: type(s).__name__
)
INNER = GaussianDpEvent(2.0)
HALVED = GaussianDpEvent(INNER.noise_multiplier / 2)  # an exchange moves two clips


def plan(sampler: Sampler, *, rounds: int = 3) -> Plan:
    return Plan(10, rounds=rounds, sampler=sampler, groups=GROUPS)


@dataclass(frozen=True)
class Known(Draw):
    """A draw whose coins were made beforehand, for all rounds at once."""

    table: np.ndarray

    def coins(self) -> np.ndarray:
        return self.table[self.round]


def draw(round_: int, *, numbers=range(10), seed: int = 0) -> Draw:
    keys = Key.from_seed(seed).each(np.array(numbers))
    codes = (np.array(numbers) >= GROUPS["young"]).astype(np.int64)
    return Draw(keys, codes, round_)


def cohorts(sampler: Sampler, rounds: int) -> list[list[int]]:
    agreed, first = plan(sampler, rounds=rounds), draw(0)
    table = coins(10, rounds)
    draws = (Known(first.keys, first.codes, r, table) for r in range(rounds))
    return [sampler.cohort(draw, agreed).tolist() for draw in draws]


def coins(clients: int, rounds: int) -> np.ndarray:
    """What `Draw.coins` gives, a row a round; one call of the generator."""
    keys = Key.from_seed(0).each(np.tile(np.arange(clients), rounds)).at("round")
    drawn = keys.at_each(np.repeat(np.arange(rounds), clients)).uniform(1)
    return drawn.reshape(rounds, clients)


def times_in(drawn: list[list[int]], client: int) -> int:
    return sum(client in cohort for cohort in drawn)


# --- Who is drawn --------------------------------------------------------------------


def test_the_coins_made_beforehand_are_the_coins():
    """Else the tests of distributions would speak of something else."""
    for round_, row in enumerate(coins(10, 3)):
        np.testing.assert_array_equal(draw(round_).coins(), row)


@each_sampler
def test_a_cohort_is_ascending_without_repeats_and_comes_again(sampler):
    drawn = cohorts(sampler, 20)
    assert all(cohort == sorted(set(cohort)) for cohort in drawn)
    assert all(0 <= client < 10 for cohort in drawn for client in cohort)
    assert drawn == cohorts(sampler, 20)


@pytest.mark.parametrize(
    ("sampler", "rates"),
    [
        (Poisson(0.3), [0.3] * 10),
        (Poisson(1.0), [1.0] * 10),
        (PoissonByGroup({"young": 0.2, "old": 0.7}), [0.2] * 4 + [0.7] * 6),
    ],
)
def test_poisson_coins_fall_at_their_rate(sampler, rates):
    """Each client: false alarm 1e-10, 1e-9 in all; sees a rate 0.06 off."""
    rounds = 3_000
    drawn = cohorts(sampler, rounds)
    for client, rate in enumerate(rates):
        seen = times_in(drawn, client)
        assert_frequencies([seen, rounds - seen], [rate, 1 - rate], false_alarm=1e-10)


def test_poisson_coins_of_two_clients_and_of_two_rounds_are_independent():
    """False alarm 1e-9 each, over the four outcomes of a pair."""
    drawn = [set(cohort) for cohort in cohorts(Poisson(0.5), 4_000)]
    clients = Counter((0 in cohort, 1 in cohort) for cohort in drawn)
    rounds = Counter(
        (0 in now, 0 in later)
        for now, later in zip(drawn[::2], drawn[1::2], strict=True)
    )
    for pairs in (clients, rounds):
        assert_frequencies([*pairs.values()], [0.25] * 4, false_alarm=1e-9)


def test_a_fixed_size_gives_every_subset_equally_often():
    """All ten choose three subsets, false alarm 1e-9 in all."""
    rounds = 12_000
    seen = Counter(map(tuple, cohorts(FixedSize(3), rounds)))
    counts = [seen[subset] for subset in combinations(range(10), 3)]
    assert sum(counts) == rounds  # none has another size
    assert_frequencies(counts, [1 / comb(10, 3)] * comb(10, 3), false_alarm=1e-9)


def test_a_fixed_size_of_all_is_all():
    assert cohorts(FixedSize(10), 2) == [[*range(10)]] * 2


@pytest.mark.parametrize("rounds", [1, 2, 7, 30])
def test_once_gives_each_client_exactly_one_round(rounds):
    drawn = cohorts(Once(), rounds)
    assert sorted(client for cohort in drawn for client in cohort) == [*range(10)]


def test_once_gives_every_round_equally_often():
    """10,000 clients over 7 rounds, false alarm 1e-9."""
    own = draw(0, numbers=range(10_000)).own_round(7)
    assert_frequencies(np.bincount(own, minlength=7), [1 / 7] * 7, false_alarm=1e-9)


def test_everyone_is_everyone():
    assert cohorts(Everyone(), 2) == [[*range(10)]] * 2


@pytest.mark.parametrize(
    "sampler", [s for s in SAMPLERS if not isinstance(s, FixedSize)], ids=str
)
def test_a_clients_coin_does_not_depend_on_the_others(sampler):
    agreed = plan(sampler, rounds=6)
    for round_ in range(6):
        among_all = set(sampler.cohort(draw(round_), agreed).tolist())
        some = [9, 2, 5]
        alone = sampler.cohort(draw(round_, numbers=some), agreed).tolist()
        assert {some[place] for place in alone} == among_all & set(some)


def test_another_seed_draws_others():
    agreed = plan(Poisson(0.5), rounds=1)
    one, two = (Poisson(0.5).cohort(draw(0, seed=s), agreed).tolist() for s in (0, 1))
    assert one != two


# --- What it earns -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampler", "expected", "most"),
    [
        (Poisson(0.3), 3.0, 5),
        (PoissonByGroup({"young": 0.5, "old": 0.25}), 3.5, 5),
        (FixedSize(3), 3.0, 5),
        (Everyone(), 10.0, 5),
        (Once(), 2.0, 1),
    ],
)
def test_the_planned_size_and_how_often_one_client_can_be_asked(
    sampler, expected, most
):
    agreed = plan(sampler, rounds=5)
    assert sampler.expected(agreed) == pytest.approx(expected)
    assert sampler.most_participations(agreed) == most


@pytest.mark.parametrize(
    ("sampler", "group", "once"),
    [
        (Poisson(0.3), "old", PoissonSampledDpEvent(0.3, INNER)),
        (SAMPLERS[1], "young", PoissonSampledDpEvent(0.2, INNER)),
        (SAMPLERS[1], "old", PoissonSampledDpEvent(0.7, INNER)),
        (FixedSize(3), "old", SampledWithoutReplacementDpEvent(10, 3, HALVED)),
        (Everyone(), "old", INNER),
    ],
)
def test_the_event_is_composed_over_the_rounds(sampler, group, once):
    def event(rounds):
        agreed = plan(sampler, rounds=rounds)
        return sampler.event(INNER, group=group, plan=agreed)

    assert event(1) == once
    assert event(4) == SelfComposedDpEvent(once, 4)


@pytest.mark.parametrize("rounds", [1, 50])
def test_once_costs_one_release_whatever_the_rounds(rounds):
    agreed = plan(Once(), rounds=rounds)
    assert Once().event(INNER, group="old", plan=agreed) == INNER


# --- What is refused -----------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, float("nan"), True])
def test_a_rate_is_a_probability(rate):
    with pytest.raises(BadValue, match="rate="):
        Poisson(rate)
    with pytest.raises(BadValue, match=r"rates\[old\]="):
        PoissonByGroup({"young": 0.5, "old": rate})


@pytest.mark.parametrize("size", [0, -1, 2.5])
def test_a_size_is_a_count(size):
    with pytest.raises(BadValue, match="size="):
        FixedSize(size)


def test_no_more_than_there_are():
    with pytest.raises(BadValue, match=r"size=11 must be <= 10.*Everyone"):
        plan(FixedSize(11))


def test_groups_and_rates_must_be_the_same_groups():
    with pytest.raises(BadValue, match="at least one group"):
        PoissonByGroup({})
    with pytest.raises(BadValue, match="'old' is not known"):
        plan(PoissonByGroup({"young": 0.5}))
    with pytest.raises(BadValue, match="'odl' is not known; did you mean 'old'"):
        plan(PoissonByGroup({"young": 0.5, "old": 0.1, "odl": 0.1}))
