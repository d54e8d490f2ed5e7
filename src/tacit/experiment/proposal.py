"""An experiment for a table of one's own: what is in it, and what suits its size.

The table is read once. Numbers are those after the filter that the experiment will
have, since that is who trains: delta follows from them, and so do the baselines.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tacit import check
from tacit.data.dataset import Dataset
from tacit.data.features import Category
from tacit.data.sources.listed_tables import ItemsTable, UsersTable
from tacit.data.sources.table import EventsTable
from tacit.errors import BadValue
from tacit.experiment.settings import plain_settings
from tacit.methods.gram_forecast import round_history, usual_history
from tacit.text import shown

TEMPLATE = """\
# An experiment: what to learn from, how to learn it, and how to evaluate it.
# See what it would reveal:   tacit plan {out}
# See what it is worth:       tacit train {out} --out run
# Recommend to a user:        tacit recommend run --user {user}
# Make a model to publish:    tacit release {out} --out release

[data]
source = "table"
{population}{split}
[data.table]            # {found}
{columns}
[method]
name = "gram"           # counts items, then relates them; ranks on the device
# usual_history = {history:<6} # items, from this table and rounded, for `tacit plan`;
                        # public in a release, which has it only if you declare it
{privacy}
[run]
seed = 0                # used by simulations only
# rounds = 3            # by default what the method needs: gram counts items, relates
                        # them, and loads more on tastes
sampler = {{ name = "everyone" }}

[evaluate]
metrics = {metrics}
baselines = {baselines}
"""
NEW_USERS = """\
{min_value}min_interactions = {least}    # users with fewer are left out
split = "new-users"     # evaluates on users that never trained; in a release all train
validation = {validation:<10} # part of the users (or how many, from 1 on) to tune on
test = {test:<16} # … and to report on
target_share = 0.2      # fraction of a held-out user's items that must be found
"""
BY_TIME = """\
split = "by-time"       # trains on what was shown before these moments (UTC) ...
validation_from = "{validation}"  # ... tunes on what came after the first
test_from = "{test}"        # ... and reports on what came after the second
"""
PRIVATE = """\

[privacy]
mechanism = "central"   # noise on sums; "none" and "local" are the other forms
channel = "secure_sum"  # the server sees noisy sums only; assumes a trusted aggregator
target_epsilon = 4.0    # noise is calibrated to it; smaller is more private
delta = {delta:g}
"""
OPEN = """\

[privacy]
mechanism = "none"      # {users:,} users are too few: noise that protects one of them
                        # would hide what they have in common. With some thousands,
                        # use "central" with channel = "secure_sum", target_epsilon =
                        # 4.0 and delta = 1e-6; `tacit plan` says what to expect.
