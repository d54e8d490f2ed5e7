"""Events are flattened, named once and merged."""

import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)

from tacit.accounting.decomposition import Part, take_apart
from tacit.accounting.events import PaddedDpEvent, PureDpEvent, pure_local


def only(event, adjacency="replace_one"):
    [(part, count)] = take_apart([(event, adjacency)]).items()
    return part.event, part.adjacency, count


def test_repetitions_are_counted_across_nesting_and_releases():
    one = pure_local(0.5)
    nested = ComposedDpEvent([one, SelfComposedDpEvent(SelfComposedDpEvent(one, 2), 3)])
    parts = take_apart([(nested, "replace_one"), (one, "replace_one")])
    assert parts == {Part(one, "replace_one"): 8}
    apart = take_apart([(one, "zero_out"), (one, "replace_one")])
    assert len(apart) == 2


def test_all_gaussians_are_one():
    parts = take_apart(
        [
            (SelfComposedDpEvent(GaussianDpEvent(4.0), 4), "zero_out"),  # mu² = 1/4
            (GaussianDpEvent(2.0), "replace_one"),  # mu² = 1
        ]
    )
    [(part, count)] = parts.items()
    assert (part.adjacency, count) == ("zero_out", 1)
    assert part.event.noise_multiplier == pytest.approx(1.25**-0.5)


def test_one_name_for_randomized_response():
    named, _, _ = only(RandomizedResponseDpEvent(pure_local(2.0, choices=7).noise, 7))
    assert isinstance(named, PureDpEvent)
    assert (named.epsilon, named.choices) == (pytest.approx(2.0, rel=1e-12), 7)
    assert take_apart([(RandomizedResponseDpEvent(0.0, 3), "replace_one")]) is None
    for silent in (
        RandomizedResponseDpEvent(1.0, 3),
        RandomizedResponseDpEvent(0.0, 1),
    ):
        assert take_apart([(silent, "replace_one")]) == {}


def test_samples_of_everyone_are_no_samples():
    event, adjacency, _ = only(PoissonSampledDpEvent(1.0, GaussianDpEvent(3.0)))
    assert (event.noise_multiplier, adjacency) == (1.5, "zero_out")
    # without replacement the multiplier is sigma / (2 S)
    event, *_ = only(SampledWithoutReplacementDpEvent(9, 9, GaussianDpEvent(3.0)))
    assert event.noise_multiplier == 3.0


def test_gaussians_inside_are_merged():
    several = ComposedDpEvent([SelfComposedDpEvent(GaussianDpEvent(4.0), 8)] * 2)
    for event in (
        PoissonSampledDpEvent(0.5, several),
        PaddedDpEvent(0.5, several),
        SampledWithoutReplacementDpEvent(9, 3, several),
    ):
        found, _, count = only(event)
        assert found.event.noise_multiplier == pytest.approx(1.0)
        assert count == 1
