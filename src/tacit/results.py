"""What an evaluation yields, as data: numbers per user, their means and errors.

    Evaluation      one ranker, one set of users: one array per metric
      .metrics()    name -> Metric(mean, standard error over users, how many)
      .by_group()   the same within each activity group
    pool([...])     several seeds -> name -> Pooled, with both standard errors, named

`to_json` gives plain dicts, lists, strings and floats; a standard error that does not
exist (one user, one seed, a figure of the whole catalog) is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from tacit.errors import BadValue

Json = dict[str, Any]


@dataclass(frozen=True)
class Metric:
    """A mean over `n` users and its standard error over them."""

    mean: float
    se: float | None
    n: int

    @classmethod
    def of(cls, values: Float64[np.ndarray, "users"]) -> Metric:
        """The mean of one value per user, with its standard error."""
        return cls(float(values.mean()), standard_error(values), len(values))

    def to_json(self) -> Json:
        """The fields `mean`, `se` and `n` as plain data."""
        return {"mean": self.mean, "se": self.se, "n": self.n}


@dataclass(frozen=True)
class Pooled:
    """A mean over seeds with two standard errors that answer different questions.

    `se_seeds`: how far another set of seeds would move the mean; seeds bring their own
    users, split and noise, so it covers all of these, roughly if the seeds are few.
    `se_users`: how far other users would move it if training were frozen.
    """

    mean: float
    se_seeds: float | None
    se_users: float | None
    n_seeds: int
    n_users: int  # over all seeds

    @property
    def se(self) -> float | None:
        """The standard error over seeds if there are several, else over users."""
        return self.se_users if self.se_seeds is None else self.se_seeds

    def to_json(self) -> Json:
        """All fields as plain data, and `se` with what it is over."""
        return {
            "mean": self.mean,
            "se": self.se,
            "se_over": "users" if self.se_seeds is None else "seeds",
            "se_seeds": self.se_seeds,
            "se_users": self.se_users,
            "n_seeds": self.n_seeds,
            "n_users": self.n_users,
        }


@dataclass(frozen=True, eq=False)
class Groups:
    """Which labelled group each user belongs to."""

    labels: tuple[str, ...]
    member_of: Int64[np.ndarray, "users"]  # indices into `labels`

    @classmethod
    def everyone(cls, n_users: int) -> Groups:
        """One group with all users in it."""
        return cls(("everyone",), np.zeros(n_users, np.int64))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One ranker evaluated on some users under a named protocol.

    `values` has one number per user for each metric. `totals` has figures that belong
    to the whole catalog and to no user, such as coverage.
    """

    protocol: str
    users: Int64[np.ndarray, "users"]
    values: Mapping[str, Float64[np.ndarray, "users"]]
    groups: Groups
    totals: Mapping[str, float] = field(default_factory=dict)
    budgets: Groups | None = None  # public groups with budgets of their own, if any

    def __post_init__(self) -> None:
        lengths = {name: len(value) for name, value in self.values.items()}
        lengths["groups"] = len(self.groups.member_of)
        if self.budgets is not None:
            lengths["budgets"] = len(self.budgets.member_of)
        wrong = {name: n for name, n in lengths.items() if n != len(self.users)}
        if wrong:
            raise BadValue(f"{len(self.users)} users, but values for {wrong}")
        if not len(self.users):
            raise BadValue("an evaluation of nobody; hold out at least one user")

    def __len__(self) -> int:
        return len(self.users)

    def metrics(self) -> dict[str, Metric]:
        """The mean of every metric over all users."""
        means = {name: Metric.of(values) for name, values in self.values.items()}
        whole = {name: Metric(x, None, len(self)) for name, x in self.totals.items()}
        return means | whole

    def by_group(self) -> dict[str, dict[str, Metric]]:
        """The mean of every metric within each group that has members."""
        return self._within(self.groups)

    def by_budget(self) -> dict[str, dict[str, Metric]]:
        """The same within each public group; empty if budgets are one for all."""
        return {} if self.budgets is None else self._within(self.budgets)

    def _within(self, groups: Groups) -> dict[str, dict[str, Metric]]:
        members = {
            label: groups.member_of == number
            for number, label in enumerate(groups.labels)
        }
        return {
            label: {name: Metric.of(v[mine]) for name, v in self.values.items()}
            for label, mine in members.items()
            if mine.any()
        }

    @classmethod
    def joined(cls, parts: Sequence[Evaluation]) -> Evaluation:
        """Several sets of users as one; whoever is in two of them counts twice."""
        users = np.concatenate([part.users for part in parts])
        values = {
            name: np.concatenate([part.values[name] for part in parts])
            for name in parts[0].values
        }
        return cls(parts[0].protocol, users, values, Groups.everyone(len(users)))

    def to_json(self) -> Json:
        """Summaries in `metrics` and `groups`; every user's numbers in `people`."""
        own = {label: _plain(m) for label, m in self.by_budget().items()}
        return {
            "protocol": self.protocol,
            "metrics": _plain(self.metrics()),
            "groups": {label: _plain(m) for label, m in self.by_group().items()},
            **({"budgets": own} if own else {}),
            # An older word for users, kept: every earlier run and comparison has it.
            "people": {
                "users": self.users.tolist(),
                "groups": list(self.groups.labels),
                "member_of": self.groups.member_of.tolist(),
                "values": {name: v.tolist() for name, v in self.values.items()},
                "totals": dict(self.totals),
                **({} if self.budgets is None else _members(self.budgets)),
            },
        }

    @classmethod
    def from_json(cls, document: Json) -> Evaluation:
        """The evaluation that `to_json` wrote."""
        per_user = document["people"]
        member_of = np.array(per_user["member_of"], np.int64)
        budgets = None
        if "budgets" in per_user:
            codes = np.array(per_user["budget_of"], np.int64)
            budgets = Groups(tuple(per_user["budgets"]), codes)
        return cls(
            document["protocol"],
            np.array(per_user["users"], np.int64),
            {name: np.array(v, np.float64) for name, v in per_user["values"].items()},
            Groups(tuple(per_user["groups"]), member_of),
            dict(per_user["totals"]),
            budgets,
        )


