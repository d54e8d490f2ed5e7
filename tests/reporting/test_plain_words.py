import pytest
from dp_accounting import GaussianDpEvent

from tacit.accounting.events import pure_local
from tacit.plan import Plan
from tacit.privacy.guarantees import local, summed, unprotected
from tacit.release import Cells, Release
from tacit.reporting.plain_words import in_words
from tacit.statement import account

PLAN = Plan(1000, channel="secure_sum", delta=1e-6)


def words(cells: Cells) -> list[str]:
    return in_words(account(PLAN, (Release("x", "server", "once", cells),)).totals)


def test_every_pair_of_eyes_gets_a_sentence():
    release, server, collusion = words(summed(PLAN, GaussianDpEvent(4.2247), reason=""))
    for sentence in (release, server):
        assert (
            "odds change at most 2.72 times, except with probability 1e-06" in sentence
        )
        assert "This assumes: trusted aggregator." in sentence
        assert "had not taken part" in sentence
    assert "no promise; an aggregator that colludes shows every report" in collusion


def test_local_reports_assume_nothing():
    sentences = words(local(PLAN, pure_local(1.0), reason="x"))
    assert len(sentences) == 3
    for sentence in sentences:
        assert "any other history" in sentence
        assert "assumes" not in sentence
        assert "except" not in sentence


def test_no_guarantee_is_said_as_it_is():
    assert all(
        "no promise; votes are bare." in s for s in words(unprotected("votes are bare"))
    )


@pytest.mark.parametrize(
    ("epsilon", "said"), [(8.0, "2,981 times"), (900.0, "e^900 times")]
)
def test_a_large_epsilon_is_called_weak(epsilon, said):
    assert said in words(local(PLAN, pure_local(epsilon), reason="x"))[0]
