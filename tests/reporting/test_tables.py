from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from rich.console import Console

from tacit.errors import BadValue
from tacit.release import Adjacency, Standing, Unit, View
from tacit.reporting import tables
from tacit.reporting.report_data import Contender, Curve, Estimate, User
from tacit.reporting.tables import Table
from tacit.statement import Statement


def said(unit: Unit = Unit.USER, view: View = View.RELEASE) -> Statement:
    return Statement(
        what="votes",
        seen_by="server",
        group="everyone",
        unit=unit,
        adjacency=Adjacency.ZERO_OUT,
        view=view,
        delta=1e-6,
        horizon="3 rounds",
        accountant="PLD",
        standing=Standing.NONE,
        assumes="nothing",
        epsilon=None,
        reason="sent as they are",
    )


def proven(epsilon: float) -> Statement:
    return replace(said(), standing=Standing.PROVEN, epsilon=epsilon, reason="T1")


def test_a_comparison_has_a_row_a_method_and_a_column_a_metric() -> None:
    table = tables.comparison(
        [
            Contender("a", {"HR": Estimate(0.5, 0.01)}),
            Contender("b", {"HR": Estimate(0.25), "AUC": Estimate(1.0)}),
        ]
    )
    assert table.header == ("method", "HR", "AUC")
    assert table.rows == (("a", "0.5000 ± 0.0100", "–"), ("b", "0.2500", "1.0000"))


def test_groups_go_down_and_methods_across() -> None:
    groups = {
        "few": {"HR": {"a": Estimate(0.5)}},
        "many": {"HR": {"a": Estimate(0.25), "b": Estimate(1.0)}},
    }
    table = tables.by_group(groups, "HR")
    assert table.header == ("group", "a", "b")
    assert table.rows == (("few", "0.5000", "–"), ("many", "0.2500", "1.0000"))


def test_a_curve_has_a_row_a_round() -> None:
    table = tables.curve(Curve("HR", (1, 5), (Estimate(0.5), Estimate(0.75))))
    assert table.rows == (("1", "0.5000"), ("5", "0.7500"))


def test_a_curve_needs_a_value_a_round() -> None:
    with pytest.raises(BadValue, match="2 rounds and 1 values"):
        Curve("HR", (1, 2), (Estimate(0.5),))


def test_recommendations_are_ranked_from_one() -> None:
    table = tables.recommendations(User("alice", (), (("tea", 0.5), ("jam", 0.25))))
    assert table.rows == (("1", "tea", "0.5000"), ("2", "jam", "0.2500"))


def test_statements_that_say_the_same_are_one_line() -> None:
    table = tables.privacy([said(unit, view) for unit in Unit for view in View])
    assert len(table.rows) == 1
    assert table.rows[0][2:5] == ("all", "all", "none")


def test_a_line_names_no_pair_that_was_not_stated() -> None:
    """user holds for two views, item for one: two lines, not their product."""
    pairs = [(Unit.USER, View.RELEASE), (Unit.USER, View.SERVER)]
    lines = [said(*pair) for pair in (*pairs, (Unit.ITEM, View.RELEASE))]
    cells = [row[2:4] for row in tables.privacy(lines).rows]
    assert cells == [("user", "release, server"), ("item", "release")]


def test_different_statements_stay_apart() -> None:
    other = replace(said(view=View.SERVER), assumes="trusted aggregator")
    assert len(tables.privacy([said(), other]).rows) == 2


def test_an_epsilon_is_shown_with_all_its_terms_and_rounded_up() -> None:
    shown = tables.epsilon(proven(2.12341))
    assert shown == "2.1235 (zero_out, delta 1e-06; 3 rounds; PLD)"


def test_what_a_guarantee_assumes_stands_beside_it() -> None:
    trusted = replace(proven(2.0), assumes="trusted aggregator")
    rows = tables.privacy([trusted, said()]).rows
    assert rows[0][5] == "PROVEN"
    assert rows[0][6].startswith("T1; assumes: trusted aggregator; ")
    assert rows[1][5:] == ("NONE", "sent as they are")


def test_a_claimed_figure_is_not_an_epsilon() -> None:
    claimed = replace(proven(2.0), standing=Standing.CLAIMED)
    assert tables.epsilon(claimed) == "none"
    beside = replace(said(), published_epsilon=5.0)
    assert tables.epsilon(beside) == "none"
    assert tables.why(beside) == "sent as they are; the paper's own figure is 5"


@pytest.mark.parametrize("missing", ["epsilon", "delta"])
def test_a_proven_statement_must_be_whole(missing: str) -> None:
    whole = proven(2.0)
    part = replace(whole, epsilon=None) if missing == "epsilon" else None
    with pytest.raises(BadValue, match=f"{missing}=None"):
        tables.epsilon(part or replace(whole, delta=None))


TABLE = Table(
    "Prices", ("what", "price"), (("tea, green", "2"), ("a|b", "10")), frozenset({1})
)


def test_plain_text_lines_up() -> None:
    expected = "Prices\nwhat        price\ntea, green      2\na|b            10\n"
    assert tables.to_plain(TABLE) == expected


def test_csv_reads_back() -> None:
    rows = list(csv.reader(io.StringIO(tables.to_csv(TABLE))))
    assert rows == [["what", "price"], ["tea, green", "2"], ["a|b", "10"]]


def test_markdown_escapes_what_would_break_it() -> None:
    lines = tables.to_markdown(TABLE).splitlines()
    assert lines[2:] == [
        "| what | price |",
        "| :-- | --: |",
        "| tea, green | 2 |",
        r"| a\|b | 10 |",
    ]


def rich(table: Table) -> str:
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    console.print(tables.to_rich(table))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_terminal_shows_titles_as_they_are() -> None:
    table = Table("List", ("title",), (("[bold]Up[/bold]",), ("a\x1b[2Jb\nc",)))
    shown = rich(table)
    assert "[bold]Up[/bold]" in shown
    assert "\x1b" not in shown
    assert "a\\x1b[2Jb\\nc" in shown


def test_a_terminal_breaks_long_columns_and_no_short_words() -> None:
    table = Table("x", ("what", "why"), (("everything", "because of this " * 20),))
    shown = rich(table)
    assert "everything" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_rows_must_fit_the_header() -> None:
    with pytest.raises(BadValue, match=r"has 2 columns, but rows of \[1\]"):
        Table("x", ("a", "b"), (("1",),))


def test_a_spreadsheet_computes_no_cell() -> None:
    table = Table("x", ("a", "=b"), (("=1+1", "-0.5"), ("@x\x1b", 'say "y"')))
    assert tables.to_csv(table) == 'a,\'=b\n\'=1+1,-0.5\n\'@x\\x1b,"say ""y"""\n'
