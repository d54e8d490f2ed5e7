"""Cold start: what is told, what is to be found, and what the tables make of it."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Categories, Category, Numeric
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.splits import Heldout, adapt_half
from tacit.data.strings import Strings
from tacit.evaluation.candidate_sets import EachTargetAlone
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.ranking import score_matrix
from tacit.keys import Key
from tacit.models.feature_mlp import Labelling
from tacit.reproduction import reproduce
from tacit.reproduction.kept import keeping
from tacit.reproduction.page import render
from tacit.reproduction.privrec import cold_start, cold_start_trials, settings
from tacit.reproduction.privrec.benches import Bench
from tacit.reproduction.privrec.cold_start_items import (
    FEWEST_LIKES,
    UnseenItems,
    among,
    some,
)
from tacit.reproduction.privrec.cold_start_trials import (
    CHANCE,
    NOT_ADAPTED,
    OF_ITEMS,
    OF_PEOPLE,
    ONE_FEATURE,
    TOLD,
    Told,
    first,
    telling,
    told_trial,
)
from tacit.reproduction.privrec.trials import DEPTHS, Judged
from tacit.results import Evaluation, Groups

N_PEOPLE, N_ITEMS = 32, 100
SIZES = {"age_group": 7, "gender": 2, "occupation": 21}


def films() -> Dataset:
    """Half of the people have seen four films in ten, the others nine."""
    draws = np.random.default_rng(3)
    share = np.where(np.arange(N_PEOPLE) % 2, 0.4, 0.9)[:, None]
    who, what = np.nonzero(draws.random((N_PEOPLE, N_ITEMS)) < share)
    stars = draws.integers(1, 6, len(who))
    log = Interactions.of_columns(
        who, what, values=stars, n_users=N_PEOPLE, n_items=N_ITEMS
    )
    kinds = ("comedy", "drama", "war")
    genres = Categories.of([[kinds[i % 3]] for i in range(N_ITEMS)])
    year = Numeric(np.arange(1900, 1900 + N_ITEMS, dtype=np.float32))
    told = {
        name: Category.of([f"{i % n:02}" for i in range(N_PEOPLE)])
        for name, n in SIZES.items()
    }
    return Dataset(
        "films",
        log,
        Catalog(
            Strings.of(f"{i}" for i in range(N_ITEMS)),
            Strings.of(f"film {i // 2}" for i in range(N_ITEMS)),
            {"genres": genres, "year": year},
        ),
        Profiles(Strings.of(f"p{i}" for i in range(N_PEOPLE)), told),
    )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The bench of MovieLens with these people and two rounds."""
    split = adapt_half(
        films(), train_share=0.5, min_target_value=4.0, key=Key.from_seed(1)
    )
    monkeypatch.setattr(Bench, "split", lambda self: split)
    monkeypatch.setattr(settings, "_COUNTING", 1)
    for name in ("rounds", "published_rounds", "local_epochs"):
        monkeypatch.setattr(Bench, name, 2)
    return Bench("movielens-1m", "quick", seed=11)


@pytest.fixture
def unseen(world: Bench) -> UnseenItems:
    return UnseenItems(world.source, world.scale, world.seed)


def events(shards: Shards) -> list[set[int]]:
    return [set(row.tolist()) for row in shards.histories]


# what is told


def test_told_are_as_many_events_as_wanted_and_more_contain_fewer(world):
    history = world.split().test.history
    keys = world.key.each(np.arange(len(history)))
    cuts = {n: first(history, n, keys) for n in (0, 1, 2, 30, 1000)}
    for n, cut in cuts.items():
        np.testing.assert_array_equal(cut.lengths, np.minimum(n, history.lengths))
    for fewer, more in ((1, 2), (2, 30), (30, 1000)):
        pairs = zip(events(cuts[fewer]), events(cuts[more]), strict=True)
        assert all(small <= large for small, large in pairs)
    assert events(cuts[1000]) == events(history)


def test_what_one_person_tells_depends_on_nobody_else(world):
    people = world.split().test
    all_of_them = first(people.history, 3, world.key.each(people.users))
    rows = np.array([4, 1])
    two = first(people.history.take(rows), 3, world.key.each(people.users[rows]))
    assert events(two) == events(all_of_them.take(rows))


def test_events_are_told_in_a_random_order():
    """Of a thousand people with ten events each event is the first to be told of 100.

    False alarm below 1e-6 (Bernstein: 10 * 2 exp(-18.9)); sees a share of .2 for .1.
    """
    n = 1_000
    who, what = np.repeat(np.arange(n), 10), np.tile(np.arange(10), n)
    log = Interactions.of_columns(who, what, n_users=n, n_items=10)
    cut = first(Shards.of(log), 1, Key.from_seed(5).each(np.arange(n)))
    assert np.abs(np.bincount(cut.items, minlength=10) - 100).max() < 65


