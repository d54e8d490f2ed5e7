"""Adapt once, rank many times: in one process, and over restarts through a file."""

import stat
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from methods.privrec.worlds import FULL, mixed
from safetensors.numpy import load_file, save_file

from tacit.data.features import Numeric
from tacit.errors import BadData, Refused
from tacit.keys import Key
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fedvae import FedVae
from tacit.methods.gram import Gram
from tacit.methods.privrec import PrivRec
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.serving import taste as taste_module
from tacit.serving.recommender import Holding, Recommender
from tacit.transport.codec import encode_reports

WORLD = mixed()


@dataclass(frozen=True)
class Counting(PrivRec):
    """Says how often a client adapted."""

    adapted = 0

    def represent(self, broadcast, clients, shards, keys):
        Counting.adapted += 1
        return super().represent(broadcast, clients, shards, keys)


@pytest.fixture(autouse=True)
def _from_zero():
    Counting.adapted = 0


@pytest.fixture
def use_seed(monkeypatch):
    """Adapting draws negatives and batches: here from a seed."""
    return lambda seed: monkeypatch.setattr(Key, "from_os", lambda: Key.from_seed(seed))


def trained(method, rounds=2) -> Recommender:
    plan = Plan(len(WORLD.shards), rounds=rounds)
    parts = WORLD.catalog, WORLD.profiles, WORLD.shards, Key.from_seed(0)
    run = Simulation(method, plan, *parts)
    *_, (state, _) = run.run(run.start())
    return Recommender(method, method.broadcast(state.server), WORLD.catalog)


@pytest.fixture(scope="module")
def model() -> Recommender:
    return trained(Counting(**FULL))


def held(row=4) -> Holding:
    return Holding(WORLD.shards.take([row]), WORLD.profiles.take([row]))


METHODS = {
    "privrec": PrivRec(**FULL),
    "gram": Gram(head=9),
    "fedvae": FedVae(hidden=(6,), latent=3),
    "popularity": FederatedPopularity(),
}


# --- In one process ------------------------------------------------------------------


def test_many_lists_of_one_taste_adapt_once(model):
    mine = model.taste(held())
    lists = [model.recommend(mine, n=k) for k in (1, 5, 5)]
    assert Counting.adapted == 1
    assert lists[1] == lists[2]
    assert lists[0] == lists[1][:1]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("how", ["ids", "holding", "nothing"])
def test_a_taste_gives_the_list_that_its_history_gives(name, how, tmp_path, use_seed):
    """Also read back from a file, by a client that would draw something else now."""
    model = trained(METHODS[name])
    use_seed(5)
    ids = held().ids(WORLD.catalog)
    history = {"ids": ids, "holding": held(), "nothing": []}[how]
    expected = model.recommend(history, n=20)
    assert model.recommend(model.taste(history), n=20) == expected
    model.taste(history, keep=tmp_path / "taste")
    use_seed(6)
    again = replace(model).taste(history, keep=tmp_path / "taste")
    assert model.recommend(again, n=20) == expected
    differs = name == "privrec" and how != "nothing"
    assert (model.recommend(history, n=20) != expected) == differs


def test_a_taste_of_another_model_is_refused(model):
    mine = model.taste(held())
    later = replace(model, broadcast=replace(model.broadcast, round=9))
    with pytest.raises(Refused, match="of another model"):
        later.recommend(mine)
    assert replace(model).recommend(mine)  # loaded twice, it is the same


def test_a_taste_cannot_be_sent(model):
    with pytest.raises(Refused, match="Taste has no codec"):
        encode_reports(model.broadcast, model.taste(held()))


# --- In a file -----------------------------------------------------------------------


