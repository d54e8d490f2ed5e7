"""What a verdict says: ties as ties, and the simpler one is taken."""

from dataclasses import replace

from tacit.reporting.pairs import Paired
from tacit.reporting.verdict import Choice, Price, Reason, Verdict, sentences

LIST = "private_popularity, epsilon 1"
TIE = Paired(
    *("gram, epsilon 1", LIST, "ndcg@100", 0.01, -0.01, 0.03, 0.9),
    n_users=600,
    is_told_apart=False,
    users_to_tell=2341,
)
WORSE = Paired(
    *("gram, epsilon 4", "popularity", "ndcg@100", 0.14, 0.12, 0.16, 0.001),
    n_users=600,
    is_told_apart=True,
)
SIMPLE = Choice(1.0, "private_popularity", LIST, 0.3, True, Reason.SIMPLER, (TIE,))
BETTER = Choice(4.0, "gram", "gram, epsilon 4", 0.44, False, Reason.BEST, (WORSE,))
VERDICT = Verdict("shop.csv", "ndcg@100", 600, 3, 6, (SIMPLE, BETTER))


def test_the_advice_comes_first():
    assert sentences(VERDICT)[0] == (
        "On this table, at epsilon 4 use gram; at epsilon 1 use a noisy popularity "
        "list for now: gram, epsilon 1 is ahead of it, by a difference that 600 test "
        "users do not tell apart from chance; about 2,400 would."
    )


def test_a_list_that_nothing_is_ahead_of_is_used():
    behind = replace(SIMPLE, rivals=(TIE.reversed,))
    assert sentences(replace(VERDICT, choices=(behind,)))[0] == (
        "On this table, at epsilon 1 use a noisy popularity list."
    )


def test_seeds_that_disagree_ask_for_seeds_and_not_for_users():
    torn = replace(TIE, low=0.001, users_to_tell=None)
    said = sentences(replace(VERDICT, choices=(replace(SIMPLE, rivals=(torn,)),)))
    assert "the same sign in all seeds; more seeds would tell" in said[0]
    assert "the seeds disagree" in said[1]


def test_a_tie_is_said_as_a_tie_with_the_users_that_would_tell():
    said = sentences(VERDICT)[1]
    assert (
        "not told apart: gram, epsilon 1 is ahead of private_popularity, epsilon 1 by "
        "0.0100 (-0.0100 to 0.0300; 2,400 test users would tell)"
    ) in said
    assert "ties go to the simpler one" in said
    assert "better" not in said
    assert "power of 80 %" in sentences(VERDICT)[-1]


def test_what_is_better_is_said_with_its_interval():
    said = sentences(VERDICT)[2]
    assert said.endswith("it is better than popularity by 0.1400 (0.1200 to 0.1600).")


def test_epsilons_with_the_same_advice_are_named_together():
    both = replace(VERDICT, choices=(replace(BETTER, epsilon=2.0), BETTER))
    assert sentences(both)[0] == "On this table, at epsilon 2 and 4 use gram."


def test_who_stands_alone_is_not_called_better():
    alone = Choice(None, "gram", "gram", 0.5, False, Reason.ONLY)
    said = sentences(replace(VERDICT, choices=(alone,)))
    assert said[0] == (
        "No privacy: gram has ndcg@100 0.5000; nothing else was measured within this "
        "budget."
    )


def test_prices_and_caveats():
    pair = replace(WORSE, method="gram, no privacy", against="gram, epsilon 4")
    price = Price("gram", 4.0, pair)
    verdict = replace(VERDICT, prices=(price,), unproven=("privrec",), n_seeds=1)
    *_, cost, unproven, caveat = sentences(verdict)
    assert cost == (
        "What privacy costs: gram, no privacy is better than gram, epsilon 4 by 0.1400 "
        "(0.1200 to 0.1600)."
    )
    assert "Nothing is proven about privrec" in unproven
    assert "other noise may say otherwise" in caveat
