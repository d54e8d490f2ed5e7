from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.release import Unit, View
from tacit.reproduction.fmf_ldp.trials import (
    MF_NP,
    POPULARITY,
    PRINTED,
    RANDOM,
    Neighbors,
    Paper,
    Sound,
    trial,
    trials,
)


def test_what_must_be_better_is(tiny):
    """Random has 0.1 among 100 items; a share of 100 people has deviation 0.03."""
    found = {
        name: trial(contender, tiny.many, most=100).hr()
        for name, contender in {
            "random": RANDOM,
            "popularity": POPULARITY,
            "MF-NP": MF_NP,
            "DPLCF, loud": Neighbors(each=8.0),
        }.items()
    }
    assert found["random"] < 0.22
    assert found["popularity"] > 0.25
    assert found["MF-NP"] > 0.25
    assert found["DPLCF, loud"] > 0.25


def test_both_protocols_stand_beside_each_other(tiny):
    found = trial(POPULARITY, tiny.many, most=50)
    (sampled,), (full,) = found.sampled, found.full
    assert sampled.protocol == "sampled 99 candidates"
    assert full.protocol == "full ranking"
    assert found.hr(2) <= found.hr(5) <= found.hr(10)
    assert len(sampled) == 50
    assert found.se() > 0


def test_seeds_are_pooled(tiny):
    found = trials(RANDOM, tiny.few, most=30, seeds=3)
    each = [trial(RANDOM, replace(tiny.few, seed=s), most=30).hr() for s in range(3)]
    assert found.hr() == pytest.approx(np.mean(each))
    assert found.se() == pytest.approx(np.std(each, ddof=1) / np.sqrt(3))
    assert len(set(each)) > 1


def test_a_trial_is_made_once(tiny):
    assert trial(RANDOM, tiny.few, most=10) is trial(RANDOM, tiny.few, most=10)


def test_what_paper_mode_is():
    assert Paper().method.mode == "paper"
    assert (Paper().votes, Paper().epsilon, Paper().epochs) == (100, 2.5, 20)
    assert PRINTED.method.learning_rate == 1e-3
    plan = Paper().plan(50)
    assert (plan.channel, plan.min_contributors) == ("shuffle", 50)


def test_sound_mode_spends_its_total():
    sound = Sound(total=40.0)
    (release,) = sound.method(50).releases(sound.plan(50))
    from tacit.accounting.epsilon import epsilon

    event = release.cells[Unit.USER, View.SERVER].event
    spent = epsilon(event, delta=0.0, adjacency="replace_one").value
    assert spent == pytest.approx(40.0, rel=1e-6)


def test_curves_are_of_validation_items(tiny):
    paper = Paper(2, epochs=4)
    curve = paper.curve(tiny.few, most=20, every=2)
    assert list(curve) == [2, 4]
    split = tiny.few.split()
    assert curve[4].users.tolist() == split.validation.users[:20].tolist()
