"""Gram through the audit: the code that runs, and what must be caught."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tacit.audit.auditing import audit
from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_norm
from tacit.mechanisms.gaussian import GaussianSum
from tacit.method import Updates
from tacit.methods.gram import Gram
from tacit.methods.gram.protection import Central
from tacit.plan import Plan
from tacit.transport.messages import Layout, Slot
from tacit.tree import Tree

PLAN = Plan(2000, rounds=2, channel="secure_sum", delta=1e-6)
HONEST = {"privacy": "central", "head": 100, "count_noise": 2.0, "relate_noise": 1.5}


def failed(method, seed=1):
    return [
        c.name for c in audit(method, PLAN, key=Key.from_seed(seed)).checks if not c.ok
    ]


@pytest.mark.parametrize(
    ("seed", "more"), [(1, {}), (2, {"reach": 300, "content": ("topics",)})]
)
def test_what_gram_does_is_what_it_claims(seed, more):
    """False alarm below 5e-3 a seed, if it were drawn anew."""
    assert failed(Gram(**HONEST, **more), seed) == []


def test_a_refresh_does_what_it_claims():
    """Nothing is counted, everything is spent on relations; false alarm as above."""
    method = Gram(privacy="central", head=100, count_rounds=0, relate_noise=1.5)
    found = audit(method, replace(PLAN, rounds=1), key=Key.from_seed(1))
    assert found.checks
    assert [c.name for c in found.checks if not c.ok] == []


@dataclass(frozen=True)
class Loose(GaussianSum):
    """Has the noise and the event of its clip, and lets norm 1 through."""

    def bound(self, tree):
        return clip_by_norm(tree, 1.0)


@dataclass(frozen=True)
class LongHalf(Gram):
    """Allows a half as long as the matrix it stands for."""

    @property
    def _protection(self):
        relating = Loose(np.sqrt(0.5), self.relate_noise)
        return Central(GaussianSum(1.0, self.count_noise), relating)


@dataclass(frozen=True)
class BothTriangles(LongHalf):
    """Sends z zᵀ as it is, with the noise of a half on every number."""

    def start(self, plan, catalog, key):
        server = super().start(plan, catalog, key)
        server.memory["half"] = np.zeros(self._side(catalog) ** 2)
        return server

    def local_update(self, cast, clients, shards, keys):
        state, updates = super().local_update(cast, clients, shards, keys)
        leaf = updates.tree.leaves.get("relations")
        if leaf is None:
            return state, updates
        whole = np.einsum("crs,crt->cst", leaf.root, leaf.root)
        return state, Updates(Tree.dense(relations=whole.reshape(len(whole), -1)))

    def layout(self, plan, catalog, *, round):
        if round < self.count_rounds:
            return super().layout(plan, catalog, round=round)
        return Layout({"relations": Slot("float64", (self._side(catalog) ** 2,))})

    def _directions(self, half, known, server):
        return {}


@pytest.mark.parametrize("broken", [LongHalf, BothTriangles])
def test_a_matrix_without_its_half_is_caught(broken):
    """One person moves it by 1, and the noise is that of 1 / sqrt(2)."""
    assert failed(broken(**HONEST | {"head": 70 if broken is BothTriangles else 100}))
