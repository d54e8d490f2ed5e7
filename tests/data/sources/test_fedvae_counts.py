"""The counts of FedVAE's Table II, from its rules and the real archives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tacit.data.interactions import Interactions
from tacit.keys import Key

DRAWS = 199

pytestmark = pytest.mark.data


@dataclass(frozen=True)
class Published:
    """A line of Table II, and the rule that leads to it."""

    users: int
    items: int
    ratings: int
    held_out: int
    min_interactions: int = 2
    min_value: float | None = None


TABLE = {
    "movielens-1m": Published(6034, 3520, 575_259, 400, 5, 4.0),
    "citeulike-a": Published(5551, 16_950, 210_495, 800),
    "steam-200k": Published(6693, 4943, 122_893, 1000),
    "lastfm": Published(1884, 16_519, 91_694, 200),
    "filmtrust": Published(1400, 1939, 35_252, 200),
}


def by_the_rule(real, name: str) -> Interactions:
    rule = TABLE[name]
    found = real(name).filtered(
        min_value=rule.min_value, min_interactions=rule.min_interactions
    )
    return found.interactions.distinct()


def of_training_items(log: Interactions, held_out: int) -> np.ndarray:
    """Items of training users and everybody's ratings of them, for many draws."""
    drawn = []
    for turn in range(DRAWS):
        users = Key.from_seed(turn).generator().permutation(log.n_users)
        trains = np.ones(log.n_users, bool)
        trains[users[:held_out]] = False
        known = np.zeros(log.n_items, bool)
        known[log.items[trains[log.users]]] = True
        drawn.append((known.sum(), known[log.items].sum()))
    return np.array(drawn)


def with_the_length_column(log: Interactions) -> Interactions:
    """Read as if the count at the beginning of a line were an article."""
    everyone = np.arange(log.n_users)
    return Interactions.of_columns(
        np.concatenate([log.users, everyone]),
        np.concatenate([log.items, log.per_user]),
        n_users=log.n_users,
        n_items=log.n_items,
    )


@pytest.mark.parametrize("name", TABLE)
def test_the_users_are_those_of_the_table(real, name):
    assert by_the_rule(real, name).n_users == TABLE[name].users


@pytest.mark.parametrize("name", TABLE)
def test_items_and_ratings_are_those_of_training_users(real, name):
    """Were the paper's split one more draw, each figure lies within all of ours.

    False alarm 1 % for each figure: beyond the least or the largest of 199 draws.
    """
    log, line = by_the_rule(real, name), TABLE[name]
    if name == "citeulike-a":
        log = with_the_length_column(log)
    drawn = of_training_items(log, line.held_out)
    for figures, published in zip(drawn.T, (line.items, line.ratings), strict=True):
        assert figures.min() <= published <= figures.max()


def test_without_the_length_column_no_draw_has_so_many_ratings(real):
    log = by_the_rule(real, "citeulike-a")
    assert len(log) == 204_986 < TABLE["citeulike-a"].ratings


def test_two_held_out_groups_would_leave_fewer_items(real):
    """So the paper holds out one group, not one to validate and another to test."""
    log = by_the_rule(real, "lastfm")
    items = of_training_items(log, 2 * TABLE["lastfm"].held_out)[:, 0]
    assert items.max() < TABLE["lastfm"].items
