from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.dataset import Dataset
from tacit.data.shards import Shards
from tacit.data.sources import load
from tacit.data.splits import Split, new_users
from tacit.data.synthetic.titles import TOPICS, title
from tacit.data.synthetic.world import (
    LIKE_MOVIELENS_1M,
    SOURCES,
    World,
    _source,
    checkerboard,
)
from tacit.errors import BadValue
from tacit.keys import Key

SMALL = World(users=60, items=50, events_per_user=10, topics=4)


def dense(shards: Shards) -> np.ndarray:
    made = np.zeros((len(shards), shards.n_items))
    made[shards.owners, shards.items] = 1.0
    return made


def recall(split: Split, scores: np.ndarray, k: int = 20) -> float:
    """The mean share of a test user's targets among the k best unseen items."""
    unseen = np.where(dense(split.test.history) > 0, -np.inf, scores)
    best = np.argsort(-unseen, axis=1)[:, :k]
    targets = dense(split.test.targets)
    found = np.take_along_axis(targets, best, axis=1).sum(axis=1)
    return float((found / targets.sum(axis=1)).mean())


@pytest.fixture(scope="module")
def demo() -> tuple[World, Dataset, Split]:
    dataset = load("synthetic")
    split = new_users(dataset, n_validation=150, n_test=300, key=Key.from_seed(1))
    return World(), dataset, split


def test_personal_rankings_beat_popularity_and_truth_beats_all(demo):
    """Recall@20 measured: popularity 0.225, EASE 0.405, truth 0.492."""
    world, _, split = demo
    train = dense(split.train)
    inverse = np.linalg.inv(train.T @ train + 300 * np.eye(train.shape[1]))
    weights = -inverse / np.diag(inverse)  # EASE, Steck 2019
    np.fill_diagonal(weights, 0)
    popularity = recall(split, np.tile(train.sum(axis=0), (len(split.test.users), 1)))
    ease = recall(split, dense(split.test.history) @ weights)
    truth = recall(split, world.truth(split.test.users))
    assert ease > 1.3 * popularity
    assert truth > 1.1 * ease


def test_demographics_matter(demo):
    """Users of the same group share more taste than others."""
    world, dataset, _ = demo
    chances = np.log(world.truth(np.arange(400)))
    alike = np.corrcoef(chances - chances.mean(axis=0))
    codes = np.stack([f.codes[:400] for f in dataset.profiles.features.values()])
    shared = (codes[:, :, None] == codes[:, None]).sum(axis=0)
    means = [alike[shared == n].mean() for n in range(3)]
    assert means[0] + 0.1 < means[1] < means[2] - 0.1


def test_without_demographics_groups_share_no_taste():
    world = World(users=400, demographics=0.0)
    chances = np.log(world.truth(np.arange(400)))
    alike = np.corrcoef(chances - chances.mean(axis=0))
    codes = world.dataset().profiles.features["gender"].codes
    same = codes[:, None] == codes
    np.fill_diagonal(same, False)
    assert abs(alike[same].mean() - alike[codes[:, None] != codes].mean()) < 0.02


def test_with_nothing_but_demographics_a_group_has_one_taste():
    world = World(users=300, demographics=1.0)
    told = world.dataset().profiles.features.values()
    groups = [tuple(f.codes[user] for f in told) for user in range(300)]
    chances = world.truth(np.arange(300))
    for user in range(1, 300):
        same = groups[user] == groups[0]
        assert np.allclose(chances[user], chances[0]) == same


def test_popularity_is_a_power_law():
    """With one taste for all, the chance of the item of rank r is r ** -exponent."""
    world = World(users=1, rank=1, demographics=0.0, popularity_exponent=1.0, topics=1)
    chance = world.truth([0])[0]
    liking = world._users.tastes[0] @ world._items.directions.T
    weight = np.sort(chance / np.exp(5.0 * liking))[::-1]
    np.testing.assert_allclose(weight / weight[0], 1 / np.arange(1, 401), rtol=1e-9)