def test_a_scorer_is_told_less_and_candidates_stay(world):
    """A scorer that finds what it is told finds nothing: history is no candidate."""
    people, heard = world.split().test, []

    def score(history):
        heard.append(history.lengths)
        scores = np.zeros((len(history), N_ITEMS))
        scores[history.owners, history.items] = 1.0
        return scores

    def found(n: int) -> np.ndarray:
        own = telling(score, n, world.key)
        protocol = EachTargetAlone()
        metrics = ("hr_each@10",)
        judged = evaluate(own, people, metrics=metrics, protocol=protocol)
        return judged.values["hr_each@10"]

    np.testing.assert_array_equal(found(0), found(10))
    assert [lengths.max() for lengths in heard] == [0, 10]


# unseen items


def test_nobody_is_told_of_an_unseen_item(unseen):
    is_unseen, split = unseen.is_unseen(), unseen.split()
    for shards in (split.train, split.test.history, split.validation.history):
        assert len(shards.items)
        assert not is_unseen[shards.items].any()


def test_a_tenth_of_the_liked_items_is_unseen(unseen, world):
    train = world.split().train
    likes = np.bincount(train.items[train.values >= 4], minlength=N_ITEMS)
    assert (likes[unseen.is_unseen()] >= FEWEST_LIKES).all()
    assert unseen.is_unseen().sum() == (likes >= FEWEST_LIKES).sum() // 10
    other = UnseenItems(world.source, world.scale, seed=12).is_unseen()
    assert (other != unseen.is_unseen()).any()


def test_targets_are_all_unseen_items_that_a_person_likes(unseen, world):
    """Whichever half of the person's items they were in."""
    log, is_unseen = films().interactions, unseen.is_unseen()
    people = unseen.split().test
    expected = {}
    for user in world.split().test.users.tolist():
        own = slice(*log.offsets[user : user + 2])
        items, stars = log.items[own], log.values[own]
        liked = {*items[is_unseen[items] & (stars >= 4)].tolist()}
        disliked = {*items[is_unseen[items] & (stars < 4)].tolist()}
        if liked:
            expected[user] = liked, disliked
    found = zip(events(people.targets), events(people.disliked), strict=True)
    assert dict(zip(people.users.tolist(), found, strict=True)) == expected


def test_training_never_meets_an_unseen_item(unseen):
    """Neither as liked nor as drawn; what is liked is as before."""
    method = settings.AsWeWould(unseen).privrec
    labelling = Labelling(
        positive_from=method.positive_from,
        negatives=method.negatives,
        dislikes=method.dislikes,
    )
    keys = Key.from_seed(2).each(np.arange(len(unseen.training())))
    found = labelling.of(unseen.training(), keys)
    assert found.is_drawn.any()
    assert not unseen.is_unseen()[found.items].any()
    before = labelling.of(unseen.split().train, keys)
    liked = found.items[~found.is_drawn], before.items[~before.is_drawn]
    np.testing.assert_array_equal(*liked)
    assert unseen.is_unseen()[before.items].any()


def test_chance_is_ten_of_the_candidates(unseen):
    """Of a target alone: all unseen items but those that the person knows."""
    people, n = unseen.split().test, int(unseen.is_unseen().sum())
    known = people.disliked.lengths + people.targets.lengths - 1
    found = told_trial(CHANCE, unseen).whole.alone[0].values["hr_each@5"]
    np.testing.assert_allclose(found, np.minimum(1, 5 / (n - known)))


def test_only_unseen_items_are_candidates(unseen, world):
    people, is_unseen = unseen.split().test, unseen.is_unseen()
    score = among(lambda history: np.ones((len(history), N_ITEMS)), is_unseen)
    scores = score_matrix(score, people)
    assert (scores[:, is_unseen] == 1).all()
    assert (scores[:, ~is_unseen] == -np.inf).all()


def test_some_of_the_people(world):
    people = world.split().test
    rows = np.arange(len(people.users)) == 2
    one = some(people, rows)
    assert one.users.tolist() == [people.users[2]]
    assert events(one.disliked) == events(people.disliked)[2:3]
    without = Heldout(people.users, people.history, people.targets)
    assert some(without, rows).disliked is None


def test_a_feature_is_counted_on_items_that_somebody_has(unseen):
    """Three kinds: the likes of a kind, over its items that are in training."""
    split, is_unseen = unseen.split(), unseen.is_unseen()
    score = cold_start_trials._CONTENDERS[ONE_FEATURE](unseen)
    liked = split.train.items[split.train.values >= 4]
    for kind in range(3):
        own = np.arange(N_ITEMS) % 3 == kind
        likes = own[liked].sum() / (own & ~is_unseen).sum()
        scores = score_matrix(score, split.test)[:, own]
        np.testing.assert_allclose(scores, likes, rtol=1e-6)


# trials


def test_who_is_told_nothing_does_not_adapt(world):
    own, other = (told_trial(who, world) for who in ("PrivRec", NOT_ADAPTED))
    for n in (0, 20):
        pair = (told.few[n].alone[0].values["ndcg_each@30"] for told in (own, other))
        assert np.array_equal(*pair) == (n == 0)


