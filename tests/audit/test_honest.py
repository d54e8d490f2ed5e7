"""Honest methods pass.

One of sums fails once in about 400 audits if the seed were drawn anew, one of reports
once in some thousand.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from audit.mutants import HONEST
from audit.subjects import PLAN, POPULARITY, sums_of

from tacit.keys import Key

SEEDS = 20


@pytest.mark.parametrize("seed", range(SEEDS))
def test_twenty_seeds_of_a_noisy_sum_pass(seed):
    """False alarm of all twenty together: 5 %, if the seeds were drawn anew."""
    checks = sums_of(POPULARITY, Key.from_seed(seed), replace(PLAN, rounds=2))
    assert [check.name for check in checks if not check.ok] == []


@pytest.mark.parametrize("honest", HONEST, ids=lambda honest: honest.name)
def test_every_kind_of_method_passes(honest):
    assert honest.caught_by(Key.from_seed(2)) == []
