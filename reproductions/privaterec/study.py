"""PrivateRec (Liu et al. 2022): Table 1 and Figures 4 to 7.

Its NewsFeeds are not public; here is the sample of MIND, 3,058 impressions of 2,916
users to train on, whose AUC has a standard error of .009. Seeds differ in training and
noise, not in users: a claim needs an interval over users and one over seeds. Paper mode
has the claimed epsilon of a round, sound mode the same figure proven for a whole run.
Beside every figure stands the contender's untrained start: a random head over sentence
vectors ranks nearly as content similarity does, and whoever learns nothing keeps that.
Beside those of PrivateRec, whose users all resemble each other as mixtures of a few
vectors, stands also one list for all: what their mean vector would have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.release import View
from tacit.reproduction.cells import Cell, Found, Results, has_data
from tacit.reproduction.chance import best_by_chance
from tacit.reproduction.claims import Chance, is_above_for_seeds
from tacit.reproduction.one_list import one_list_for_all
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

from . import serving_figures
from .contenders import INTERESTS, Bench

PUBLISHED = Published.read(Path(__file__).parent / "published.toml")
AUC = "auc"
USUAL = 10.0  # the claimed budget of Figure 7, and here of Figure 5 and Table 1
TORCH = {"torch": "train"}
OTHERS = {"mrr_all": "MRR", "ndcg@5": "nDCG@5", "ndcg@10": "nDCG@10"}  # of Table 1

MIND = Bench(
    "the MIND sample",
    seeds=3,
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
    """PrivateRec trained and served; without MIND at hand on an invented week."""
    bench = INVENTED
    if scale != "smoke" and has_data("mind-small-sample"):
        bench = MIND
    if scale == "full":
        bench = replace(bench, models=("plm-nr", "naml", "nrms"))
    served = serving_figures.Models(
        lambda b: bench.private(USUAL, interests=b),
        lambda b: bench.private_untrained(interests=b),
        bench.rival(math.inf),
        bench.content(),
    )
    where = {f: PUBLISHED[f"figure-{f}"].where for f in ("4", "5")}
    tables = {
        "1": table_1(bench),
        "4": serving_figures.figure_4(served, where=bench.name, name=where["4"]),
        "5": Table.joined(
            [
                serving_figures.figure_5(served, where=bench.name, name=where["5"]),
                figure_5(bench),
            ]
        ),
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
        by = best_by_chance(results, bench.content())
        first = _row("content similarity", content, **_others(content))
        rows, claims = [first], []
        for model, own in named.items():
            found = {name: results[cell] for name, cell in own.items()}
            rows += [
                _row(f"{model}, {name}", one, **_others(one), **_cost(name, one))
                for name, one in found.items()
            ]
            lists = {
                f"{name}, one list": one_list_for_all(results, own[name])
                for name in ("PrivateRec", "PrivateRec, untrained")
            }
            rows += [
                _row(f"{model}, {name}", one, **_others(one))
                for name, one in lists.items()
            ]
            found |= lists
            claims += [
                _above(model, found, *pair, by=by)
                for pair in (
                    ("Centralized", "FedRec"),
                    ("FedRec", "DP-FedRec"),
                    ("PrivateRec", "DP-FedRec"),
                    ("FedRec", "FedRec, untrained"),
                    ("DP-FedRec", "FedRec, untrained"),
                    ("PrivateRec", "PrivateRec, untrained"),
                    ("PrivateRec", "PrivateRec, one list"),
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
    contenders = _contenders(bench)

    def make(results: Results) -> Reproduction:
        pairs = [(one, e) for e in bench.epsilons for one in contenders if one.runs(e)]
        rows = [one.row(results, e) for one, e in pairs]
        by = best_by_chance(results, bench.content())
        order = [
            _claim(
                f"PrivateRec is above DP-FedRec at ε_t = {_number(e)}",
                results[bench.private(e)],
                results[bench.rival(e)],
                by,
            )
            for e in bench.epsilons
        ]
        learns = [one.learns(results, e, by) for one, e in pairs]
        personal = [
            _is_personal(f"PrivateRec at ε_t = {_number(e)}", results, cell, by)
            for e in bench.epsilons
            for cell in (bench.private(e),)
        ]
        name = f"{PUBLISHED['figure-6'].where}, AUC on {bench.name}"
        tables = (ReproducedTable(name, tuple(rows)),)
        chart = _chart(name, bench, contenders, results)
        return Reproduction(tables, (*order, *learns, *personal), (chart,))

    cells = (cell for one in contenders for cell in one.cells(bench.epsilons))
    return Table(make, (bench.content(), *cells))


@dataclass(frozen=True)
class _Contender:
    """A line of Figure 6: its cell at an epsilon, and the one where it begins."""

    name: str
    at: Callable[[float], Cell]
    start: Cell
    is_proven: bool

    def runs(self, epsilon: float) -> bool:
        """Whether it has a cell there: what is proven is finite."""
        return not self.is_proven or math.isfinite(epsilon)

    def cells(self, epsilons: tuple[float, ...]) -> tuple[Cell, ...]:
        """All that must be trained for its line."""
        return (self.start, *(self.at(e) for e in epsilons if self.runs(e)))

    def row(self, results: Results, epsilon: float) -> Row:
        """Its figure beside its untrained start, in the column of its mode."""
        found, start = results[self.at(epsilon)], results[self.start]
        mean = found.mean(AUC)
        printed, lists = None, dict[str, float]()
        if self.name == "PrivateRec":
            printed = PUBLISHED["figure-6"].value(_number(epsilon))
            lists = _lists(results, self.at(epsilon), self.start)
        return Row(
            f"{self.name}, ε_t = {_number(epsilon)}",
            None,
            None if self.is_proven else mean,
            mean if self.is_proven else None,
            ok=True,
            note="" if printed is None else f"published on NewsFeeds: {printed:.4f}",
            budget=self._budget(found, epsilon),
            beside={"untrained": start.mean(AUC), **lists, **_over_seeds(found)},
            se=found.se(AUC),
        )

    def learns(self, results: Results, epsilon: float, by: Chance) -> Claim:
        """That it is above its untrained start."""
        text = f"{self.name} is above its untrained start at ε_t = {_number(epsilon)}"
        return _claim(text, results[self.at(epsilon)], results[self.start], by)

    def _budget(self, found: Found, epsilon: float) -> str:
        if math.isinf(epsilon):
            return "none"
        spent = found.spent(View.SERVER)
        proven = "nothing" if spent is None else f"{spent:,.0f} for the run"
        if self.is_proven:
            return f"proven {proven}"
        return f"claimed {_number(epsilon)} a round, proven {proven}"


def _contenders(bench: Bench) -> tuple[_Contender, ...]:
    rival, sound = bench.rival_untrained(), bench.proven_untrained()
    local = bench.proven_local_untrained()
    return (
        _Contender("PrivateRec", bench.private, bench.private_untrained(), False),
        _Contender("DP-FedRec", bench.rival, rival, False),
        _Contender("PrivateRec (a)", bench.proven, sound, True),
        _Contender("PrivateRec (b)", bench.proven_local, local, True),
        _Contender("PrivateRec (c)", bench.proven_clicks, sound, True),
        _Contender("sound DP-FedRec", bench.proven_rival, rival, True),
    )


def _chart(
    name: str, bench: Bench, contenders: tuple[_Contender, ...], results: Results
) -> Chart:
    noisy = [epsilon for epsilon in bench.epsilons if math.isfinite(epsilon)]
    lines = {one.name: _line(results, noisy, one.at) for one in contenders}
    levels = {
        "content similarity": results[bench.content()].mean(AUC),
        "PrivateRec, untrained": results[bench.private_untrained()].mean(AUC),
        "DP-FedRec, untrained": results[bench.rival_untrained()].mean(AUC),
    }
    return Chart(name, "epsilon", "AUC", lines, levels)


def figure_7(bench: Bench) -> Table:
    """PrivateRec by the number of interests B, at a claimed 10."""
    cells = {b: bench.private(USUAL, interests=b) for b in bench.interests}
    starts = {b: bench.private_untrained(interests=b) for b in bench.interests}

    def make(results: Results) -> Reproduction:
        rows = [
            _row(
                f"B = {b}",
                results[cell],
                untrained=results[starts[b]].mean(AUC),
                **_lists(results, cell, starts[b]),
            )
            for b, cell in cells.items()
        ]
        best, by = results[cells[INTERESTS]], best_by_chance(results, bench.content())
        claims = [
            _claim(f"B = {INTERESTS} is above B = {b}", best, results[cell], by)
            for b, cell in cells.items()
            if b != INTERESTS
        ]
        claims += [
            _claim(f"B = {b} is above its start", results[cell], results[starts[b]], by)
            for b, cell in cells.items()
        ]
        claims += [
            _is_personal(f"B = {b}", results, cell, by) for b, cell in cells.items()
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
    starts = {b: bench.private_untrained(interests=b) for b, _ in bench.paddings}

    def make(results: Results) -> Reproduction:
        rows = [
            _row(
                f"B = {b}, p = {p:g}",
                results[cell],
                untrained=results[starts[b]].mean(AUC),
                **_lists(results, cell, starts[b]),
            )
            for (b, p), cell in cells.items()
        ]
        by = best_by_chance(results, bench.content())
        claims = [
            _claim(
                f"with {b} interests p = {best[b]:g} is above p = {p:g}",
                results[cells[b, best[b]]],
                results[cell],
                by,
            )
            for (b, p), cell in cells.items()
            if p != best[b] and (b, best[b]) in cells
        ]
        name = f"{PUBLISHED['figure-5'].where}, of training, AUC on {bench.name}"
        return Reproduction((ReproducedTable(name, tuple(rows)),), tuple(claims))

    return Table(make, (*cells.values(), *starts.values()))


def _lists(results: Results, cell: Cell, start: Cell) -> dict[str, float]:
    """The AUC of one list for all, trained and untrained."""
    return {
        "one list": one_list_for_all(results, cell).mean(AUC),
        "one list, untrained": one_list_for_all(results, start).mean(AUC),
    }


def _is_personal(what: str, results: Results, cell: Cell, by: Chance) -> Claim:
    """That users' own vectors rank better than the mean of all."""
    text = f"{what} is above one list for all"
    return _claim(text, results[cell], one_list_for_all(results, cell), by)


