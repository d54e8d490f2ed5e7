"""Rows, budgets and claims that several tables have."""

from __future__ import annotations

import math
from collections.abc import Callable

from tacit.release import View
from tacit.reproduction.cells import Found, Results
from tacit.reproduction.chance import best_by_chance
from tacit.reproduction.claims import Chance, is_above, is_learnt
from tacit.reproduction.tables import (
    DIVERGED,
    Claim,
    ReproducedTable,
    Reproduction,
    Row,
    is_near,
)

from .benches import MAIN, METRICS, MOST_EPSILON, PUBLISHED, Bench, Data
from .noise import noise_of_batch

CLOSE = 0.01  # the paper prints two digits
LATER = "not run at this scale; use --scale full"
NO_WORDS = (
    "no file of word vectors is at hand; put GloVe's 50 dimensions "
    "(glove.6B.50d.txt, https://nlp.stanford.edu/projects/glove/) into $TACIT_DATA"
)
_BATCH = "docs/errata/dpvae.md#the-noise-of-a-batch"

Printed = Callable[[str], float | None]  # by metric


def rows(
    label: str,
    found: Found,
    printed: Printed,
    *,
    popularity: Found,
    sound: Found | None = None,
    reason: str,
    note: str = "",
) -> tuple[Row, ...]:
    """NDCG@100, Recall@20 and Recall@50 of a contender beside the published ones."""
    return tuple(
        Row(
            f"{label}, {name}",
            printed(metric),
            paper=found.mean(metric),
            sound=None if sound is None else sound.mean(metric),
            ok=(ok := is_near(found.mean(metric), printed(metric), within=CLOSE)),
            note=note,
            reason="" if ok else reason,
            budget=budget(found, sound),
            beside={"popularity": popularity.mean(metric)},
            se=found.se(metric),
        )
        for metric, name in METRICS.items()
    )


def printed_in(table: str, *path: str) -> Printed:
    """The published figures under these labels of a table, by metric."""
    return lambda metric: PUBLISHED[table].value(*path, metric)


def not_run(label: str, printed: Printed, reason: str) -> tuple[Row, ...]:
    """The published figures of what was not run, and why not."""
    return tuple(
        Row(f"{label}, {name}", printed(metric), None, None, ok=False, reason=reason)
        for metric, name in METRICS.items()
    )


def table_not_run(name: str, label: str, reason: str) -> Reproduction:
    """One row for a table that lacks its data."""
    row = Row(label, None, None, None, ok=False, reason=reason)
    return Reproduction((ReproducedTable(name, (row,)),), ())


def budget(found: Found, sound: Found | None = None) -> str:
    """The printed epsilon of a user, the proven one of the run, and sound mode's.

    To the letter the server sees reports; sound mode adds them up, and everyone sees
    the model.
    """
    if not found.runs:
        return "not private" if math.isfinite(found.mean(MAIN)) else DIVERGED
    if (printed := printed_epsilon(found)) is None:
        own = found.spent(View.RELEASE)
        return "not private" if own is None else f"proved {own:.2f}"
    proved = found.spent(View.SERVER)
    shown = "none" if proved is None else f"{proved:,.3g}"
    also = None if sound is None else sound.spent(View.RELEASE)
    beside = "" if also is None else f"; sound mode {also:.2f}"
    *_, last = found.run(0).directory.rounds_logged()
    rounds = last["round"] + 1
    return f"printed {printed:g}, proved {shown} in {rounds:,} rounds{beside}"


def printed_epsilon(found: Found) -> float | None:
    """What the paper would print for a run, from its account."""
    lines = found.run(0).result["epsilons"]
    return next((line["published_epsilon"] for line in lines), None)


def because_of_noise(bench: Bench, *, most: float = MOST_EPSILON) -> str:
    """Why DP-VAE to the letter is not what was published."""
    times = noise_of_batch(bench.name, epsilon=most)
    parameters = PUBLISHED["table-3"].values[bench.name]["parameters"]
    return stand_in(bench) + (
        f"with {parameters:,} parameters the mean of a batch has noise of {times:,.0f} "
        f"S or more where its gradients have S at the most; {_BATCH}"
    )


def because_of_steps(bench: Bench, adam: Found, popularity: Found) -> str:
    """Why the VAE without noise is not what was published."""
    return stand_in(bench) + (
        f"plain steps of 0.005 for {bench.epochs:g} epochs, as printed, learn little; "
        f"the same network by Adam has NDCG@100 {adam.mean(MAIN):.3f}, popularity "
        f"{popularity.mean(MAIN):.3f}"
    )


def because_it_is_open(bench: Bench, popularity: Found) -> str:
    """Why a rival is not what was published."""
    return stand_in(bench) + (
        "the paper does not say how its rivals rank; popularity has NDCG@100 "
        f"{popularity.mean(MAIN):.3f} on this split; docs/reproduction/dpvae.md"
    )


def stand_in(bench: Bench) -> str:
    """The beginning of a reason where other data were used."""
    if not bench.is_stand_in:
        return ""
    return f"published on {bench.name}, measured on {bench.source}; "


def chance(results: Results, bench: Bench, data: Data | None = None) -> Chance:
    """The best of the random lists on a bench, or on other data of its source."""
    return best_by_chance(results, bench.beside("random", data))


def above(text: str, bench: Bench, more: Found, less: Found, *, by: Chance) -> Claim:
    """That NDCG@100 of one is above that of another, on the same users."""
    pair = more.evaluations, less.evaluations
    whole = f"{text} ({bench.label})"
    return is_above(whole, *pair, metric=MAIN, chance=by, name="NDCG@100")


def apart(text: str, bench: Bench, more: Found, less: Found, *, by: Chance) -> Claim:
    """The same on users of their own: an interval from both standard errors."""
    gain = more.mean(MAIN) - less.mean(MAIN)
    error = 1.96 * math.hypot(more.se(MAIN) or 0.0, less.se(MAIN) or 0.0)
    evidence = f"NDCG@100 {gain:+.3f}, 95 % interval ± {error:.3f}, not the same users"
    claim = Claim(f"{text} ({bench.label})", gain > error, evidence)
    return is_learnt(claim, more.mean(MAIN), by[MAIN])
