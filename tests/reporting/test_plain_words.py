import math
from dataclasses import replace
from html import unescape
from itertools import combinations

import pytest
from dp_accounting import GaussianDpEvent
from scipy.stats import norm
from service.federation.overviews import a_coordinator

from tacit.accounting.events import pure_local
from tacit.codes import Code
from tacit.errors import BadValue
from tacit.ledger.terms import Terms
from tacit.plans import Plan
from tacit.privacy.guarantees import local, summed, unprotected
from tacit.release import Adjacency, Cells, Release, Standing, Unit, View
from tacit.reporting import elements, guarantees, html, tables
from tacit.reporting.plain_words import (
    exception,
    in_words,
    is_reassuring,
    meaning,
    observers,
    promise,
)
from tacit.reporting.promises import promises
from tacit.reporting.report_data import Report
from tacit.runtime.ledger import run_statements
from tacit.service.federation.operator_metrics import metrics_text
from tacit.service.federation.overview import Budget
from tacit.statement import Statement, account

PLAN = Plan(1000, channel="secure_sum", delta=1e-6)
PROVEN = Statement(
    what="votes",
    seen_by="server",
    group="everyone",
    unit=Unit.USER,
    adjacency=Adjacency.ZERO_OUT,
    view=View.RELEASE,
    delta=1e-6,
    horizon="3 rounds",
    accountant="PLD",
    standing=Standing.PROVEN,
    assumes="nothing",
    epsilon=2.0,
    reason="T1",
)


def words(cells: Cells) -> list[str]:
    return in_words(account(PLAN, (Release("x", "server", "once", cells),)).totals)


def test_every_pair_of_eyes_gets_a_sentence():
    release, server, collusion = words(summed(PLAN, GaussianDpEvent(4.2247), reason=""))
    for sentence in (release, server):
        assert "a strong promise" in sentence
        assert "that a person took part" in sentence
        assert "from 50 % to 75.1 %, and from 1 % to 3.0 %" in sentence
        assert str(Code("trusted_aggregator")) in sentence
    assert f"no promise; {Code('aggregator_colludes')}" in collusion


def test_local_reports_assume_nothing():
    sentences = words(local(PLAN, pure_local(1.0), reason="x"))
    assert len(sentences) == 3
    for sentence in sentences:
        assert "that a person has this history" in sentence
        assert "from 50 % to 73.2 %, and from 1 % to 2.7 %" in sentence
        assert "assumes" not in sentence.lower()


def test_no_guarantee_is_said_as_it_is():
    assert all(
        "no promise; votes are bare." in s
        for s in words(unprotected("bare_reports", "votes are bare"))
    )


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [
        (0.1, "a very strong promise"),
        (2.0, "a moderate promise"),
        (8.0, "a weak promise"),
        (8.1, "hardly a promise"),
        (900.0, "from 50 % to more than 99.9 %, and from 1 % to more than 99.9 %"),
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
    line = account(
        PLAN, (Release("x", "server", "once", unprotected("bare_reports", "bare")),)
    ).totals[0]
    with pytest.raises(BadValue, match="has no epsilon"):
        meaning(line)


@pytest.mark.parametrize(
    ("unit", "adjacency", "about"),
    [
        (Unit.USER, Adjacency.ZERO_OUT, "that a person took part"),
        (Unit.USER, Adjacency.REPLACE_ONE, "that a person has this history"),
        (Unit.ITEM, Adjacency.ZERO_OUT, "that a history has a certain item"),
        (Unit.ITEM, Adjacency.REPLACE_ONE, "that a history has this item in place of"),
    ],
)
def test_a_belief_is_about_what_the_line_protects(unit, adjacency, about):
    said = replace(PROVEN, unit=unit, adjacency=adjacency)
    assert about in meaning(said)


def test_a_line_about_items_is_not_merged_into_one_about_users():
    (merged,) = guarantees.in_short([replace(PROVEN, unit=Unit.ITEM)], 500)[-1:]
    assert "that a history has a certain item" in merged


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 8.0, 8.01, 30.0])
def test_all_places_have_the_same_sentence(epsilon):
    """Terminal, page, card and ledger; above 8 none of them is a good notice."""
    said = replace(PROVEN, epsilon=epsilon)
    sentence = meaning(said)
    lines = [one for unit in Unit for one in [replace(said, unit=unit)]]
    assert sentence in "\n".join(guarantees.in_short(lines, 500))
    assert sentence in "\n".join(in_words(lines))
    report = Report("t", "c", simulation=False, statements=(said,))
    page = unescape(html.render(report)).replace("\xa0", " ")  # before the percents
    assert sentence[1:] in page
    assert ('class="good' in page or "notice good" in page) == (epsilon <= 8)
    assert is_reassuring([said]) == (epsilon <= 8)


