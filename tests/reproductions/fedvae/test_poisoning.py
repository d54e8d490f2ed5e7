"""Attacks on FedVAE in a tiny world: the tables are whole, the claims can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.aggregation.krum import Krum
from tacit.attacks.poisoning import Infiltrated
from tacit.experiment.assemble import assemble
from tacit.experiment.training import Nobody
from tacit.keys import Key
from tacit.method import Unmetered, participate
from tacit.reproduction.cells import Results
from tacit.transport.channels import Direct

NONE, NOISE, MULTI_KRUM = "no defense", "noise, epsilon 8", "multi-Krum"
FLIPPED, LOUD, STEALTHY = "flipped x10", "promoting x10", "promoting x1"
STEALTH = "a promoting report as long as the median honest one passes multi-Krum"


@pytest.fixture
def own(module):
    return module("poisoning")


@pytest.fixture
def attacked(module):
    return module("attacked")


@pytest.fixture
def tiny(own):
    return own.SMOKE


@pytest.fixture
def poisoned(own, tiny, tmp_path):
    return own.Poisoned(tiny, {}, Results(tmp_path, (), Nobody()))


@pytest.mark.slow
def test_a_row_for_every_attack_and_share(reproduced):
    found = reproduced("poisoning")
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


def test_a_chart_shows_what_the_rows_say(reproduced):
    found = reproduced("poisoning")
    flipped, stealthy = found.charts
    plain, _ = found.tables
    assert flipped.lines[NONE].x == (0.0, 10.0, 20.0)
    assert flipped.lines[NONE].y == tuple(row.paper for row in plain.rows[:3])
    assert stealthy.lines[NONE].y[1:] == tuple(
        row.beside["shown in top 10"] for row in plain.rows[3:]
    )
    assert flipped.lines[NONE].se[0] == plain.rows[0].se


def test_claims_are_those_of_their_figures(reproduced):
    """Two rounds teach nothing, so nothing can be broken; Krum still refuses."""
    said = {
        claim.text.split(" (")[0]: claim for claim in reproduced("poisoning").claims
    }
    assert len(said) == 6
    refused = said["Krum refuses to assume 14 attackers among 30"]
    assert refused.ok
    assert "needs at least 31" in refused.evidence
    assert not said[STEALTH].ok


def test_means_and_errors_are_over_seeds(poisoned, attacked, monkeypatch):
    made = []
    judged = attacked._judged

    def kept(*given):
        made.append(judged(*given))
        return made[-1]

    monkeypatch.setattr(attacked, "_judged", kept)
    found = poisoned.outcome(NONE, FLIPPED, 0.2).ndcg
    seeds = np.array([one["ndcg"]["mean"] for one in made])
    assert len(seeds) == 2
    assert seeds[0] != seeds[1]
    assert found.mean == pytest.approx(seeds.mean())
    assert found.se == pytest.approx(seeds.std(ddof=1) / np.sqrt(2))


def test_stopped_trials_go_on(poisoned, own, attacked, monkeypatch):
    """Killed in the second seed; the first is read, and the answer is the same."""
    trained, begun = attacked._attacked, []

    def killed(*given):
        begun.append(given)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return trained(*given)

    monkeypatch.setattr(attacked, "_attacked", killed)
    with pytest.raises(KeyboardInterrupt):
        poisoned.outcome(NONE)
    found = poisoned.outcome(NONE)
    assert len(begun) == 3
    other = Results(poisoned.results.out / "whole", (), Nobody())
    assert own.Poisoned(poisoned.bench, {}, other).outcome(NONE) == found


def test_a_trial_is_known_by_all_that_it_depends_on(poisoned, attacked, monkeypatch):
    seen = []
    monkeypatch.setattr(
        poisoned.results, "measured", lambda name, inputs, make: seen.append(inputs)
    )
    monkeypatch.setattr(attacked, "_read", lambda document: None)
    monkeypatch.setattr(attacked.Outcome, "pooled", lambda outcomes: None)
    attacks = ((FLIPPED, 0.1), (FLIPPED, 0.2), (LOUD, 0.2))
    for asked in ((NONE,), *((d, *a) for d in (NONE, MULTI_KRUM) for a in attacks)):
        poisoned.outcome(*asked)
    assert len(seen) == 7 * 2  # two seeds
    assert all(a != b for place, a in enumerate(seen) for b in seen[:place])


@pytest.fixture
def learnt(own, tmp_path):
    """One seed, forty rounds, 1,500 users and 120 items: enough to learn something."""
    changes = (
        "data.subset={items = 120, choose = 'popular'}",
        "data.validation=20",
        "data.test=40",
        "run.rounds=40",
    )
    bench = replace(own.SMOKE, seeds=1, shares=(0.2,), changes=changes)
    return own.Poisoned(bench, {}, Results(tmp_path, (), Nobody()))


@pytest.mark.slow
def test_attacks_do_what_they_say_to_a_model_that_learns(learnt):
    """Fixed seeds; the margins are far from what another seed would give."""
    free = learnt.outcome(NONE)
    flipped = learnt.outcome(NONE, FLIPPED, 0.2)
    assert flipped.ndcg.mean < 0.6 * free.ndcg.mean
    promoted = learnt.outcome(NONE, STEALTHY, 0.2)
    assert promoted.in_10.mean > free.in_10.mean + 0.3
    assert promoted.in_20.mean >= promoted.in_10.mean
    guarded = learnt.outcome(MULTI_KRUM, FLIPPED, 0.2)
    assert guarded.ndcg.mean > 0.9 * free.ndcg.mean


@pytest.mark.parametrize(("attack", "is_kept"), [(LOUD, False), (STEALTHY, True)])
def test_krum_drops_the_loud_and_keeps_the_quiet(tiny, attacked, attack, is_kept):
    """All who train report, a tenth of them attackers, at the first weights."""
    assembled = assemble(tiny.cell(NONE).experiments()[0])
    method, run = assembled.method, assembled.simulation
    state = run.start()
    _, reports, _ = participate(
        method,
        method.broadcast(state.server),
        state.clients,
        run.shards,
        run.population.keys,
        ledger=Unmetered(),
    )
    layout = method.layout(run.plan, run.catalog, round=0)
    forge = Infiltrated(Direct(), attacked.ATTACKS[attack](3), 0.1)
    mixed, liars = forge.mixed(reports.tree, layout, key=Key.from_seed(1))
    assert len(liars) == 10
    kept = np.isin(liars, Krum(10).chosen(mixed))
    assert kept.all() if is_kept else not kept.any()


def test_nine_in_ten_items_are_more_popular_than_the_promoted(tiny, attacked):
    split = assemble(tiny.cell(NONE).experiments()[0]).split
    counts = np.bincount(split.train.items, minlength=40)
    assert (counts < counts[attacked.promoted(split)]).sum() <= 4


def test_scales(own, monkeypatch):
    asked = []
    monkeypatch.setattr(own, "attacked_table", lambda *args: asked.append(args))
    monkeypatch.setattr(own, "has_data", lambda source: False)
    own.poisoning("quick")
    own.poisoning("full")
    (quick, some), (full, every) = asked
    assert (quick.seeds, quick.shares) == (1, (0.1,))
    assert (full.seeds, full.shares) == (3, (0.05, 0.1, 0.2))
    assert full.source == "synthetic-1m"
    assert [*every] == [*own.DEFENSES]
    assert len(every[NONE]) == 7
    assert set(some) < set(every)


def test_every_defense_is_an_experiment_that_reads(own):
    full = own.Bench("movielens-1m", 1, (0.1,))
    for defense in own.DEFENSES:
        method = full.cell(defense, 25).experiments()[0].method
        assert method.privacy.is_private == (defense in own.PRIVATE)
        assert (method.attackers == 25) == ("Krum" in defense)
    assert (full.cohort, full.attackers(0.1)) == (250, 25)
