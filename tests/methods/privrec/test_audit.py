"""PrivRec through the audit: the code that runs, and what must be caught."""

import dataclasses
from dataclasses import dataclass, replace

import numpy as np

from tacit.evaluation.audit.auditing import audit
from tacit.keys import Key
from tacit.methods.privrec import PrivRec
from tacit.plan import Plan
from tacit.transport.messages import Reports
from tacit.tree import Tree

PLAN = Plan(2000, rounds=2, channel="secure_sum", delta=1e-6)
SOUND = PrivRec(
    items=("topics",),
    embedding=16,
    widths=(64, 48, 24),
    privacy="central",
    clip=0.3,
    noise_multiplier=1.5,
    bit_noise=100.0,
)


def failed(method, seed=1):
    found = audit(method, PLAN, key=Key.from_seed(seed))
    return [check.name for check in found.checks if not check.ok]


def test_what_privrec_does_is_what_it_claims():
    """One round counts, one trains. False alarm below 5e-3 with a seed drawn anew."""
    assert failed(replace(SOUND, count_rounds=1, count_noise=2.0)) == []


@dataclass(frozen=True)
class CountsEveryLike(PrivRec):
    """Counts are of 0/1 histories, however long, and nobody bounds them."""

    def privatize(self, cast, clients, updates, keys):
        if cast.round >= self.count_rounds:
            return super().privatize(cast, clients, updates, keys)
        counts = np.ceil(updates.tree["counts"])
        return Reports(Tree.dense(counts=counts))


def test_counting_every_like_is_caught():
    """A mutant that a longer history moves by more than 1."""
    fields = {f.name: getattr(SOUND, f.name) for f in dataclasses.fields(SOUND)}
    broken = CountsEveryLike(**{**fields, "count_rounds": 1, "count_noise": 2.0})
    assert "largest contribution over the sensitivity" in failed(broken)


def test_the_published_bit_is_caught_and_nothing_else():
    """Its noise is what we state; its bit, after the clip, is 1 for the longest."""
    paper = replace(SOUND, mode="paper", bit_noise=None, cohort=2000, step=0.5)
    assert failed(paper) == ["canaries whose bit says within the clip"]


def test_features_that_only_the_run_has_do_not_matter():
    """A small network over genres is audited in a place that knows none."""
    method = replace(
        SOUND,
        items=("genres", "year", "title"),
        by_value=("year",),
        embedding=4,
        widths=(8,),
        people={"age_group": 7},
        server_step="adam",
        step=0.02,
    )
    assert failed(method) == []