"""
_NO_ITEMS = """\
# [data.table.items]      # a release needs a table of all items, apart from the events
# path = "items.csv"
# item = "item"
"""
_DENSE_ITEMS = 10_000  # EASE has items² numbers: 400 MB and half a minute at so many
_ENOUGH = 500  # users; with fewer, epsilon 4 leaves popularity at best
_LEAST = 2  # items of a user who trains or is ranked for
_FEWEST = 3  # users: one each to train, to tune and to report on
_MOST_STEPS = 20  # distinct values of a scale such as stars; more are amounts
_HELD_OUT = 0.1  # of the users, to tune on and to report on
# Enough for a standard error of half a hundredth; all are ranked among all items, those
# to tune on after each round.
_MOST_TUNED_ON, _MOST_TESTED = 2000, 5000
_TUNED_FROM, _TESTED_FROM = 0.8, 0.9  # of the impressions, in order of time
_OF_IMPRESSIONS = '["auc", "mrr_all", "ndcg@5", "ndcg@10"]  # of impressions'
# The items from which on lists of some lengths say anything: one that holds most of the
# catalog finds everything, whatever its order.
_OF_LISTS = {
    500: '["ndcg@100", "recall@20", "recall@50"]',
    50: '["ndcg@20", "recall@5", "recall@10"]  # short lists: there are few items',
    0: '["ndcg@5", "recall@1", "recall@5"]  # short lists: there are few items',
}
_LIKED = 0.6  # the share of lines that a threshold for liking should keep, about


@dataclass(frozen=True, eq=False)
class Proposal:
    """A table, what counts as liking, and how many users may take part."""

    table: EventsTable
    dataset: Dataset
    min_value: float | None = None
    population: int | None = None

    def __post_init__(self) -> None:
        if self.min_value is not None:
            check.finite(min_value=self.min_value)
        if self.min_value is not None and self.table.value_column is None:
            raise BadValue(
                f"min_value={self.min_value:g} needs the column that it is compared "
                "with; name it as value, or leave min_value out"
            )
        if self.table.impression is not None:
            self._check_impressions()
        users = self.dataset.interactions.n_users
        if self.population is not None and self.population < users:
            raise BadValue(
                f"population={self.population:,} is less than the {users:,} users of "
                f"{self.table.path.name}; declare at least as many as may take part"
            )

    def refuse_few(self) -> None:
        """Refuse a table of whose users there are too few to hold any out."""
        if self.table.impression is not None:  # not users are held out, but days
            return
        log = self.dataset.interactions
        if self.min_value is not None:
            log = log.keep(log.values >= self.min_value)
        enough = int((log.distinct().per_user >= _LEAST).sum())
        if enough < _FEWEST:
            value = "" if self.min_value is None else f" of {self.min_value:g} or more"
            raise BadValue(
                f"{self.table.path.name}: {enough} of {log.n_users:,} users have "
                f"{_LEAST} different items{value}; at least {_FEWEST} must, one each "
                f"to train, to tune and to report on{self._told_unlisted()}"
            )

    def _told_unlisted(self) -> str:
        """What is left out because of the table of items, which may explain a lot."""
        left_out, items = self.dataset.left_out, self.table.items
        if items is None or left_out is None or not left_out.unlisted:
            return ""
        return f"; {left_out.unlisted:,} events have items that {items.path.name} lacks"

    def _ungrouped(self) -> list[str]:
        """How many users have no value in each column of the table of users."""
        if self.table.users is None:
            return []
        found, name = [], self.table.users.path.name
        for column in self.table.users.columns:
            group = self.dataset.profiles.features[column]
            assert isinstance(group, Category)
            lacking, users = int((group.codes < 0).sum()), len(group)
            if lacking == users:
                raise BadValue(
                    f"{name}: none of the {users:,} users with an event has a value in "
                    f"{column!r}; are ids written alike in both tables?"
                )
            if lacking:
                found.append(f"{lacking:,} of {users:,} users have no {column!r}")
        return found

    def _check_impressions(self) -> None:
        """Impressions are divided by time and not filtered."""
        if self.table.time is None:
            raise BadValue(
                f"impression={self.table.impression!r} needs the column with the time: "
                "later impressions are held out; name it as time"
            )
        if self.min_value is not None:
            raise BadValue(
                f"min_value={self.min_value:g} would drop what was shown; leave it "
                "out: a value above zero is a click"
            )

    @cached_property
    def kept(self) -> Dataset:
        """The data set after the filter of the experiment."""
        if self.dataset.impressions is not None:  # a filter would look at held-out days
            return self.dataset
        has_table = self.table.items is not None
        return self.dataset.filtered(
            min_value=self.min_value, min_interactions=_LEAST, keep_items=has_table
        )

    @property
    def planned(self) -> int:
        """The number of users in the plan: as declared, whatever the table has."""
        return self.population or self.kept.interactions.n_users

    @property
    def threshold(self) -> float | None:
        """A least value that keeps about the better half of a scale such as stars.

        None if there are no values, or so many that they are amounts.
        """
        if self.table.value_column is None:
            return None
        steps, counts = np.unique(self.dataset.interactions.values, return_counts=True)
        if not 1 < len(steps) <= _MOST_STEPS:
            return None
        kept = counts[::-1].cumsum()[::-1] / counts.sum()  # at or above each step
        return float(steps[np.abs(kept - _LIKED).argmin()])

    def notes(self) -> list[str]:
        """What the owner of the table should know before going on."""
        whole, kept = self.dataset.interactions, self.kept.interactions
        told = (
            [] if self.dataset.left_out is None else self.dataset.left_out.sentences()
        )
        if kept.n_users < whole.n_users:
            told.append(
                f"{whole.n_users - kept.n_users:,} of {whole.n_users:,} users have "
                f"fewer than {_LEAST} items that count, and are left out"
            )
        told += self._ungrouped()
        is_scale = self.kept.impressions is None and self.table.value_column
        if is_scale and self.min_value is None:
            least, column = float(whole.values.min()), self.table.value or "value"
            told.append(
                f"every line counts as liking, also one with {column} = {least:g}"
                f"{self._advice()}"
            )
        return told

    def _advice(self) -> str:
        if self.threshold is None:
            return "; --min-value says from where on it should"
        keeps = float((self.dataset.interactions.values >= self.threshold).mean())
        return f"; --min-value {self.threshold:g} would keep {keeps:.0%} of the lines"

    def toml(self, out: Path) -> str:
        """The experiment as a file at `out`, with comments; paths relative to it."""
        log = self.kept.interactions
        user = self.kept.profiles.ids[0]  # one that exists: the line can be pasted
        return TEMPLATE.format(
            out=as_argument(str(out)),
            user=as_argument(user),
            population=_population(self.population),
            split=self._split(),
            found=self.found(),
            columns=_columns(self.table, out),
            history=round_history(usual_history(log.per_user.tolist())),
            privacy=_privacy(self.planned),
            metrics=self._metrics(log.n_items),
            baselines=self._baselines(log.n_items),
        )

    def settings(self) -> dict[str, Any]:
        """The experiment as a nested table, as `tacit.train` takes it; whole paths."""
        found = tomllib.loads(self.toml(Path("exp.toml")))
        found["data"]["table"] = plain_settings(self.table)
        return found

    def _split(self) -> str:
        if self.kept.impressions is None:
            users = self.kept.interactions.n_users
            return NEW_USERS.format(
                min_value=self._min_value(),
                least=_LEAST,
                validation=_held_out(users, _MOST_TUNED_ON),
                test=_held_out(users, _MOST_TESTED),
            )
        times = self.kept.impressions.slates.times
        assert times is not None, "checked when it was made"
        cuts = np.quantile(times, [_TUNED_FROM, _TESTED_FROM]).astype(np.int64)
        moments = [datetime.fromtimestamp(int(c), UTC) for c in cuts]
        validation, test = (m.strftime("%Y-%m-%dT%H:%M:%S") for m in moments)
        return BY_TIME.format(validation=validation, test=test)

    def _metrics(self, items: int) -> str:
        if self.kept.impressions is not None:
            return _OF_IMPRESSIONS
        return next(text for least, text in _OF_LISTS.items() if items >= least)

    def _baselines(self, items: int) -> str:
        if self.kept.impressions is not None:
            return '["random", "popularity", "item_knn"]'
        if items <= _DENSE_ITEMS:
            return '["random", "popularity", "ease"]'
        why = "# EASE is dense: too large for so many items"
        return f'["random", "popularity", "item_knn"]  {why}'

    def found(self) -> str:
        """How much of the table counts, in one line."""
        log, shown = self.kept.interactions, self.kept.impressions
        lines = (
            f"{len(log):,} lines" if shown is None else f"{len(shown):,} impressions"
        )
        return f"{lines}, {log.n_users:,} users, {log.n_items:,} items"

    def _min_value(self) -> str:
        if self.min_value is not None:
            return f"min_value = {self.min_value:<11g} # lower lines are left out\n"
        if self.table.value_column is None:
            return ""
        example = 4.0 if self.threshold is None else self.threshold
        return f"# min_value = {example:<9g} # keep only lines of at least this value\n"


def _held_out(users: int, most: int) -> float:
    """A tenth of the users, or so many if that is more than they need to be."""
    return most if users * _HELD_OUT > most else _HELD_OUT


def as_argument(text: str) -> str:
    """A word of a command line that can be pasted into a shell."""
    word = shown(text)
    is_plain = all(c.isalnum() or c in "._-@/" for c in word) and word[0] != "-"
    return word if is_plain else "'" + word.replace("'", "'\\''") + "'"


def _privacy(users: int) -> str:
    if users < _ENOUGH:
        return OPEN.format(users=users)
    # Far below one in all users: a mechanism that published one user with chance delta
    # would otherwise pass.
    return PRIVATE.format(delta=min(1e-6, 1 / (100 * users)))


def _population(declared: int | None) -> str:
    if declared is None:
        return (
            "# population = 10000      # users who may take part; a release needs it\n"
        )
    return f"population = {declared:<10} # users who may take part: public\n"


def _columns(table: EventsTable, out: Path) -> str:
    import tomli_w

    written = tomli_w.dumps(_named(table, out))
    if table.users is not None:
        head = "\n[data.table.users]      # what is known of users\n"
        written += head + tomli_w.dumps(_named(table.users, out))
    if table.items is None:
        return written + _NO_ITEMS
    head = "\n[data.table.items]      # the catalog: public\n"
    return written + head + tomli_w.dumps(_named(table.items, out))


def _named(
    table: EventsTable | ItemsTable | UsersTable, out: Path
) -> dict[str, object]:
    """The fields of a table that differ from their defaults, as a file has them."""
    # Paths in an experiment are read relative to its file.
    path = os.path.relpath(table.path.resolve(), out.resolve().parent)
    fields: dict[str, object] = {"path": path}
    for one in dataclasses.fields(table):
        value = getattr(table, one.name)
        if one.name in ("path", "items", "users") or value == one.default:
            continue
        fields[one.name] = list(value) if isinstance(value, tuple) else value
    return fields