def test_over_restarts_a_device_adapts_once_and_without_torch(
    model, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it fails
    file = tmp_path / "mine" / "taste"
    lists = [
        lived.recommend(lived.taste(held(), keep=file))
        for lived in (replace(model), replace(model), replace(model))
    ]
    assert Counting.adapted == 1
    assert lists[0] == lists[1] == lists[2] != []


def test_it_is_for_its_owner_alone(model, tmp_path):
    file = tmp_path / "taste"
    model.taste(held(), keep=file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [*tmp_path.iterdir()] == [file]


def other_models(model):
    weights = {n: np.array(w) for n, w in model.broadcast.weights.items()}
    name = next(n for n, w in weights.items() if w.dtype.kind == "f" and w.size)
    weights[name].flat[0] += 1e-3
    return {
        "weights": replace(model, broadcast=replace(model.broadcast, weights=weights)),
        "round": replace(model, broadcast=replace(model.broadcast, round=9)),
        "plan": replace(model, broadcast=replace(model.broadcast, agreement=bytes(16))),
        "settings": replace(model, method=replace(model.method, adapt_epochs=2)),
    }


@pytest.mark.parametrize("change", ["weights", "round", "plan", "settings"])
def test_a_new_model_makes_a_new_taste_in_its_place(model, tmp_path, change):
    file = tmp_path / "taste"
    model.taste(held(), keep=file)
    new = other_models(model)[change]
    new.taste(held(), keep=file)
    new.taste(held(), keep=file)
    assert Counting.adapted == 2
    model.taste(held(), keep=file)  # one file, one taste
    assert Counting.adapted == 3


def other_histories() -> dict[str, Holding]:
    mine = held()
    shard, n = mine.shard, len(mine.shard.items)
    days = np.arange(n, dtype=np.int64)
    was = shard.contexts["weather"]
    weather = {"weather": replace(was, codes=(was.codes + 1) % 3)}
    older = {**mine.profile.features, "age": Numeric(np.array([99], "f4"))}
    return {
        "another": replace(mine, shard=held(7).shard),
        "less": replace(mine, shard=shard.at_most(2, Key.from_seed(0).each([0]))),
        "order": replace(mine, shard=replace(shard, items=shard.items[::-1].copy())),
        "stars": replace(mine, shard=replace(shard, values=shard.values + 1)),
        "times": replace(mine, shard=replace(shard, times=days)),
        "weather": replace(mine, shard=replace(shard, contexts=weather)),
        "profile": replace(mine, profile=replace(mine.profile, features=older)),
    }


@pytest.mark.parametrize("change", other_histories())
def test_a_changed_history_or_profile_makes_a_new_taste(model, tmp_path, change):
    file = tmp_path / "taste"
    model.taste(held(), keep=file)
    for _ in range(2):
        model.taste(other_histories()[change], keep=file)
    assert Counting.adapted == 2


def test_another_version_of_this_program_makes_it_anew(model, tmp_path, monkeypatch):
    """It may adapt in another way, or fold to other names."""
    model.taste(held(), keep=tmp_path / "taste")
    monkeypatch.setattr(taste_module, "__version__", "99.0")
    replace(model).taste(held(), keep=tmp_path / "taste")
    assert Counting.adapted == 2


def test_a_taste_of_an_older_form_is_made_anew(model, tmp_path, monkeypatch):
    model.taste(held(), keep=tmp_path / "taste")
    monkeypatch.setattr(taste_module, "_FORMAT", taste_module._FORMAT + 1)
    model.taste(held(), keep=tmp_path / "taste")
    assert Counting.adapted == 2


def test_a_damaged_taste_is_made_anew(model, tmp_path):
    file = tmp_path / "taste"
    model.taste(held(), keep=file)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    model.taste(held(), keep=file)
    assert Counting.adapted == 2


@pytest.mark.parametrize("kind", ["text", "empty", "weights", "torn", "directory"])
def test_another_file_is_refused_and_left_as_it_is(model, tmp_path, kind):
    file = tmp_path / "other"
    if kind == "directory":
        file.mkdir()
    elif kind == "weights":
        save_file({"x": np.ones(3)}, file)
    elif kind == "torn":
        model.taste(held(), keep=file)
        file.write_bytes(file.read_bytes()[:-3])
    else:
        file.write_text("a letter to a friend" if kind == "text" else "")
    before = None if kind == "directory" else file.read_bytes()
    with pytest.raises(BadData, match=r"no taste that a client kept.*give another"):
        model.taste(held(), keep=file)
    assert before is None or file.read_bytes() == before


def test_what_is_kept_is_what_ranking_needs(model, tmp_path):
    """Not the history: no number of it, no id."""
    model.taste(held(), keep=tmp_path / "taste")
    kept = load_file(tmp_path / "taste")
    tastes = model.taste(held()).tastes.tree
    assert kept.keys() == tastes.leaves.keys()
    for name, value in kept.items():
        assert value.shape == tastes[name].shape


def test_digests_are_of_everything_and_of_nothing_else(model):
    again = replace(model, broadcast=replace(model.broadcast))
    assert again.digest == model.digest
    digests = {one.digest for one in other_models(model).values()}
    assert len(digests | {model.digest}) == 5
    shard, profile = held().shard, held().profile
    origin = taste_module.origin(model.digest, shard, profile=profile)
    assert origin == taste_module.origin(model.digest, held().shard, profile=profile)