def test_the_same_people_at_every_number(world):
    told = told_trial("popularity", world)
    lengths = world.split().test.history.lengths
    enough = world.split().test.users[lengths >= TOLD[-1]]
    assert 0 < len(enough) < len(lengths)
    for judged in told.few.values():
        np.testing.assert_array_equal(judged.alone[0].users, enough)
    assert len(told.whole.alone[0]) == len(lengths)


def test_a_trial_is_read_as_it_was_made(world, tmp_path):
    made = told_trial("popularity", world)
    again = Told.from_json(made.to_json())
    assert [*again.few] == [*TOLD]
    for n in TOLD:
        assert again.few[n].to_json() == made.few[n].to_json()
    assert again.whole.to_json() == made.whole.to_json()
    with keeping(tmp_path):
        told_trial("EASE", world)
    assert len([*tmp_path.iterdir()]) == 1


# tables


def judged(level: float, n: int = 20) -> Judged:
    def evaluation(protocol, names):
        values = {name: level + np.linspace(-0.01, 0.01, n) for name in names}
        groups = Groups(("few", "some", "many"), np.arange(n) % 2)
        return Evaluation(protocol, np.arange(n), values, groups)

    alone = [f"{kind}_each@{k}" for kind in ("hr", "ndcg") for k in DEPTHS]
    full = ["ndcg@10", "recall@20"]
    return Judged((evaluation("alone", alone),), (evaluation("full", full),))


def invented(name: str, bench: Bench) -> Told:
    """PrivRec learns from what it is told, others have one level each."""
    levels = {"popularity": 0.31, ONE_FEATURE: 0.6, CHANCE: 0.1}
    gain = 0.01 if name == "PrivRec" else 0.0
    few = {n: judged(levels.get(name, 0.3) + gain * n) for n in TOLD}
    return Told(few, judged(0.5, 30))


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cold_start, "told_trials", invented)
        return cold_start.on(Bench("movielens-1m", "quick"))


def test_claims_follow_the_people(found):
    on_items = "movielens-1m: on unseen items PrivRec, told 20, is above"
    assert {claim.text: claim.ok for claim in found.claims} == {
        "movielens-1m: PrivRec, told 5, is above popularity, told 5": True,
        "movielens-1m: PrivRec, told 0, is above FCF, told 0": False,
        "movielens-1m: PrivRec, told 1, is above FCF, told 1": True,
        "movielens-1m: PrivRec, told 20, is above itself, told 0": True,
        f"{on_items} {CHANCE}": True,
        f"{on_items} FCF": True,
        f"{on_items} {ONE_FEATURE}": False,
    }
    assert "Hits@10 +0.040" in found.claims[0].evidence


def test_who_does_not_listen_is_a_line_across(found):
    strangers, _, items = found.charts
    assert [*strangers.lines] == [*items.lines] == ["PrivRec"]
    assert [*items.levels] == [NOT_ADAPTED, ONE_FEATURE, "FCF", CHANCE]
    assert strangers.lines["PrivRec"].y[3] == pytest.approx(0.35)
    assert items.levels[CHANCE] == pytest.approx(0.1)
    labels = [row.label for row in found.tables[0].rows]
    assert len(labels) == len(TOLD) + len(OF_PEOPLE) - 1
    assert "popularity, any number told" in labels
    assert len(found.tables[2].rows) == len(TOLD) + len(OF_ITEMS) - 1
    assert found.tables[0].name.endswith("20 of 30")


def test_groups_without_people_are_left_out(found):
    rows = found.tables[1].rows
    assert [row.label for row in rows[:2]] == ["PrivRec, few", "PrivRec, some"]
    assert len(rows) == 2 * len(OF_PEOPLE)
    whole = invented("PrivRec", None).whole
    mean = whole.alone[0].by_group()["some"]["hr_each@10"].mean
    assert rows[1].sound == pytest.approx(mean)
    assert rows[0].sound != pytest.approx(mean)


def test_seeds_are_joined(monkeypatch, world):
    monkeypatch.setattr(Bench, "n_seeds", 2)
    asked = []

    def trial(name, bench):
        asked.append(bench.seed)
        return Told({0: judged(0.1 * (bench.seed - 10))}, judged(0.5))

    monkeypatch.setattr(cold_start_trials, "told_trial", trial)
    both = cold_start_trials.told_trials("FCF", world)
    assert asked == [11, 12]
    assert both.few[0].mean("hr", 10) == pytest.approx(0.15)
    assert both.few[0].se("hr", 10) == pytest.approx(0.05)


def test_the_whole_table_is_made_and_shown(world):
    made = cold_start.on(world)
    assert len(made.tables) == len(made.charts) == 3
    assert len(made.claims) == 7
    assert "<svg" in render(made, "privrec")
    chance = next(r for r in made.tables[2].rows if CHANCE in r.label)
    assert chance.label.endswith("any number told")


def test_the_command_knows_it(monkeypatch):
    monkeypatch.setattr(cold_start, "on", lambda bench: cold_start.Reproduction((), ()))
    assert reproduce("privrec", table="cold-start").tables == ()
