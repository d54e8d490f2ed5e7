"""What a verdict says: ties as ties, and the simpler one is taken."""

from dataclasses import replace

from tacit.reporting.verdict import Choice, Price, Reason, Rival, Verdict, sentences

TIE = Rival("gram, epsilon 1", 0.31, -0.01, -0.03, 0.01, is_told_apart=False)
WORSE = Rival("popularity, epsilon 4", 0.30, 0.14, 0.12, 0.16, is_told_apart=True)
SIMPLE = Choice(
    1.0,
    "private_popularity",
    "popularity, epsilon 1",
    0.3,
    True,
    Reason.SIMPLER,
    (TIE,),
)
BETTER = Choice(4.0, "gram", "gram, epsilon 4", 0.44, False, Reason.BEST, (WORSE,))
VERDICT = Verdict("shop.csv", "ndcg@100", 600, 3, 6, (SIMPLE, BETTER))


def test_the_advice_comes_first():
    assert sentences(VERDICT)[0] == (
        "On this table, at epsilon 4 use gram; at epsilon 1 nothing is shown to be "
        "better than a noisy popularity list."
    )


def test_a_tie_is_said_as_a_tie_with_its_interval():
    said = sentences(VERDICT)[1]
    assert "not told apart from it: gram, epsilon 1 (-0.0100, -0.0300 to +0.01" in said
    assert "ties go to the simpler one" in said
    assert "better" not in said


def test_what_is_better_is_said_with_its_interval():
    said = sentences(VERDICT)[2]
    assert said.endswith(
        "better than popularity, epsilon 4 (+0.1400, +0.1200 to +0.1600)."
    )


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
    price = Price("gram", 4.0, 0.06, 0.05, 0.07, is_told_apart=True)
    verdict = replace(VERDICT, prices=(price,), unproven=("privrec",), n_seeds=1)
    *_, cost, unproven, caveat = sentences(verdict)
    assert (
        cost == "Against no privacy gram loses 0.0600 (0.0500 to 0.0700) at epsilon 4."
    )
    assert "Nothing is proven about privrec" in unproven
    assert "other noise may say otherwise" in caveat
