"""What follows from users and noise alone."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.methods.gram_heuristics import Evidence, head_size, lean

some = st.floats(0.01, 1e6)
evidence = st.builds(Evidence, some, some)


def clarity(known):
    """Users over the deviation of the noise: what directions are told apart by."""
    return known.users / known.deviation


@given(evidence, evidence)
def test_the_weight_makes_the_most_of_two_sums(old, new):
    """Never less than either alone, and more than any other weight gives."""
    weight = old.weight_beside(new)
    best = clarity(old.times(weight) + new)
    assert best == pytest.approx(math.hypot(clarity(old), clarity(new)), rel=1e-9)
    for other in (0.5, 0.9, 1.1, 2.0):
        assert clarity(old.times(other * weight) + new) <= best * (1 + 1e-12)


@given(evidence, evidence, evidence)
def test_three_sums_in_a_row_are_weighted_as_if_all_were_known_at_once(one, two, three):
    both = one.times(one.weight_beside(two)) + two
    every = both.times(both.weight_beside(three)) + three
    squares = sum(clarity(known) ** 2 for known in (one, two, three))
    assert clarity(every) == pytest.approx(math.sqrt(squares), rel=1e-9)


def test_adding_a_small_cohort_as_it_is_would_make_a_large_one_worse():
    """The same noise comes with either; without the weight, the whole has both."""
    large, small = Evidence(4000, 1.0), Evidence(1000, 1.0)
    assert clarity(large + small) < clarity(large)
    weight = large.weight_beside(small)
    assert clarity(large.times(weight) + small) > clarity(large)


def test_without_noise_everyone_counts_once():
    assert Evidence(10, 0.0).weight_beside(Evidence(500, 0.0)) == 1.0


def test_a_round_again_and_again():
    assert Evidence(5, 2.0).rounds(3) == Evidence(15, 6.0)
    assert Evidence(5, 4.0).deviation == 2.0
    assert Evidence.of(Evidence(5, 2.0).arrays()) == Evidence(5, 2.0)


def test_the_head_grows_with_people_and_shrinks_with_noise():
    assert head_size(Evidence(4743, 1.0), most=3000) == 600
    assert head_size(Evidence(4 * 4743, 1.0), most=3000) == 1200
    assert head_size(Evidence(4743, 16.0), most=3000) == 300
    assert head_size(Evidence(3, 16.0), most=3000) == 16
    assert head_size(Evidence(1e9, 1.0), most=3000) == 3000
    assert head_size(Evidence(7, 0.0), most=50) == 50


def test_the_more_noise_the_more_content():
    assert lean(0.0) == 0
    assert 0 < lean(0.01) < lean(0.05) == 1
