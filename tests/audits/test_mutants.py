"""Every mutant is caught, by the check that is there for it.

Here with one seed, in `make test` one mutant per check; the table over twenty seeds is
docs/mutants.md.

Also tests `tacit.audits.canary_run`, `tacit.audits.delivered_bytes`,
`tacit.audits.local_reports`, `tacit.audits.lying_reports`,
`tacit.audits.masked_clients`,
`tacit.audits.noisy_sums` and
`tacit.audits.two_aggregators`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from audits.mutants import BY_TESTS, MUTANTS
from quick import slow

from tacit.keys import Key

LAGS = "correlation of draws at any lag"
REPLAY = "by what was not delivered"
CHANNEL = "that the channel does not support"
COINS = "independent coins"
LIMIT = "between a report's limit and the formula's"
DRAWS = "draws of noise that are not the formula's"
STEPS = "between two whole steps"
CATCHES = {  # the check that is there for it; others may fail too
    "noise × 0.95": "noise variance",
    "noise × 0.9": "noise variance",
    "noise × 0.5": "noise variance",
    "no noise in the sum": "mu of 4 rounds",
    "no noise given to the channel": "mu of the objects",
    "no clip": "largest contribution",
    "clip per tensor, not jointly": "largest contribution",
    "the same noise in every round": "noise correlation",
    "uniform noise of the same variance": "p-value",
    "sensitivity halved": "largest contribution",
    "another noise told to the ledger": "mu of the objects",
    "one round told to the ledger": "mu of the objects",
    "divided by the realised cohort": "empty report",
    "the server's own noise from another clip": "trusted sum",
    "clip bit computed after the clip": "canaries whose bit",
    "coordinates that depend on the data": "epsilon of one report",
    "label candidates around the click": "epsilon of one report",
    "a client key used in two rounds": "correlation of a client's reports",
    "draws shared by pairs of coordinates": LAGS,
    "draws shared at lag 3": LAGS,
    "pairs of draws of which the signs alone are fresh": LAGS,
    "noise cut off at 4 deviations": "scale, law and tails",
    "noise drawn in half precision": "draws that repeat",
    "noise drawn in single precision": "draws that repeat",
    "noise that repeats every 32,768 draws": LAGS,
    "noise that repeats with every stream of a long leaf": LAGS,
    "the same noise on every leaf": LAGS,
    "noise of a release from a known seed": LAGS,
    "noise of a release × 0.97": "scale, law and tails",
    "a group's bound swapped with another's": "largest contribution",
    "a group derived from activity": "largest contribution",
    "a sum that does not enforce its bound": "sensitivity, floating sum",
    "a sum that lets through what is no number": "sensitivity, floating sum",
    "an exact sum that does not enforce its bound": "sensitivity, exact sum",
    "an exact sum added up in single precision": "order of its reports",
    "a limit 1 % too large": LIMIT,
    "a limit 1 % too small": LIMIT,
    "two servers: a limit 1 % too large": LIMIT,
    "two servers: a limit 1 % too small": LIMIT,
    "no truncation of what passes the limit": "passes its limit",
    "two servers: no truncation of what passes the limit": "whole numbers of honest",
    "an enforced limit 1 % beyond that of the noise": "passes its limit",
    "noise of a limit 1 % too small": DRAWS,
    "a stream that restarts at each draw call": DRAWS,
    "half the deviation inside the draws": DRAWS,
    "two servers: half the deviation inside the draws": DRAWS,
    "PrivUnit without rounding": STEPS,
    "PrivUnit rounded to half a step": STEPS,
    "the type of a sum tells whether anybody spoke": "types and lengths",
    "no noise where nobody took part": "where nobody took part",
    "floating-point sums in a release": "low bits",
    "Gram's popularity direction from bare counts": REPLAY,
    "Gram's tastes from bare relations": REPLAY,
    "PrivateRec's effects from bare clicks": REPLAY,
    "PrivateRec's gradients without a clip": "largest contribution",
    "a server that keeps sums from before the noise": REPLAY,
    "an object that remembers who came": REPLAY,
    "a report that depends on who else is asked": "who else is asked",
    "a runtime that never tells the relay its minimum": "from which a relay",
    "shuffling claimed over every channel": CHANNEL,
    "more contributors claimed than promised": CHANNEL,
    "a trusted sum claimed over direct": CHANNEL,
    "sampling claimed against the server": CHANNEL,
    "a fixed number drawn under a Poisson event": COINS,
    "neighbours who share a coin": COINS,
    "coins kept for two rounds": COINS,
    "a rate 1.2 times that of the event": COINS,
    "asked again after the only round": "beyond those counted",
    "a runtime that draws a fixed number": COINS,
    "a release left out of the total": "share of epsilon that a total",
    "a release left out of the ledger": "the ledger leaves out",
    "a ledger that forgets a round": "the ledger of all rounds",
    "optimistic loss distributions": "share of the exact epsilon",
    "losses of shuffled reports rounded down": "share of the exact epsilon",
    "two servers: noise of both × 0.95": "variance of one aggregator",
    "two servers: no noise of the helper": "variance of one aggregator",
    "two servers: one seed for both": "between two aggregators",
    "two servers: one seed for all rounds": "noise correlation between rounds",
    "two servers: a helper that adds up one victim": "noise variance over",
    "two servers: noise for as many as reported": "variance of one aggregator",
    "two servers: a round of one victim is closed": "two aggregators publish",
    "two servers: a seed that everybody knows": "p-value of uniform",
    "two servers: noise of both claimed against one": "over that of both",
    "masks: shares × 0.97": "of the honest survivors over",
    "masks: noise of a single survivor": "of the honest survivors over",
    "masks: noise of everyone claimed": "mu of the honest survivors",
    "masks: any number of answers": "both shares of another",
    "masks: both shares handed out": "both shares of another",
    "masks: a modulus too small for the sum": "over what can be read",
    "masks: too few survivors are unmasked": "with too few survivors",
    "delta × 10 in one view": "lines whose delta",
    "delta × 10 in one view, unsaid": "share of epsilon that a total",
}


# The first mutant of each check: `make test` has these, `make test-all` the others.
FIRST = {check: name for name, check in reversed(CATCHES.items())}.values()
# Six seconds; the tests of FMF-LDP's audit have another mutant of the same check.
ELSEWHERE = "a client key used in two rounds"
QUICK = {*FIRST} - {ELSEWHERE}


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(one, id=one.name, marks=() if one.name in QUICK else slow)
        for one in MUTANTS
    ],
)
def test_every_mutant_is_caught(mutant):
    caught = mutant.caught_by(Key.from_seed(1))
    assert any(CATCHES[mutant.name] in name for name in caught), caught


def test_every_mutant_has_a_name_of_its_own_and_a_check():
    assert {mutant.name for mutant in MUTANTS} == CATCHES.keys()
    assert len(MUTANTS) == len(CATCHES)


@pytest.mark.parametrize("test", BY_TESTS.values())
def test_the_tests_that_catch_the_others_exist(test):
    file, name = test.split("::")
    text = (Path(__file__).parents[2] / file).read_text(encoding="utf-8")
    assert f"def {name}(" in text
