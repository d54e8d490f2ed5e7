"""Krum from factors chooses whom Krum of written-out reports chooses."""

import numpy as np
import pytest

from tacit.aggregation.krum import Krum, krum_scores
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum
from tacit.methods.fedvae import FedVae
from tacit.plans import Plan
from tacit.runtime.simulate import check_plan
from tacit.transport.channels import Each, RoundContext, Sum
from tacit.transport.messages import Layout, Reports, Slot
from tacit.tree import Dense, Factored, Tree


def reports(n=12, seed=0, liars=()):
    draws = np.random.default_rng(seed)
    left, right = draws.normal(size=(n, 2, 5)), draws.normal(size=(n, 2, 4))
    left[list(liars)] *= 100
    return Tree({"w": Factored(left, right), "b": Dense(draws.normal(size=(n, 3)))})


LAYOUT = Layout({"w": Slot("float64", (5, 4), 2), "b": Slot("float64", (3,))})


def agreed(planned=1.0, **changes):
    return RoundContext(LAYOUT, Key.from_seed(0), planned=planned, **changes)


def literal(tree, attackers, keep):
    """As Blanchard et al. write it: pairs, one by one."""
    dense = tree.to_dense()
    rows = [
        np.concatenate([dense[n][i].ravel() for n in "wb"]) for i in range(len(tree))
    ]
    scores = []
    for i, mine in enumerate(rows):
        far = sorted(((mine - r) ** 2).sum() for j, r in enumerate(rows) if j != i)
        scores.append(sum(far[: len(rows) - attackers - 2]))
    return sorted(np.argsort(scores, kind="stable")[:keep])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("attackers", "keep"), [(0, 1), (2, 1), (2, 5), (4, 8)])
def test_it_chooses_whom_the_literal_one_chooses(seed, attackers, keep):
    tree = reports(seed=seed)
    assert Krum(attackers, keep).chosen(tree).tolist() == literal(tree, attackers, keep)


def test_attackers_are_left_out_and_the_mean_is_over_the_others():
    tree = reports(liars=(3, 7))
    krum = Krum(2)
    kept = krum.chosen(tree)
    assert kept.tolist() == [0, 1, 2, 4, 5, 6, 8, 9, 10, 11]
    chunks = [Reports(tree.select(slice(0, 5))), Reports(tree.select(slice(5, 12)))]
    found = krum.total(Each(chunks), agreed(99.0))
    dense = tree.to_dense()
    for name in "wb":
        mean = dense[name][kept].mean(axis=0)
        np.testing.assert_allclose(found[name] / 99.0, mean)


def test_broken_reports_are_never_kept():
    tree = reports()
    tree["b"][4] = np.inf
    tree["b"][5] = np.nan
    with np.errstate(invalid="ignore"):
        assert not {4, 5} & set(Krum(2).chosen(tree).tolist())


def test_scores_by_hand():
    """Points 0, 1, 3, 10 on a line; two neighbors each."""
    points = np.array([0.0, 1.0, 3.0, 10.0])
    scores = krum_scores(np.outer(points, points), attackers=0)
    assert scores.tolist() == [1 + 9, 1 + 4, 4 + 9, 49 + 81]


def test_nobody_gives_zero():
    zero = Krum(1).total(Each([]), agreed(5.0))
    assert {name: value.sum() for name, value in zero.items()} == {"w": 0, "b": 0}


def test_what_it_refuses():
    tree = reports(n=6)
    with pytest.raises(Refused, match="6 reports with attackers=2: Krum needs at leas"):
        Krum(2).chosen(tree)
    with pytest.raises(Refused, match="keep at most 5"):
        Krum(1, keep=6).chosen(tree)
    with pytest.raises(Refused, match="cannot read Sum"):
        Krum(1).total(Sum({}), agreed())
    noisy = agreed(mechanism=GaussianSum(1.0, 1.0))
    with pytest.raises(Refused, match="before the noise"):
        Krum(1).total(Each([Reports(tree)]), noisy)
    with pytest.raises(BadValue, match="attackers=-1"):
        Krum(-1)


def test_a_plan_refuses_it_over_a_sum():
    method = FedVae(mode="paper", attackers=5)
    check_plan(method, Plan(100, rounds=5))
    with pytest.raises(Refused, match="delivers Sum, and Krum in FedVae needs Each"):
        check_plan(method, Plan(100, rounds=5, channel="secure_sum"))
