"""An invented newsroom and its readers.

Also tests `tacit.data.synthetic.news_articles`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.columns import describe
from tacit.data.digest import content_digest
from tacit.data.ragged import Ragged
from tacit.data.sources import load
from tacit.data.synthetic import news_world
from tacit.data.synthetic.news_words import NOUNS, categories, subcategories
from tacit.data.synthetic.news_world import LIKE_MIND_SMALL, NewsWorld
from tacit.data.synthetic.ragged_draws import gumbel, heaviest_first, log_normal, within
from tacit.errors import BadValue
from tacit.evaluation.impressions import evaluate_impressions
from tacit.keys import Key

SMALL = NewsWorld(users=80, news=300, shown=8, history=6, topics=4)


@pytest.fixture(scope="module")
def demo():
    return NewsWorld(), load("synthetic-news")


def columns(world: NewsWorld) -> dict[str, np.ndarray]:
    return describe(world.dataset(), "d")[1]


def test_a_seed_gives_a_world():
    one, same, other = (
        columns(w) for w in (SMALL, replace(SMALL), replace(SMALL, seed=1))
    )
    for name, column in one.items():
        np.testing.assert_array_equal(column, same[name])
    assert not np.array_equal(
        one["d.impressions.clicked"], other["d.impressions.clicked"]
    )


def test_a_user_does_not_depend_on_how_many_others_there_are():
    few, many = (replace(SMALL, users=n).dataset().impressions for n in (30, 80))
    mine = many.take_users(np.arange(30))
    np.testing.assert_array_equal(mine.clicked, few.clicked)
    np.testing.assert_array_equal(mine.slates.times, few.slates.times)
    np.testing.assert_array_equal(mine.slates.shown.values, few.slates.shown.values)
    np.testing.assert_array_equal(
        mine.slates.histories.values, few.slates.histories.values
    )


def test_blocks_do_not_matter(monkeypatch):
    whole = columns(SMALL)
    monkeypatch.setattr("tacit.data.synthetic.news_world._BLOCK", 500)
    parts = columns(replace(SMALL))
    for name, column in whole.items():
        np.testing.assert_array_equal(column, parts[name])


def test_the_world_is_as_promised(demo):
    dataset = demo[1]
    impressions = dataset.impressions
    slates = impressions.slates
    assert (dataset.interactions.n_users, len(dataset.catalog)) == (1000, 2000)
    assert impressions.per_user.min() >= 1
    assert len(impressions) / 1000 == pytest.approx(4.0, rel=0.1)
    assert slates.shown.lengths.mean() == pytest.approx(18, abs=2)  # repeats dropped
    assert slates.histories.lengths.mean() == pytest.approx(20, rel=0.1)
    assert (slates.histories.lengths == 0).mean() == pytest.approx(0.02, abs=0.015)
    assert impressions.n_clicked.min() >= 1
    assert (impressions.n_clicked < slates.shown.lengths).all()
    assert impressions.n_clicked.mean() == pytest.approx(1.4, rel=0.05)
    days = np.unique(slates.times.astype("datetime64[s]").astype("datetime64[D]"))
    assert [str(day) for day in days[[0, -1]]] == ["2023-01-30", "2023-02-05"]
    assert len(days) == 7


def test_nothing_is_shown_twice_or_before_it_is_published(demo):
    slates = demo[1].impressions.slates
    pairs = slates.shown.owners * 2000 + slates.shown.values
    assert len(np.unique(pairs)) == len(pairs)
    share = (slates.times[slates.shown.owners] - 1_672_617_600) / (35 * 86_400)
    age = share - slates.shown.values / 2000
    assert age.min() >= -1e-6
    assert age.max() < 0.052  # the latest hundred of two thousand
    assert slates.histories.values.max() < 0.8 * 2000


def test_topics_can_be_told_from_the_words(demo):
    catalog = demo[1].catalog
    features = catalog.features
    topic_of = {noun: categories(12)[i // 9] for i, noun in enumerate(NOUNS)}
    for row in range(0, 2000, 41):
        text = f"{catalog.titles[row]} {features['abstract'][row]}"
        said = text.translate(dict.fromkeys(map(ord, ",;:."))).split()
        told = {topic_of[word] for word in said if word in topic_of}
        assert told == {features["category"][row]}
        assert features["subcategory"][row] in subcategories(12)
        assert features["subcategory"][row].split("-")[0] == features["category"][row]
    empty = sum(features["abstract"][row] == "" for row in range(2000))
    assert 100 < empty < 300


def test_clicks_follow_the_truth():
    """Over 20,000 impressions with one click: how often it is likely, and where it is.

    An impression adds 0 or 1 to each of the seven counts, so by Hoeffding one strays by
    0.02 with a chance below 14 exp(-2 * 20_000 * 0.02**2) < 2e-6.
    """
    world = NewsWorld(
        users=10_000, news=100, shown=4, history=1, position_bias=0.5, topics=2
    )
    impressions = world.dataset().impressions
    single = impressions.keep(impressions.n_clicked == 1)
    assert len(single) > 20_000
    chance, place = world.truth(single.slates), within(single.slates.shown.lengths)
    bins = [chance * 4 // 1 == quarter for quarter in range(4)]
    for some in (*bins, place == 0, place == 1, place == 2):
        clicked = (single.clicked & some).sum() / len(single)
        assert abs(clicked - chance[some].sum() / len(single)) < 0.02
    unbiased = replace(world, position_bias=0.0).truth(single.slates)
    assert single.clicked[place == 0].mean() > unbiased[place == 0].mean() + 0.04


def test_truth_is_a_probability_and_beats_what_only_reads(demo):
    """AUC measured: constant 0.5, subtopics of the history 0.65, truth 0.88."""
    world, dataset = demo
    impressions = dataset.impressions
    chance = world.truth(impressions.slates)
    totals = np.bincount(impressions.slates.shown.owners, chance)
    np.testing.assert_allclose(totals, 1.0)

    def by_subtopic(slates):
        codes = dataset.catalog.features["subcategory"].codes
        read = np.zeros((len(slates.histories), codes.max() + 1))
        np.add.at(read, (slates.histories.owners, codes[slates.histories.values]), 1)
        rows = slates.history_of[slates.shown.owners]
        return read[rows, codes[slates.shown.values]]

    truth, text = (
        evaluate_impressions(score, impressions, metrics=("auc",)).metrics()["auc"]
        for score in (world.truth, by_subtopic)
    )
    assert truth.mean > text.mean + 0.15 > 0.6 + 0.15


def test_truth_needs_this_worlds_numbers():
    part = SMALL.dataset().impressions
    with pytest.raises(BadValue, match="80 users and 300 news are not numbered like"):
        NewsWorld().truth(part.slates)
    with pytest.raises(BadValue, match="slates of 2 users"):
        SMALL.truth(part.take_users([0, 1]).slates)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"users": 0}, "users=0"),
        ({"topics": 13}, "topics=13 must be <= 12"),
        ({"cold": 1.5}, "cold=1.5 must be <= 1"),
        ({"shown": 2.0}, "shown=2.0 must be >= 3"),
        ({"news": 99}, "news=99 must be at least 5 × shown=20.0"),
        ({"impressions_per_user": 0.5}, "impressions_per_user=0.5 must be >= 1"),
        ({"position_bias": -1.0}, "position_bias=-1.0 must be >= 0"),
        ({"history": 0.0}, "history=0.0 must be > 0"),
    ],
)
def test_impossible_worlds_are_refused(wrong, problem):
    with pytest.raises(BadValue, match=problem):
        NewsWorld(**wrong)


def test_draws_in_rows():
    rows = Ragged.of_lengths([3, 0, 2], np.zeros(5))
    assert within(rows.lengths).tolist() == [0, 1, 2, 0, 1]
    weights = np.array([1.0, 3.0, 2.0, 5.0, 6.0])
    assert heaviest_first(weights, rows).tolist() == [2, 0, 1, 1, 0]


def test_draws_have_their_mean_and_their_weights():
    """False alarms below 1e-6: six standard errors, and Hoeffding with 0.02."""
    uniform = Key.from_seed(5).each(np.arange(20_000)).uniform(3)
    counts = log_normal(uniform[:, 0], 20.0, spread=0.6, least=1)
    assert abs(counts.mean() - 20.0) < 6 * 13 / 20_000**0.5
    weights = np.array([0.6, 0.3, 0.1])
    noise = gumbel(uniform.ravel()).reshape(-1, 3)
    picked = np.bincount((np.log(weights) + noise).argmax(axis=1)) / 20_000
    assert np.abs(picked - weights).max() < 0.02


def test_a_large_world_is_kept_and_a_small_one_made_anew(tmp_path, monkeypatch):
    world = NewsWorld(users=20, news=80, shown=5, history=3, topics=3)
    assert not world.is_large
    assert LIKE_MIND_SMALL.is_large
    small = world.load(cache=tmp_path)
    assert not [*tmp_path.iterdir()]
    monkeypatch.setattr(news_world, "_KEPT_FROM", 1)
    world.load(cache=tmp_path)
    assert [*tmp_path.iterdir()]
    monkeypatch.setattr(NewsWorld, "dataset", lambda *_: pytest.fail("made anew"))
    again = world.load(cache=tmp_path)
    assert content_digest(again) == content_digest(small)
