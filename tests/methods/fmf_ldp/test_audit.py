"""The method's own reports through the audit, and mutants that must be caught."""

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from quick import some_of

from tacit.audits.audit_method import audit
from tacit.keys import Key
from tacit.method import LocalPrivUnit
from tacit.methods.fmf_ldp import FmfLdp
from tacit.plans import Plan
from tacit.privacy import LocalBits
from tacit.tree import Tree

PLAN = Plan(1000, rounds=2)
# Factors so large and a clip so small that gradients of different users are cut.
CUT = {"factors": 1, "init_mean": 0.5, "init_deviation": 0.1}
VOTES = {"epsilon": 0.5, "votes": 2, "clip": 0.05}
HONEST = FmfLdp(privacy=LocalBits(**VOTES), **CUT)


def failed(method, seed=1):
    found = audit(method, PLAN, key=Key.from_seed(seed))
    assert found.checks
    return [check.name for check in found.checks if not check.ok]


@pytest.mark.parametrize(
    "method",
    some_of([HONEST, FmfLdp(privacy=LocalPrivUnit(epsilon=1.0, clip=0.05), **CUT)], 1),
    ids=["votes", "whole"],
)
def test_what_it_does_is_what_it_claims(method):
    """False alarm below 1e-4 a method, if the seed were drawn anew."""
    assert failed(method) == []


@dataclass(frozen=True)
class Louder(LocalBits):
    """Reports with 1.3 times the epsilon that the ledger reads."""

    def report(self, tree, phase, told, *, codes, keys):
        loud = LocalBits(1.3 * self.epsilon, self.votes, self.clip)
        return loud.report(tree, phase, told, codes=codes, keys=keys)


@dataclass(frozen=True)
class Largest(FmfLdp):
    """Votes where the gradient is large: what is looked at is told bare."""

    def update(self, phase, broadcast, clients, shards, keys):
        model = self._model(broadcast)
        whole = np.abs(model.gradients(shards)).reshape(len(shards), -1)
        at = np.argsort(-whole, axis=1)[:, : self.privacy.votes].astype(np.int32)
        return Tree.dense(coordinates=at, values=model.gradients_at(shards, at))


@dataclass(frozen=True)
class SameEveryRound(LocalBits):
    """Draws with a key that does not know the round."""

    def coordinates(self, size, keys):
        again = Key.from_seed(6).each(np.arange(len(keys)))
        return super().coordinates(size, again)

    def report(self, tree, phase, told, *, codes, keys):
        again = Key.from_seed(5).each(np.arange(len(keys)))
        return super().report(tree, phase, told, codes=codes, keys=again)


LARGEST = Largest(**{f.name: getattr(HONEST, f.name) for f in fields(HONEST)})


@pytest.mark.parametrize(
    "mutant",
    some_of([replace(HONEST, privacy=Louder(**VOTES)), LARGEST], 0),
    ids=["louder", "largest"],
)
def test_a_mutant_is_louder_than_it_claims(mutant):
    found = failed(mutant)
    assert any("epsilon of one report" in name for name in found), found


def test_a_key_used_in_two_rounds_is_caught():
    found = failed(replace(HONEST, privacy=SameEveryRound(**VOTES)))
    assert any("two rounds" in name for name in found), found
