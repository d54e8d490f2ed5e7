"""Attackers among honest clients: how many, who, and that nothing else changes."""

import numpy as np
import pytest

from tacit.attacks.poisoning import Infiltrated, Scaled
from tacit.errors import BadMessage, BadValue
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum
from tacit.transport.channels import (
    Direct,
    Each,
    MaskedSum,
    RoundContext,
    SecureSum,
    Sum,
    TwoServers,
)
from tacit.transport.messages import Layout, Reports, Slot
from tacit.tree import Tree

LAYOUT = Layout({"w": Slot("float64", (3,))})
TREE = Tree.dense(w=np.random.default_rng(0).normal(size=(40, 3)) + 5)


def context(seed=0, noise=None):
    return RoundContext(LAYOUT, Key.from_seed(seed), noise)


def chunks(size=7):
    return [Reports(TREE.select(slice(i, i + size))) for i in range(0, 40, size)]


def carried(channel, seed=0):
    delivery = channel.carry(chunks(), context(seed))
    assert isinstance(delivery, Each)
    return np.concatenate([chunk.tree["w"] for chunk in delivery.chunks])


def liars(found):
    return np.flatnonzero((found != TREE["w"]).any(axis=1))


@pytest.mark.parametrize(("share", "count"), [(0.025, 1), (0.1, 4), (0.49, 20)])
def test_exactly_the_share_lies_and_the_others_speak_for_themselves(share, count):
    found = carried(Infiltrated(Direct(), Scaled(-2.0), share))
    who = liars(found)
    assert len(who) == count
    np.testing.assert_allclose(found[who], -2 * TREE["w"][who])


def test_who_lies_follows_from_the_key_and_changes():
    channel = Infiltrated(Direct(), Scaled(2.0), 0.25)
    first, again, other = (liars(carried(channel, seed)).tolist() for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_so_few_that_nobody_lies():
    assert not len(liars(carried(Infiltrated(Direct(), Scaled(2.0), 0.01))))


def test_a_trusted_sum_bounds_a_liar_like_everyone():
    """The noise of both is the same, so their difference is what liars moved."""
    noise = GaussianSum(1.0, noise_multiplier=1.0)
    sums = []
    for factor in (1.0, 1e6):
        channel = Infiltrated(SecureSum(), Scaled(factor), 0.1)
        delivery = channel.carry(chunks(), context(noise=noise))
        assert isinstance(delivery, Sum)
        sums.append(delivery.total["w"])
    np.testing.assert_allclose(*sums, atol=1e-9)


def test_nobody_asked():
    delivery = Infiltrated(SecureSum(), Scaled(2.0), 0.1).carry([], context())
    assert isinstance(delivery, Sum)
    assert not delivery.total["w"].any()


def test_it_is_the_channel_that_it_wraps():
    channel = Infiltrated(SecureSum(), Scaled(2.0), 0.1)
    assert (channel.name, channel.delivers) == ("secure_sum", Sum)


class Narrow:
    """Sends numbers of another type, which would fit but were not declared."""

    def forge(self, own, *, honest, key):
        return Tree.dense(w=own["w"].astype(np.float32))


def test_a_report_that_is_not_as_declared_does_not_pass():
    channel = Infiltrated(Direct(), Narrow(), 0.999)
    delivery = channel.carry([Reports(TREE.select([0]))], context())
    with pytest.raises(BadMessage, match="float32"):
        list(delivery.chunks)


def test_a_share_is_a_fraction():
    with pytest.raises(BadValue, match=r"share=1\.5"):
        Infiltrated(Direct(), Scaled(2.0), 1.5)


@pytest.mark.parametrize("channel", [TwoServers(), MaskedSum()])
def test_liars_whose_reports_nobody_sees_are_not_played_as_honest_ones(channel):
    with pytest.raises(BadValue, match=f"{channel.name}.*attacks would look harmless"):
        Infiltrated(channel, Scaled(-2.0), 0.1)
