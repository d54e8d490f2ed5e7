"""Gram through the audit: the code that runs, and what must be caught."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from quick import slow, some_of

from tacit.audits.audit_method import audit
from tacit.kernels import dispatch
from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_norm
from tacit.mechanisms.gaussian import GaussianSum
from tacit.method import CentralGaussian, Slot, Tree
from tacit.methods.gram import Gram
from tacit.plans import Plan

PLAN = Plan(2000, rounds=2, channel="secure_sum", delta=1e-6)
NOISE = {"counts": 2.0, "relations": 1.5}


def failed(method, seed=1, plan=PLAN):
    checks = audit(method, plan, key=Key.from_seed(seed)).checks
    assert checks
    return [c.name for c in checks if not c.ok]


@pytest.mark.parametrize(
    ("seed", "more"),
    some_of([(1, {}), (2, {"reach": 300, "content": ("only the run's",)})], 1),
)
def test_what_gram_does_is_what_it_claims(seed, more):
    """False alarm below 5e-3 a seed, if it were drawn anew."""
    honest = Gram(privacy=CentralGaussian(NOISE), head=100, **more)
    assert failed(honest, seed) == []


@dataclass(frozen=True)
class LooseSum(GaussianSum):
    """Has the noise and the event of its clip, and lets longer reports through."""

    most: float = 1.0

    def bound(self, tree):
        return clip_by_norm(tree, self.most)


@dataclass(frozen=True)
class Loose(CentralGaussian):
    """Allows a half as long as the matrix it stands for, and loadings twice as long."""

    def mechanism(self, phase, told):
        own = super().mechanism(phase, told)
        if phase.name == "counts":
            return own
        most = 2.0 if phase.name == "loadings" else 1.0
        return LooseSum(own.clip, own.noise_multiplier, most)


THREE = replace(PLAN, rounds=3)
LOADED = {"head": 60, "load_rounds": 1, "load_items": 100, "load_rank": 5}


@slow
@pytest.mark.parametrize("smallest", [1, 512])
@pytest.mark.parametrize(
    "method",
    [
        Gram(privacy=CentralGaussian({**NOISE, "loadings": 1.5}), **LOADED),
        Gram(
            privacy=CentralGaussian(total_noise=1.0),
            count_share=0.2,
            **{**LOADED, "load_rounds": 0},
        ),
    ],
    ids=["planned", "chosen"],
)
def test_loadings_do_what_they_claim(method, smallest, monkeypatch):
    """By kernels and by numpy; false alarm as above."""
    twin = dispatch.TABLE["rows.unit_rests"].at(smallest)
    monkeypatch.setitem(dispatch.TABLE, "rows.unit_rests", twin)
    assert failed(method, plan=THREE) == []


@dataclass(frozen=True)
class LongTastes(Gram):
    """Does not make a taste a vector of norm 1."""

    def update(self, phase, broadcast, clients, shards, keys):
        tree = super().update(phase, broadcast, clients, shards, keys)
        if phase.name != "loadings":
            return tree
        leaf = tree.leaves["loadings"]
        return Tree({"loadings": replace(leaf, right=2 * leaf.right)})


@slow
@pytest.mark.parametrize("smallest", [1, 512])
def test_a_taste_that_is_not_normalised_is_caught(smallest, monkeypatch):
    twin = dispatch.TABLE["rows.unit_rests"].at(smallest)
    monkeypatch.setitem(dispatch.TABLE, "rows.unit_rests", twin)
    privacy = Loose({**NOISE, "loadings": 1.5})
    assert failed(LongTastes(privacy=privacy, **LOADED), plan=THREE)


@slow
def test_a_refresh_does_what_it_claims():
    """Nothing is counted, everything is spent on relations; false alarm as above."""
    privacy = CentralGaussian({"relations": 1.5})
    method = Gram(privacy=privacy, head=100, count_rounds=0)
    assert failed(method, plan=replace(PLAN, rounds=1)) == []


@dataclass(frozen=True)
class BothTriangles(Gram):
    """Sends z zᵀ as it is, with the noise of a half on every number."""

    def start(self, plan, catalog, key):
        server = super().start(plan, catalog, key)
        server.memory["half"] = np.zeros(self._side(catalog) ** 2)
        return server

    def update(self, phase, broadcast, clients, shards, keys):
        tree = super().update(phase, broadcast, clients, shards, keys)
        if phase.name == "counts":
            return tree
        root = tree.leaves["relations"].root
        whole = np.einsum("crs,crt->cst", root, root)
        return Tree.dense(relations=whole.reshape(len(whole), -1))

    def report_shape(self, phase, catalog):
        if phase.name == "counts":
            return super().report_shape(phase, catalog)
        return {"relations": Slot("float64", (self._side(catalog) ** 2,))}

    def _directions(self, server, memory):
        return {}


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(
            Gram(privacy=Loose(NOISE), head=100), id="a long half", marks=slow
        ),
        pytest.param(
            BothTriangles(privacy=Loose(NOISE), head=70),
            id="both triangles",
            marks=slow,
        ),
    ],
)
def test_a_matrix_without_its_half_is_caught(broken):
    """One user moves it by 1, and the noise is that of 1 / sqrt(2)."""
    assert failed(broken)
