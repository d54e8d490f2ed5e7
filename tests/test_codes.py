"""Codes of assumptions and of reasons: registered, written down, read again."""

from dataclasses import replace

import pytest

from tacit import codes
from tacit.accounting.serialization import release_from_json, release_to_json
from tacit.codes import (
    Code,
    earlier_assumptions,
    register_code,
    rests_on_unchecked,
    sentences,
)
from tacit.errors import BadValue
from tacit.release import CELLS, Cell, Release, Standing, Unit, View

GAUSSIAN = pytest.importorskip("dp_accounting").GaussianDpEvent(2.0)


@pytest.mark.parametrize("name", codes._KINDS)
def test_a_code_comes_back_as_it_was(name):
    kind = codes._KINDS[name]
    code = Code(name, tuple(range(2, 2 + kind.places)))
    assert Code.from_json(code.to_json()) == code
    assert str(code).startswith(kind.sentence.split("{}")[0])


@pytest.mark.parametrize(
    "document", [None, "trusted_aggregator", [], ["honest_clients", 1.5], [["x"]]]
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
        "an enclave of ACME is sound (no program checks this)"
    )
    with pytest.raises(BadValue, match="registered already"):
        register_code("shop.enclave", "another")


# As versions without codes wrote them; nobody may reword these.
EARLIER = {
    "nothing": "PROVEN",
    "trusted aggregator": "PROVEN",
    "both aggregators add their noise": "PROVEN",
    "one of the two aggregators follows the protocol; AES-256-CTR, HPKE and the "
    "operating system's randomness": "PROVEN",
    "trusted aggregator; operators of nodes follow the protocol and hold their users' "
    "histories; the server brings no other code to nodes; every user is on one "
    "node": "PROVEN",
    "a relay that does not side with the server; at least 450 honest clients in every "
    "round, which are 500 less 50 that may be an attacker's; the relay hands out one "
    "ticket per user, and asks for it": "PROVEN",
    "a relay that does not side with the server; at least 50 honest clients in every "
    "round; none of the uploads that the relay counts are invented": "ASSUMED",
    "no more than 3 of the uploads that the relay counts are invented": "ASSUMED",
    "noise in floating point, whose low bits are not covered (Mironov 2012)": "ASSUMED",
    "the owner's word of 2026-01-01 that the file is whole": "ASSUMED",
}


@pytest.mark.parametrize(("text", "standing"), EARLIER.items())
def test_sentences_of_an_earlier_version_become_codes(text, standing):
    codes_ = earlier_assumptions(text)
    cell = Cell(Standing.PROVEN, "theorem", GAUSSIAN, assumes=codes_)
    assert cell.standing is Standing(standing)
    unknown = any(code.name == "earlier_version" for code in codes_)
    assert unknown is ("owner" in text)
    assert rests_on_unchecked(text) is (standing == "ASSUMED" and not unknown)
    assert rests_on_unchecked(sentences(codes_)) is (standing == "ASSUMED")


def test_a_cell_of_an_earlier_version_is_read_with_its_conditions():
    name = (Unit.USER, View.SERVER)
    cells = dict.fromkeys(CELLS, Cell(Standing.PROVEN, "theorem", GAUSSIAN))
    document = release_to_json(Release("a", "b", "c", cells))
    for cell in document["cells"]:
        del cell["why_none"]
        cell["assumes"] = (
            "no more than 3 of the uploads that the relay counts are invented"
        )
    found = release_from_json(document).cells[name]
    assert (found.standing, found.assumes) == (
        Standing.ASSUMED,
        (Code("few_uploads_invented", (3,)),),
    )


def test_a_code_of_a_package_that_is_not_here_is_read_as_unchecked(monkeypatch):
    """A ledger is still readable, and nothing of it is called proven."""
    found = Code.from_json(["shop.enclave", "ACME"])
    assert (str(found), found.is_unchecked) == (
        "shop.enclave ACME (no program checks this)",
        True,
    )
    sound = Cell(Standing.PROVEN, "x", GAUSSIAN, assumes=(Code("float_noise"),))
    document = release_to_json(Release("a", "b", "c", dict.fromkeys(CELLS, sound)))
    kinds = dict(codes._KINDS)
    kinds["float_noise"] = replace(kinds["float_noise"], is_unchecked=False)
    monkeypatch.setattr(codes, "_KINDS", kinds)
    read = release_from_json(document).cells[Unit.USER, View.SERVER]
    assert read.standing is Standing.PROVEN  # as it is understood by now


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