def test_a_limit_counts_its_delta():
    """Without it the sentence would promise more than the cap does."""
    pure, approximate = promise(2.0, 0.0, "about me"), promise(2.0, 1e-6, "about me")
    assert "to 88.1 %" in pure
    assert "to 89.1 %" in approximate


def test_how_often_a_belief_grows_further_is_for_the_long_form_alone():
    """The short one has the delta that it follows from."""
    assert "1.1e-05" in exception(PROVEN)
    assert exception(replace(PROVEN, delta=0.0)) == "none"
    short = "\n".join(guarantees.in_short([PROVEN]) + in_words([PROVEN]))
    assert "1.1e-05" not in short
    assert "delta 1e-06" in short
    [row] = tables.privacy([PROVEN]).rows
    long = " ".join([*guarantees.in_full([PROVEN]), *row])
    assert long.count("1.1e-05") == 2


@pytest.mark.parametrize(
    ("channel", "third"),
    [
        ("direct", ""),
        ("secure_sum", "the aggregator"),
        ("shuffle", "the relay"),
        ("two_servers", "both aggregators"),
        ("direct; secure_sum", "the aggregator"),
        ("shuffle; secure_sum", "the relay and the aggregator"),
        ("", "the aggregator or the relay"),
        ("another; shuffle", "the aggregator or the relay"),
    ],
)
def test_a_collusion_names_the_party_of_its_channel(channel, third):
    line = replace(PROVEN, channel=channel)
    wanted = f"the server together with {third}" if third else "the server's operator"
    assert observers([View.COLLUSION], line) == wanted
    every = {
        observers(views, line) for n in (1, 2, 3) for views in combinations([*View], n)
    }
    # Without a third party a collusion is the server alone.
    assert len(every) == (7 if third else 3)


def nothing() -> list[Statement]:
    """What a ledger says before its client has answered."""
    return run_statements(Terms((), rounds=3, most=3), (), delta=1e-6)


@pytest.mark.parametrize(
    "show",
    [
        lambda lines: " ".join(in_words(lines)),
        lambda lines: " ".join(guarantees.in_short(lines)),
        lambda lines: " ".join(map(" ".join, guarantees.as_table(lines).rows)),
        lambda lines: " ".join(map(" ".join, tables.privacy(lines).rows)),
        lambda lines: elements.promises(promises(lines)),
        lambda lines: html.epsilon_lead(lines, is_of_a_release=False).value,
    ],
    ids=["words", "terminal", "blocks", "table", "cards", "lead"],
)
def test_what_released_nothing_is_neither_a_figure_nor_a_lack_of_one(show):
    told = show(nothing())
    assert "nothing yet" in told
    for false in ("epsilon", "ε", "0", "PROVEN", "NONE", "no promise"):
        assert false not in told


def test_what_released_nothing_has_no_sample():
    lines = (*nothing(),)
    seen = a_coordinator(budget=Budget((PROVEN,), lines))
    text = metrics_text(seen, up_seconds=1)
    assert 'kind="planned"' in text
    assert 'kind="spent"' not in text
