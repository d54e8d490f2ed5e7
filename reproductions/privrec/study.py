"""PrivRec and DP-PrivRec (Wang et al. 2021): Tables 1 to 4, Figures 2 to 5, cold start.

    contenders    the experiment files of the contenders, at each scale
    beside        contenders that are no experiment
    accuracy      Tables 1 and 2
    budgets       Tables 3 and 4
    knobs         Figure 2
    noise         Figures 3 to 5, and the frontier of the sound form
    clipping      whether the adaptive bound follows its quantile
    cold_start    strangers, and items nobody had; with telling and unseen_items
    client_costs  what adapting costs one client

MovieLens 1M and Frappe are needed but at the smoke scale; what is not at hand has a row
that says so. How each setting stands to the paper's text: docs/reproduction/privrec.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tacit.accounting.published import PRIVREC_TABLES
from tacit.reproduction.cells import Results, has_data
from tacit.reproduction.study import Scale, Study, Table
from tacit.reproduction.tables import ReproducedTable, Reproduction, Row

from .accuracy import accuracy
from .budgets import epsilon_table
from .client_costs import one_client
from .clipping import bound
from .cold_start import cold_start
from .contenders import Bench
from .knobs import figure_2
from .noise import figure_5, figures_3_and_4, frontier
from .readings import readings


def study(scale: Scale) -> Study:
    """Every table and figure at a scale."""
    films, apps = Bench("ml1m", scale), Bench("frappe", scale)
    both = (films, apps)
    on_both = both if scale == "full" else (films,)  # Figure 2 is the longest
    tables = {
        "1": if_at_hand(films, accuracy("1", films)),
        "2": if_at_hand(apps, accuracy("2", apps)),
        "3": Table(partial(epsilon_table, PRIVREC_TABLES[0])),
        "4": Table(partial(epsilon_table, PRIVREC_TABLES[1])),
        "figure-2": Table.joined([if_at_hand(b, figure_2(b)) for b in on_both]),
        "figures-3-4": Table.joined(
            [
                if_at_hand(bench, figures_3_and_4(number, bench))
                for number, bench in zip("34", both, strict=True)
            ]
        ),
        "figure-5": if_at_hand(films, figure_5(films)),
        "frontier": Table.joined([if_at_hand(b, frontier(b)) for b in both]),
        "bound": if_at_hand(films, bound(scale)),
        "adaptation": if_at_hand(films, one_client(scale)),
        "readings": if_at_hand(films, readings(films)),
        "cold-start": Table.joined([if_at_hand(b, cold_start(b)) for b in both]),
    }
    return Study("privrec", tables)


def if_at_hand(bench: Bench, table: Table) -> Table:
    """The table, or a row that says which data it lacks, when it is asked for."""

    def make(results: Results) -> Reproduction:
        if bench.scale == "smoke" or has_data(bench.source):
            return table.make(results)
        reason = f"{bench.source} is not at hand; docs/data.md says where to get it"
        row = Row(bench.source, None, None, None, ok=False, reason=reason)
        name = f"PrivRec on {bench.source}, not run"
        return Reproduction((ReproducedTable(name, (row,)),), ())

    return replace(table, make=make)