def test_truth_is_a_probability_and_follows_a_filtered_set():
    dataset = SMALL.dataset()
    whole = SMALL.truth(dataset)
    np.testing.assert_allclose(whole.sum(axis=1), 1.0)
    np.testing.assert_array_equal(whole[5:7], SMALL.truth([5, 6]))
    part = dataset.filtered(min_value=5, min_interactions=2)
    rows = [dataset.profiles.index(user) for user in part.profiles.ids]
    columns = dataset.catalog.indices(list(part.catalog.ids))
    assert len(rows) < 60
    np.testing.assert_array_equal(SMALL.truth(part), whole[np.ix_(rows, columns)])


def test_truth_is_asked_of_the_right_world():
    with pytest.raises(BadValue, match="'u0' is not of this world"):
        SMALL.truth(checkerboard(4, 4, 2))
    with pytest.raises(BadValue, match="60"):
        SMALL.truth([60])


def test_the_log_is_as_promised(demo):
    world, dataset, _ = demo
    log = dataset.interactions
    once = log.distinct()
    assert (log.n_users, log.n_items) == (1500, 400)
    assert once.per_user.min() >= 5
    assert once.per_user.mean() == pytest.approx(world.events_per_user, rel=0.05)
    share = 1 - len(once) / len(log)
    assert share == pytest.approx(world.repeats, rel=0.1)
    assert set(np.unique(log.values)) == {1.0, 2.0, 3.0, 4.0, 5.0}
    days = (log.times.max() - log.times.min()) / 86_400
    assert 350 < days < 365
    assert log.per_item.min() > 0


def test_users_rate_higher_what_they_like(demo):
    world, dataset, _ = demo
    log = dataset.interactions
    tastes, directions = world._users.tastes, world._items.directions
    liking = (tastes[log.users] * directions[log.items]).sum(axis=1)
    assert np.corrcoef(liking, log.values)[0, 1] > 0.4


def test_titles_are_unique_and_of_their_topic(demo):
    catalog = demo[1].catalog
    assert len(set(catalog.titles)) == len(catalog)
    nouns = {topic.name: topic.nouns for topic in TOPICS}
    for row in range(40):
        own = {noun for name in catalog.features["topics"][row] for noun in nouns[name]}
        assert catalog.titles[row].split()[1] in own


def test_titles_never_run_out_and_topics_share_no_noun():
    titles = [title(topic, n) for topic in TOPICS for n in range(500)]
    assert len(set(titles)) == len(titles)


def test_more_topics_than_have_names_are_numbered():
    catalog = replace(SMALL, topics=30).dataset().catalog
    names = {name for row in range(50) for name in catalog.features["topics"][row]}
    assert any(name.endswith(" 2") for name in names)
    assert len(set(catalog.titles)) == len(catalog)


def test_with_more_strength_users_stay_nearer_to_their_tastes():
    """Without any, everyone's first pick has the same chances."""
    none, some, more = (
        replace(SMALL, strength=strength).truth(np.arange(60)).std(axis=0).mean()
        for strength in (0.0, 5.0, 20.0)
    )
    assert none < 1e-12 < some < more


def test_a_seed_gives_a_world():
    def logs(world: World) -> list[list[float]]:
        log = world.dataset().interactions
        return [log.items.tolist(), log.values.tolist(), log.times.tolist()]

    assert logs(SMALL) == logs(replace(SMALL))
    assert all(
        a != b for a, b in zip(logs(SMALL), logs(replace(SMALL, seed=1)), strict=True)
    )


def test_a_user_does_not_depend_on_how_many_others_there_are():
    few, many = (replace(SMALL, users=n).dataset().interactions for n in (20, 60))
    np.testing.assert_array_equal(few.items, many.items[: len(few)])
    np.testing.assert_array_equal(few.times, many.times[: len(few)])


