"""The attack that comes with PrivateRec."""

from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points

import numpy as np
import pytest

from tacit.attacks.leaks.news_gradient import (
    FOUND,
    News,
    NewsGradient,
    Subject,
    attack_reports,
)
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.methods.privaterec import PrivateRec
from tacit.models.news_encoders.plm_nr import HEAD
from tacit.plans import Plan
from tacit.privacy import PublishedAttentionNoise
from tacit.release import Standing
from tacit.tree import Factored, Tree

SMALL = {"dimensions": None, "most_impressions": 1, "starts_at": "random"}
PAPER = PrivateRec(mode="paper", model="plm-nr", **SMALL)
LOUD = PublishedAttentionNoise(epsilon=0.1, padding=0.0)


def histories():
    drawn = np.random.default_rng(0).random((60, 50)) < np.linspace(0.3, 0.1, 50)
    drawn[:, :2] |= ~drawn.any(axis=1, keepdims=True)
    return drawn.astype(np.uint8)


def attempt(method):
    world = News.of(histories(), Key.from_seed(1), width=64)
    return attack_reports(Subject("", method, Plan(60)), world, Key.from_seed(0))


def test_it_is_declared_for_privaterec_alone():
    own = "tacit.attacks.leaks.news_gradient:NewsGradient"
    assert EntryPoint("news_gradient", own, "tacit.leaks").load() is NewsGradient
    assert NewsGradient().method == "privaterec"
    assert "decoder_bias" in {one.name for one in entry_points(group="tacit.leaks")}


def test_the_papers_noise_hides_nothing_of_what_was_read():
    """Whatever the noise on the attention: without padding the history stands there."""
    found = attempt(replace(PAPER, privacy=LOUD))
    assert found.scores[FOUND].mean == 1.0
    assert found.statement.standing is Standing.NONE


class StopsAtTheAttention(PrivateRec):
    """Sends no gradient back through what was read."""

    def update(self, phase, broadcast, clients, shards, keys):
        tree = super().update(phase, broadcast, clients, shards, keys)
        leaf = tree.leaves[HEAD]
        left, right = leaf.left.copy(), leaf.right.copy()
        left[:, 1:] = right[:, 1:] = 0
        return Tree({**tree.leaves, HEAD: Factored(left, right)})


def test_a_gradient_that_does_not_pass_through_what_was_read_is_not_flagged():
    """Not above guessing by 5 s.e. (one-sided false alarm below 1e-6)."""
    own = {f: getattr(PAPER, f) for f in ("mode", "model", *SMALL)}
    score = attempt(StopsAtTheAttention(**own, privacy=LOUD)).scores[FOUND]
    assert score.mean < score.chance + 5 * score.se
    assert score.mean < 0.5


@pytest.mark.slow
def test_reports_give_histories_away_and_noise_on_them_does_not():
    """Under noise within 5 s.e. of guessing (one-sided false alarm below 1e-6)."""
    attempts = NewsGradient(rounds=8, width=64).attack(histories(), Key.from_seed(0))
    bare, weak, strong, often, direct, *noisy = attempts
    assert [a.is_protected for a in attempts] == [False] * 5 + [True] * 3
    found = [a.scores[FOUND].mean for a in (bare, weak, strong, often, direct)]
    assert found[0] == found[4] == 1.0
    assert 0.5 < found[1] < 0.8  # padding hides half of a history, for one round
    assert found[2] < found[3]
    assert found[3] > 0.95
    for a in noisy[1:]:
        assert a.scores[FOUND].mean < a.scores[FOUND].chance + 5 * a.scores[FOUND].se


def test_what_cannot_be():
    with pytest.raises(BadValue, match=r"epsilon=0\.0 must be > 0"):
        NewsGradient(claimed=(0.0,))
