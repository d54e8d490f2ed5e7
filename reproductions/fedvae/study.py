"""FedVAE (Polato 2021): Table II, Figure 1 on its five data sets, and poisoning.

Figure 1 draws nDCG and recall by epoch and states no number; what the text says of it
became claims. What a claim asks was written down before its curves were made.

    figure_1    curves, rows, charts and claims of every data set
    poisoning   the paper says that Krum makes it robust; here are attacks
    attacked    train one cell among attackers
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tacit.data.splits import Heldout, Split
from tacit.experiment.assemble import divide, load_dataset
from tacit.reproduction.cells import has_data
from tacit.reproduction.published import Published
from tacit.reproduction.study import Scale, Study, Table
from tacit.reproduction.tables import ReproducedTable, Reproduction, Row, is_near

from .figure_1 import GAMMAS, Bench, figure_1
from .poisoning import poisoning

TABLE_2 = Published.read(Path(__file__).parent / "published.toml")["table-2"]
FILES = {  # of experiments/fedvae, by data set in the order of Table II
    "movielens-1m": "ml1m",
    "citeulike-a": "citeulike",
    "steam-200k": "steam",
    "lastfm": "lastfm",
    "filmtrust": "filmtrust",
}
QUICK_EPOCHS = {"lastfm": 4, "filmtrust": 20}
SMALL_WORLD = Bench(  # stands in where no archive is at hand
    "synthetic", "filmtrust", 1_300, 150, 20, changes=("data.source=synthetic",)
)
SMOKE = replace(
    SMALL_WORLD,
    trained=40,
    cohort=20,
    epochs=3,
    changes=(
        *SMALL_WORLD.changes,
        "data.world={users = 240, items = 30, events_per_user = 8.0, repeats = 0.0}",
        "method.hidden=[8]",
        "method.latent=4",
        "run.sampler.size=20",
        "evaluate.every=4",
        "evaluate.baseline_settings.mult_vae={hidden = [8], latent = 4, batch = 20}",
    ),
)
LATER = "not run at this scale; use --scale full"
SPLITS = 20  # whom the paper held out is unknown, and its counts depend on it
REASONS = {
    "citeulike-a, ratings": "the paper has one more a user, most likely the length "
    "that begins each line of the file; docs/data.md"
}


def study(scale: Scale) -> Study:
    """Table II, Figure 1 on every data set of the scale, and poisoning."""
    is_smoke = scale == "smoke"
    here = [] if is_smoke else [source for source in FILES if has_data(source)]
    on = benches(scale, here)
    counted = on if is_smoke else [of_paper(source) for source in here]
    later = FILES if is_smoke else here
    tables = {
        "II": Table(lambda _: table_2(counted, _absent(counted, later))),
        "1": figure_1(on, _absent(on, later)),
        "poisoning": poisoning(scale),
    }
    return Study("fedvae", tables)


def benches(scale: Scale, here: Collection[str]) -> list[Bench]:
    """Quick: the two smallest sets, or a small world. Full: all that are at hand.

    A round costs in proportion to the number of items, so only FilmTrust gets every
    gamma; elsewhere it is 5, the paper's own choice.
    """
    if scale == "smoke":
        return [SMOKE]
    full = [of_paper(source) for source in here]
    if scale == "full":
        return [
            replace(b, gammas=GAMMAS) if b.source == "filmtrust" else b for b in full
        ]
    quick = [
        replace(bench, epochs=QUICK_EPOCHS[bench.source])
        for bench in full
        if bench.source in QUICK_EPOCHS
    ]
    return quick or [SMALL_WORLD]


def of_paper(source: str) -> Bench:
    """A data set with the paper's sizes, from Table II."""
    line = TABLE_2.values[source]
    trained = line["users"] - line["held_out"]
    return Bench(source, FILES[source], trained, line["cohort"])


def _absent(on: Collection[Bench], later: Collection[str]) -> tuple[Row, ...]:
    """A row for each data set of the paper that is not used, which says why."""
    used = {bench.source for bench in on}
    return tuple(_no_row(s, is_later=s in later) for s in FILES if s not in used)


def _no_row(source: str, *, is_later: bool) -> Row:
    remedy = f"`tacit data describe {source}` says where it is published"
    reason = LATER if is_later else f"the archive is not at hand; {remedy}"
    return Row(source, None, None, None, False, reason=reason)


# --- Table II: users, items and ratings of the data sets after the paper's rules ------


def table_2(on: Collection[Bench], absent: tuple[Row, ...]) -> Reproduction:
    """Counted on every data set that is at hand; nothing is trained."""
    rows = tuple(
        count_row(f"{bench.source}, {what}", found)
        for bench in on
        for what, found in counts(bench).items()
    )
    name = "Table II, users, items and ratings after the paper's rules"
    return Reproduction((ReproducedTable(name, (*rows, *absent)),), ())


def counts(bench: Bench) -> dict[str, list[int]]:
    """Everyone, the items that training users have, and everyone's ratings of them.

    Who is held out is unknown, so one count per split.
    """
    experiments = replace(bench.cell(), seeds=SPLITS).experiments()
    dataset = load_dataset(experiments[0])
    splits = [divide(experiment, dataset) for experiment in experiments]
    return {
        "users": [dataset.interactions.n_users] * SPLITS,
        "items": [len(split.catalog) for split in splits],
        "ratings": [_ratings(split) for split in splits],
    }


def _ratings(split: Split) -> int:
    hold = [split.train]
    for half in (split.validation, split.test):
        assert isinstance(half, Heldout)
        hold += [half.history, half.targets]
    return sum(len(shards.log.distinct()) for shards in hold)


def count_row(label: str, found: Sequence[int]) -> Row:
    """The mean over splits; near if the published one is within two deviations."""
    published = TABLE_2.value(*label.split(", "))
    mean, deviation = float(np.mean(found)), float(np.std(found, ddof=1))
    is_close = is_near(mean, published, within=2 * deviation)
    note = f"± {deviation:.0f}, one deviation over {len(found)} splits"
    reason = "" if is_close else REASONS.get(label, "")
    return Row(label, published, mean, None, is_close, note=note, reason=reason)
