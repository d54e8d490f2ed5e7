import math

import pytest
from dp_accounting import GaussianDpEvent
from scipy.stats import norm

from tacit.accounting.events import pure_local
from tacit.errors import BadValue
from tacit.plans import Plan
from tacit.privacy.guarantees import local, summed, unprotected
from tacit.release import Cells, Release
from tacit.reporting.plain_words import in_words, meaning
from tacit.statement import account

PLAN = Plan(1000, channel="secure_sum", delta=1e-6)


def words(cells: Cells) -> list[str]:
    return in_words(account(PLAN, (Release("x", "server", "once", cells),)).totals)


def test_every_pair_of_eyes_gets_a_sentence():
    release, server, collusion = words(summed(PLAN, GaussianDpEvent(4.2247), reason=""))
    for sentence in (release, server):
        assert (
            "a strong promise: a belief of 1 in 2 that a user took part can grow "
            in sentence
        )
        assert "to 75.1 % at most, one of 1 in 100 to 3.0 %" in sentence
        assert "except with probability 1.1e-05. This assumes: trusted agg" in sentence
    assert "no promise; an aggregator that colludes shows every report" in collusion


def test_local_reports_assume_nothing():
    sentences = words(local(PLAN, pure_local(1.0), reason="x"))
    assert len(sentences) == 3
    for sentence in sentences:
        assert "that a user's history is this one and not another" in sentence
        assert "to 73.2 % at most, one of 1 in 100 to 2.7 %" in sentence
        assert "assumes" not in sentence
        assert "except" not in sentence


def test_no_guarantee_is_said_as_it_is():
    assert all(
        "no promise; votes are bare." in s for s in words(unprotected("votes are bare"))
    )


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [
        (0.1, "a very strong promise: a belief of 1 in 2"),
        (2.0, "a moderate promise"),
        (8.0, "a weak promise"),
        (8.1, "hardly a promise"),
        (900.0, "can grow to more than 99.9 % at most, one of 1 in 100 to more than"),
    ],
)
def test_each_epsilon_has_its_own_words(epsilon, said):
    assert said in words(local(PLAN, pure_local(epsilon), reason="x"))[0]


@pytest.mark.parametrize("deviation", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_the_exception_is_as_rare_as_said(deviation, epsilon):
    """The loss of a Gaussian of sensitivity 1 is normal: its tail is known exactly."""
    mean, spread = 1 / (2 * deviation**2), 1 / deviation
    above = norm.sf((epsilon + 0.1 - mean) / spread)
    delta = norm.sf((epsilon - mean) / spread) - math.exp(epsilon) * norm.sf(
        (epsilon + mean) / spread
    )
    assert above <= delta / -math.expm1(-0.1)


def test_nothing_is_said_without_an_epsilon():
    line = account(PLAN, (Release("x", "server", "once", unprotected("bare")),)).totals[
        0
    ]
    with pytest.raises(BadValue, match="has no epsilon"):
        meaning(line)
