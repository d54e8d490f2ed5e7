"""What a client learns from impressions: a click beside candidates left unclicked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int32, Int64

from tacit import check
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.keys import Keys


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Examples in the order of their impressions: one clicked item and k others."""

    impressions: Int64[np.ndarray, "examples"]  # where each comes from
    clicked: Int32[np.ndarray, "examples"]
    others: Int32[np.ndarray, "examples k"]

    def __len__(self) -> int:
        return len(self.clicked)


def contrasts(impressions: Impressions, *, k: int, keys: Keys) -> Contrasts:
    """One example per click, with k unclicked candidates of the same impression.

    They differ from each other; where there are fewer than k, all are taken and some
    repeated. A click beside nothing unclicked gives no example. There is one
    key per user, so a client's examples depend on nobody else's.
    """
    check.count(k=k)
    shown, clicked = impressions.slates.shown, impressions.clicked
    owners = shown.owners
    n_left = np.bincount(owners[~clicked], minlength=len(impressions))
    left = Ragged.of_lengths(n_left, shown.values[~clicked])
    is_example = clicked & (n_left > 0)[owners]
    rows = owners[is_example]
    per_user = np.bincount(impressions.users[rows], minlength=len(keys))
    # Impressions are grouped by user, and so are these draws.
    uniform = keys.uniform_ragged(per_user * k).reshape(-1, k)
    picked = left.offsets[rows][:, None] + _distinct(uniform, n_left[rows])
    return Contrasts(rows, shown.values[is_example], left.values[picked])


def _distinct(
    uniform: Float64[np.ndarray, "examples k"], below: Int64[np.ndarray, "examples"]
) -> Int64[np.ndarray, "examples k"]:
    """Different whole numbers in [0, below), every set equally likely; see above.

    Floyd's algorithm: draw from one more number each time; a repeat takes the new one.
    """
    n, k = uniform.shape
    chosen = np.full((n, k), -1, np.int64)
    for i in range(k):
        newest = below - k + i
        drawn = (uniform[:, i] * (newest + 1)).astype(np.int64)
        is_repeat = (chosen == drawn[:, None]).any(axis=1)
        chosen[:, i] = np.where(is_repeat, newest, drawn)
    everything = np.arange(k) % below[:, None]  # all, and then from the start again
    return np.where((below < k)[:, None], everything, chosen)
