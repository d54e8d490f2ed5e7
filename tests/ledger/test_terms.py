"""Terms, and their text: the one of today and that of the first format."""

import json

import pytest
from dp_accounting import GaussianDpEvent
from ledger.first_format import TRAINING, first_text
from ledger.small import (
    BARE,
    alike,
    bare,
    each,
    gaussian,
    in_every_round,
    in_turn,
    response,
    training,
)

from tacit.codes import Code
from tacit.errors import BadData, BadValue
from tacit.ledger.budget import spent
from tacit.ledger.terms import Terms, read_terms, write_terms
from tacit.release import CELLS, Adjacency, Standing, Unit, View


def test_releases_of_one_run_have_different_names():
    with pytest.raises(BadValue, match="two releases have one name"):
        Terms((alike("x", BARE), alike("x", BARE)))


def test_no_round_may_go_uncounted():
    counts, updates = in_turn(2, 9).releases
    with pytest.raises(BadValue, match="round 2 has none of the releases: counts"):
        Terms((counts,), rounds=9)
    assert Terms((), rounds=9).releases == ()  # nothing is said at all
    [_, short] = in_turn(2, 8).releases
    with pytest.raises(BadValue, match="round 8 has none"):
        Terms((counts, short), rounds=9)
    assert Terms((counts, updates), rounds=9).rounds == 9


@pytest.mark.parametrize("field", ["rounds", "most", "population"])
def test_counts_are_counts(field):
    with pytest.raises(BadValue, match=field):
        Terms((alike("x", BARE),), **{field: 0})


@pytest.mark.parametrize("total", [0.0, -1.0])
def test_a_total_noise_is_some_noise(total):
    with pytest.raises(BadValue, match="total_multiplier"):
        Terms((alike("x", BARE),), total_multiplier=total)


# --- Their text ----------------------------------------------------------------------


def chosen() -> Terms:
    return Terms((alike("x", each(GaussianDpEvent(3.0))),), total_multiplier=0.1 + 0.2)


EVERY = [bare, chosen, gaussian, in_turn, response, training]


@pytest.mark.parametrize("made", EVERY)
def test_terms_come_back_as_they_were_and_have_one_text(made):
    terms = made()
    text = write_terms(terms)
    assert read_terms(text) == terms
    assert write_terms(read_terms(text)) == text


def test_terms_that_were_written_before_rounds_were_told():
    """Every round has every release, and the text is as it was."""
    old = first_text(in_every_round(in_turn()))
    assert [release.rounds for release in read_terms(old).releases] == [None, None]
    assert "[0, 2]" in first_text(in_turn())
    assert "[0, 2]" not in old
    charges = json.loads(old)["charges"]
    assert [set(charge) for charge in charges] == [{"promises", "seen_by", "what"}] * 2
    assert [
        release.rounds for release in read_terms(first_text(in_turn())).releases
    ] == [
        *(range(2), range(2, 9)),
    ]


def test_a_text_of_the_first_format_is_read():
    """It said "charges", "promises" and "covers"; nothing of it is lost."""
    terms = read_terms(TRAINING)
    assert (terms.rounds, terms.most, terms.population) == (3, 3, 1)
    assert (terms.group, terms.total_multiplier) == ("everyone", None)
    [release] = terms.releases
    assert (release.what, release.seen_by, release.rounds) == (
        *("noisy sum", "server", None),
    )
    for unit in Unit:
        read, counted, bare = (release.cells[unit, view] for view in View)
        assert read.each is None  # covers the run
        assert (read.event.count, read.assumes) == (3, (Code("trusted_aggregator"),))
        assert counted.each == GaussianDpEvent(4.0)  # covers a round
        assert (counted.standing, counted.reason) == (Standing.PROVEN, "counted")
        assert counted.adjacency is Adjacency.ZERO_OUT
        assert (bare.standing, bare.event) == (Standing.NONE, None)
        assert bare.reason == "an aggregator that colludes shows all"


@pytest.mark.parametrize("made", [bare, gaussian, in_turn, response, training])
@pytest.mark.parametrize("rounds", [range(0), range(1), range(1, 7)])
def test_what_was_said_under_the_first_format_counts_the_same(made, rounds):
    terms = made()
    old = read_terms(first_text(terms))
    assert first_text(training(0.5, 4.0, 3)) == TRAINING  # the words are those of then
    assert (old.rounds, old.most) == (terms.rounds, terms.most)
    for name in CELLS:
        found = spent([(old, rounds)], name, delta=1e-6)
        assert found == spent([(terms, rounds)], name, delta=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "{}", "[]", "3", '{"releases": 3}', '{"charges": [{}]}'),
        '{"releases": [{"cells": []}]}',
        '{"releases": [], "rounds": 0}',
        '{"releases": [], "more": 1}',
    ],
)
def test_a_text_that_says_no_terms_is_refused(text):
    with pytest.raises(BadData, match="my ledger: the terms of a run cannot be read"):
        read_terms(text, file="my ledger")