def _others(found: Found) -> dict[str, float]:
    """The other metrics of Table 1."""
    return {name: found.mean(metric) for metric, name in OTHERS.items()}


def _cost(name: str, found: Found) -> dict[str, float]:
    """What a client sends, fetches and computes for a report, where it trains."""
    is_trained = found.runs and not name.endswith("untrained")
    return found.cost_of_report() if is_trained else {}


def _row(label: str, found: Found, **beside: float) -> Row:
    mean, se = found.mean(AUC), found.se(AUC)
    beside |= _over_seeds(found)
    return Row(label, None, mean, None, ok=True, beside=beside, se=se)


def _over_seeds(found: Found) -> dict[str, float]:
    """How far other seeds would move the mean, where there are several."""
    se = found.pooled(AUC).se_seeds
    return {} if se is None else {"se over seeds": se}


def _line(
    results: Results, epsilons: list[float], kind: Callable[[float], Cell]
) -> Line:
    found = [results[kind(epsilon)] for epsilon in epsilons]
    means, errors = (one.mean(AUC) for one in found), (one.se(AUC) for one in found)
    return Line(tuple(epsilons), tuple(means), tuple(se or 0.0 for se in errors))


def _above(
    model: str, found: dict[str, Found], more: str, less: str, *, by: Chance
) -> Claim:
    return _claim(f"{model}: {more} is above {less}", found[more], found[less], by)


def _claim(text: str, more: Found, less: Found, by: Chance) -> Claim:
    """Holds if both 95 % intervals are above zero, over users and over seeds."""
    pair = more.evaluations, less.evaluations
    return is_above_for_seeds(text, *pair, metric=AUC, chance=by, name="AUC")


def _number(epsilon: float) -> str:
    return "∞" if math.isinf(epsilon) else f"{epsilon:g}"
