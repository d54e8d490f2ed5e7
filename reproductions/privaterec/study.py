"""PrivateRec (Liu et al. 2022): Table 1 and Figures 5 to 7, of its training.

Its NewsFeeds are not public; here is the sample of MIND, 3,058 impressions of 2,916
users to train on, whose AUC has a standard error of .009. A row has paper mode at the
claimed epsilon of a round, and sound mode at the same figure proven for a whole run.
Beside them stands each contender's untrained start: a random head over sentence
vectors ranks nearly as content similarity does, and whoever learns nothing keeps that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tacit.release import View
from tacit.reproduction.cells import Cell, Found, Results, has_data
from tacit.reproduction.claims import is_above
from tacit.reproduction.published import Published
from tacit.reproduction.study import Scale, Study, Table
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)

from .contenders import INTERESTS, Bench

PUBLISHED = Published.read(Path(__file__).parent / "published.toml")
AUC = "auc"
USUAL = 10.0  # the claimed budget of Figure 7, and here of Figure 5 and Table 1
TORCH = {"torch": "train"}

MIND = Bench(
    "the MIND sample",
    epsilons=(1.0, 5.0, 10.0, 20.0, math.inf),
    interests=(2, 3, 5, 10),
    paddings=((3, 0.0), (3, 0.2), (3, 0.5), (3, 0.8), (5, 0.2), (5, 0.5)),
)
INVENTED = Bench(
    "an invented week of news",
    epsilons=(5.0, math.inf),
    interests=(2, 3),
    paddings=((3, 0.2), (3, 0.5)),
    has_vectors=False,
    data=(
        "data.source=synthetic-news",
        "data.validation_from='2023-02-04'",
        "data.test_from='2023-02-05'",
        "data.text_vectors=[]",
        "data.world={users = 200, news = 150, shown = 8, history = 6}",
        "method.content=['title', 'abstract']",
        "evaluate.baselines=[]",
    ),
    shorter=(
        "run.rounds=3",
        "evaluate.every=3",
        "run.sampler={name = 'fixed_size', size = 40}",
    ),
)


def study(scale: Scale) -> Study:
    """The training of PrivateRec; without MIND at hand on an invented week."""
    bench = INVENTED
    if scale != "smoke" and has_data("mind-small-sample"):
        bench = MIND
    if scale == "full":
        bench = replace(bench, seeds=3, models=("plm-nr", "naml", "nrms"))
    tables = {
        "1": table_1(bench),
        "5": figure_5(bench),
        "6": figure_6(bench),
        "7": figure_7(bench),
    }
    return Study("privaterec", tables)


def table_1(bench: Bench) -> Table:
    """Every model centrally, federated, and under both noises at a claimed 10."""

    def cells(model: str) -> dict[str, Cell]:
        central = bench.central(model)
        return {
            **({} if central is None else {"Centralized": central}),
            "FedRec": bench.rival(math.inf, model=model),
            "DP-FedRec": bench.rival(USUAL, model=model),
            "PrivateRec": bench.private(USUAL, model=model),
            "FedRec, untrained": bench.rival_untrained(model=model),
            "PrivateRec, untrained": bench.private_untrained(model=model),
        }

    named = {model: cells(model) for model in bench.models}

    def make(results: Results) -> Reproduction:
        content = results[bench.content()]
        rows, claims = [_row("content similarity", content)], []
        for model, own in named.items():
            found = {name: results[cell] for name, cell in own.items()}
            rows += [_row(f"{model}, {name}", one) for name, one in found.items()]
            claims += [
                _above(model, found, *pair)
                for pair in (
                    ("Centralized", "FedRec"),
                    ("FedRec", "DP-FedRec"),
                    ("PrivateRec", "DP-FedRec"),
                    ("FedRec", "FedRec, untrained"),
                    ("DP-FedRec", "FedRec, untrained"),
                    ("PrivateRec", "PrivateRec, untrained"),
                )
                if pair[0] in found
            ]
        where = PUBLISHED["table-1"].where
        table = ReproducedTable(f"{where}, AUC on {bench.name}", tuple(rows))
        return Reproduction((table,), tuple(claims))

    every = (cell for own in named.values() for cell in own.values())
    extras = TORCH if len(bench.models) > 1 else {}
    return Table(make, (bench.content(), *every), extras)


def figure_6(bench: Bench) -> Table:
    """Both noises by the claimed budget, the proven ones at the same figure."""
    noisy = [epsilon for epsilon in bench.epsilons if math.isfinite(epsilon)]
    starts = bench.private_untrained(), bench.rival_untrained()
    sound = {
        "private": {e: bench.proven(e) for e in noisy},
        "rival": {e: bench.proven_rival(e) for e in noisy},
        "(b) local": {e: bench.proven_local(e) for e in noisy},
        "(c) clicks": {e: bench.proven_clicks(e) for e in noisy},
    }

    def make(results: Results) -> Reproduction:
        first, other = (results[start] for start in starts)
        rows, claims = [], []
        for epsilon in bench.epsilons:
            ours, rival = (
                results[kind(epsilon)] for kind in (bench.private, bench.rival)
            )
            proven = {n: results[c[epsilon]] for n, c in sound.items() if epsilon in c}
            rows += [
                _private_row(epsilon, ours, first, proven),
                _rival_row(epsilon, rival, other, proven),
            ]
            claims += _by_budget(epsilon, ours, rival, first)
        name = f"{PUBLISHED['figure-6'].where}, AUC on {bench.name}"
        content = results[bench.content()].mean(AUC)
        levels = {
            "content similarity": content,
            "PrivateRec, untrained": first.mean(AUC),
            "DP-FedRec, untrained": other.mean(AUC),
        }
        lines = {
            "PrivateRec, claimed": _line(results, noisy, bench.private),
            "DP-FedRec, claimed": _line(results, noisy, bench.rival),
            "PrivateRec, proven": _line(results, noisy, bench.proven),
            "DP-FedRec, proven": _line(results, noisy, bench.proven_rival),
        }
        chart = Chart(name, "epsilon", "AUC", lines, levels)
        tables = (ReproducedTable(name, tuple(rows)),)
        return Reproduction(tables, tuple(claims), (chart,))

    kinds = bench.private, bench.rival
    claimed = (kind(e) for kind in kinds for e in bench.epsilons)
    proven = (cell for own in sound.values() for cell in own.values())
    return Table(make, (bench.content(), *starts, *claimed, *proven))


def _by_budget(
    epsilon: float, ours: Found, rival: Found, untrained: Found
) -> list[Claim]:
    at = f"ε_t = {_number(epsilon)}"
    return [
        _claim(f"PrivateRec is above DP-FedRec at {at}", ours, rival),
        _claim(f"PrivateRec is above its untrained start at {at}", ours, untrained),
    ]


def figure_7(bench: Bench) -> Table:
    """PrivateRec by the number of interests B, at a claimed 10."""
    cells = {b: bench.private(USUAL, interests=b) for b in bench.interests}
    starts = {b: bench.private_untrained(interests=b) for b in bench.interests}

    def make(results: Results) -> Reproduction:
        rows = [
            _row(f"B = {b}", results[cell], untrained=results[starts[b]].mean(AUC))
            for b, cell in cells.items()
        ]
        best = results[cells[INTERESTS]]
        claims = [
            _claim(f"B = {INTERESTS} is above B = {b}", best, results[cell])
            for b, cell in cells.items()
            if b != INTERESTS
        ]
        name = f"{PUBLISHED['figure-7'].where}, AUC on {bench.name}"
        return Reproduction((ReproducedTable(name, tuple(rows)),), tuple(claims))

    return Table(make, (*cells.values(), *starts.values()))


def figure_5(bench: Bench) -> Table:
    """PrivateRec by the padding p, at a claimed 10: of training, not of serving."""
    cells = {
        (b, p): bench.private(USUAL, interests=b, padding=p) for b, p in bench.paddings
    }
    best = {3: 0.2, 5: 0.5}

    def make(results: Results) -> Reproduction:
        rows = [_row(f"B = {b}, p = {p:g}", results[c]) for (b, p), c in cells.items()]
        claims = [
            _claim(
                f"with {b} interests p = {best[b]:g} is above p = {p:g}",
                results[cells[b, best[b]]],
                results[cell],
            )
            for (b, p), cell in cells.items()
            if p != best[b] and (b, best[b]) in cells
        ]
        name = f"{PUBLISHED['figure-5'].where}, of training, AUC on {bench.name}"
        return Reproduction((ReproducedTable(name, tuple(rows)),), tuple(claims))

    return Table(make, tuple(cells.values()))


def _private_row(
    epsilon: float, ours: Found, untrained: Found, proven: dict[str, Found]
) -> Row:
    printed = PUBLISHED["figure-6"].value(_number(epsilon))
    note = "" if printed is None else f"published on NewsFeeds: {printed:.4f}"
    claimed = f"claimed {_number(epsilon)} a round, proven nothing"
    others = {n: f.mean(AUC) for n, f in proven.items() if n.startswith("(")}
    return Row(
        f"PrivateRec, ε_t = {_number(epsilon)}",
        None,
        ours.mean(AUC),
        proven["private"].mean(AUC) if proven else None,
        ok=True,
        note=note,
        budget=claimed if math.isfinite(epsilon) else "none",
        beside={"untrained": untrained.mean(AUC), **others},
        se=ours.se(AUC),
    )


def _rival_row(
    epsilon: float, rival: Found, untrained: Found, proven: dict[str, Found]
) -> Row:
    spent = rival.spent(View.SERVER)
    figure = "nothing" if spent is None else f"{spent:,.0f} for the run"
    claimed = f"claimed {_number(epsilon)} a round, proven {figure}"
    return Row(
        f"DP-FedRec, ε_t = {_number(epsilon)}",
        None,
        rival.mean(AUC),
        proven["rival"].mean(AUC) if proven else None,
        ok=True,
        budget=claimed if math.isfinite(epsilon) else "none",
        beside={"untrained": untrained.mean(AUC)},
        se=rival.se(AUC),
    )


def _row(label: str, found: Found, **beside: float) -> Row:
    mean, se = found.mean(AUC), found.se(AUC)
    return Row(label, None, mean, None, ok=True, beside=beside, se=se)


def _line(
    results: Results, epsilons: list[float], kind: Callable[[float], Cell]
) -> Line:
    found = [results[kind(epsilon)] for epsilon in epsilons]
    means, errors = (one.mean(AUC) for one in found), (one.se(AUC) for one in found)
    return Line(tuple(epsilons), tuple(means), tuple(se or 0.0 for se in errors))


def _above(model: str, found: dict[str, Found], more: str, less: str) -> Claim:
    return _claim(f"{model}: {more} is above {less}", found[more], found[less])


def _claim(text: str, more: Found, less: Found) -> Claim:
    """Holds if the whole 95 % interval of the difference is above zero."""
    return is_above(text, more.evaluations, less.evaluations, metric=AUC, name="AUC")


def _number(epsilon: float) -> str:
    return "∞" if math.isinf(epsilon) else f"{epsilon:g}"
