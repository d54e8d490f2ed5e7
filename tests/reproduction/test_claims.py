"""One contender above another: by the whole interval, and on the same users."""

import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.reproduction.claims import (
    difference,
    evidence,
    is_above,
    is_above_for_seeds,
    is_close,
    on_shared_users,
    over_seeds,
)
from tacit.results import Evaluation, Groups


def found(values, first=0):
    users, everyone = (
        np.arange(first, first + len(values)),
        Groups.everyone(len(values)),
    )
    return Evaluation("p", users, {"ndcg@10": np.array(values)}, everyone)


LOW, HIGH = found([0.25, 0.5]), found([0.5, 0.75])
WIDE = found([0.1, 0.9])
ANY = {"ndcg@10": 0.0}  # no bar at all; test_chance.py has those that matter


def test_a_difference_that_everyone_has():
    made = difference(HIGH, LOW, "ndcg@10")
    assert (made.mean, made.low, made.high) == pytest.approx((0.25, 0.25, 0.25))
    assert evidence(made, "nDCG") == (
        "nDCG +0.250, 95 % interval +0.250 to +0.250, 2 users"
    )


def test_a_claim_holds_if_the_whole_interval_is_above():
    assert is_above("it is", HIGH, LOW, metric="ndcg@10", chance=ANY).ok
    assert not is_above("it is", LOW, HIGH, metric="ndcg@10", chance=ANY).ok
    assert not is_above("perhaps", WIDE, LOW, metric="ndcg@10", chance=ANY).ok


def test_several_seeds():
    pair = [HIGH, found([0.9], first=1)], [LOW, found([0.5], first=1)]
    claim = is_above("it is", *pair, metric="ndcg@10", chance=ANY, name="nDCG")
    assert claim.evidence.startswith("nDCG +0.300")
    assert "2 users; 0.762 is above" in claim.evidence


def test_an_interval_over_seeds_is_students():
    """Differences of .1, .2 and .3: deviation .1, quantile 4.303 of two degrees."""
    more = [found([0.5 + x, 0.7 + x]) for x in (0.1, 0.2, 0.3)]
    less = [found([0.5, 0.7])] * 3
    reach = 4.302653 * 0.1 / 3**0.5
    assert over_seeds(more, less, "ndcg@10") == pytest.approx(
        (0.2 - reach, 0.2 + reach)
    )
    with pytest.raises(BadValue, match="seeds"):
        over_seeds(more[:1], less[:1], "ndcg@10")


def test_a_claim_for_seeds_needs_both_intervals():
    """Every user gains in each seed, but seeds differ too much to speak of others."""
    less = [found([0.5, 0.7])] * 3
    alike = [found([0.6 + x, 0.8 + x]) for x in (0.0, 0.01, 0.02)]
    apart = [found([0.6 + x, 0.8 + x]) for x in (0.0, 0.1, 0.2)]
    assert is_above_for_seeds("it is", alike, less, metric="ndcg@10", chance=ANY).ok
    claim = is_above_for_seeds("perhaps", apart, less, metric="ndcg@10", chance=ANY)
    assert is_above("it is", apart, less, metric="ndcg@10", chance=ANY).ok
    assert not claim.ok
    assert "2 users; " in claim.evidence
    assert claim.evidence.endswith("; -0.048 to +0.448 over 3 seeds")


def test_a_single_seed_has_the_interval_over_users_alone():
    claim = is_above_for_seeds("it is", [HIGH], [LOW], metric="ndcg@10", chance=ANY)
    assert claim == is_above("it is", HIGH, LOW, metric="ndcg@10", chance=ANY)


def test_other_users_cannot_be_compared():
    with pytest.raises(BadValue, match="different users"):
        is_above("no", HIGH, found([0.1, 0.2], first=5), metric="ndcg@10", chance=ANY)


def test_close_is_at_most_so_much_below():
    assert is_close("it is", LOW, HIGH, metric="ndcg@10", chance=ANY, within=0.3).ok
    assert not is_close("it is", LOW, HIGH, metric="ndcg@10", chance=ANY, within=0.2).ok
    assert not is_close(
        "perhaps", WIDE, HIGH, metric="ndcg@10", chance=ANY, within=0.3
    ).ok


def test_cells_of_different_sizes_are_compared_on_the_users_of_both():
    large, small = found([0.1, 0.2, 0.3]), found([0.5, 0.7], first=1)
    (a,), (b,) = on_shared_users([large], [small])
    assert a.users.tolist() == b.users.tolist() == [1, 2]
    assert a.values["ndcg@10"].tolist() == [0.2, 0.3]
    assert b.values["ndcg@10"].tolist() == [0.5, 0.7]
