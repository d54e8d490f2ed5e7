"""What attackers send: lengths, directions, and that it is as declared."""

import numpy as np
import pytest

from tacit.aggregation.bucketed import Bucketed
from tacit.attacks.poisoning import EveryGroup, Gaussian, Promote, Scaled
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.transport.messages import Layout, Reports, Slot
from tacit.tree import Dense, Factored, Tree

LAYOUT = Layout(
    {
        "in": Slot("float32", (6, 3), 1),
        "out": Slot("float32", (4, 5), 1),
        "bit": Slot("float32", ()),
    }
)
KEY = Key.from_seed(0)


def cohort(n, seed=0):
    draws = np.random.default_rng(seed)

    def normal(*shape):
        return draws.normal(size=(n, *shape)).astype(np.float32)

    leaves = {"in": Factored(normal(1, 6), normal(1, 3))}
    leaves["out"] = Factored(normal(1, 4), normal(1, 5))
    return Tree({**leaves, "bit": Dense(normal())})


OWN, HONEST = cohort(3), cohort(9, seed=1)
MEDIAN = np.median(HONEST.norms())


def forged(attack, own=OWN):
    made = attack.forge(own, honest=HONEST, key=KEY)
    return made


@pytest.mark.parametrize(
    "attack", [Scaled(10.0), Gaussian(2.0), Promote(4, "out"), EveryGroup(Scaled(-1.0))]
)
def test_what_is_sent_passes_the_layout(attack):
    LAYOUT.check(Reports(forged(attack)))
    groups = Bucketed(4)
    placed = groups.placed(
        Tree({n: leaf for n, leaf in OWN.leaves.items() if n != "bit"}),
        KEY.each(np.arange(3)),
    )
    plain = Layout({n: s for n, s in LAYOUT.slots.items() if n != "bit"})
    groups.declared(plain).check(Reports(forged(attack, placed)))


def test_a_scaled_report_is_a_multiple():
    for name, value in forged(Scaled(-10.0)).sum().items():
        np.testing.assert_allclose(value, -10 * OWN.sum()[name], rtol=1e-5)


def test_gaussian_reports_have_the_length_asked_for_and_differ():
    made = forged(Gaussian(3.0))
    np.testing.assert_allclose(made.norms(), 3 * MEDIAN, rtol=1e-5)
    assert not np.allclose(made.leaves["in"].left[0], made.leaves["in"].left[1])
    other = Gaussian(3.0).forge(OWN, honest=HONEST, key=KEY.at(1))
    assert not np.allclose(made.leaves["in"].left, other.leaves["in"].left)


def test_promoting_lowers_the_gradient_of_one_item_and_of_nothing_else():
    made = forged(Promote(4, "out", 2.0)).to_dense()
    assert not made["in"].any()
    assert not made["bit"].any()
    assert not made["out"][:, :, :4].any()
    column, own = made["out"][:, :, 4], OWN.leaves["out"].left[:, 0]
    cosines = (column * own).sum(axis=1) / np.linalg.norm(own, axis=1)
    np.testing.assert_allclose(cosines, -2 * MEDIAN, rtol=1e-5)


def test_promoters_wait_where_there_is_no_output_layer():
    counts = Tree.dense(counts=np.ones((3, 5)))
    assert Promote(4, "out").forge(counts, honest=counts, key=KEY) is counts


def test_a_claim_of_every_group_is_in_all_of_them():
    groups = Bucketed(4)
    placed = groups.placed(OWN, KEY.each(np.arange(3)))
    made = forged(EveryGroup(Scaled(1.0)), placed).sum()["out"]
    for group in made:
        np.testing.assert_allclose(group, OWN.sum()["out"], rtol=1e-5)


def test_what_cannot_be():
    with pytest.raises(BadValue, match="factor=inf must be finite"):
        Scaled(float("inf"))
    with pytest.raises(BadValue, match=r"times=0\.0 must be > 0"):
        Gaussian(0.0)
    with pytest.raises(BadValue, match="item=5 must be < 5"):
        forged(Promote(5, "out"))
    with pytest.raises(BadValue, match="leaf 'bit' is a Dense"):
        forged(Promote(1, "bit"))
