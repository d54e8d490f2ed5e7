"""Every kind of scorer on slates equals one slate after the other, candidate by it."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.evaluation import slate_scores as slate_module
from tacit.evaluation.candidate_sets import FullRanking, ShownCandidates
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.impressions import evaluate_impressions
from tacit.evaluation.ranking import Factors, Personal
from tacit.evaluation.slate_scores import history_shards, slate_scorer, slate_scores

N_USERS, N_ITEMS, N_SLATES = 9, 14, 40
VECTORS = np.random.default_rng(1).normal(size=(N_ITEMS, 3))


@pytest.fixture(scope="module")
def impressions() -> Impressions:
    """Several slates per user; some after the same history, some after a longer one."""
    rng = np.random.default_rng(0)
    users = rng.integers(0, N_USERS, N_SLATES)
    lengths = rng.integers(2, 6, N_SLATES)
    read = rng.integers(0, 4, 2 * N_USERS)
    return Impressions.of_columns(
        users,
        Ragged.of_lengths(
            lengths, rng.integers(0, N_ITEMS, lengths.sum()).astype(np.int32)
        ),
        clicked=rng.random(lengths.sum()) < 0.4,
        histories=Ragged.of_lengths(
            read, rng.integers(0, N_ITEMS, read.sum()).astype(np.int32)
        ),
        history_of=users + N_USERS * rng.integers(0, 2, N_SLATES),
        times=np.arange(N_SLATES),
        n_users=N_USERS,
        n_items=N_ITEMS,
    )


def represent(history):
    """The sum of the vectors read, and later items count more."""
    found = np.zeros((len(history), 3))
    late = np.exp(history.times)  # …, -2, -1
    np.add.at(found, history.owners, late[:, None] * VECTORS[history.items])
    return found


def with_users(users, history):
    return represent(history) @ VECTORS.T + 0.1 * np.outer(users, np.arange(N_ITEMS))


def slowly(slates, *, personal):
    found = []
    for place in range(len(slates)):
        read = slates.histories[int(slates.history_of[place])].tolist()
        late = [np.exp(-float(n)) for n in range(len(read), 0, -1)]
        pairs = zip(late, read, strict=True)
        user = sum((w * VECTORS[item] for w, item in pairs), np.zeros(3))
        for item in slates.shown[place].tolist():
            own = 0.1 * slates.users[place] * item if personal else 0.0
            found.append(user @ VECTORS[item] + own)
    return np.array(found)


SCORERS = {
    "histories": lambda history: represent(history) @ VECTORS.T,
    "factors": Factors(lambda _, history: represent(history), VECTORS),
    "personal": Personal(with_users),
    "among": Personal(
        lambda *_: pytest.fail("scored the whole catalog"),
        lambda users, history, items: with_users(users, history)[:, items],
    ),
}


@pytest.mark.parametrize("at_once", [1, 3 * N_ITEMS, 2**24])
@pytest.mark.parametrize("kind", SCORERS)
def test_scores_are_those_of_one_slate_at_a_time(
    kind, at_once, impressions, monkeypatch
):
    monkeypatch.setattr(slate_module, "_NUMBERS_AT_ONCE", at_once)
    found = slate_scores(SCORERS[kind], impressions.slates)
    expected = slowly(impressions.slates, personal=kind in ("personal", "among"))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_whoever_is_shown_more_after_the_same_history_is_represented_once(impressions):
    rows, slates = [], impressions.slates
    score = Personal(
        lambda users, history: rows.append(len(users)) or with_users(users, history)
    )
    slate_scores(score, slates)
    pairs = {*zip(slates.users.tolist(), slates.history_of.tolist(), strict=True)}
    assert rows == [len(pairs)]
    assert len(pairs) < len(slates)


def test_memory_is_bounded_by_the_items_of_a_run(impressions, monkeypatch):
    sizes = []
    monkeypatch.setattr(slate_module, "_NUMBERS_AT_ONCE", 5 * N_ITEMS)
    slate_scores(
        Personal(
            lambda *_: None,
            lambda users, history, items: (
                sizes.append((len(users), len(items)))
                or np.zeros((len(users), len(items)))
            ),
        ),
        impressions.slates,
    )
    assert len(sizes) == N_SLATES / 5
    assert max(users for users, _ in sizes) <= 5
    assert max(items for _, items in sizes) < N_ITEMS


def test_a_history_is_what_a_client_would_hold(impressions):
    slates = impressions.slates
    shards = history_shards(slates, slates.history_of[[3, 0]])
    for row, place in enumerate((3, 0)):
        read = slates.histories[int(slates.history_of[place])].tolist()
        assert shards.histories[row].tolist() == read
        own = shards.times[shards.owners == row].tolist()
        assert own == list(range(-len(read), 0))
    assert shards.impressions is None
    assert (shards.values == 1).all()


def test_integer_scores_are_welcome(impressions):
    found = slate_scores(
        lambda h: np.tile(np.arange(N_ITEMS), (len(h), 1)), impressions.slates
    )
    np.testing.assert_array_equal(found, impressions.slates.shown.values)


def test_wrong_shapes_are_refused(impressions):
    with pytest.raises(BadValue, match="scores have shape"):
        slate_scores(lambda h: np.zeros((len(h), 3)), impressions.slates)


def test_evaluate_ranks_users_and_impressions(impressions, heldout_of):
    score, names = SCORERS["factors"], ("auc", "mrr_all")
    found = evaluate(score, impressions, metrics=names, protocol=ShownCandidates())
    same = evaluate_impressions(slate_scorer(score), impressions, metrics=names)
    assert found.protocol == "shown candidates"
    assert found.metrics() == same.metrics()
    assert evaluate(score, impressions, metrics=names).metrics() == same.metrics()
    with pytest.raises(BadValue, match="'full ranking' goes with held-out users"):
        evaluate(score, impressions, protocol=FullRanking())
    users = heldout_of([[0]], [[1]], N_ITEMS)
    with pytest.raises(BadValue, match="'shown candidates' goes with impressions"):
        evaluate(lambda h: np.zeros((1, N_ITEMS)), users, protocol=ShownCandidates())


def test_the_first_users_are_those_with_impressions(impressions):
    some = impressions.first(3)
    who = np.unique(impressions.users)[:3]
    assert np.unique(some.users).tolist() == who.tolist()
    assert len(some) == np.isin(impressions.users, who).sum()
    assert len(impressions.first(1000)) == len(impressions)
