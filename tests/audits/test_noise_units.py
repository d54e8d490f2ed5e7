"""Reports and totals in units of the noise that the mechanism states."""

import numpy as np
import pytest
from audits.subjects import MECHANISM, NoisyFactors

from tacit.audits.noise_units import Units, stated_noise
from tacit.audits.small_world import small_data
from tacit.errors import Refused
from tacit.keys import Key
from tacit.plans import Plan
from tacit.release import EVERYONE
from tacit.testing.toy import ToyFactors

PLAN = Plan(12, rounds=1, channel="secure_sum", delta=1e-6)
CATALOG = small_data(20).catalog
METHOD = NoisyFactors()
BROADCAST = METHOD.broadcast(METHOD.start(PLAN, CATALOG, Key.from_seed(0)))
LAYOUT = METHOD.layout(PLAN, CATALOG, round=0)


def units() -> Units:
    return Units.of(METHOD, BROADCAST, LAYOUT, plan=PLAN, group=EVERYONE)


def test_the_multiplier_and_the_limit_are_those_of_the_mechanism():
    assert units().multiplier == MECHANISM.noise_multiplier
    for leaf in LAYOUT.slots:
        assert units().limit(leaf) == pytest.approx(MECHANISM.clip)


def test_a_total_of_the_noises_scale_is_one_everywhere():
    sizes = {name: slot.shape for name, slot in LAYOUT.slots.items()}
    total = {n: np.full(shape, MECHANISM.scale(n)) for n, shape in sizes.items()}
    found = units().of_total(total)
    assert found.shape == units().scales.shape
    np.testing.assert_allclose(found, 1.0)


def test_a_method_without_noise_cannot_be_measured_in_it():
    with pytest.raises(Refused, match="ToyFactors"):
        stated_noise(ToyFactors(), BROADCAST, PLAN)
