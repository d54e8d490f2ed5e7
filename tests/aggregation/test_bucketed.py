"""Groups: their sums, their statistic, and one user's reach."""

import numpy as np
import pytest

from tacit.aggregation.bucketed import Bucketed
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum
from tacit.transport.channels import Each, RoundContext, SecureSum
from tacit.transport.messages import Layout, Reports, Slot
from tacit.tree import Dense, Factored, Grouped, Tree

BARE = Layout({"w": Slot("float64", (5, 4), 2), "b": Slot("float64", (3,))})
ROBUST = Bucketed(5)
LAYOUT = ROBUST.declared(BARE)


def mean(robust, placed, layout, planned):
    """Of reports that are already in their groups."""
    context = RoundContext(layout, Key.from_seed(0), planned=planned)
    found = robust.total(Each([Reports(placed)]), context)
    return {name: value / planned for name, value in found.items()}


def updates(n=40, seed=0):
    draws = np.random.default_rng(seed)
    left, right = draws.normal(size=(n, 2, 5)), draws.normal(size=(n, 2, 4))
    return Tree({"w": Factored(left, right), "b": Dense(draws.normal(size=(n, 3)))})


def keys(n=40):
    return Key.from_seed(1).each(np.arange(n))


def test_group_sums_by_hand():
    tree = updates()
    placed = ROBUST.placed(tree, keys())
    LAYOUT.check(Reports(placed))
    shares, dense = placed.leaves["w"].shares, tree.to_dense()
    assert (shares.sum(axis=1) == 1).all()
    assert (shares.sum(axis=0) > 0).all()
    for name, sums in placed.sum().items():
        expected = np.einsum("cg,c...->g...", shares, dense[name])
        np.testing.assert_allclose(sums, expected, atol=1e-12)


def test_groups_are_drawn_anew_and_evenly():
    """8,000 draws among five: each share has a standard error of 0.45 %."""
    n = 8000
    tree = Tree.dense(b=np.ones((n, 1)))
    one = ROBUST.placed(tree, keys(n).at("round", 0)).leaves["b"].shares
    other = ROBUST.placed(tree, keys(n).at("round", 1)).leaves["b"].shares
    assert one.mean(axis=0) == pytest.approx(np.full(5, 0.2), abs=0.025)
    assert (one * other).sum() / n == pytest.approx(0.2, abs=0.025)


@pytest.mark.parametrize("statistic", ["median", "trimmed"])
def test_alike_groups_give_the_mean(statistic):
    """Every group sums to the same, so every statistic is that of a plain mean."""
    robust = Bucketed(4, statistic)
    values = np.tile([[1.0, 2.0, 3.0]], (8, 1))
    tree = Tree.dense(b=values)
    shares = np.eye(4)[np.arange(8) % 4]
    placed = robust.placed(tree, keys(8))
    placed.leaves["b"].shares[:] = shares
    layout = robust.declared(Layout({"b": Slot("float64", (3,))}))
    found = mean(robust, placed, layout, 8.0)
    np.testing.assert_allclose(found["b"], [1.0, 2.0, 3.0])


@pytest.mark.parametrize(("statistic", "trim"), [("median", 1), ("trimmed", 2)])
def test_two_spoilt_groups_of_five_do_not_matter(statistic, trim):
    """Two liars spoil two groups; what is left lies within the honest groups."""
    robust = Bucketed(5, statistic, trim)
    placed = robust.placed(updates(), keys())
    honest = placed.sum()
    spoilt = {name: sums.copy() for name, sums in honest.items()}
    for name in spoilt:
        spoilt[name][1], spoilt[name][3] = 1e9, -1e9
        found = robust._robust(spoilt[name]) / 5
        assert (found <= honest[name].max(axis=0)).all()
        assert (found >= honest[name].min(axis=0)).all()


def test_a_liar_who_claims_all_groups_is_counted_in_one():
    """Claims of 1 or 1000 everywhere: the median stays among the honest groups."""
    tree = ROBUST.placed(updates(), keys())
    honest = tree.select(slice(1, None)).sum()
    for share in (1.0, -1000.0):
        liar = {}
        for name, leaf in tree.leaves.items():
            shares, inner = leaf.shares.copy(), leaf.scale(np.r_[1e6, np.ones(39)])
            shares[0] = share
            liar[name] = Grouped(inner.inner, shares)
        found = mean(ROBUST, Tree(liar), LAYOUT, 5.0)
        for name, value in found.items():
            assert (value <= honest[name].max(axis=0)).all()
            assert (value >= honest[name].min(axis=0)).all()


def test_one_user_moves_all_group_sums_by_one_clip_together():
    """Also a liar who claims all groups, or is in another with every leaf."""
    mechanism = GaussianSum(0.5, noise_multiplier=1.0)
    tree = ROBUST.placed(updates().scale(1e3), keys())
    tree.leaves["w"].shares[0] = 1.0
    tree.leaves["b"].shares[0] = [0, 0, 0, 0, 7.0]
    bounded = mechanism.enforce(tree).to_dense()
    norms = np.sqrt(sum((bounded[n].reshape(40, -1) ** 2).sum(axis=1) for n in "wb"))
    assert (norms <= 0.5 * (1 + 1e-6)).all()
    assert norms == pytest.approx(np.full(40, 0.5), rel=1e-6)


def test_every_group_sum_has_the_noise_of_a_whole_one():
    """25,000 numbers: the deviation has a standard error of 0.45 %."""
    layout = ROBUST.declared(Layout({"b": Slot("float64", (5000,))}))
    noise = GaussianSum(2.0, noise_multiplier=1.5)
    context = RoundContext(layout, Key.from_seed(0), noise)
    total = SecureSum().carry([], context).total["b"]
    assert total.shape == (5, 5000)
    assert total.std(axis=1) == pytest.approx(np.full(5, 3.0), rel=0.05)
    assert np.abs(np.corrcoef(total) - np.eye(5)).max() < 0.08


def test_leaves_without_groups_are_just_summed():
    layout = Layout({**LAYOUT.slots, "bit": Slot("float64", ())})
    tree = ROBUST.placed(updates(), keys())
    both = Tree({**tree.leaves, "bit": Dense(np.ones(40))})
    assert mean(ROBUST, both, layout, 80.0)["bit"] == 0.5


def test_what_cannot_be():
    with pytest.raises(BadValue, match="groups=2"):
        Bucketed(2)
    with pytest.raises(BadValue, match="trim at most 2"):
        Bucketed(5, "trimmed", 3)
    with pytest.raises(BadValue, match="statistic='mode'"):
        Bucketed(5, "mode")
