"""DP-PrivRec: Figures 3 to 5, and what its sound form gives at which epsilon.

Figures 3 and 4 set Hits@k of DP-PrivRec beside PrivRec's. Figure 5 varies the first
bound S and the quantile gamma on MovieLens. They are drawn without numbers, so what the
text says of them became claims. The frontier is ours: DP-PrivRec in sound mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tacit.reproduction import Scale
from tacit.reproduction.claims import is_above
from tacit.reproduction.privrec.accuracy import hits_by_depth
from tacit.reproduction.privrec.benches import Bench, Source
from tacit.reproduction.privrec.courses import HITS, after, line
from tacit.reproduction.privrec.settings import DELTA, EPSILON, AsPublished, AsWeWould
from tacit.reproduction.privrec.trials import PUBLISHED, trials
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)
from tacit.results import Evaluation, pool

GAMMAS = (0.1, 0.4, 0.7, 0.9)
BOUNDS = (20.0, 25.0, 30.0, 35.0, 40.0, 45.0)  # S at the start
EPSILONS = (1.0, 2.0, 4.0, 8.0)
_TOLERABLE = 0.1  # the gap that the paper finds
_GUARANTEE = (
    f"user, zero_out, release view, delta {DELTA:g}, the whole run, PLD, PROVEN with a "
    "trusted aggregator"
)

_BOTH = ("PrivRec", "DP-PrivRec")


def figures_3_and_4(scale: Scale) -> Reproduction:
    """Both data sets, from the trials of Tables 1 and 2."""
    shown: dict[str, Source] = {"3": "movielens-1m", "4": "frappe"}
    return Reproduction.joined(
        [_with_and_without(n, s, scale) for n, s in shown.items()]
    )


def _with_and_without(number: str, source: Source, scale: Scale) -> Reproduction:
    bench, name = Bench(source, scale), f"Figure {number}: Hits@k on {source}"
    lines = {
        who: hits_by_depth(who, bench)
        for way in (PUBLISHED, "")
        for who in (f"{one}{way}" for one in _BOTH)
    }
    claims = tuple(_gap(name, way, bench) for way in (PUBLISHED, ""))
    chart = Chart(name, "k", "Hits@k", lines, over=bench.over)
    return Reproduction((), claims, (chart,))


def _gap(name: str, way: str, bench: Bench) -> Claim:
    bare, noisy = (trials(f"{one}{way}", bench).mean("hr", 20) for one in _BOTH)
    how = way.lstrip(", ") or f"as we train, epsilon {EPSILON:g}"
    return Claim(
        f"{name}: noise costs less than 10 % ({how})",
        noisy >= (1 - _TOLERABLE) * bare,
        f"Hits@20 {bare:.4f} without, {noisy:.4f} with",
    )


def figure_5(scale: Scale) -> Reproduction:
    """Algorithm 2 as printed, on MovieLens 1M."""
    bench = Bench("movielens-1m", scale)
    is_quick = scale == "quick"
    gammas = (GAMMAS[0], GAMMAS[-1]) if is_quick else GAMMAS
    bounds = (BOUNDS[0], BOUNDS[-1]) if is_quick else BOUNDS
    grid = {gamma: [_at(gamma, bound, bench) for bound in bounds] for gamma in gammas}
    lines = {f"gamma {gamma:g}": line(bounds, found) for gamma, found in grid.items()}
    popular = trials("popularity", bench).mean("hr", 20)
    levels = {"without noise": trials(f"PrivRec{PUBLISHED}", bench).mean("hr", 20)}
    name = "Figure 5: Hits@20 by gamma and the first S on movielens-1m"
    chart = Chart(name, "S", "Hits@20", lines, levels)
    rows = tuple(
        Row(
            f"{name}, S = {x:g}",
            None,
            y,
            None,
            ok=True,
            se=se,
            beside={"popularity": popular},
        )
        for name, found in lines.items()
        for x, y, se in zip(found.x, found.y, found.se, strict=True)
    )
    table = ReproducedTable("Figure 5, Hits@20 as published", rows)
    return Reproduction((table,), tuple(_said_of_5(grid)), (chart,))


def _at(gamma: float, bound: float, bench: Bench) -> Evaluation:
    literal = AsPublished(bench)
    method = replace(literal.dp_privrec, quantile=gamma, clip=bound)
    return after(method, literal.plan(len(bench.split().users)), bench)


def _said_of_5(grid: dict[float, list[Evaluation]]) -> Iterator[Claim]:
    low, high = min(grid), max(grid)
    small, large = (tuple(found[i] for found in grid.values()) for i in (0, -1))
    pairs = {
        "Figure 5: a larger gamma is better": (grid[high], grid[low]),
        "Figure 5: the largest first S is worse": (small, large),
    }
    for text, pair in pairs.items():
        yield is_above(text, *pair, metric=HITS, name="Hits@20")


def frontier(scale: Scale) -> Reproduction:
    """DP-PrivRec in sound mode at each epsilon, beside what knows no one."""
    sources: tuple[Source, ...] = ("movielens-1m", "frappe")
    made = [_frontier(Bench(s, scale)) for s in sources]
    return Reproduction.joined(made)


def _frontier(bench: Bench) -> Reproduction:
    found = {epsilon: _private(epsilon, bench) for epsilon in EPSILONS}
    pooled = {epsilon: pool(seeds)[HITS] for epsilon, seeds in found.items()}
    line = Line(
        EPSILONS,
        tuple(p.mean for p in pooled.values()),
        tuple(p.se or 0.0 for p in pooled.values()),
    )
    levels = {
        who: trials(who, bench).mean("hr", 20) for who in ("PrivRec", "popularity")
    }
    name = f"DP-PrivRec, sound, by epsilon ({bench.source}; {_GUARANTEE})"
    chart = Chart(
        name,
        "epsilon",
        "Hits@20",
        {"DP-PrivRec": line},
        levels,
        over=bench.over,
    )
    rows = tuple(
        Row(
            f"epsilon {epsilon:g}, Hits@20",
            None,
            None,
            p.mean,
            ok=True,
            se=p.se,
            beside={"hits@10": pool(found[epsilon])["hr_each@10"].mean, **levels},
            budget=f"{epsilon:g}",
        )
        for epsilon, p in pooled.items()
    )
    return Reproduction((ReproducedTable(name, rows),), (), (chart,))


def _private(epsilon: float, bench: Bench) -> tuple[Evaluation, ...]:
    """An evaluation a seed."""
    made = []
    for one in bench.each_seed():
        ours, people = AsWeWould(one), len(one.split().users)
        plan = replace(ours.dp_plan(people), target_epsilon=epsilon)
        made.append(after(ours.dp_privrec, plan, one))
    return tuple(made)