def _members(budgets: Groups) -> Json:
    return {"budgets": [*budgets.labels], "budget_of": budgets.member_of.tolist()}


def pool(evaluations: Sequence[Evaluation]) -> dict[str, Pooled]:
    """The mean over seeds of every metric; each evaluation is one seed."""
    if not evaluations:
        raise BadValue("no evaluation to pool; give at least one")
    for what in ("protocol", "metrics"):
        found = {_kind(evaluation)[what] for evaluation in evaluations}
        if len(found) > 1:
            raise BadValue(f"cannot pool different {what}: {sorted(found)}")
    tables = [evaluation.metrics() for evaluation in evaluations]
    return {name: _pooled([table[name] for table in tables]) for name in tables[0]}


def standard_error(values: Float64[np.ndarray, "n"]) -> float | None:
    """The standard error of the mean; None for a single value."""
    if len(values) < 2:
        return None
    return float(values.std(ddof=1) / math.sqrt(len(values)))  # unbiased variance


def _pooled(seeds: Sequence[Metric]) -> Pooled:
    means = np.array([metric.mean for metric in seeds])
    errors = [metric.se for metric in seeds if metric.se is not None]
    all_known = len(errors) == len(seeds)
    return Pooled(
        float(means.mean()),
        standard_error(means),
        # Variances add over seeds, as if no user were held out twice.
        math.hypot(*errors) / len(seeds) if all_known else None,
        len(seeds),
        sum(metric.n for metric in seeds),
    )


def _kind(evaluation: Evaluation) -> dict[str, str]:
    names = ", ".join(sorted({*evaluation.values, *evaluation.totals}))
    return {"protocol": evaluation.protocol, "metrics": names}


def _plain(metrics: Mapping[str, Metric]) -> dict[str, Json]:
    return {name: metric.to_json() for name, metric in metrics.items()}
