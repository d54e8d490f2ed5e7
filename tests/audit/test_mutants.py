"""Every mutant is caught, by the check that is there for it.

Here with one seed; the table over twenty is on the audit's page.
"""

from __future__ import annotations

import pytest
from audit.mutants import MUTANTS

from tacit.keys import Key

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
    "a client key used in two rounds": "correlation of a device's reports",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_is_caught(mutant):
    caught = mutant.caught_by(Key.from_seed(1))
    assert any(CATCHES[mutant.name] in name for name in caught), caught
