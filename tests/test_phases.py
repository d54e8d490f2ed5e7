"""Counting first, on one budget."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.accounting.epsilon import epsilon
from tacit.errors import BadValue, Refused
from tacit.mechanisms.gaussian import gaussian_event
from tacit.phases import CountFirst
from tacit.plan import Plan
from tacit.release import Release, Unit, View, summed
from tacit.sampling import Once, Poisson

PLAN = Plan(
    1000, rounds=5, channel="secure_sum", delta=1e-6, target_epsilon=2.0
)  # everyone, every round


def released(plan, phases):
    """What a method of two parts would say it releases."""

    def releases(noises):
        count, other = noises
        parts = [(plan.rounds - phases.rounds, other)]
        if count is not None:
            parts.append((phases.rounds, count))
        return tuple(
            Release(
                "a sum",
                "server",
                "each round",
                summed(
                    Plan(plan.population, n, plan.sampler, channel="secure_sum"),
                    gaussian_event(noise),
                    reason="a test",
                ),
            )
            for n, noise in parts
        )

    return releases


def spent(plan, releases):
    from dp_accounting import ComposedDpEvent

    events = [r.cells[Unit.USER, View.RELEASE].event for r in releases]
    return epsilon(ComposedDpEvent(events), delta=1e-6, adjacency="zero_out").value


def test_the_budget_is_shared_as_asked():
    """Without sampling 1 / z² of all rounds adds up, and a fifth of it counts."""
    phases = CountFirst(rounds=2, share=0.2)
    count, other = phases.calibrated(PLAN, released(PLAN, phases))
    assert (2 / count**2) / (2 / count**2 + 3 / other**2) == pytest.approx(0.2)
    assert spent(PLAN, released(PLAN, phases)((count, other))) == pytest.approx(
        2.0, rel=1e-3
    )


def test_nothing_counted_and_all_for_the_others():
    phases = CountFirst(rounds=0, share=0.2)
    count, other = phases.calibrated(PLAN, released(PLAN, phases))
    assert count is None
    spends = spent(PLAN, released(PLAN, phases)((None, other)))
    assert 1.99 < spends <= 2.0


def test_sampling_is_counted():
    plan = Plan(
        1000, 30, Poisson(0.2), channel="secure_sum", delta=1e-6, target_epsilon=2.0
    )
    phases = CountFirst(rounds=1, share=0.1)
    found = phases.calibrated(plan, released(plan, phases))
    assert 1.98 < spent(plan, released(plan, phases)(found)) <= 2.0


def test_who_speaks_once_spends_everything_there():
    plan = Plan(1000, 4, Once(), channel="secure_sum", delta=1e-6, target_epsilon=2.0)
    count, other = CountFirst(1, 0.1).calibrated(plan, lambda _: ())
    assert count == other


def test_a_run_that_only_counts_is_refused():
    with pytest.raises(Refused, match=r"rounds=5 must be more than count_rounds=5.*6"):
        CountFirst(5, 0.1).others(PLAN, what="it counts first")
    assert CountFirst(2, 0.1).others(PLAN, what="").rounds == 3


@pytest.mark.parametrize(
    ("rounds", "noises", "words"),
    [
        (0, (2.0, 1.0), "count_noise=2.0 with count_rounds=0.*leave count_noise out"),
        (0, (2.0, None), "count_noise=2.0 with count_rounds=0"),
        (1, (2.0, None), "count_noise=2.0 and noise_multiplier=None share.*set both"),
        (1, (None, 1.0), "count_noise=None and noise_multiplier=1.0 share"),
    ],
)
def test_a_noise_that_would_not_be_used_is_refused(rounds, noises, words):
    with pytest.raises(BadValue, match=words):
        CountFirst(rounds, 0.1).check_noises(*noises)


@pytest.mark.parametrize(
    ("rounds", "noises"), [(0, (None, 1.0)), (0, (None, None)), (1, (None, None))]
)
def test_noises_that_may_be(rounds, noises):
    CountFirst(rounds, 0.1).check_noises(*noises)
    CountFirst(1, 0.1).check_noises(2.0, 1.0)


def told(plan, phases, noises=(2.0, 3.0)):
    """What a method of two parts releases, each in its rounds."""

    def cells(part, noise):
        return summed(part, gaussian_event(noise), reason="a test")

    return phases.releases(
        plan,
        counted=lambda part: cells(part, noises[0]),
        others=cells(phases.others(plan, what=""), noises[1]),
        of="updates",
        noises=noises,
    )


def test_each_part_is_released_in_its_own_rounds():
    first, later = told(PLAN, CountFirst(rounds=2, share=0.2))
    assert (first.rounds, later.rounds) == (range(2), range(2, 5))
    assert first.when == "each of the first 2 rounds"
    assert later.when == "each round after the first 2"
    # the total of a cell is for as many rounds
    server = Unit.USER, View.SERVER
    assert [one.cells[server].event.count for one in (first, later)] == [2, 3]


def test_a_run_of_one_part_is_released_in_all_rounds():
    [only] = told(PLAN, CountFirst(rounds=0, share=0.2))
    assert (only.rounds, only.when) == (None, "each round")
    [either] = told(replace(PLAN, sampler=Once()), CountFirst(rounds=2, share=0.2))
    assert either.rounds is None


def test_what_noise_may_have_made_is_no_count():
    """Of two rounds with noise of 5 each: 7.07, or 1 without any."""
    counts = np.array([70.0, 4.0, 0.5, -9.0])
    noisy = CountFirst(rounds=2, share=0.1).logarithms(counts, noise=5.0)
    assert noisy[1] == noisy[2] == noisy[3] == pytest.approx(np.log(50) / 2)
    assert noisy[0] == pytest.approx(np.log(70))
    bare = CountFirst(rounds=2, share=0.1).logarithms(counts, noise=None)
    assert bare.tolist() == pytest.approx([np.log(70), np.log(4), 0, 0])
