"""The attack that comes with FedVAE."""

import numpy as np
import pytest

from tacit.attacks import leaks
from tacit.attacks.leaks.decoder_bias import DecoderBias
from tacit.attacks.leaks.output_bias import KNOWING, PRECISION, RECALL
from tacit.errors import BadValue
from tacit.keys import Key


def test_it_is_installed_and_runs_for_fedvae_alone():
    assert "decoder_bias" in leaks.known()
    assert DecoderBias().method == "fedvae"


@pytest.mark.slow
def test_reports_give_histories_away_and_a_noisy_sum_does_not():
    """At epsilon 1 within 5 s.e. of guessing (one-sided false alarm below 1e-6)."""
    drawn = np.random.default_rng(0).random((80, 60)) < np.linspace(0.3, 0.05, 60)
    drawn[:, 0] |= ~drawn.any(axis=1)
    attempts = DecoderBias(later=5).attack(drawn.astype(np.uint8), Key.from_seed(0))
    *off, weak, strong = attempts
    assert [a.is_protected for a in attempts] == [False] * 3 + [True] * 2
    assert all(a.scores[PRECISION].mean == a.scores[KNOWING].mean == 1.0 for a in off)
    assert off[0].scores[RECALL].mean == off[2].scores[RECALL].mean == 1.0
    score = strong.scores[RECALL]
    assert score.mean < score.chance + 5 * score.se
    said = [a.statement.epsilon for a in (weak, strong)]
    assert said == pytest.approx([8.0, 1.0], abs=1e-3)


def test_what_cannot_be():
    with pytest.raises(BadValue, match=r"epsilon=0\.0 must be > 0"):
        DecoderBias(epsilons=(0.0,))
