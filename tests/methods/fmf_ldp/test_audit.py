"""The method's own reports through the audit, and mutants that must be caught."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tacit.audit.auditing import audit
from tacit.keys import Key
from tacit.mechanisms.spread_bits import SpreadBits
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.fmf_ldp.protection import Votes
from tacit.plan import Plan

PLAN = Plan(1000, rounds=2)
# Factors so large and a clip so small that gradients of different people are cut.
CUT = {"factors": 1, "clip": 0.05, "init_mean": 0.5, "init_deviation": 0.1}
HONEST = FmfLdp(report="one_bit", votes=2, epsilon=0.5, **CUT)


def failed(method, seed=1):
    found = audit(method, PLAN, key=Key.from_seed(seed))
    assert found.checks
    return [check.name for check in found.checks if not check.ok]


@pytest.mark.parametrize(
    "method",
    [
        HONEST,
        FmfLdp(report="priv_unit", epsilon=1.0, **CUT),
    ],
    ids=["votes", "whole"],
)
def test_what_it_does_is_what_it_claims(method):
    """False alarm below 1e-4 a method, if the seed were drawn anew."""
    assert failed(method) == []


@dataclass(frozen=True)
class Louder(Votes):
    """Reports with 1.3 times the epsilon that the ledger reads."""

    def report(self, update, keys):
        bits = replace(self.bits, epsilon=1.3 * self.bits.epsilon)
        return Votes(bits, self.n_items, self.factors, self.clip).report(update, keys)


@dataclass(frozen=True)
class Largest(Votes):
    """Votes where the gradient is large: what is looked at is told bare."""

    def update(self, model, shards, keys):
        tree = super().update(model, shards, keys)
        whole = np.abs(model.gradients(shards)).reshape(len(shards), -1)
        at = np.argsort(-whole, axis=1)[:, : self.bits.count].astype(np.int32)
        return type(tree).dense(coordinates=at, values=model.gradients_at(shards, at))


@dataclass(frozen=True)
class Mutant(FmfLdp):
    kind: type[Votes] = Votes

    def _protection(self, n_items=None):
        honest = super()._protection(n_items)
        assert isinstance(honest.bits, SpreadBits)
        return self.kind(honest.bits, honest.n_items, honest.factors, honest.clip)


@dataclass(frozen=True)
class SameEveryRound(FmfLdp):
    """Draws with a key that does not know the round."""

    def privatize(self, cast, clients, updates, keys):
        return super().privatize(
            cast, clients, updates, Key.from_seed(5).each(np.arange(len(keys)))
        )

    def local_update(self, cast, clients, shards, keys):
        again = Key.from_seed(6).each(np.arange(len(keys)))
        return super().local_update(cast, clients, shards, again)


@pytest.mark.parametrize("kind", [Louder, Largest])
def test_a_mutant_is_louder_than_it_claims(kind):
    fields = {f: getattr(HONEST, f) for f in HONEST.__dataclass_fields__}
    found = failed(Mutant(**fields, kind=kind))
    assert any("epsilon of one report" in name for name in found), found


def test_a_key_used_in_two_rounds_is_caught():
    fields = {f: getattr(HONEST, f) for f in HONEST.__dataclass_fields__}
    found = failed(SameEveryRound(**fields))
    assert any("two rounds" in name for name in found), found
