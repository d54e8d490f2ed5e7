"""FMF-LDP (Minto et al. 2021): Figures 2 to 5 and the costs of Section 5.3.

The text names more than one gradient of the item factors; the table `gradients` has
HR@10 of each.

MovieLens 20M is not redistributable. Where its archive is at hand, a full run has the
paper's nine subsets of it. It was not for our figures: cells are subsets of MovieLens
1M, and of one invented world that was frozen before anything was trained on it. A row
has the published figure, ours in paper mode, and ours in sound mode at a total that
costs what the paper says a run costs; beside them popularity, non-private matrix
factorization and a random order, judged alike.

Epsilons of a row are a user's, for the whole run; shuffled ones at delta 1e-6, if the
relay does not side with the server and waits for everyone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.experiment.assemble import assemble, load_dataset
from tacit.release import View
from tacit.reproduction.cells import Cell, Found, Results, has_data
from tacit.reproduction.chance import best_by_chance
from tacit.reproduction.claims import is_above, is_close, on_shared_users
from tacit.reproduction.published import Published
from tacit.reproduction.study import Scale, Study, Table
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
    is_near,
)

from .communication import communication

EXPERIMENTS = Path(__file__).parents[2] / "experiments" / "fmf_ldp"
PUBLISHED = Published.read(Path(__file__).parent / "published.toml")

CLOSE = 0.03  # of HR@10; seeds and users move it by .01
HR = "hr@10"
DEPTHS = ("hr@2", "hr@5", "hr@10")
VOTES = (1, 50, 100, 250)  # k of Figure 2
USUAL = 2.5  # the epsilon of a report in Figures 3, 4 and 5
CHANCE = 10 / 100  # of an item among 99 others
CURVE_EPOCHS = 30  # Figure 3
EARLY = 10  # "after only 5-10 epochs", Section 4.4.2
PRINTED_RATE = "method.learning_rate=1e-3"  # Section 4.3
RIVALS = {"popularity": "popularity", "MF-NP": "ials", "random": "random"}
LATER = "not run at this scale; use --scale full"


@dataclass(frozen=True)
class Bench:
    """A data set and the sizes of its cells, the smallest first; None is all.

    `kept` and `unfiltered` are the users and items that the data set has after the
    paper's filter, and without it.
    """

    source: str
    users: tuple[int | None, ...]
    items: tuple[int | None, ...]
    whole: tuple[int | None, int | None]  # of Figure 5
    epsilons: tuple[float, ...]
    kept: tuple[int, int]
    unfiltered: tuple[int, int]
    judged: int  # users who are ranked for, at most
    seeds: int = 1
    every: int = 5  # epochs between two looks, in Figure 3
    changes: tuple[str, ...] = ()  # what makes the experiment files fit the data

    def cell(
        self,
        users: int | None = None,
        items: int | None = None,
        *changes: str,
        file: str = "figure4",
        choose: str = "random",
    ) -> Cell:
        """FMF-LDP as printed on some users and items, with more changes."""
        sizes = {"users": users, "items": items}
        given = [f"{name} = {size}" for name, size in sizes.items() if size]
        subset = ", ".join([*given, f"choose = '{choose}'"])
        return Cell(EXPERIMENTS / f"{file}.toml", seeds=self.seeds).but(
            f"data.source={self.source}",
            f"evaluate.max_users={self.judged}",
            *self.changes,
            f"data.subset={{{subset}}}",
            *changes,
        )

    def many(self, *changes: str, file: str = "figure4") -> Cell:
        """Most users, fewest items: where most can be learnt."""
        return self.cell(self.users[-1], self.items[0], *changes, file=file)

    def popular(self, *changes: str, file: str = "figure4") -> Cell:
        """As `many`, of the most popular items and of anybody."""
        sizes, everybody = (self.users[-1], self.items[0]), unfiltered()
        return self.cell(*sizes, *everybody, *changes, file=file, choose="popular")

    def label(self, users: int | None, items: int | None, rule: str = "") -> str:
        """The size of a cell in words."""
        there = self.unfiltered if "not filtered" in rule else self.kept
        kind = "most popular items" if "popular" in rule else "items"
        added = ", not filtered" if "not filtered" in rule else ""
        return f"{users or there[0]:,} users × {items or there[1]:,} {kind}{added}"


POPULAR = "popular, not filtered"
ML_1M = Bench(
    "movielens-1m",
    users=(1_000, None),
    items=(1_000, None),
    whole=(None, None),
    epsilons=(0.5, USUAL, 5.0),
    kept=(3_900, 2_392),
    unfiltered=(6_040, 3_706),
    judged=4_000,
    seeds=3,
)
SMALL_WORLD = replace(
    ML_1M,
    source="synthetic-fmf-ldp-small",
    kept=(3_925, 3_818),
    unfiltered=(6_040, 12_400),
    seeds=1,
)
FROZEN = Bench(
    "synthetic-fmf-ldp",
    users=(1_000, 10_000, 50_000),
    items=(1_000, 5_000, 9_781),
    whole=(75_040, 9_781),
    epsilons=(0.5, 1.0, USUAL, 5.0),
    kept=(75_560, 9_878),
    unfiltered=(112_600, 12_400),
    judged=10_000,
)
ML_20M = replace(
    FROZEN,
    source="movielens-20m",
    items=(1_000, 5_000, None),
    whole=(None, None),
    kept=(75_040, 9_781),  # Section 4.1
    unfiltered=(138_493, 26_744),
    seeds=3,
)
SMOKE = Bench(
    "synthetic",
    users=(40, None),
    items=(160, None),
    whole=(None, None),
    epsilons=(0.5, USUAL),
    kept=(160, 260),
    unfiltered=(160, 260),
    judged=100,
    every=1,
    changes=(
        "data.world={users = 160, items = 260, events_per_user = 40.0, "
        "activity_spread = 0.2, popularity_exponent = 1.2, repeats = 0.0}",
        "data.min_interactions=1",
        "data.min_users=1",
        # To compose what a relay hides takes longer than to train on so small a world.
        "privacy.channel=direct",
        "privacy.min_contributors=1",
    ),
)


def study(scale: Scale) -> Study:
    """Every figure on every bench of the scale."""
    on = benches(scale)
    epochs = 2 if scale == "smoke" else None
    figures: Mapping[str, Callable[[Bench, int | None], Table]] = {
        "2": figure_2,
        "3": figure_3,
        "4": figure_4,
        "5": figure_5,
    }
    tables = {
        number: Table.joined([make(bench, epochs) for bench in on])
        for number, make in figures.items()
    }
    tables["4"] = with_cells_not_run(tables["4"])
    tables["gradients"] = gradients(on[0], epochs)
    tables["4.1"] = section_4_1(on)
    published = PUBLISHED["section-5-3"]
    tables["5.3"] = Table(lambda _: communication(published, EXPERIMENTS))
    return Study("fmf-ldp", tables)


def benches(scale: Scale) -> tuple[Bench, ...]:
    """Quick: real data, or a small world without them.

    Full: MovieLens 20M too, or the world of its size without it.
    """
    if scale == "smoke":
        return (SMOKE,)
    real = (ML_1M,) if has_data(ML_1M.source) else ()
    if scale == "full":
        return (*real, ML_20M if has_data(ML_20M.source) else FROZEN)
    return real or (SMALL_WORLD,)


# --- Rows and claims that several figures have ----------------------------------------


def votes(k: int, each: float = USUAL) -> tuple[str, str]:
    """K reports, each with its own epsilon."""
    return f"privacy.votes={k}", f"privacy.epsilon={each}"


def unfiltered() -> tuple[str, str]:
    """Anybody and anything, however few events they have."""
    return "data.min_interactions=1", "data.min_users=1"


def during(epochs: int | None, *cells: Cell) -> tuple[Cell, ...]:
    """The cells with fewer epochs, where the scale has fewer."""
    if epochs is None:
        return cells
    return tuple(cell.but(f"run.rounds={epochs}") for cell in cells)


def rivals(cell: Cell) -> dict[str, Cell]:
    """What stands beside a cell of FMF-LDP, on the same users and items."""
    return {name: alone(cell, ranker) for name, ranker in RIVALS.items()}


def alone(cell: Cell, ranker: str) -> Cell:
    """A baseline of the cell; what only the method reads makes no other cell of it."""
    own = ("privacy.", "method.", "run.")
    kept = tuple(change for change in cell.changes if not change.startswith(own))
    return replace(cell, changes=kept).beside(ranker)


def row(
    results: Results,
    label: str,
    cell: Cell,
    *,
    published: float | None = None,
    sound: Cell | None = None,
    others: Mapping[str, Cell] | None = None,
) -> Row:
    """HR@10 of a cell with all that stands beside it."""
    found = results[cell]
    beside = {name: results[c].mean(HR) for name, c in rivals(cell).items()}
    beside |= {name: results[c].mean(HR) for name, c in (others or {}).items()}
    popularity = results[alone(cell, "popularity")]
    beside["full ranking"] = found.mean_among_all(HR)
    beside["popularity, full ranking"] = popularity.mean_among_all(HR)
    ok = is_near(found.mean(HR), published, within=CLOSE)
    return Row(
        label,
        published,
        paper=found.mean(HR),
        sound=None if sound is None else results[sound].mean(HR),
        ok=ok,
        note="" if sound is None else "sound: 250 in all, local",
        reason="" if ok else why(cell, beside),
        budget=budget(found),
        beside=beside,
        se=found.se(HR),
    )


def why(cell: Cell, beside: Mapping[str, float]) -> str:
    """Why a figure on other data is not the published one."""
    source = _source(cell)
    place = "there" if source == ML_20M.source else f"measured on {source}, where"
    return (
        f"published on MovieLens 20M, {place} popularity has "
        f"{beside['popularity']:.2f} and MF-NP {beside['MF-NP']:.2f} under the same "
        "protocol; docs/reproduction/fmf_ldp.md"
    )


def budget(found: Found) -> str:
    """What a user spends in a run, from the account of the run."""
    local, mixed = found.spent(View.COLLUSION), found.spent(View.SERVER)
    if local is None:
        return "not private"
    shuffled = "" if mixed in (None, local) else f", {mixed:,.4g} shuffled"
    return f"{local:,.0f} local{shuffled}"


def rises(results: Results, text: str, less: Cell, more: Cell) -> Claim:
    """That HR@10 of `more` is above that of `less`, on the users both judged."""
    pair = on_shared_users(results[more].evaluations, results[less].evaluations)
    by = best_by_chance(results, more)
    whole = f"{_source(more)}: {text}"
    return is_above(whole, *pair, metric=HR, chance=by, name="HR@10")


def _source(cell: Cell) -> str:
    return cell.experiments()[0].data.source


def points(found: Mapping[float, Found], metric: str = HR) -> Line:
    """A line of a chart."""
    each = found.values()
    means, errors = [f.mean(metric) for f in each], [f.se(metric) or 0.0 for f in each]
    return Line(tuple(found), tuple(means), tuple(errors))


# --- Figure 2: HR@10 against the epsilon of a report, for each k and number of users --


def figure_2(bench: Bench, epochs: int | None) -> Table:
    """The paper prints no numbers here; what its text says became claims."""
    sizes = dict.fromkeys(bench.users, bench.epsilons)
    sizes[bench.users[0]] = (USUAL,)  # where nothing is learnt, one epsilon shows it
    cells = {
        (users, k, each): during(
            epochs, bench.cell(users, bench.items[0], *votes(k, each))
        )[0]
        for users, epsilons in sizes.items()
        for k in VOTES
        for each in epsilons
    }
    many, few = bench.users[-1], bench.users[0]
    five_seeds = replace(cells[many, 1, USUAL], seeds=5)

    def make(results: Results) -> Reproduction:
        def label(users: int | None, k: int, each: float) -> str:
            return f"{bench.label(users, bench.items[0])}, k = {k}, {each:g} a report"

        rows = tuple(row(results, label(*at), cell) for at, cell in cells.items())
        name = f"Figure 2, HR@10 ({bench.source})"
        usual = {k: cells[many, k, USUAL] for k in VOTES}
        low, high = bench.epsilons[0], bench.epsilons[-1]
        weak, strong = cells[many, 100, low], cells[many, 100, high]
        claims = (
            one_report_is_random(results[five_seeds], bench),
            rises(results, "100 reports beat 1", usual[1], usual[100]),
            rises(results, "100 reports beat 50", usual[50], usual[100]),
            rises(results, "250 reports beat 100", usual[100], usual[250]),
            rises(results, f"{high:g} a report beats {low:g}", weak, strong),
            rises(results, "more users help", cells[few, 100, USUAL], usual[100]),
        )
        charts = tuple(
            _chart_2(results, bench, users, epsilons, cells)
            for users, epsilons in sizes.items()
            if len(epsilons) > 1
        )
        return Reproduction((ReproducedTable(name, rows),), claims, charts)

    beside = (c for cell in cells.values() for c in rivals(cell).values())
    return Table(make, (*cells.values(), *beside, five_seeds))


def one_report_is_random(found: Found, bench: Bench) -> Claim:
    """That k = 1 is random.

    Over seeds, not users: nearly untrained factors favor some items by chance, for
    everyone.
    """
    mean, se, n = found.mean(HR), found.se(HR), len(found.evaluations)
    evidence = f"HR@10 {mean:.3f} ± {se:.3f} over {n} seeds"
    is_random = abs(mean - CHANCE) <= CLOSE
    return Claim(f"{bench.source}: k = 1 is random", is_random, evidence)


def _chart_2(
    results: Results,
    bench: Bench,
    users: int | None,
    epsilons: tuple[float, ...],
    cells: Mapping[tuple[int | None, int, float], Cell],
) -> Chart:
    lines = {
        f"k = {k}": points({e: results[cells[users, k, e]] for e in epsilons})
        for k in VOTES
    }
    popularity = results[alone(cells[users, 1, epsilons[0]], "popularity")]
    name = f"Figure 2: {bench.source}, {bench.label(users, bench.items[0])}"
    levels = {"popularity": popularity.mean(HR)}
    over = "users" if bench.seeds == 1 else "seeds"
    return Chart(name, "epsilon of one report", "HR@10", lines, levels, over)


# --- Figure 3: HR@10 on validation items against the epoch ----------------------------


def figure_3(bench: Bench, epochs: int | None) -> Table:
    """Two numbers of users, two of reports, 30 epochs."""
    length = epochs or CURVE_EPOCHS
    looks = (f"run.rounds={length}", f"evaluate.every={bench.every}")
    cells = {
        (users, k): replace(
            bench.cell(users, bench.items[0], *votes(k), *looks), seeds=1
        )
        for users in bench.users[-2:]
        for k in (50, 100)
    }

    def make(results: Results) -> Reproduction:
        curves = {at: results[cell].curve(HR) for at, cell in cells.items()}
        names = {
            at: f"{bench.label(at[0], bench.items[0])}, k = {at[1]}" for at in cells
        }
        rows = tuple(
            Row(
                f"{names[at]}, epoch {epoch:g}",
                None,
                paper=mean,
                sound=None,
                ok=True,
                budget=f"{at[1] * USUAL * epoch:,.0f} local",
                se=se,
            )
            for at, curve in curves.items()
            for epoch, mean, se in zip(curve.x, curve.y, curve.se, strict=True)
        )
        name = f"Figure 3, HR@10 on validation items ({bench.source})"
        lines = {names[at]: curve for at, curve in curves.items()}
        chart = Chart(name, "epoch", "HR@10", lines)
        claim = learns_early(bench, list(curves.values()))
        return Reproduction((ReproducedTable(name, rows),), (claim,), (chart,))

    return Table(make, tuple(cells.values()))


def learns_early(bench: Bench, curves: list[Line]) -> Claim:
    """That HR@10 passes 0.5 within ten epochs."""
    best = max(
        mean
        for curve in curves
        for epoch, mean in zip(curve.x, curve.y, strict=True)
        if epoch <= EARLY
    )
    return Claim(
        f"{bench.source}: HR@10 > 0.5 after 5 to 10 epochs",
        best > 0.5,
        f"the best of {len(curves)} runs has {best:.3f} by then",
    )


# --- Figure 4: HR@10 for users × items, and what the choice of items does to it ------


def figure_4(bench: Bench, epochs: int | None) -> Table:
    """Every size, then the most popular items of anybody."""
    sizes: list[tuple[int | None, int | None, str]] = [
        (users, items, "") for users in bench.users for items in bench.items
    ]
    sizes.append((bench.users[-1], bench.items[0], POPULAR))
    ours = {size: during(epochs, *_trio(bench, *size)) for size in sizes}
    readings = _readings(bench)

    def make(results: Results) -> Reproduction:
        rows = tuple(
            row(
                results,
                bench.label(*size),
                paper,
                published=_published_4(bench, *size),
                sound=sound,
                others={"printed rate": printed},
            )
            for size, (paper, printed, sound) in ours.items()
        )
        name = f"Figure 4, HR@10 ({bench.source})"
        alone_rows = tuple(
            _alone_row(results, text, cell) for text, cell in readings.items()
        )
        tables = (
            ReproducedTable(name, rows),
            ReproducedTable(
                f"Popularity alone among 99 negatives ({bench.source})", alone_rows
            ),
        )
        chart = _chart_4(results, bench, name, {s: c[0] for s, c in ours.items()})
        return Reproduction(tables, _claims_4(results, bench, ours), (chart,))

    cells = [cell for trio in ours.values() for cell in trio]
    beside = [c for trio in ours.values() for c in rivals(trio[0]).values()]
    read = [alone(c, r) for c in readings.values() for r in ("popularity", "ials")]
    return Table(make, (*cells, *beside, *read))


def _trio(
    bench: Bench, users: int | None, items: int | None, rule: str
) -> tuple[Cell, Cell, Cell]:
    """Paper mode, the same at the printed learning rate, and sound mode."""
    everybody = unfiltered() if rule == POPULAR else ()
    choose = "popular" if rule == POPULAR else "random"
    paper, sound = (
        bench.cell(users, items, *everybody, file=file, choose=choose)
        for file in ("figure4", "figure4-sound")
    )
    return paper, paper.but(PRINTED_RATE), sound


def _published_4(
    bench: Bench, users: int | None, items: int | None, rule: str
) -> float | None:
    """Of the paper's cells, whose items are drawn at random."""
    size = f"{users or bench.kept[0]} x {items or bench.kept[1]}"
    return None if rule else PUBLISHED["figure-4"].value(size)


