"""Which line is chosen within a budget, from evaluations with known differences."""

import math
from dataclasses import replace

import numpy as np

from tacit.experiment.comparison import Comparison, Line
from tacit.experiment.comparison_cost import Cost
from tacit.experiment.comparison_verdict import verdict_of
from tacit.reporting.verdict import Reason, sentences
from tacit.results import Evaluation, Groups

USERS = np.arange(200)
NOISE = np.random.default_rng(0).normal(size=(8, 2, len(USERS)))


def line(
    name,
    mean,
    *,
    epsilon=None,
    row=0,
    spread=0.05,
    sends=1.0,
    flips=False,
    is_baseline=False,
):
    """Two seeds; with `flips` the second has as much less as the first has more."""
    evaluations = tuple(
        Evaluation(
            "full",
            USERS,
            {
                "ndcg@10": 0.5
                + (mean if seed == 0 or not flips else -mean)
                + spread * NOISE[row, seed]
            },
            Groups.everyone(len(USERS)),
        )
        for seed in range(2)
    )
    label = name if epsilon is None else f"{name}, epsilon {epsilon:g}"
    cost = Cost(bytes_up=sends)
    is_noisy = epsilon is not None
    return Line(
        *(name, label, epsilon, epsilon, evaluations),
        cost=cost,
        is_noisy=is_noisy,
        is_baseline=is_baseline,
    )


def choices(*lines):
    found = verdict_of(Comparison(lines, (0, 1), 1, "synthetic"))
    return {choice.epsilon: choice for choice in found.choices}


def test_a_clear_difference_decides():
    gram = line("gram", 0.2, epsilon=4.0, row=1)
    found = choices(gram, line("private_popularity", 0.0, epsilon=4.0))
    assert found[4.0].label == "gram, epsilon 4"
    assert found[4.0].reason is Reason.BEST
    (rival,) = found[4.0].rivals
    assert rival.low < 0.2 < rival.high
    assert rival.is_told_apart


def test_a_tie_goes_to_the_simpler_one():
    gram = line("gram", 0.002, epsilon=1.0, row=1)
    found = choices(gram, line("private_popularity", 0.0, epsilon=1.0))
    assert found[1.0].method == "private_popularity"
    assert found[1.0].reason is Reason.SIMPLER
    assert not found[1.0].rivals[0].is_told_apart


def test_a_tie_goes_to_the_smaller_epsilon_then_to_fewer_bytes():
    strict, weak = (line("gram", 0.0, epsilon=e, row=int(e)) for e in (1.0, 4.0))
    assert choices(strict, weak)[4.0].label == "gram, epsilon 1"
    assert choices(strict, weak)[4.0].reason is Reason.MORE_PRIVATE
    small = line("fedvae", 0.0, epsilon=1.0, row=2, sends=0.5)
    assert choices(strict, small)[1.0].method == "fedvae"
    assert choices(strict, small)[1.0].reason is Reason.CHEAPER


def test_without_privacy_a_tie_goes_to_what_is_proven():
    private = line("gram", 0.0, epsilon=1.0, row=1)
    found = choices(private, line("ease", 0.001, row=2))
    assert found[None].label == "gram, epsilon 1"
    assert found[None].reason is Reason.PROVABLE


def test_a_baseline_is_not_cheap_because_it_is_no_client():
    """It sends nothing, and has every history; a method in the open sends sums."""
    own = line("gram", 0.0, row=1, sends=2e6)
    found = choices(own, line("ease", 0.001, row=2, sends=None, is_baseline=True))
    assert found[None].label == "gram"
    assert found[None].reason is Reason.FEDERATED


def test_seeds_that_disagree_prove_nothing():
    """Users alone would tell them apart; the second training says the opposite."""
    gram = line("gram", 0.2, epsilon=4.0, row=1, flips=True, spread=0.001)
    other = line("private_popularity", -0.02, epsilon=4.0, spread=0.001)
    found = choices(gram, other)
    assert found[4.0].method == "private_popularity"


def test_what_has_no_proof_keeps_no_budget():
    unproven = line("privrec", 0.4, row=3)
    unproven = Line(
        "privrec", "privrec", 1.0, None, unproven.evaluations, is_noisy=True
    )
    lines = (unproven, line("gram", 0.0, epsilon=1.0))
    verdict = verdict_of(Comparison(lines, (0, 1), 1, "synthetic"))
    assert [choice.method for choice in verdict.choices] == ["gram", "privrec"]
    assert verdict.choices[0].reason is Reason.ONLY
    assert verdict.unproven == ("privrec",)


def test_the_price_of_privacy_is_the_loss_against_the_same_method():
    lines = (line("gram", 0.0, epsilon=1.0, row=1), line("gram", 0.1, row=2))
    (price,) = verdict_of(Comparison(lines, (0, 1), 1, "synthetic")).prices
    assert (price.pair.method, price.pair.against) == ("gram", "gram, epsilon 1")
    assert math.isclose(price.pair.mean, 0.1, abs_tol=0.02)
    assert price.pair.low < price.pair.mean < price.pair.high


def test_a_line_that_a_third_one_beats_is_not_chosen():
    """The simple one is not told from the best, but is surely below the middle one."""
    simple = line("private_popularity", 0.0, epsilon=1.0, row=0, spread=0.05)
    # The same users fare alike with both, so that their small difference is sure.
    middle = line("gram", 0.004, epsilon=1.0, row=0, spread=0.05)
    best = line("fedvae", 0.006, epsilon=1.0, row=1, spread=0.4)
    found = choices(simple, middle, best)[1.0]
    assert found.method != "private_popularity"
    assert all(one.low > 0 for one in found.rivals if one.is_told_apart)


def test_a_tie_that_something_else_beats_says_so():
    simple = line("private_popularity", 0.0, epsilon=1.0, row=0, spread=0.05)
    middle = line("gram", 0.004, epsilon=1.0, row=0, spread=0.05)
    found = choices(simple, middle)[1.0]
    assert (found.method, found.reason) == ("gram", Reason.BEST)


def test_what_is_not_promised_to_all_is_said_group_by_group():
    mixed = replace(
        line("gram", 0.1, row=1),
        target=None,
        is_noisy=True,
        by_group={"others": 1.0, "few": None},
    )
    alone = replace(
        line("gram, few alone", 0.0, row=2),
        by_group={"others": None, "few": None},
        asks=("few",),
    )
    assert not mixed.is_unproven
    verdict = verdict_of(Comparison((mixed, alone), (0, 1), 1, "synthetic"))
    said = " ".join(sentences(verdict))
    assert (
        "gram promises epsilon 1.00 to 'others', and promises nothing to 'few'" in said
    )
    assert "gram, few alone promises nothing to 'few', and asks nothing of" in said
    assert "Nothing is proven about" not in said
    assert [choice.epsilon for choice in verdict.choices] == [None]  # keeps no budget