def test_groups_and_threads_do_not_matter(monkeypatch):
    whole = SMALL.dataset().interactions
    monkeypatch.setattr("tacit.data.synthetic.user_activity._USERS", 7)
    for threads in (1, 3):
        monkeypatch.setattr("os.cpu_count", lambda threads=threads: threads)
        parts = replace(SMALL).dataset().interactions
        for column in ("offsets", "items", "values", "times"):
            np.testing.assert_array_equal(
                getattr(parts, column), getattr(whole, column)
            )


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"users": 0}, "users=0"),
        ({"items": 9}, "items=9"),
        ({"topics": 0}, "topics=0"),
        ({"strength": -1.0}, "strength=-1.0"),
        ({"demographics": 1.5}, "demographics=1.5"),
        ({"repeats": 0.6}, "repeats=0.6"),
        ({"repeats": -0.1}, "repeats=-0.1"),
        ({"events_per_user": 201.0}, "at most half of items=400"),
        ({"popularity_exponent": float("nan")}, "popularity_exponent=nan"),
        ({"popularity_decay": -1.0}, "popularity_decay=-1.0"),
        ({"activity_spread": -1.0}, "activity_spread=-1.0"),
        ({"fewest_events": 0}, "fewest_events=0"),
        ({"fewest_events": 50}, "events_per_user=40.0"),
    ],
)
def test_impossible_worlds_are_refused(wrong, problem):
    with pytest.raises(BadValue, match=problem):
        World(**wrong)


@pytest.fixture
def large(monkeypatch) -> World:
    """A world that counts as large."""
    monkeypatch.setattr("tacit.data.synthetic.world._KEPT_FROM", 3_000)
    return SMALL


def fail(*_: object) -> None:
    raise AssertionError("made again")


def test_a_large_world_is_made_once(large, tmp_path, monkeypatch):
    made = large.load("mine", cache=tmp_path)
    monkeypatch.setattr(World, "dataset", fail)
    kept = replace(large).load("mine", cache=tmp_path)
    assert kept.name == "mine"
    assert isinstance(kept.interactions.items.base, np.memmap)
    np.testing.assert_array_equal(kept.interactions.items, made.interactions.items)
    assert list(kept.catalog.titles) == list(SMALL._items.catalog().titles)


def test_another_world_or_version_is_made_anew(large, tmp_path, monkeypatch):
    large.load(cache=tmp_path)
    for change in ({"seed": 1}, {"users": 70}, {"repeats": 0.0}):
        found = replace(large, **change).load(cache=tmp_path)
        assert found.interactions.n_users == change.get("users", 60)
    monkeypatch.setattr(World, "dataset", fail)
    large.load(cache=tmp_path)  # the others did not take its place
    monkeypatch.setattr("tacit.data.synthetic.world._VERSION", 2)
    with pytest.raises(AssertionError, match="made again"):
        large.load(cache=tmp_path)


def test_a_small_world_leaves_no_trace(tmp_path):
    SMALL.load(cache=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "where", ["tacit.data.synthetic.user_activity._stars", "numpy.save"]
)
def test_an_interrupted_world_leaves_nothing(large, tmp_path, monkeypatch, where):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupt)
    with pytest.raises(KeyboardInterrupt):
        large.load(cache=tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert list((tmp_path / "parsed").iterdir()) == []


def test_named_worlds_are_kept_by_their_names(large, tmp_path, monkeypatch):
    found = _source("some-world", "title", large).open(cache=tmp_path)
    assert found.name == "some-world"
    assert [entry.name for entry in (tmp_path / "parsed").iterdir()] == ["some-world"]
    monkeypatch.setattr(World, "dataset", fail)
    _source("some-world", "title", replace(large)).open(cache=tmp_path)


def test_what_is_kept():
    kept = {name for name, source in SOURCES.items() if source.stamp is not None}
    assert kept == {"synthetic-20m"}


def test_the_world_like_movielens_1m_has_its_popularity(real_data, tmp_path):
    """Shares of users who have an item, at these places of the sorted catalog."""
    real = load("movielens-1m", where=real_data, cache=tmp_path).interactions
    ours = replace(LIKE_MOVIELENS_1M, users=2_000).dataset().interactions
    assert real.n_items == ours.n_items
    places = [0, 37, 370, 1111, 1852, 2593]
    shares = [np.sort(log.per_item / log.n_users)[::-1][places] for log in (ours, real)]
    np.testing.assert_allclose(*shares, rtol=0.25)
