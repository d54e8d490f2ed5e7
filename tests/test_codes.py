"""Codes of assumptions and of reasons: registered, written down, read again."""

import pytest

from tacit import codes
from tacit.codes import Code, earlier_assumptions, register_code, sentences
from tacit.errors import BadValue
from tacit.release import Cell, Standing

GAUSSIAN = pytest.importorskip("dp_accounting").GaussianDpEvent(2.0)


@pytest.mark.parametrize("name", codes._KINDS)
def test_a_code_comes_back_as_it_was(name):
    kind = codes._KINDS[name]
    code = Code(name, tuple(range(2, 2 + kind.places)))
    assert Code.from_json(code.to_json()) == code
    assert str(code).startswith(kind.sentence.split("{}")[0])


@pytest.mark.parametrize(
    "document", [None, "trusted_aggregator", [], [1], ["x"], ["honest_clients", 1.5]]
)
def test_what_is_no_code_is_refused(document):
    with pytest.raises(BadValue):
        Code.from_json(document)


def test_a_sentence_has_as_many_places_as_the_code_has_values():
    with pytest.raises(BadValue, match="1 places"):
        Code("honest_clients")
    with pytest.raises(BadValue, match="0 places"):
        Code("trusted_aggregator", (1,))


def test_an_unknown_code_names_those_that_are_known():
    with pytest.raises(BadValue, match="did you mean 'trusted_aggregator'"):
        Code("trusted_agregator")


def test_another_package_registers_a_code_once(monkeypatch):
    monkeypatch.setattr(codes, "_KINDS", dict(codes._KINDS))
    with pytest.raises(BadValue, match=r"package\.enclave"):
        register_code("enclave", "an enclave is sound")
    register_code("shop.enclave", "an enclave of {} is sound", unchecked=True)
    assert str(Code("shop.enclave", ("ACME",))) == (
        "an enclave of ACME is sound, which nobody checks"
    )
    with pytest.raises(BadValue, match="registered already"):
        register_code("shop.enclave", "another")


def test_sentences_of_an_earlier_version_become_codes():
    text = "trusted aggregator; one of the two aggregators follows the protocol; moons"
    found = earlier_assumptions(text)
    assert [code.name for code in found] == [
        *("trusted_aggregator", "one_honest_aggregator", "earlier_version")
    ]
    assert sentences(found) == text
    assert earlier_assumptions("nothing") == ()


def test_what_nobody_checks_makes_a_guarantee_assumed():
    word = Code("owners_word", ("somebody's",))
    sound = Cell(Standing.PROVEN, "theorem", GAUSSIAN)
    assert sound.assuming(Code("trusted_aggregator")).standing is Standing.PROVEN
    assert sound.assuming(word).standing is Standing.ASSUMED
    assert sound.assuming(word).has_epsilon
    assert Cell.none("bare_reports").assuming(word).assumes == ()
    with pytest.raises(BadValue, match="nobody checks"):
        Cell(Standing.ASSUMED, "theorem", GAUSSIAN)


def test_a_cell_has_an_event_or_a_code_that_says_why_not():
    with pytest.raises(BadValue, match="why_none"):
        Cell(Standing.NONE, "none")
    with pytest.raises(BadValue, match="why_none"):
        Cell(Standing.PROVEN, "x", GAUSSIAN, why_none=Code("bare_reports"))
    with pytest.raises(BadValue, match="standing=NOTHING"):
        Cell(Standing.NOTHING, "nothing yet")


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([], "NOTHING"),
        (["NOTHING", "PROVEN"], "PROVEN"),
        (["PROVEN", "ASSUMED"], "ASSUMED"),
        (["ASSUMED", "CLAIMED"], "CLAIMED"),
        (["CLAIMED", "NONE", "PROVEN"], "NONE"),
    ],
)
def test_a_composition_has_the_lowest_standing(parts, whole):
    assert Standing.lowest(map(Standing, parts)) is Standing(whole)
