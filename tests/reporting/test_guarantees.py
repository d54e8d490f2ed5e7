from __future__ import annotations

import dataclasses

import pytest
from dp_accounting import GaussianDpEvent

from tacit.accounting.events import pure_local
from tacit.codes import Code
from tacit.plans import Plan
from tacit.privacy.guarantees import local, summed, unprotected
from tacit.release import Release
from tacit.reporting.guarantees import in_full, in_short
from tacit.reporting.plain_words import rounded_up
from tacit.reporting.promises import promises
from tacit.statement import Statement, account

PLAN = Plan(1000, channel="secure_sum", delta=1e-6)
LONG = "a reason with many words, " * 12


def totals(cells) -> tuple[Statement, ...]:
    return account(PLAN, (Release("x", "server", "once", cells),)).totals


def test_a_sum_is_two_blocks():
    lines = in_short(totals(summed(PLAN, GaussianDpEvent(4.2247), reason="noise")))
    assert lines[0].endswith("  epsilon 1.00  PROVEN")
    assert {"delta 1e-06", "compared with that person absent"} <= parts(lines[1:3])
    assert "    rests on: noise" in lines
    assert str(Code("trusted_aggregator")) in " ".join(" ".join(lines).split())
    assert lines[-2].endswith("no promise")
    assert lines[-1].strip() == str(Code("aggregator_colludes"))


def parts(lines: list[str]) -> set[str]:
    """The terms of a block, one by one."""
    text = " ".join(" ".join(lines).split())
    return {one for part in text.split("; ") for one in (part, part.split(", ")[-1])}


def test_local_reports_hold_against_everyone():
    lines = in_short(totals(local(PLAN, pure_local(1.0), reason="coins")), 200)
    assert sum("epsilon" in line for line in lines) == 1
    assert {"delta 0", "compared with any other history"} <= parts(lines)
    assert "    rests on: coins" in lines


@pytest.mark.parametrize("show", [in_short, in_full])
@pytest.mark.parametrize(
    "cells",
    [
        summed(PLAN, GaussianDpEvent(4.2247), reason=LONG),
        local(PLAN, pure_local(1.0), reason=LONG),
        unprotected("bare_reports", LONG),
    ],
)
def test_no_line_is_wider_than_a_terminal_and_no_word_is_lost(show, cells):
    lines = show(totals(cells))
    assert max(map(len, lines)) <= 79
    words = " ".join(" ".join(lines).split())
    assert " ".join(LONG.split()) in words


def test_every_field_of_a_statement_is_in_full():
    (line, *_) = totals(summed(PLAN, GaussianDpEvent(4.2247), reason="noise"))
    shown = " ".join(" ".join(in_full([line])).split())
    for field in dataclasses.fields(Statement):
        value = getattr(line, field.name)
        assert f"{value:g}" if field.name == "delta" else str(value or "none") in shown


@pytest.mark.parametrize("figure", [None, 16.47921137])
@pytest.mark.parametrize(
    "cells",
    [summed(PLAN, GaussianDpEvent(4.2), reason="x"), unprotected("bare_reports")],
)
def test_a_papers_own_figure_stands_below_what_is_proven(cells, figure):
    """Also where nothing is, and never as an epsilon."""
    lines = [dataclasses.replace(s, published_epsilon=figure) for s in totals(cells)]
    every = list(promises(lines))
    assert every
    for one in every:
        is_shown = one.terms[-1:] == ("the paper's own figure is 16.4792",)
        assert is_shown is (figure is not None)
        assert "16.4" not in one.figure
    shown = sum("the paper's own figure" in line for line in in_short(lines))
    assert shown == (0 if figure is None else len(every))


def test_a_group_is_named():
    (line, *_) = totals(local(PLAN, pure_local(1.0), reason="x"))
    lines = in_short([dataclasses.replace(line, group="strict")])
    assert "group 'strict'" in lines[0]


def test_figures_are_rounded_up():
    assert rounded_up(1.0001) == "1.01"
