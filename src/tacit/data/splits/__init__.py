"""Who trains, who is held out, and which of a held-out user's items are the answer.

    by_item    everyone trains; some of each user's items are left out
               leave_one_out, leave_last_visit_out, ratio
    by_user    some users never train; some of their items are shown, some to be found
               new_users, adapt_half
               everyone_trains holds nobody out
    by_moment  everyone trains on what happened before a moment: global_cut

Impressions are divided by time or by published part, in `tacit.data.news_split`.

An item is held out with all its repeats, so no target occurs in its own history;
histories keep repeats, order, times and contexts. A user's draws are addressed by the
user's row in the data set and depend on nobody else's events.
"""

from __future__ import annotations

from tacit.data.splits.by_item import leave_last_visit_out, leave_one_out, ratio
from tacit.data.splits.by_moment import global_cut
from tacit.data.splits.by_user import adapt_half, everyone_trains, new_users
from tacit.data.splits.split import Heldout, HeldoutPart, Split

__all__ = [
    "Heldout",
    "HeldoutPart",
    "Split",
    "adapt_half",
    "everyone_trains",
    "global_cut",
    "leave_last_visit_out",
    "leave_one_out",
    "new_users",
    "ratio",
]
