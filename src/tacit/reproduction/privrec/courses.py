"""A method with other settings, lengths and cohorts: Hits@20 after some rounds."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tacit.evaluation.candidate_sets import EachTargetAlone
from tacit.evaluation.evaluate import evaluate
from tacit.method import Method
from tacit.plan import Plan
from tacit.reproduction.kept import kept, numbered, read_numbered
from tacit.reproduction.privrec.benches import Bench
from tacit.reproduction.privrec.trials import course
from tacit.reproduction.tables import Line
from tacit.results import Evaluation, Metric

METRICS = ("hr_each@10", "hr_each@20")
HITS = METRICS[-1]  # which Figures 2 and 5 show

Looks = dict[int, Evaluation]  # round -> what test people got

_LOG = logging.getLogger("tacit.reproduction")


@kept(numbered, read_numbered)
def looked(
    method: Method, plan: Plan, bench: Bench, *, rounds: tuple[int, ...]
) -> Looks:
    """One run, judged on test people after each of these rounds."""
    _LOG.info(
        "%s: %d rounds of %g people, %s",
        bench.source,
        max(rounds),
        plan.cohort_size,
        method,
    )
    people, alone = bench.split().test, EachTargetAlone()
    return {
        t: evaluate(scorer, people, metrics=METRICS, protocol=alone)
        for t, scorer in course(method, plan, bench, rounds=rounds)
    }


def after(method: Method, plan: Plan, bench: Bench) -> Evaluation:
    """After the last round."""
    return looked(method, plan, bench, rounds=(plan.rounds,))[plan.rounds]


def line(places: Sequence[float], found: Sequence[Evaluation]) -> Line:
    """A line of a chart."""
    hits = [Metric.of(one.values[HITS]) for one in found]
    return Line(
        tuple(places),
        tuple(one.mean for one in hits),
        tuple(one.se or 0.0 for one in hits),
    )
