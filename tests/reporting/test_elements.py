from __future__ import annotations

from tacit.release import Standing
from tacit.reporting import elements, tables
from tacit.reporting.promises import Promise
from tacit.reporting.report_data import Lead

HOSTILE = "<script>alert(1)</script>"


def test_every_text_is_escaped() -> None:
    parts = (
        elements.page(HOSTILE, ""),
        elements.head("x", lead=[Lead(HOSTILE, HOSTILE, HOSTILE)]),
        elements.head(HOSTILE, notes=[HOSTILE]),
        elements.facts([(HOSTILE, HOSTILE)]),
        elements.promises([Promise(HOSTILE, Standing.NONE, None, HOSTILE, (HOSTILE,))]),
        elements.folded("", summary=HOSTILE),
        elements.table(tables.Table(HOSTILE, (HOSTILE,), ((HOSTILE,),))),
        elements.section("one", HOSTILE, ""),
        elements.notice(HOSTILE),
        elements.paragraph(HOSTILE),
        elements.listing([HOSTILE]),
        elements.figure("", HOSTILE),
    )
    for part in parts:
        assert HOSTILE not in part
        assert "&lt;script&gt;" in part


def test_a_head_without_facts_has_no_box() -> None:
    assert "<dl" not in elements.head("title")
    assert "simulation" not in elements.head("title")
    assert "simulation" in elements.head("title", simulation=True)


def test_quiet_is_a_class() -> None:
    assert elements.paragraph("x") == "<p>x</p>\n"
    assert elements.paragraph("x", quiet=True) == '<p class="quiet">x</p>\n'


def test_only_a_proven_promise_stands_in_color() -> None:
    proven = Promise("server", Standing.PROVEN, 3.999, "means", ("terms",))
    claimed = Promise("server", Standing.CLAIMED, None, "reason")
    shown = elements.promises([proven])
    assert '<li class="proven"><p class="figure">epsilon 4.00' in shown
    assert '<li><p class="figure">no promise' in elements.promises([claimed])


def test_a_table_that_is_too_wide_for_a_phone_becomes_records() -> None:
    narrow = tables.Table("x", ("rank", "title"), (("1", "A long title of an item"),))
    wide = tables.Table("x", ("what", "why", "who"), (("a long text " * 5,) * 3,))
    figures = tables.Table("x", ("a", "b"), (("0.1234 ± 0.0001" * 2,) * 2,))
    numeric = tables.Table("x", figures.header, figures.rows, frozenset({0, 1}))
    assert 'class="records"' not in elements.table(narrow)
    assert 'class="records"' not in elements.table(figures)
    assert 'class="records"' in elements.table(wide)
    assert 'class="records"' in elements.table(numeric)  # figures do not wrap


def test_a_value_that_is_missing_is_marked() -> None:
    rows = (("gram", tables.MISSING, "0.5"),)
    table = tables.Table("x", ("method", "a", "b"), rows, frozenset({1, 2}))
    assert elements.table(table, heads=1).count('class="number missing"') == 1


def test_every_value_of_a_record_has_its_label() -> None:
    table = tables.Table("x", ("method", "score"), (("gram", "0.5"),))
    assert '<td role="cell" data-label="score">0.5</td>' in elements.table(
        table, heads=1
    )


def test_an_option_of_a_command_is_not_broken():
    said = elements.listing(["tacit ledger forget FILE --keep-ledger; a--b stays."])
    assert 'FILE <span class="whole">--keep-ledger</span>; a--b stays.' in said
