"""The contenders: which file is which, and what a scale changes."""

from __future__ import annotations

import pytest
from tacit_study_privrec.contenders import CONTENDERS, QUIET, Bench

from tacit.experiment.settings import read_table


@pytest.mark.parametrize("scale", ["smoke", "quick", "full"])
@pytest.mark.parametrize("name", ["ml1m", "frappe"])
def test_every_cell_is_a_whole_experiment(name, scale):
    bench = Bench(name, scale)
    for who in CONTENDERS:
        first = bench.cell(who).experiments()[0]
        assert first.data.source == bench.source
        assert first.evaluate.full_metrics == ("ndcg@10", "recall@20")


@pytest.mark.parametrize("name", ["ml1m", "frappe"])
def test_noise_is_judged_by_itself(name):
    """The twin with noise off differs in nothing else."""
    noisy, quiet = (
        read_table(CONTENDERS[who].path(name)) for who in ("DP-PrivRec", QUIET)
    )
    assert noisy.pop("privacy")["mechanism"] == "central"
    assert quiet == noisy


@pytest.mark.parametrize("name", ["ml1m", "frappe"])
def test_noise_as_published_is_the_only_difference_too(name):
    """Figures 3 and 4 compare the same network, as long trained."""
    bare, noisy = (
        Bench(name, "full").cell(f"{who}, as published").experiments()[0]
        for who in ("PrivRec", "DP-PrivRec")
    )
    assert noisy.method.privacy.quantile == 0.9
    assert (noisy.run.rounds, noisy.sampler) == (bare.run.rounds, bare.sampler)
    for field in ("activation", "items", "local_epochs", "negatives", "people"):
        assert getattr(noisy.method, field) == getattr(bare.method, field)


def test_quick_has_a_tenth_of_the_users_and_as_many_in_a_round():
    quick, full = (Bench("ml1m", s).cell("PrivRec").experiments()[0] for s in SCALES)
    assert quick.subset.users == 604
    assert quick.sampler.rate == pytest.approx(10 * full.sampler.rate)
    assert quick.method == full.method


SCALES = ("quick", "full")
