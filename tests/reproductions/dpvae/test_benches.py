"""Cells and files have what the paper states."""

from __future__ import annotations

from dataclasses import replace

import pytest
from data.sources.releases import write_ml_20m
from tacit_study_dpvae import benches
from tacit_study_dpvae.benches import (
    EXPERIMENTS,
    PUBLISHED,
    as_published,
    of_the_paper,
    quick,
    smoke,
)

from tacit.experiment.assemble import load_dataset
from tacit.experiment.settings import read_experiment
from tacit.experiment.training import Nobody
from tacit.reproduction.cells import Results

NAMES = ("ML-100K", "ML-20M", "Netflix")
WORDS = benches.HERE / "invented-words.txt"


@pytest.fixture(params=NAMES)
def published(request):
    return as_published(request.param, WORDS)


@pytest.mark.parametrize("kind", ["paper", "vae"])
def test_the_letter_is_table_3(published, kind):
    line = PUBLISHED["table-3"].values[published.name]
    made = read_experiment(EXPERIMENTS / f"{published.letter}-{kind}.toml")
    method = made.method
    assert (method.mode, method.latent, method.beta) == (
        "paper",
        line["latent"],
        line["beta"],
    )
    assert method.hidden == {20: 80, 30: 100, 50: 100}[line["latent"]]
    assert made.sampler.size == line["batch"] == published.batch
    assert made.run.rounds == published.rounds(line["epochs"], "OL")
    assert made.data.split == "ratio"
    assert (made.data.validation, made.data.test) == (0.1, 0.1)
    assert made.privacy.mechanism == ("published" if kind == "paper" else "none")


def test_its_noise_has_one_over_the_ratings_that_train(published):
    made = read_experiment(EXPERIMENTS / f"{published.letter}-paper.toml")
    ratings = 100_000 if published.name == "ML-100K" else 1_000_209
    assert made.method.privacy.noise_delta == pytest.approx(1.25 / ratings, rel=1e-3)
    assert made.method.privacy.most_epsilon == 1.0


def test_baselines_are_those_of_table_4_and_the_same_network(published):
    made = read_experiment(EXPERIMENTS / f"{published.letter}-vae.toml")
    settings, line = made.evaluate.baseline_settings, made.method
    assert settings["pure_svd"] == {"factors": 100}
    vae = settings["mult_vae"]
    assert (vae["hidden"], vae["latent"]) == ([line.hidden], line.latent)
    assert (vae["beta"], vae["batch"]) == (line.beta, published.batch)


def test_full_has_five_seeds_and_all_epochs(published):
    assert published.seeds == 5
    assert published.neighbors == tuple(range(1, 41))
    cell = published.paper("OL", clip=published.clip)
    assert len(cell.experiments()) == 5
    made = cell.experiments()[0]
    whole = read_experiment(EXPERIMENTS / f"{published.letter}-paper.toml")
    assert made.run.rounds == whole.run.rounds
    assert made.method.privacy.clip == {"ML-100K": 1.5}.get(published.name, 2.0)


def test_quick_has_fewer_epochs_and_one_seed():
    small, large = quick("ML-100K", WORDS), quick("ML-20M", WORDS)
    assert (small.seeds, large.seeds) == (1, 1)
    assert small.paper().experiments()[0].run.rounds == 95
    assert small.main().experiments()[0].run.rounds == 3 * 95
    assert small.main().experiments()[0].method.priors == small.kinds
    assert small.vae().experiments()[0].run.rounds == 2850
    assert large.paper("OL").experiments()[0].run.rounds == 21
    assert large.vae("PD").experiments()[0].run.rounds == 5 * 175


def test_pre_processed_data_are_constructed_and_original_ones_are_not():
    bench = quick("ML-20M", WORDS)
    for made in (bench.paper, bench.vae, bench.sound, bench.dpmf):
        assert made("OL").experiments()[0].construction is None
        assert (
            made("PD").experiments()[0].construction
            == made().experiments()[0].construction
        )
    assert quick("ML-100K", WORDS).paper().experiments()[0].construction is None


def test_priors_are_noisy_means_over_users_to_the_letter_and_public_if_sound():
    bench = smoke("ML-100K")
    letter = bench.paper(priors=True).experiments()[0]
    assert letter.method.priors == bench.kinds == letter.metadata.of
    assert letter.metadata.means == "users"
    sound = bench.with_priors(bench.sound(None, "method.model=vae"), "labels")
    assert sound.experiments()[0].metadata.means == "labels"


def test_sound_mode_costs_one():
    made = quick("ML-20M", WORDS).sound().experiments()[0]
    assert (made.privacy.target_epsilon, made.privacy.delta) == (1.0, 1e-6)
    assert (made.privacy.channel, made.method.mode) == ("secure_sum", "sound")


def test_the_words_are_looked_for_in_the_folder_of_data(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    assert benches.word_file() is None
    path = tmp_path / "glove.6B.50d.txt"
    path.write_text("male 1 2\n", "utf-8")
    assert benches.word_file() == path.resolve()
    monkeypatch.delenv("TACIT_DATA")
    assert benches.word_file() is None


def test_cells_are_trained_on_an_archive_of_the_format(tmp_path, monkeypatch):
    """DP-VAE under its noise on the original data, and the VAE on constructed ones."""
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "cache"))
    write_ml_20m(tmp_path / "ml-20m.zip", n_users=70, n_films=100)
    bench = replace(
        of_the_paper("ML-20M"),
        seeds=1,
        construction="data.construction={least = 0.02}",
        changes=("method.hidden=6", "method.latent=4", "method.examples=3"),
    )
    cells = (
        bench.paper("OL", clip=2.0).but("run.rounds=2"),
        bench.vae("PD").but("run.rounds=2"),
    )
    results = Results(tmp_path / "out", cells, Nobody())
    original, constructed = (results[cell] for cell in cells)
    assert original.size() == (71, 100)
    assert constructed.size()[0] <= 70  # the last user has five films
    for found in (original, constructed):
        assert 0 <= found.mean("ndcg@100") <= 1


@pytest.mark.data
@pytest.mark.parametrize("name", ["ML-100K", "ML-20M"])
def test_users_are_counted_on_the_archives(name, real_data, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(real_data))
    bench = as_published(name, WORDS)
    for data, users in bench.users.items():
        made = bench.paper(data).experiments()[0]
        assert load_dataset(made).interactions.n_users == users
