"""What strangers tell, and what every contender makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tacit_study_privrec import telling as module
from tacit_study_privrec.contenders import Bench
from tacit_study_privrec.telling import TOLD, first, one_feature, telling, telling_more

from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.evaluation.candidate_sets import EachTargetAlone
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.ranking import score_matrix
from tacit.experiment.evaluate import baseline_scorer, method_scorer
from tacit.keys import Key

BENCH = Bench("ml1m", "smoke")
KEY = Key.from_seed(11)


def events(shards: Shards) -> list[set[int]]:
    return [set(row.tolist()) for row in shards.histories]


def test_told_are_as_many_events_as_wanted_and_more_contain_fewer(films):
    history = films.split.test.history
    keys = KEY.each(np.arange(len(history)))
    cuts = {n: first(history, n, keys) for n in (0, 1, 2, 30, 1000)}
    for n, cut in cuts.items():
        np.testing.assert_array_equal(cut.lengths, np.minimum(n, history.lengths))
    for fewer, more in ((1, 2), (2, 30), (30, 1000)):
        pairs = zip(events(cuts[fewer]), events(cuts[more]), strict=True)
        assert all(small <= large for small, large in pairs)
    assert events(cuts[1000]) == events(history)


def test_what_one_user_tells_depends_on_nobody_else(films):
    heldout = films.split.test
    all_of_them = first(heldout.history, 3, KEY.each(heldout.users))
    rows = np.array([4, 1])
    two = first(heldout.history.take(rows), 3, KEY.each(heldout.users[rows]))
    assert events(two) == events(all_of_them.take(rows))


def test_events_are_told_in_a_random_order():
    """Of a thousand users with ten events each event is the first to be told of 100.

    False alarm below 1e-6 (Bernstein: 10 * 2 exp(-18.9)); sees a share of .2 for .1.
    """
    n = 1_000
    who, what = np.repeat(np.arange(n), 10), np.tile(np.arange(10), n)
    log = Interactions.of_columns(who, what, n_users=n, n_items=10)
    cut = first(Shards.of(log), 1, Key.from_seed(5).each(np.arange(n)))
    assert np.abs(np.bincount(cut.items, minlength=10) - 100).max() < 65


def test_a_scorer_is_told_less_and_candidates_stay(films):
    """A scorer that finds what it is told finds nothing: history is no candidate."""
    heldout, heard = films.split.test, []

    def score(history):
        heard.append(history.lengths)
        scores = np.zeros((len(history), len(films.split.catalog)))
        scores[history.owners, history.items] = 1.0
        return scores

    def found(n: int) -> np.ndarray:
        own, metrics = telling(score, n, KEY), ("hr_each@10",)
        judged = evaluate(own, heldout, metrics=metrics, protocol=EachTargetAlone())
        return judged.values["hr_each@10"]

    np.testing.assert_array_equal(found(0), found(10))
    assert [lengths.max() for lengths in heard] == [0, 10]


def test_who_is_told_nothing_does_not_adapt(films):
    state = films.simulation.start()
    scorers = method_scorer(films, state), module.not_adapting(films, state)
    for n in (0, 20):
        pair = (score_matrix(telling(s, n, KEY), films.split.test) for s in scorers)
        assert np.array_equal(*pair) == (n == 0)


def test_the_same_users_at_every_number(films, monkeypatch):
    """Whoever has fewer events than the last number is left out of all of them."""
    test = films.split.test
    monkeypatch.setattr(module, "TOLD", (0, int(np.median(test.history.lengths))))
    score, _ = baseline_scorer(films, "popularity")
    told = telling_more(BENCH, films, score)
    enough = test.users[test.history.lengths >= module.TOLD[-1]]
    assert 0 < len(enough) < len(test.users)
    for one in told["few"].values():
        assert one["own"]["people"]["users"] == enough.tolist()
    assert len(told["whole"]["own"]["people"]["users"]) == len(test.users)


def test_groups_are_those_of_the_history(films):
    score, _ = baseline_scorer(films, "popularity")
    lengths = films.split.test.history.lengths
    users = telling_more(BENCH, films, score)["whole"]["among_all"]["people"]
    assert users["groups"] == ["few (0-31)", "some (32-79)", "many (80+)"]
    assert users["member_of"] == np.searchsorted([32, 80], lengths, "right").tolist()


def test_a_feature_is_counted_on_items_that_somebody_has(films):
    """The likes of a kind, over its items that are in training."""
    [experiment] = BENCH.cell("PrivRec").experiments()
    assembled, is_unseen = module.with_unseen_items(experiment)
    split = assembled.split
    scores = score_matrix(one_feature(assembled, "topics"), split.test)
    topics = split.catalog.features["topics"]
    kinds = np.array([str(sorted(topics[i])) for i in range(len(split.catalog))])
    liked = split.train.items[split.train.values >= 4]
    for kind in np.unique(kinds):
        own = kinds == kind
        likes = own[liked].sum() / max(1, (own & ~is_unseen).sum())
        np.testing.assert_allclose(scores[:, own], likes, rtol=1e-6)


def test_a_network_that_is_not_adapted_is_the_same_for_all_numbers(films):
    """Without situations a history changes nothing."""
    state = films.simulation.start()
    score = module.not_adapting(films, state)
    heldout = films.split.test
    everyone = [score_matrix(telling(score, n, KEY), heldout) for n in TOLD]
    for one in everyone[1:]:
        np.testing.assert_array_equal(one, everyone[0])
    bare = replace(films.method, adapt_epochs=0)
    assert bare.adapt_epochs == 0 < films.method.adapt_epochs


def test_it_is_trained_to_the_last_round(films):
    assert module._trained(films).server.round == films.plan.rounds
