"""What the paper prints: Table II. Figure 1 is drawn without numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Counted:
    """A line of Table II."""

    people: int
    items: int
    ratings: int
    held_out: int
    cohort: int  # R


TABLE_2: Mapping[str, Counted] = {
    "movielens-1m": Counted(6_034, 3_520, 575_259, 400, 250),
    "citeulike-a": Counted(5_551, 16_950, 210_495, 800, 250),
    "steam-200k": Counted(6_693, 4_943, 122_893, 1_000, 250),
    "lastfm": Counted(1_884, 16_519, 91_694, 200, 150),
    "filmtrust": Counted(1_400, 1_939, 35_252, 200, 150),
}
GAMMAS = (1.0, 3.0, 5.0)
DECAY = 0.9
EPOCHS = 100
