"""Figure 2: HR@10 against the epsilon of a report, for each k and number of people.

The paper prints no numbers here; what its text says became claims.
"""

from __future__ import annotations

from tacit.reproduction import Scale
from tacit.reproduction.fmf_ldp.benches import Bench, for_each
from tacit.reproduction.fmf_ldp.comparing import CLOSE, Judge, line
from tacit.reproduction.fmf_ldp.subsets import Subset
from tacit.reproduction.fmf_ldp.trials import NEGATIVES, POPULARITY, Paper, trials
from tacit.reproduction.tables import Chart, Claim, ReproducedTable, Reproduction

VOTES = (1, 50, 100, 250)
_SEEDS = 5
_USUAL = 2.5  # a report


def figure_2(scale: Scale) -> Reproduction:
    """On every bench of the scale."""
    return for_each(scale, _on)


def _on(bench: Bench) -> Reproduction:
    judge = Judge(bench)
    cells = {
        bench.cell(people, bench.items[0]): bench.epsilons for people in bench.people
    }
    cells[bench.few] = (_USUAL,)  # where nothing is learnt, one epsilon shows it
    rows = tuple(
        judge.row(f"{cell}, k = {k}, {each:g} a report", Paper(k, each), cell)
        for cell, epsilons in cells.items()
        for k in VOTES
        for each in epsilons
    )
    charts = [_chart(judge, cell, e) for cell, e in cells.items() if len(e) > 1]
    table = ReproducedTable(f"Figure 2, HR@10 ({bench.source})", rows)
    return Reproduction((table,), _claims(judge), tuple(charts))


def _claims(judge: Judge) -> tuple[Claim, ...]:
    bench, cell = judge.bench, judge.bench.many
    low, high = bench.epsilons[0], bench.epsilons[-1]
    weak, strong = Paper(epsilon=low), Paper(epsilon=high)
    return (
        _one_report(judge, cell),
        judge.rises("100 reports beat 1", (Paper(1), cell), (Paper(), cell)),
        judge.rises("100 reports beat 50", (Paper(50), cell), (Paper(), cell)),
        judge.rises("250 reports beat 100", (Paper(), cell), (Paper(250), cell)),
        judge.rises(f"{high:g} a report beats {low:g}", (weak, cell), (strong, cell)),
        judge.rises("more people help", (Paper(), bench.few), (Paper(), cell)),
    )


def _one_report(judge: Judge, cell: Subset) -> Claim:
    """That k = 1 is random.

    Over seeds, not people: nearly untrained factors favor some items by chance, for
    everyone.
    """
    found = trials(Paper(1), cell, most=judge.bench.most, seeds=_SEEDS)
    chance = 10 / (NEGATIVES + 1)
    evidence = f"HR@10 {found.hr():.3f} ± {found.se():.3f} over {_SEEDS} seeds"
    is_random = abs(found.hr() - chance) <= CLOSE
    return Claim(f"{judge.bench.source}: k = 1 is random", is_random, evidence)


def _chart(judge: Judge, cell: Subset, epsilons: tuple[float, ...]) -> Chart:
    lines = {
        f"k = {k}": line({e: judge.of(Paper(k, e), cell) for e in epsilons})
        for k in VOTES
    }
    levels = {"popularity": judge.of(POPULARITY, cell).hr()}
    name = f"Figure 2: {judge.bench.source}, {cell}"
    return Chart(name, "epsilon of one report", "HR@10", lines, levels)
