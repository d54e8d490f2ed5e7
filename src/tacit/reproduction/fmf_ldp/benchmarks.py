"""Figure 5: HR@2, 5 and 10 of private and non-private rivals on the latest item."""

from __future__ import annotations

from collections.abc import Mapping

from tacit.reproduction import Scale
from tacit.reproduction.fmf_ldp.benches import Bench, for_each
from tacit.reproduction.fmf_ldp.comparing import CLOSE, Judge, budget, why
from tacit.reproduction.fmf_ldp.published import FIGURE_5
from tacit.reproduction.fmf_ldp.subsets import Subset
from tacit.reproduction.fmf_ldp.trials import (
    MF_NP,
    POPULARITY,
    RANDOM,
    Contender,
    Neighbors,
    Paper,
)
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)

_DEPTHS = (2, 5, 10)
_CONTENDERS: Mapping[str, Contender] = {
    "MF-NP": MF_NP,
    "DPLCF": Neighbors(),
    "FMF-LDP-100": Paper(100),
    "FMF-LDP-250": Paper(250),
    "popularity": POPULARITY,
    "random": RANDOM,
}


def figure_5(scale: Scale) -> Reproduction:
    """On every bench of the scale."""
    return for_each(scale, _on)


def _on(bench: Bench) -> Reproduction:
    judge, cell = Judge(bench), bench.cell(*bench.whole, which="latest")
    rows = tuple(
        _row(judge, name, cell, place)
        for name in _CONTENDERS
        for place in range(len(_DEPTHS))
    )
    name = f"Figure 5, the latest item ({bench.source}, {cell})"
    chart = Chart(name, "K", "HR@K", {n: _line(judge, n, cell) for n in _CONTENDERS})
    table = ReproducedTable(name, rows)
    return Reproduction((table,), _claims(judge, cell), (chart,))


def _claims(judge: Judge, cell: Subset) -> tuple[Claim, ...]:
    orders = (
        ("random", "FMF-LDP-100"),
        ("FMF-LDP-250", "MF-NP"),
        ("FMF-LDP-250", "DPLCF"),
        ("popularity", "FMF-LDP-250"),
    )
    return tuple(
        judge.rises(
            f"{more} beats {less}",
            (_CONTENDERS[less], cell),
            (_CONTENDERS[more], cell),
        )
        for less, more in orders
    )


def _row(judge: Judge, name: str, cell: Subset, place: int) -> Row:
    k, found = _DEPTHS[place], judge.of(_CONTENDERS[name], cell)
    published = FIGURE_5[name][place] if name in FIGURE_5 else None
    is_close = published is None or abs(found.hr(k) - published) <= CLOSE
    others = {n: judge.of(_CONTENDERS[n], cell).hr() for n in ("popularity", "MF-NP")}
    return Row(
        f"{name}, HR@{k}",
        published,
        paper=found.hr(k),
        sound=None,
        ok=is_close,
        reason="" if is_close else why(cell, others),
        budget=_budget(_CONTENDERS[name], cell),
        beside={"full ranking": found.hr_of_all(k)},
        se=found.se(k),
    )


def _budget(contender: Contender, cell: Subset) -> str:
    if isinstance(contender, Paper):
        return budget(contender, len(cell.split().users))
    if isinstance(contender, Neighbors):
        return f"{contender.each * len(cell.split().catalog):,.0f} local"
    return "not private"


def _line(judge: Judge, name: str, cell: Subset) -> Line:
    found = judge.of(_CONTENDERS[name], cell)
    return Line(
        tuple(map(float, _DEPTHS)),
        tuple(found.hr(k) for k in _DEPTHS),
        tuple(found.se(k) for k in _DEPTHS),
    )
