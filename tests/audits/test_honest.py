"""Honest methods pass.

The checks of a sum fail once in about 400 if the seed were drawn anew, those of reports
once in some thousand. An audit asks again before it says so: once in some 100,000.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from audits import broken_parts as parts
from audits.mutants import HONEST
from audits.subjects import PLAN, POPULARITY, sums_of
from quick import slow, some_of

from tacit.audits.claims import read_claims
from tacit.audits.small_world import small_data
from tacit.experiment.auditing import subjects_of
from tacit.experiment.registry import method_names
from tacit.keys import Key

SEEDS = 20
DEAR = (  # seconds each; test_audit_method.py has a whole audit
    "popularity, central, all of an audit",
    *("popularity, central, Poisson", "popularity, local, mixed by a relay"),
    *("privrec", "fedvae", "nn_self", "fofl"),
    "federated_popularity",  # its kinds are asked one by one
    "gram, central, two servers, all of an audit",
    "gram, central, the open group, all of an audit",
    "gram, central, the strict group, all of an audit",
    *("popularity, local", "popularity, local_item", "two leaves, one factored"),
)


@pytest.mark.parametrize("seed", some_of([*range(SEEDS)], 2))
def test_twenty_seeds_of_a_noisy_sum_pass(seed):
    """False alarm of all twenty together: 5 %, if the seeds were drawn anew."""
    checks = sums_of(POPULARITY, Key.from_seed(seed), replace(PLAN, rounds=2))
    assert [check.name for check in checks if not check.ok] == []


@pytest.mark.parametrize(
    "honest",
    [
        pytest.param(one, id=one.name, marks=slow if one.name in DEAR else ())
        for one in HONEST
    ],
)
def test_every_kind_of_method_passes(honest):
    assert honest.caught_by(Key.from_seed(2)) == []


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=slow if name in DEAR else ()) for name in method_names()],
)
def test_every_form_of_every_method_passes_what_is_quick(name):
    """What an audit asks but for canaries, many draws and many reports."""
    key = Key.from_seed(3)
    for subject in subjects_of(name):
        method, plan = subject.method.for_catalog(small_data(20).catalog), subject.plan
        claims = read_claims(method, plan)
        promised = (claims.mu, claims.report_epsilon, claims.report_mu)
        if not any(promised):
            continue
        asked = [parts.replay_of, parts.alone_of, parts.relay_of, parts.books_of]
        if claims.mu is not None:
            asked += [parts.liars_of, parts.bytes_of]
        found = [check for ask in asked for check in ask(method, key, plan=plan)]
        assert [check.name for check in found if not check.ok] == []
