"""The rivals, on a tiny world."""

from __future__ import annotations

import json

import pytest
from tacit_study_dpvae import contenders
from tacit_study_dpvae.benches import smoke

from tacit.baselines.user_knn import UserKnn
from tacit.experiment.assemble import assemble, root_key
from tacit.experiment.evaluate import evaluate_scores
from tacit.experiment.scorer import scorer
from tacit.reproduction.cells import Results
from tacit.reproduction.study import Nobody

BENCH = smoke("ML-100K")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return Results(tmp_path_factory.mktemp("nearest"), (), Nobody())


def test_the_number_of_neighbors_is_chosen_on_validation_items(results):
    found = contenders.nearest(results, BENCH, "OL")
    [path] = (results.out / "measured").glob("nearest*.json")
    chosen = json.loads(path.read_text("utf-8"))["found"]["K"]
    [one] = BENCH.beside("user_knn", "OL").experiments()
    assembled = assemble(one)
    key, split = root_key(one).at("nearest neighbors"), assembled.split

    def judged(k, users):
        fitted = UserKnn(neighbors=k + 1).fit(split.train, key=key)
        evaluation = evaluate_scores(assembled, scorer(fitted), users)
        return evaluation.values["ndcg@100"].mean()

    validation = {k: judged(k, split.validation) for k in BENCH.neighbors}
    assert chosen == max(validation, key=validation.get)
    assert found.mean("ndcg@100") == pytest.approx(judged(chosen, split.test))


def test_they_are_made_once(results):
    before = contenders.nearest(results, BENCH, "OL").mean("recall@20")
    assert contenders.nearest(results, BENCH, "OL").mean("recall@20") == before
    assert len([*(results.out / "measured").iterdir()]) == 1


def test_who_is_trained():
    made = contenders.trained(BENCH, "OL", priors=True)
    assert {*made} >= {"SVD", "VAE", "DPMF", "DPAE", "popularity", "by Adam"}
    assert made["SVD"].baseline == "pure_svd"
    assert made["by Adam"].baseline == "mult_vae"
    for who in ("DPMF", "DPAE"):
        assert made[who].experiments()[0].privacy.target_epsilon == 1.0
    assert made["DPMF"].experiments()[0].method_name == "dpmf"
    assert made["DPAE"].experiments()[0].method.latent == BENCH.latent
    assert made["VAE"].experiments()[0].method.priors == BENCH.kinds
    plain = contenders.trained(BENCH, "OL", priors=False)["VAE"]
    assert plain.experiments()[0].method.priors == ()


def test_lightfm_is_there_if_it_can_be(monkeypatch):
    def is_trained(*, is_installed: bool) -> bool:
        monkeypatch.setattr(contenders, "find_spec", lambda _: is_installed or None)
        return "LightFM" in contenders.trained(BENCH, "OL", priors=False)

    assert is_trained(is_installed=True)
    assert not is_trained(is_installed=False)
