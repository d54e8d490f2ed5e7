"""Table 5 (RQ1): every contender on original and on pre-processed data.

The paper compares the two on the users of each. Those who are left have more ratings,
and items that are left are more popular, so a ranking gets easier whatever a model
learns: popularity shows by how much. The fair question is what the same users gain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.data.contribution_bounds import by_recency
from tacit.experiment.assemble import load_dataset
from tacit.reproduction.cells import Found, Results
from tacit.reproduction.claims import Chance, is_above, on_shared_users
from tacit.reproduction.study import Table
from tacit.reproduction.tables import Claim, ReproducedTable, Reproduction, Row

from . import contenders
from .benches import MAIN, Bench, Data
from .rows import (
    apart,
    because_it_is_open,
    because_of_noise,
    because_of_steps,
    chance,
    not_run,
    printed_in,
    rows,
)

OWN = "DP-VAE"
SIDES: tuple[Data, ...] = ("OL", "PD")


def table_5(bench: Bench) -> Table:
    """OL and PD of DP-VAE with a constant clip, and of its rivals."""
    letter = {data: bench.paper(data, clip=bench.clip) for data in SIDES}
    sound = {data: bench.sound(data) for data in SIDES}
    rivals = [contenders.trained(bench, data, priors=False) for data in SIDES]

    def make(results: Results) -> Reproduction:
        found = {
            data: contenders.found(results, bench, data, priors=False)
            | {OWN: results[letter[data]], "sound": results[sound[data]]}
            for data in SIDES
        }
        made = tuple(row for data in SIDES for row in _rows(bench, data, found[data]))
        name = f"Table 5, original and pre-processed data ({bench.label})"
        claims = _claims(results, bench, found["OL"], found["PD"])
        return Reproduction((ReproducedTable(name, made),), claims)

    cells = (*letter.values(), *sound.values())
    return Table(make, (*cells, *(c for one in rivals for c in one.values())))


def _rows(bench: Bench, data: Data, found: dict[str, Found]) -> tuple[Row, ...]:
    popularity = found["popularity"]
    reasons = {
        OWN: because_of_noise(bench),
        "VAE": because_of_steps(bench, found["by Adam"], popularity),
    }
    made: list[Row] = []
    for who in (OWN, *contenders.RIVALS):
        label = f"{data}, {who}"
        printed = printed_in("table-5", bench.name, who, data)
        if who not in found:
            made += not_run(label, printed, contenders.NO_LIGHTFM)
            continue
        made += rows(
            label,
            found[who],
            printed,
            popularity=popularity,
            sound=found["sound"] if who == OWN else None,
            reason=reasons.get(who) or because_it_is_open(bench, popularity),
        )
    return tuple(made)


def _claims(
    results: Results, bench: Bench, before: dict[str, Found], after: dict[str, Found]
) -> tuple[Claim, ...]:
    """As the paper compares, and for users who are in both."""
    shown = {OWN: OWN, "sound": "sound DP-VAE", **{n: n for n in contenders.RIVALS}}
    there = {who: name for who, name in shown.items() if who in before}
    by = chance(results, bench, "PD")
    own = [
        apart(f"RQ1: {name} is better on PD", bench, after[who], before[who], by=by)
        for who, name in {**there, "popularity": "popularity"}.items()
    ]
    stay = who_stay(results, bench)
    same = [
        _of_the_same(
            f"RQ1: PD helps {name}", bench, after[who], before[who], stay, by=by
        )
        for who, name in there.items()
    ]
    return (*own, *same)


def who_stay(results: Results, bench: Bench) -> np.ndarray:
    """The users whom the construction keeps, by their number in the original data."""
    [one, *_] = bench.paper("PD", clip=bench.clip).experiments()

    def make() -> list[int]:
        log = by_recency(load_dataset(replace(one, construction=None)).interactions)
        assert one.construction is not None
        bounds = one.construction
        fewest = bounds.bound(bounds.least, n_items=log.n_items)
        return [int(user) for user in np.flatnonzero(log.per_user >= fewest)]

    inputs = {"data": one.resolved()["data"]}
    return np.array(results.measured(f"who stay {bench.name}", inputs, make))


def _of_the_same(
    text: str,
    bench: Bench,
    after: Found,
    before: Found,
    stay: np.ndarray,
    *,
    by: Chance,
) -> Claim:
    """That users who stay get better lists; the items held out differ."""
    renumbered = [replace(one, users=stay[one.users]) for one in after.evaluations]
    pair = on_shared_users(renumbered, before.evaluations)
    whole = f"{text}, of users who stay ({bench.label})"
    return is_above(whole, *pair, metric=MAIN, chance=by, name="NDCG@100")
