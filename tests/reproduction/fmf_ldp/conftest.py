"""A world so small that every figure is made in a second or two."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tacit.data.synthetic.world import World
from tacit.reproduction.fmf_ldp import (
    benches,
    benchmarks,
    comparing,
    learning,
    subsets,
    trials,
)
from tacit.reproduction.fmf_ldp.benches import Bench

WORLD = World(
    users=160,
    items=260,
    events_per_user=40,
    activity_spread=0.2,
    popularity_exponent=1.2,
    repeats=0.0,
)
DATASET = WORLD.dataset("tiny")
TINY = Bench(
    "tiny",
    people=(40, None),
    items=(160, None),
    whole=(None, None),
    epsilons=(0.5, 2.5),
    every=1,
    most=100,
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(subsets, "kept", lambda source, is_filtered: DATASET)
    monkeypatch.setattr(benches, "benches", lambda scale: (TINY,))
    return TINY


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two epochs at the most, and no budgets, which have a test of their own."""
    for module in (comparing, learning, benchmarks):
        monkeypatch.setattr(module, "budget", lambda paper, people: "much")

    def states(method, plan, *rest):
        return whole(method, replace(plan, rounds=min(plan.rounds, 2)), *rest)

    whole = trials.states
    monkeypatch.setattr(trials, "states", states)
