"""Attacks on FedVAE in a tiny world: the tables are whole, the claims can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.aggregation.krum import Krum
from tacit.attacks.poisoning import Infiltrated
from tacit.keys import Key
from tacit.method import Unmetered, participate
from tacit.plan import Plan
from tacit.reproduction import fedvae_poisoning
from tacit.reproduction.fedvae import TABLES
from tacit.reproduction.fedvae_poisoning import IN_10, poisoning, study
from tacit.reproduction.fedvae_poisoning.attacks import (
    ATTACKS,
    DEFENSES,
    FLIPPED,
    LOUD,
    MULTI_KRUM,
    NOISE,
    NONE,
    PLAIN_ATTACKS,
    SMALL,
    STEALTHY,
)
from tacit.reproduction.fedvae_poisoning.trials import Bench, Cell, trial
from tacit.runtime.simulate import Simulation
from tacit.transport.channels import Direct

TINY = Bench(
    "synthetic", seeds=(0, 1), shares=(0.1, 0.2), items=40, held_out=40, cohort=30,
    rounds=2,
)  # fmt: skip
LEARNT = replace(TINY, seeds=(0,), rounds=40)


@pytest.fixture(scope="module")
def found():
    return study(TINY, {NONE: (FLIPPED, STEALTHY), NOISE: (STEALTHY,)})


def test_a_row_for_every_attack_and_share(found):
    plain, noisy = found.tables
    assert [row.label for row in plain.rows] == [
        "nobody attacks",
        "flipped x10, 10% attack",
        "flipped x10, 20% attack",
        "promoting x1, 10% attack",
        "promoting x1, 20% attack",
    ]
    assert [row.label for row in noisy.rows] == [
        "nobody attacks",
        "promoting x1, 20% attack",
    ]
    assert all(row.sound is None and row.paper is not None for row in plain.rows)
    assert all(row.paper is None and row.sound is not None for row in noisy.rows)
    assert found.unexplained == ()


def test_a_chart_shows_what_the_rows_say(found):
    flipped, stealthy = found.charts
    plain, _ = found.tables
    assert flipped.lines[NONE].x == (0.0, 10.0, 20.0)
    assert flipped.lines[NONE].y == tuple(row.paper for row in plain.rows[:3])
    assert stealthy.lines[NONE].y[1:] == tuple(
        row.beside[IN_10] for row in plain.rows[3:]
    )
    assert flipped.lines[NONE].se[0] == plain.rows[0].se


def test_means_and_errors_are_over_seeds():
    cell = Cell(SMALL, FLIPPED, 0.2)
    made = cell.outcome(TINY).ndcg
    seeds = np.array([trial(TINY, cell, seed).ndcg.mean for seed in TINY.seeds])
    assert made.mean == pytest.approx(seeds.mean())
    assert made.se == pytest.approx(seeds.std(ddof=1) / np.sqrt(2))
    assert seeds[0] != seeds[1]


def test_claims_are_those_of_their_figures(found):
    """Two rounds teach nothing, so nothing can be broken; Krum still refuses."""
    said = {claim.text.split(" (")[0]: claim for claim in found.claims}
    assert len(said) == 6
    refused = said["Krum refuses to assume 14 attackers among 30"]
    assert refused.ok
    assert "needs at least 31" in refused.evidence
    stealth = "a promoting report as long as the median honest one passes multi-Krum"
    assert not said[stealth].ok


def test_attacks_do_what_they_say_to_a_model_that_learns():
    """Fixed seeds; the margins are far from what another seed would give."""
    free = Cell(SMALL).outcome(LEARNT)
    flipped = Cell(SMALL, FLIPPED, 0.2).outcome(LEARNT)
    assert flipped.ndcg.mean < 0.6 * free.ndcg.mean
    promoted = Cell(SMALL, STEALTHY, 0.2).outcome(LEARNT)
    assert promoted.in_10.mean > free.in_10.mean + 0.3
    assert promoted.in_20.mean >= promoted.in_10.mean
    guarded = Cell(DEFENSES[MULTI_KRUM](6), FLIPPED, 0.2).outcome(LEARNT)
    assert guarded.ndcg.mean > 0.9 * free.ndcg.mean


@pytest.mark.parametrize(("attack", "is_kept"), [(LOUD, False), (STEALTHY, True)])
def test_krum_drops_the_loud_and_keeps_the_quiet(attack, is_kept):
    """One cohort of 100, ten of them attackers, at the first weights."""
    split = TINY.split(0)
    people = np.arange(100)
    shards, profiles = split.train.take(people), split.profiles.take(split.users[:100])
    run = Simulation(
        SMALL, Plan(100), split.catalog, profiles, shards, Key.from_seed(0)
    )
    state = run.start()
    broadcast = SMALL.broadcast(state.server)
    keys = run.population.keys
    _, reports, _ = participate(
        SMALL, broadcast, state.clients, shards, keys, ledger=Unmetered()
    )
    layout = SMALL.layout(run.plan, split.catalog, round=0)
    forge = Infiltrated(Direct(), ATTACKS[attack](3), 0.1)
    mixed, liars = forge.mixed(reports.tree, layout, key=Key.from_seed(1))
    kept = np.isin(liars, Krum(10).chosen(mixed))
    assert kept.all() if is_kept else not kept.any()


def test_a_fresh_item_nobody_is_shown_is_promoted():
    counts = np.bincount(TINY.split(0).train.items, minlength=40)
    assert (counts < counts[TINY.promoted(0)]).sum() <= 4


def test_scales(monkeypatch):
    asked = []
    monkeypatch.setattr(fedvae_poisoning, "study", lambda *args: asked.append(args))
    monkeypatch.setattr(fedvae_poisoning, "known_source", lambda: "synthetic")
    poisoning("quick")
    poisoning("full")
    (quick, some), (full, every) = asked
    assert (quick.seeds, quick.shares) == ((0,), (0.1,))
    assert (full.seeds, full.shares) == ((0, 1, 2), (0.05, 0.1, 0.2))
    assert [*every] == [*DEFENSES]
    assert every[NONE] == PLAIN_ATTACKS
    assert set(some) < set(every)


def test_it_is_a_table_of_the_paper():
    assert TABLES["poisoning"] is poisoning
