"""DP-PrivRec: Figures 3 to 5, and what its sound form gives at which epsilon.

Figures 3 and 4 set Hits@k of DP-PrivRec beside PrivRec's. Figure 5 varies the first
bound S and the quantile gamma on MovieLens. They are drawn without numbers, so what the
text says of them became claims. As we train, DP-PrivRec differs from PrivRec in more
than noise (it counts, and is smaller), so it stands beside itself with noise off.

The frontier is ours: DP-PrivRec in sound mode beside noisy popularity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from tacit.method import CentralGaussian, Method
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plan import Plan
from tacit.reproduction import Scale
from tacit.reproduction.claims import is_above
from tacit.reproduction.privrec.accuracy import hits_by_depth
from tacit.reproduction.privrec.benches import Bench, Source
from tacit.reproduction.privrec.courses import HITS, after, line
from tacit.reproduction.privrec.settings import DELTA, EPSILON, AsPublished, AsWeWould
from tacit.reproduction.privrec.trials import PUBLISHED, QUIET, trials
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)
from tacit.results import Evaluation, pool
from tacit.sampling import Everyone

GAMMAS = (0.1, 0.4, 0.7, 0.9)
BOUNDS = (20.0, 25.0, 30.0, 35.0, 40.0, 45.0)  # S at the start
EPSILONS = (1.0, 2.0, 4.0, 8.0)
_TOLERABLE = 0.1  # the gap that the paper finds
_GUARANTEE = (
    f"user, zero_out, release view, delta {DELTA:g}, the whole run, PLD, PROVEN with a "
    "trusted aggregator"
)

_WITHOUT_AND_WITH: Mapping[str, tuple[str, str]] = {
    "as published": (f"PrivRec{PUBLISHED}", f"DP-PrivRec{PUBLISHED}"),
    f"as we train, epsilon {EPSILON:g}": (QUIET, "DP-PrivRec"),
}


Seeds = tuple[Evaluation, ...]  # one a seed
Run = tuple[Method, Plan]


def figures_3_and_4(scale: Scale) -> Reproduction:
    """Both data sets, from the trials of Tables 1 and 2."""
    shown: dict[str, Source] = {"3": "movielens-1m", "4": "frappe"}
    return Reproduction.joined(
        [_with_and_without(n, s, scale) for n, s in shown.items()]
    )


def _with_and_without(number: str, source: Source, scale: Scale) -> Reproduction:
    bench, name = Bench(source, scale), f"Figure {number}: Hits@k on {source}"
    shown = ["PrivRec", *chain(*_WITHOUT_AND_WITH.values())]
    lines = {who: hits_by_depth(who, bench) for who in shown}
    claims = tuple(_gap(name, how, bench) for how in _WITHOUT_AND_WITH)
    chart = Chart(name, "k", "Hits@k", lines, over=bench.over)
    return Reproduction((), claims, (chart,))


def _gap(name: str, how: str, bench: Bench) -> Claim:
    bare, noisy = (trials(who, bench).mean("hr", 20) for who in _WITHOUT_AND_WITH[how])
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
    privacy = replace(literal.privacy, quantile=gamma, clip=bound)
    method = replace(literal.dp_privrec, privacy=privacy)
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
    found = {
        "DP-PrivRec": {e: _seeds(_private, e, bench) for e in EPSILONS},
        "noisy popularity": {e: _seeds(_popular, e, bench) for e in EPSILONS},
    }
    levels = {
        who: trials(who, bench).mean("hr", 20)
        for who in ("PrivRec", QUIET, "popularity")
    }
    name = f"DP-PrivRec, sound, by epsilon ({bench.source}; {_GUARANTEE})"
    lines = {who: _line(by_epsilon) for who, by_epsilon in found.items()}
    chart = Chart(name, "epsilon", "Hits@20", lines, levels, over=bench.over)
    rows = tuple(
        Row(
            f"{who}, epsilon {e:g}, Hits@20",
            None,
            None,
            pool(seeds)[HITS].mean,
            ok=True,
            se=pool(seeds)[HITS].se,
            beside={"hits@10": pool(seeds)["hr_each@10"].mean, **levels},
            budget=f"{e:g}",
        )
        for who, by_epsilon in found.items()
        for e, seeds in by_epsilon.items()
    )
    return Reproduction((ReproducedTable(name, rows),), (), (chart,))


def _line(by_epsilon: Mapping[float, Seeds]) -> Line:
    pooled = [pool(seeds)[HITS] for seeds in by_epsilon.values()]
    means, errors = (p.mean for p in pooled), (p.se or 0.0 for p in pooled)
    return Line(tuple(by_epsilon), tuple(means), tuple(errors))


def _seeds(own: Callable[[Bench], Run], epsilon: float, bench: Bench) -> Seeds:
    """The run of each seed, with this budget."""
    runs = [(*own(one), one) for one in bench.each_seed()]
    return tuple(
        after(method, replace(plan, target_epsilon=epsilon), one)
        for method, plan, one in runs
    )


def _private(bench: Bench) -> Run:
    ours = AsWeWould(bench)
    return ours.dp_privrec, ours.dp_plan(len(bench.split().users))


def _popular(bench: Bench) -> Run:
    """Everyone votes once."""
    _, plan = _private(bench)
    once = replace(plan, rounds=1, sampler=Everyone())
    return FederatedPopularity(privacy=CentralGaussian()), once
