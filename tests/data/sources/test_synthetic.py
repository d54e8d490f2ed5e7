from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.dataset import Dataset
from tacit.data.shards import Shards
from tacit.data.sources import load
from tacit.data.sources.synthetic import World, checkerboard
from tacit.data.sources.titles import TOPICS, title
from tacit.data.splits import Split, new_users
from tacit.errors import BadValue
from tacit.keys import Key

SMALL = World(users=60, items=50, events_per_user=10, topics=4)


def dense(shards: Shards) -> np.ndarray:
    made = np.zeros((len(shards), shards.n_items))
    made[shards.owners, shards.items] = 1.0
    return made


def recall(split: Split, scores: np.ndarray, k: int = 20) -> float:
    """The mean share of a test person's targets among the k best unseen items."""
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
    """Recall@20 measured: popularity 0.226, EASE 0.394, truth 0.487."""
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
    """People of the same group share more taste than others."""
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
    liking = world._tastes[0] @ world._directions.T
    weight = np.sort(chance / np.exp(5.0 * liking))[::-1]
    np.testing.assert_allclose(weight / weight[0], 1 / np.arange(1, 401), rtol=1e-9)


def test_picks_follow_the_truth():
    """20,000 twins pick 5 of 10 items; the first pick's frequencies are `truth`.

    Each frequency is within 0.02 but for a chance below 2 * 10 * exp(-2 * 20_000 *
    0.02 ** 2) < 3e-6, by Hoeffding. A pick is the first if it is the earliest drawn.
    """
    world = World(
        users=20_000, items=10, events_per_user=5, rank=1, topics=1, repeats=0
    )
    people = np.flatnonzero(world._tastes[:, 0] > 0)  # in one dimension all are twins
    counts = np.ones(world.users, np.int64)
    picked = np.bincount(world._picks(counts)[people], minlength=10) / len(people)
    assert len(people) > 9_000
    assert np.abs(picked - world.truth(people[:1])[0]).max() < 0.03


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


def test_people_rate_higher_what_they_like(demo):
    world, dataset, _ = demo
    log = dataset.interactions
    liking = (world._tastes[log.users] * world._directions[log.items]).sum(axis=1)
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


def test_a_seed_gives_a_world():
    def logs(world: World) -> list[list[float]]:
        log = world.dataset().interactions
        return [log.items.tolist(), log.values.tolist(), log.times.tolist()]

    assert logs(SMALL) == logs(replace(SMALL))
    assert all(
        a != b for a, b in zip(logs(SMALL), logs(replace(SMALL, seed=1)), strict=True)
    )


def test_a_person_does_not_depend_on_how_many_others_there_are():
    few, many = (replace(SMALL, users=n).dataset().interactions for n in (20, 60))
    np.testing.assert_array_equal(few.items, many.items[: len(few)])
    np.testing.assert_array_equal(few.times, many.times[: len(few)])


def test_blocks_do_not_matter(monkeypatch):
    whole = SMALL.dataset().interactions.items
    monkeypatch.setattr("tacit.data.sources.synthetic._BLOCK", 350)
    np.testing.assert_array_equal(replace(SMALL).dataset().interactions.items, whole)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"users": 0}, "users=0"),
        ({"items": 9}, "items=9"),
        ({"topics": 13}, "topics=13 must be <= 12"),
        ({"demographics": 1.5}, "demographics=1.5"),
        ({"repeats": 0.6}, "repeats=0.6"),
        ({"repeats": -0.1}, "repeats=-0.1"),
        ({"events_per_user": 201.0}, "at most half of items=400"),
        ({"popularity_exponent": float("nan")}, "popularity_exponent=nan"),
    ],
)
def test_impossible_worlds_are_refused(wrong, problem):
    with pytest.raises(BadValue, match=problem):
        World(**wrong)


def test_the_checkerboard_has_exactly_its_squares():
    found = checkerboard(5, 7, 2)
    expected = [[float(u % 2 == i % 2) for i in range(7)] for u in range(5)]
    assert found.interactions.matrix().toarray().tolist() == expected
    assert found.catalog.features["group"][3] == "group 1"
    assert found.profiles.features["group"][4] == "group 0"
    assert found.interactions.times is not None
    with pytest.raises(BadValue, match="users=1 must be >= 2"):
        checkerboard(1, 7, 2)
