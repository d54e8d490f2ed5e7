"""Any scorer on slates: what was shown is scored, after the history of each slate.

    a slate -> its user's history as it stood -> scores of the candidates -> one score
    for each of `slates.shown.values`

Slates come in runs, so memory does not grow with their number. Whoever is shown several
slates after the same history is represented once per run, and a run is scored on the
items that occur in it, all slates at once.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from jaxtyping import Float64, Int

from tacit.data.impressions import Slates
from tacit.data.shards import Shards
from tacit.evaluation.impressions import SlateScorer
from tacit.evaluation.ranking import Scorer, score_among

# Scores in memory, for scorers that know no less than the whole catalog: 64 MiB.
_NUMBERS_AT_ONCE = 2**24


def slate_scorer(score: Scorer) -> SlateScorer:
    """The scores of shown candidates, from a scorer of histories."""
    return partial(slate_scores, score)


def slate_scores(score: Scorer, slates: Slates) -> Float64[np.ndarray, "candidates"]:
    """A score for each candidate of each slate, in their order."""
    found = np.empty(len(slates.shown.values))
    step = max(1, _NUMBERS_AT_ONCE // slates.n_items)
    for start in range(0, len(slates), step):
        stop = min(start + step, len(slates))
        run = slice(slates.shown.offsets[start], slates.shown.offsets[stop])
        found[run] = _run_scores(score, slates, start, stop)
    return found


def _run_scores(
    score: Scorer, slates: Slates, start: int, stop: int
) -> Float64[np.ndarray, "candidates"]:
    users, history_of = slates.users[start:stop], slates.history_of[start:stop]
    # A pair of user and history as one number: each pair is represented once.
    pairs = users.astype(np.int64) * len(slates.histories) + history_of
    _, first, row_of = np.unique(pairs, return_index=True, return_inverse=True)
    shown = slates.shown.take(np.arange(start, stop))
    items, column = np.unique(shown.values, return_inverse=True)
    history = history_shards(slates, history_of[first])
    who = users[first].astype(np.int64)
    scores = score_among(score, who, history, items.astype(np.int64))
    return np.asarray(scores[row_of[shown.owners], column], np.float64)


def history_shards(slates: Slates, rows: Int[np.ndarray, "clients"]) -> Shards:
    """What clients hold who have read these rows of the histories and nothing else.

    Nobody knows when: times are …, -2, -1, as in the log that clients train on.
    """
    read = slates.histories.take(rows)
    times = None
    if slates.times is not None:
        times = np.arange(len(read.values)) - read.offsets[1:][read.owners]
    ones = np.ones(len(read.values), np.float32)
    return Shards(read.offsets, read.values, ones, times, slates.n_items)