def _claims_4(
    results: Results,
    bench: Bench,
    ours: Mapping[tuple[int | None, int | None, str], tuple[Cell, ...]],
) -> tuple[Claim, ...]:
    few, many = (ours[bench.users[-1], bench.items[at], ""][0] for at in (0, -1))
    size = (bench.users[-1], bench.items[0], POPULAR)
    paper, printed, _ = ours[size]
    label, popularity = bench.label(*size), results[alone(paper, "popularity")]
    return (
        rises(results, "more items hurt", many, few),
        is_close(
            f"{bench.source}: it reaches popularity ({label})",
            *on_shared_users(results[paper].evaluations, popularity.evaluations),
            metric=HR,
            within=CLOSE,
            chance=best_by_chance(results, paper),
            name="HR@10",
        ),
        rises(
            results,
            f"a tenth of the printed learning rate does better ({label})",
            printed,
            paper,
        ),
    )


def _chart_4(
    results: Results,
    bench: Bench,
    name: str,
    cells: Mapping[tuple[int | None, int | None, str], Cell],
) -> Chart:
    lines = {
        f"{users:,} users" if users else "all users": points(
            {
                float(items or bench.kept[1]): results[cells[users, items, ""]]
                for items in bench.items
            }
        )
        for users in bench.users
    }
    over = "users" if bench.seeds == 1 else "seeds"
    return Chart(name, "items", "HR@10", lines, over=over)


