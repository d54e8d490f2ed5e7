"""DP-PrivRec: Figures 3 to 5, and what its sound form gives at which epsilon.

Figures 3 and 4 set Hits@k of DP-PrivRec beside PrivRec's. Figure 5 varies the first
bound S and the quantile gamma on MovieLens. They are drawn without numbers, so what the
text says of them became claims. As we train, DP-PrivRec differs from PrivRec in more
than noise (it counts, and is smaller), so it stands beside itself with noise off.

The frontier is ours: DP-PrivRec in sound mode beside noisy popularity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from tacit.reproduction.cells import Cell, Found, Results
from tacit.reproduction.claims import Chance, is_above, is_learnt
from tacit.reproduction.study import Scale, Table
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)

from .accuracy import hits_by_depth
from .contenders import HITS, PUBLISHED, QUIET, Bench

HITS_20 = f"{HITS}@20"
GAMMAS = (0.1, 0.4, 0.7, 0.9)
BOUNDS = (20.0, 25.0, 30.0, 35.0, 40.0, 45.0)  # S at the start
EPSILONS: Mapping[Scale, tuple[float, ...]] = {
    "smoke": (8.0,),
    "quick": (1.0, 2.0, 4.0, 8.0),
    "full": (1.0, 2.0, 4.0, 8.0),
}
_TOLERABLE = 0.1  # the gap that the paper finds
_GUARANTEE = (
    "user, zero_out, release view, delta 1e-06, the whole run, PLD, PROVEN with a "
    "trusted aggregator"
)
_PAIRS: Mapping[str, tuple[str, str]] = {  # without noise, and with it
    "as published": (f"PrivRec{PUBLISHED}", f"DP-PrivRec{PUBLISHED}"),
    "as we train, epsilon 8": (QUIET, "DP-PrivRec"),
}


def figures_3_and_4(number: str, bench: Bench) -> Table:
    """One of the two, from the cells of Tables 1 and 2."""
    shown = ("PrivRec", *chain(*_PAIRS.values()))

    def make(results: Results) -> Reproduction:
        found = {who: bench.found(results, who) for who in shown}
        name = f"Figure {number}: Hits@k on {bench.label}"
        lines = {who: hits_by_depth(one) for who, one in found.items()}
        by = bench.chance(results)
        claims = tuple(_gap(name, how, found, by) for how in _PAIRS)
        chart = Chart(name, "k", "Hits@k", lines, over=bench.over)
        return Reproduction((), claims, (chart,))

    return Table(make, bench.trained(*shown))


def _gap(name: str, how: str, found: Mapping[str, Found], by: Chance) -> Claim:
    bare, noisy = (found[who].mean(HITS_20) for who in _PAIRS[how])
    claim = Claim(
        f"{name}: noise costs less than 10 % ({how})",
        noisy >= (1 - _TOLERABLE) * bare,
        f"Hits@20 {bare:.4f} without, {noisy:.4f} with",
    )
    # Where nothing is learnt there is nothing to lose.
    return is_learnt(claim, noisy, by[HITS_20])


def figure_5(bench: Bench) -> Table:
    """Algorithm 2 as printed, on MovieLens 1M."""
    is_full = bench.scale == "full"
    gammas = GAMMAS if is_full else (GAMMAS[0], GAMMAS[-1])
    bounds = BOUNDS if is_full else (BOUNDS[0], BOUNDS[-1])
    grid = {(g, s): _at(g, s, bench) for g in gammas for s in bounds}
    popularity, bare = (
        bench.cell(who, seeds=1) for who in ("popularity", f"PrivRec{PUBLISHED}")
    )

    def make(results: Results) -> Reproduction:
        found = {at: results[cell] for at, cell in grid.items()}
        rows = tuple(
            Row(
                f"gamma {gamma:g}, S = {bound:g}",
                None,
                one.mean(HITS_20),
                None,
                ok=True,
                se=one.se(HITS_20),
                beside={"popularity": results[popularity].mean(HITS_20)},
            )
            for (gamma, bound), one in found.items()
        )
        lines = {
            f"gamma {gamma:g}": _line({s: found[gamma, s] for s in bounds})
            for gamma in gammas
        }
        name = f"Figure 5: Hits@20 by gamma and the first S on {bench.label}"
        levels = {"without noise": results[bare].mean(HITS_20)}
        chart = Chart(name, "S", "Hits@20", lines, levels)
        table = ReproducedTable("Figure 5, Hits@20 as published", rows)
        claims = tuple(_said_of_5(found, bench.chance(results)))
        return Reproduction((table,), claims, (chart,))

    return Table(make, (*grid.values(), popularity, bare))


def _at(gamma: float, bound: float, bench: Bench) -> Cell:
    changes = (f"privacy.quantile={gamma}", f"privacy.clip={bound}")
    return bench.cell(f"DP-PrivRec{PUBLISHED}", *changes, seeds=1)


def _said_of_5(
    found: Mapping[tuple[float, float], Found], by: Chance
) -> Iterator[Claim]:
    """Each claim pairs the two ends of one axis over the whole other axis."""
    for axis, text, is_high_better in (
        (0, "Figure 5: a larger gamma is better", True),
        (1, "Figure 5: the largest first S is worse", False),
    ):
        places = sorted({at[axis] for at in found})
        low, high = (
            [e for at, one in found.items() if at[axis] == end for e in one.evaluations]
            for end in (places[0], places[-1])
        )
        pair = (high, low) if is_high_better else (low, high)
        yield is_above(text, *pair, metric=HITS_20, chance=by, name="Hits@20")


def frontier(bench: Bench) -> Table:
    """DP-PrivRec in sound mode at each epsilon, beside what knows no one."""
    cells = {
        who: {
            epsilon: bench.cell(who, f"privacy.target_epsilon={epsilon}")
            for epsilon in EPSILONS[bench.scale]
        }
        for who in ("DP-PrivRec", "noisy popularity")
    }
    across = ("PrivRec", QUIET, "popularity")

    def make(results: Results) -> Reproduction:
        levels = {who: bench.found(results, who).mean(HITS_20) for who in across}
        found = {
            who: {epsilon: results[cell] for epsilon, cell in of.items()}
            for who, of in cells.items()
        }
        rows = tuple(
            Row(
                f"{who}, epsilon {epsilon:g}, Hits@20",
                None,
                None,
                one.mean(HITS_20),
                ok=True,
                se=one.se(HITS_20),
                beside={"Hits@10": one.mean(f"{HITS}@10"), **levels},
                budget=f"{epsilon:g}",
            )
            for who, of in found.items()
            for epsilon, one in of.items()
        )
        name = f"DP-PrivRec, sound, by epsilon ({bench.label}; {_GUARANTEE})"
        lines = {who: _line(of) for who, of in found.items()}
        chart = Chart(name, "epsilon", "Hits@20", lines, levels, over=bench.over)
        return Reproduction((ReproducedTable(name, rows),), (), (chart,))

    own = (cell for of in cells.values() for cell in of.values())
    return Table(make, (*own, *bench.trained(*across)))


def _line(found: Mapping[float, Found]) -> Line:
    means = (one.mean(HITS_20) for one in found.values())
    errors = (one.se(HITS_20) or 0.0 for one in found.values())
    return Line(tuple(found), tuple(means), tuple(errors))
