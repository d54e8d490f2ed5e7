"""Against the definitions in plain Python, all orders of the tied enumerated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.impressions import Impressions, Slates
from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.evaluation.impressions import evaluate_impressions, judged
from tacit.results import Evaluation, Groups, Metric, standard_error

NAMES = ("auc", "mrr_all", "mrr", "ndcg@2", "ndcg@5", "hr@1")

# An impression: (score, clicked) for each candidate.
impression = st.lists(
    st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6
)
Rows = Sequence[Sequence[tuple[float, bool]]]


def made(rows: Rows, users: Sequence[int] | None = None) -> Impressions:
    """Items are numbered along, so that a scorer can look its score up."""
    users = list(range(len(rows))) if users is None else users
    lengths = [len(row) for row in rows]
    return Impressions.of_columns(
        np.array(users),
        Ragged.of_lengths(lengths, np.arange(sum(lengths), dtype=np.int32)),
        clicked=np.array([clicked for row in rows for _, clicked in row], bool),
        histories=Ragged.of_lengths([0, 1, 2], np.zeros(3, np.int32)),
        history_of=np.arange(len(rows)) % 3,
        n_users=max(users) + 1,
        n_items=max(1, sum(lengths)),
    )


def looked_up(rows: Rows):
    scores = np.array([score for row in rows for score, _ in row], float)
    return lambda slates: scores[slates.shown.values]


def by_definition(labels: Sequence[bool]) -> dict[str, float]:
    """The metrics of one list without ties; the first is ranked first."""
    places = [place for place, clicked in enumerate(labels, start=1) if clicked]
    n, others = len(places), len(labels) - len(places)

    def dcg(ordered: Sequence[bool], k: int) -> float:
        return sum(
            (2**clicked - 1) / math.log2(place + 1)
            for place, clicked in enumerate(ordered[:k], start=1)
        )

    ideal = sorted(labels, reverse=True)
    right = sum(a and not b for a, b in itertools.combinations(labels, 2))
    return {
        "auc": right / (n * others),
        "mrr_all": sum(1 / place for place in places) / n,
        "mrr": 1 / places[0],
        **{f"ndcg@{k}": dcg(labels, k) / dcg(ideal, k) for k in (2, 5)},
        "hr@1": float(labels[0]),
    }


def slowly(row: Sequence[tuple[float, bool]]) -> dict[str, float]:
    """The mean over all orders that the scores allow."""
    lists = [
        by_definition([clicked for _, clicked in order])
        for order in itertools.permutations(row)
        if all(a[0] >= b[0] for a, b in itertools.pairwise(order))
    ]
    return {name: sum(x[name] for x in lists) / len(lists) for name in NAMES}


@given(st.lists(impression, min_size=1, max_size=4))
def test_metrics_equal_their_definitions(rows):
    can_be_judged = [0 < sum(c for _, c in row) < len(row) for row in rows]
    impressions = made(rows)
    assert judged(impressions).tolist() == can_be_judged
    if not any(can_be_judged):
        with pytest.raises(BadValue, match="both a clicked and an unclicked"):
            evaluate_impressions(looked_up(rows), impressions)
        return
    found = evaluate_impressions(looked_up(rows), impressions, metrics=NAMES)
    assert found.left_out == can_be_judged.count(False)
    expected = [slowly(r) for r, ok in zip(rows, can_be_judged, strict=True) if ok]
    for name in NAMES:
        each = [values[name] for values in expected]
        np.testing.assert_allclose(found.values[name], each, atol=1e-12)


def test_a_large_random_case_without_ties():
    rng = np.random.default_rng(3)
    rows = [
        [(float(rng.normal()), bool(rng.random() < 0.3)) for _ in range(n)]
        for n in rng.integers(2, 40, size=200)
    ]
    rows = [row for row in rows if 0 < sum(c for _, c in row) < len(row)]
    found = evaluate_impressions(looked_up(rows), made(rows), metrics=NAMES)
    for place, row in enumerate(rows):
        ordered = sorted(row, reverse=True)
        expected = by_definition([clicked for _, clicked in ordered])
        for name in NAMES:
            assert found.values[name][place] == pytest.approx(expected[name])


def test_chunks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(4)
    rows = [[(float(rng.integers(3)), i % 3 == 0) for i in range(7)] for _ in range(20)]
    whole = evaluate_impressions(looked_up(rows), made(rows))
    calls = []

    def counted(slates: Slates):
        calls.append(len(slates))
        return looked_up(rows)(slates)

    monkeypatch.setattr("tacit.evaluation.impressions._SCORED_AT_ONCE", 30)
    parts = evaluate_impressions(counted, made(rows))
    assert len(calls) > 3
    assert max(calls) <= 5
    for name, values in whole.values.items():
        np.testing.assert_array_equal(parts.values[name], values)


def test_a_scorer_sees_the_history_and_not_the_clicks():
    rows = [[(1, True), (0, False)]] * 3
    seen = []

    def score(slates: Slates):
        assert not hasattr(slates, "clicked")
        seen.extend(slates.history_lengths.tolist())
        return np.zeros(len(slates.shown.values))

    found = evaluate_impressions(score, made(rows))
    assert seen == [0, 1, 2]
    assert found.metrics()["auc"].mean == 0.5


def test_errors_are_clustered_by_user():
    values, users = np.array([0.1, 0.5, 0.9, 0.2]), np.array([0, 1, 2, 3], np.int32)
    alone = Metric.clustered(values, users)
    assert alone.se == pytest.approx(standard_error(values))
    again = Metric.clustered(np.repeat(values, 3), np.repeat(users, 3))
    assert again.se == pytest.approx(alone.se)  # the same users, asked three times
    assert (again.n, again.n_users) == (12, 4)
    mixed = Metric.clustered(np.array([1.0, 0.0, 0.5]), users[[0, 0, 1]])
    strays = [(1 - 0.5) + (0 - 0.5), 0.5 - 0.5]
    by_hand = (2 / 1 * sum(s**2 for s in strays)) ** 0.5 / 3
    assert mixed.se == pytest.approx(by_hand)
    assert Metric.clustered(values, np.zeros(4, np.int32)).se is None


def test_the_stated_error_is_the_spread_over_new_users():
    """A spread over 400 samples is 14% off, four of its errors, below once in 1e4."""
    rng = np.random.default_rng(8)

    def sample() -> Metric:
        counts = rng.integers(1, 6, size=300)
        habit = np.repeat(rng.normal(size=300), counts)
        users = np.repeat(np.arange(300, dtype=np.int32), counts)
        return Metric.clustered(habit + 0.3 * rng.normal(size=len(users)), users)

    samples = [sample() for _ in range(400)]
    spread = np.std([s.mean for s in samples], ddof=1)
    stated = np.mean([s.se for s in samples])
    assert abs(spread / stated - 1) < 0.14


def test_differences_are_taken_pair_by_pair():
    rows = [[(2, True), (1, False), (0, False)], [(0, True), (1, False), (2, False)]]
    good = evaluate_impressions(looked_up(rows), made(rows))
    flat = evaluate_impressions(lambda s: np.zeros(len(s.shown.values)), made(rows))
    gain = good.minus(flat)["auc"]
    assert (gain.mean, gain.n) == (0.0, 2)  # one perfect, one reversed
    assert gain.se == pytest.approx(0.5)
    fewer = evaluate_impressions(looked_up(rows), made(rows), metrics=("auc",))
    with pytest.raises(BadValue, match="different impressions or metrics"):
        good.minus(fewer)


def test_groups_and_json():
    rows = [[(1, True), (0, False)]] * 6
    found = evaluate_impressions(looked_up(rows), made(rows))
    assert sum(g["auc"].n for g in found.by_group().values()) == 6
    assert len(found.by_group()) == 3  # histories of none, one, two
    plain = found.to_json()
    assert plain["protocol"] == "shown candidates"
    assert plain["metrics"]["ndcg@5"] == {"mean": 1.0, "se": 0.0, "n": 6, "n_users": 6}
    back = Evaluation.from_json(plain)
    assert back.metrics() == found.metrics()
    assert back.by_group() == found.by_group()
    assert (back.per, back.left_out) == ("impression", 0)
    own = evaluate_impressions(
        looked_up(rows), made(rows), groups=Groups.everyone(len(rows))
    )
    assert list(own.by_group()) == ["everyone"]


@pytest.mark.parametrize(
    ("score", "problem"),
    [
        (lambda s: np.zeros(3), r"scores have shape \(3,\), expected \(4,\)"),
        (lambda s: np.array([0, 1, np.nan, 0]), "user 1 has a NaN score"),
    ],
)
def test_bad_scores_are_refused(score, problem):
    with pytest.raises(BadValue, match=problem):
        evaluate_impressions(score, made([[(1, True), (0, False)]] * 2))


@pytest.mark.parametrize(
    ("name", "problem"),
    [("coverage@5", "of a whole catalog"), ("ndcg", "needs a cut-off")],
)
def test_unfit_metrics_are_refused(name, problem):
    rows = [[(1, True), (0, False)]]
    with pytest.raises(BadValue, match=problem):
        evaluate_impressions(looked_up(rows), made(rows), metrics=(name,))