def _readings(bench: Bench) -> dict[str, Cell]:
    """Every reading of "sampled items", the fewest of them first."""
    users, few, most = bench.users[-1], bench.items[0], bench.items[-1]
    label = bench.label
    return {
        label(users, few, POPULAR): bench.popular(),
        label(users, few, "popular"): bench.cell(users, few, choose="popular"),
        label(users, few): bench.many(),
        label(users, most): bench.cell(users, most),
        label(users, None, "not filtered"): bench.cell(users, None, *unfiltered()),
    }


def _alone_row(results: Results, label: str, cell: Cell) -> Row:
    """Popularity among 99 negatives, and how many clicks the popular items have."""
    found = results[alone(cell, "popularity")]
    first = cell.experiments()[0]
    share = results.measured(
        f"clicks {cell.folder}",
        {"data": first.resolved()["data"]},
        lambda: _top_tenth(cell),
    )
    return Row(
        label,
        published=None,
        paper=found.mean(HR),
        sound=None,
        ok=True,
        note=f"a tenth of the items has {share:.0%} of the clicks",
        beside={"MF-NP": results[alone(cell, "ials")].mean(HR)},
        se=found.se(HR),
    )


def _top_tenth(cell: Cell) -> float:
    split = assemble(cell.experiments()[0]).split
    counts = np.sort(split.train.log.per_item)[::-1]
    return float(counts[: max(1, len(counts) // 10)].sum() / counts.sum())


def with_cells_not_run(table: Table) -> Table:
    """Figure 4, and a row for each published cell that no bench has."""

    def make(results: Results) -> Reproduction:
        made = table.make(results)
        done = {row.published for one in made.tables for row in one.rows}
        values = PUBLISHED["figure-4"].values
        later = tuple(
            Row(f"{size} items", figure, None, None, False, reason=LATER)
            for size, figure in values.items()
            if figure not in done
        )
        left = (ReproducedTable("Figure 4, cells not run", later),) if later else ()
        return replace(made, tables=(*made.tables, *left))

    return replace(table, make=make)


# --- Figure 5: HR@2, 5 and 10 of private and non-private rivals on the latest item ----


def figure_5(bench: Bench, epochs: int | None) -> Table:
    """The latest item of everyone, as in the paper of DPLCF."""
    latest = "data.split=leave-latest-out"
    n_items = bench.whole[1] or bench.kept[1]
    paper = bench.cell(*bench.whole, latest)
    dplcf = bench.cell(*bench.whole, f"privacy.epsilon={USUAL * n_items}", file="dplcf")
    hundred, more = during(epochs, paper.but(*votes(100)), paper.but(*votes(250)))
    cells = {
        "MF-NP": alone(paper, "ials"),
        "DPLCF": dplcf,
        "FMF-LDP-100": hundred,
        "FMF-LDP-250": more,
        "popularity": alone(paper, "popularity"),
        "random": alone(paper, "random"),
    }
    orders = (
        ("random", "FMF-LDP-100"),
        ("FMF-LDP-250", "MF-NP"),
        ("FMF-LDP-250", "DPLCF"),
        ("popularity", "FMF-LDP-250"),
    )

    def make(results: Results) -> Reproduction:
        found = {name: results[cell] for name, cell in cells.items()}
        rows = tuple(
            _row_5(found, name, depth, cells[name])
            for name in cells
            for depth in DEPTHS
        )
        name = (
            f"Figure 5, the latest item ({bench.source}, {bench.label(*bench.whole)})"
        )
        claims = tuple(
            rises(results, f"{more} beats {less}", cells[less], cells[more])
            for less, more in orders
        )
        lines = {who: _line_5(one) for who, one in found.items()}
        over = "users" if bench.seeds == 1 else "seeds"
        chart = Chart(name, "K", "HR@K", lines, over=over)
        return Reproduction((ReproducedTable(name, rows),), claims, (chart,))

    return Table(make, tuple(cells.values()))


def _row_5(found: Mapping[str, Found], name: str, depth: str, cell: Cell) -> Row:
    published = PUBLISHED["figure-5"].value(name, depth)
    ours = found[name]
    ok = is_near(ours.mean(depth), published, within=CLOSE)
    others = {n: found[n].mean(HR) for n in ("popularity", "MF-NP")}
    return Row(
        f"{name}, {depth.upper()}",
        published,
        paper=ours.mean(depth),
        sound=None,
        ok=ok,
        reason="" if ok else why(cell, others),
        budget=budget(ours),
        beside={"full ranking": ours.mean_among_all(depth)},
        se=ours.se(depth),
    )


def _line_5(found: Found) -> Line:
    depths = tuple(float(depth.partition("@")[2]) for depth in DEPTHS)
    return Line(
        depths,
        tuple(found.mean(depth) for depth in DEPTHS),
        tuple(found.se(depth) or 0.0 for depth in DEPTHS),
    )


# --- Section 4.1: users, films and interactions after the filter ----------------------

NEAR = 0.005  # of a count: the paper does not say in which order it drops


def section_4_1(on: tuple[Bench, ...]) -> Table:
    """Counts on MovieLens 20M, where it is at hand; nothing is trained."""
    bench = next((one for one in on if one.source == ML_20M.source), None)

    def make(results: Results) -> Reproduction:
        counts = {} if bench is None else _counts(results, bench)
        values = PUBLISHED["section-4-1"].values
        rows = tuple(
            _count_row(what, values[what], counts.get(what)) for what in values
        )
        name = "Section 4.1, MovieLens 20M after the filter"
        return Reproduction((ReproducedTable(name, rows),), ())

    return Table(make)


def _counts(results: Results, bench: Bench) -> dict[str, float]:
    [first, *_] = bench.cell().experiments()

    def make() -> dict[str, float]:
        log = load_dataset(first).interactions
        n_pairs = log.n_users * log.n_items
        return {
            "users": log.n_users,
            "films": log.n_items,
            "interactions": len(log.items),
            "sparsity": 1 - len(log.items) / n_pairs,
        }

    data = first.resolved()["data"]
    counts: dict[str, float] = results.measured("section 4.1", {"data": data}, make)
    return counts


def _count_row(what: str, published: float, count: float | None) -> Row:
    if count is None:
        absent = f"{ML_20M.source} is not at hand, or {LATER}"
        return Row(what, published, None, None, False, reason=absent)
    ok = is_near(count, published, within=NEAR * published)
    reason = "" if ok else "the paper does not say in which order it drops"
    return Row(what, published, count, None, ok, reason=reason)


# --- The gradients that the text names ------------------------------------------------

READINGS = {
    "-2 f + 2 lambda v: Section 3.2": ("equation 7",),
    "-2 f: Equation 6, ours": ("equation 6",),
    "f: Algorithm 2, line 5": ("line 5",),
    "-f: the same, negated": ("line 5, negated",),
    "-f, twice the step": ("line 5, negated", "method.learning_rate=2e-4"),
}


def gradients(bench: Bench, epochs: int | None) -> Table:
    """HR@10 of each reading, at Figure 4's learning rate and at the printed one."""

    def cell(gradient: str, *changes: str) -> Cell:
        read = f"method.gradient='{gradient}'"
        return during(epochs, bench.cell(*bench.whole, read, *changes))[0]

    ours = {label: cell(*reading) for label, reading in READINGS.items()}
    printed = {label: one.but(PRINTED_RATE) for label, one in ours.items()}

    def make(results: Results) -> Reproduction:
        rows = tuple(
            _row_of_reading(results, *at, printed[at[0]]) for at in ours.items()
        )
        name = f"The gradients that the text names, HR@10 ({bench.source})"
        return Reproduction((ReproducedTable(name, rows),), ())

    beside = (c for one in ours.values() for c in rivals(one).values())
    return Table(make, (*ours.values(), *printed.values(), *beside))


def _row_of_reading(results: Results, label: str, cell: Cell, printed: Cell) -> Row:
    found = row(results, label, cell, others={"printed rate": printed})
    depths = {depth: results[cell].mean(depth) for depth in DEPTHS if depth != HR}
    return replace(found, beside={**found.beside, **depths})
