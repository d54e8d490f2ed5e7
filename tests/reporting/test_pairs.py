"""The sign of a difference says what the sentence says, wherever it stands."""

import math
from dataclasses import replace

from tacit.reporting import tables
from tacit.reporting.pairs import Paired, each_once, sentence

AHEAD = Paired(
    *("gram", "ease", "ndcg", 0.0067, -0.001, 0.0144, 0.2),
    n_users=300,
    is_told_apart=False,
    users_to_tell=1843,
)
SURE = Paired(
    *("popularity", "gram", "ndcg", -0.05, -0.07, -0.03, 0.001),
    n_users=300,
    is_told_apart=True,
)


def test_the_larger_mean_comes_first():
    assert (
        sentence(SURE) == "gram is better than popularity by 0.0500 (0.0300 to 0.0700)"
    )
    assert sentence(SURE) == sentence(SURE.reversed)
    assert SURE.best_first.mean > 0
    assert SURE.seen_from("popularity") == SURE == SURE.reversed.seen_from("popularity")


def test_who_is_ahead_by_chance_is_not_called_better():
    assert sentence(AHEAD.reversed) == (
        "gram is ahead of ease by 0.0067 (-0.0010 to 0.0144), which 300 test users do "
        "not tell apart from chance; about 1,900 would"
    )


def test_what_no_number_of_users_would_tell_is_no_difference():
    equal = replace(AHEAD, users_to_tell=None)
    assert equal.is_beyond_users
    said = sentence(equal)
    assert "ahead" not in said
    assert "a thousand times the 300 test users would not tell" in said
    assert tables.differences([equal]).rows[0][-1] == "no: as good as equal"
    alone = replace(equal, low=-math.inf, high=math.inf, n_users=1)
    assert not alone.is_beyond_users  # one user tells nothing, a thousand might


def test_every_pair_stands_once():
    found = each_once([AHEAD, SURE, AHEAD.reversed, SURE])
    assert found == (AHEAD, SURE.reversed)
    rows = tables.differences(found).rows
    assert [row[:3] for row in rows] == [
        ("gram", "ease", "0.0067"),
        ("gram", "popularity", "0.0500"),
    ]
    assert [row[-1] for row in rows] == ["no: 1,900 users would", "yes"]
