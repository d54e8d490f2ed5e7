"""What an evaluation yields, as data: numbers per user, their means and errors.

    Evaluation      one ranker, one set of users: one array per metric
      .metrics()    name -> Metric(mean, standard error over users, how many)
      .by_group()   the same within each group of users
    pool([...])     several seeds -> name -> Pooled, with both standard errors, named

Where impressions are ranked, there is one number per impression. Those of one user
resemble each other, so standard errors are clustered by user: they too speak of other
users.

`to_json` gives plain dicts, lists, strings and floats; a standard error that does not
exist (one user, one seed, a figure of the whole catalog) is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float64, Int, Int64

from tacit.errors import BadValue

Json = dict[str, Any]


@dataclass(frozen=True)
class Metric:
    """A mean over `n` users, or over `n` impressions of `n_users`, and its error."""

    mean: float
    se: float | None
    n: int
    n_users: int | None = None  # None: there is one value per user

    @classmethod
    def of(cls, values: Float64[np.ndarray, "users"]) -> Metric:
        """The mean of one value per user, with its standard error."""
        return cls(float(values.mean()), standard_error(values), len(values))

    @classmethod
    def clustered(
        cls, values: Float64[np.ndarray, "values"], users: Int[np.ndarray, "values"]
    ) -> Metric:
        """The mean of several values per user; without a second user no error."""
        mean, n = float(values.mean()), len(values)
        _, cluster = np.unique(users, return_inverse=True)
        strays = np.bincount(cluster, weights=values - mean)  # one sum per user
        n_users = len(strays)
        if n_users < 2:
            return cls(mean, None, n, n_users)
        # The sandwich estimator of a mean with clusters, corrected for few of them.
        variance = float((strays**2).sum()) * n_users / (n_users - 1)
        return cls(mean, math.sqrt(variance) / n, n, n_users)

    def to_json(self) -> Json:
        """`mean`, `se` and `n` as plain data, of impressions with `n_users`."""
        users = {} if self.n_users is None else {"n_users": self.n_users}
        return {"mean": self.mean, "se": self.se, "n": self.n, **users}


@dataclass(frozen=True)
class Pooled:
    """A mean over seeds with two standard errors that answer different questions.

    `se_seeds`: how far another set of seeds would move the mean; seeds bring their own
    users, split and noise, so it covers all of these, roughly if the seeds are few.
    `se_users`: how far other users would move it if training were frozen. Where every
    seed ranks the same impressions, seeds differ in training alone, and `se` is over
    users.
    """

    mean: float
    se_seeds: float | None
    se_users: float | None
    n_seeds: int
    n_users: int  # over all seeds; those of the same impressions count once
    is_same: bool = False  # whether every seed ranked the same impressions

    @property
    def is_over_users(self) -> bool:
        """Whether `se` is over users, not over seeds."""
        return self.se_seeds is None or self.is_same

    @property
    def se(self) -> float | None:
        """The standard error over seeds that bring other users, else over users."""
        return self.se_users if self.is_over_users else self.se_seeds

    def to_json(self) -> Json:
        """All fields as plain data, and `se` with what it is over."""
        return {
            "mean": self.mean,
            "se": self.se,
            "se_over": "users" if self.is_over_users else "seeds",
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


@dataclass(frozen=True)
class Chosen:
    """The settings of a ranker that were best on validation users."""

    settings: Mapping[str, float]
    tried: int  # settings, these included

    def __str__(self) -> str:
        best = ", ".join(f"{name} {value:g}" for name, value in self.settings.items())
        return f"{best} (the best of {self.tried})"

    def to_json(self) -> Json:
        """All fields as plain data."""
        return {**vars(self), "settings": dict(self.settings)}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One ranker evaluated on some users under a named protocol.

    `values` has one number per user for each metric, or per impression; then `users`
    says whose each impression is. `totals` has figures that belong to the whole catalog
    and to no user, such as coverage.
    """

    protocol: str
    users: Int64[np.ndarray, "users"]
    values: Mapping[str, Float64[np.ndarray, "users"]]
    groups: Groups
    totals: Mapping[str, float] = field(default_factory=dict)
    budgets: Groups | None = None  # public groups with budgets of their own, if any
    per: Literal["user", "impression"] = "user"
    left_out: int = 0  # impressions that have no right order
    chosen: Chosen | None = None  # if its ranker's settings were searched

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
        """The mean of every metric over all users, or over all impressions."""
        whole = {name: Metric(x, None, len(self)) for name, x in self.totals.items()}
        return self._means(self.values) | whole

    @property
    def n_users(self) -> int:
        """How many users there are; one with several impressions counts once."""
        return len(np.unique(self.users)) if self.per == "impression" else len(self)

    def minus(self, other: Evaluation) -> dict[str, Metric]:
        """The mean differences to another evaluation of the same users."""
        same = np.array_equal(self.users, other.users) and self.per == other.per
        if not same or set(self.values) != set(other.values):
            raise BadValue(
                f"the evaluations are of different {self.per}s or metrics; evaluate "
                "both rankers alike"
            )
        return self._means({n: v - other.values[n] for n, v in self.values.items()})

    def _means(
        self, values: Mapping[str, Float64[np.ndarray, "users"]]
    ) -> dict[str, Metric]:
        if self.per == "user":
            return {name: Metric.of(v) for name, v in values.items()}
        return {name: Metric.clustered(v, self.users) for name, v in values.items()}

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
            label: self.only(mine).metrics()
            for label, mine in members.items()
            if mine.any()
        }

    def only(self, mask: Bool[np.ndarray, "users"]) -> Evaluation:
        """The evaluation of some of the users or impressions, without groups."""
        users = self.users[mask]
        values = {name: v[mask] for name, v in self.values.items()}
        everyone = Groups.everyone(len(users))
        return Evaluation(self.protocol, users, values, everyone, per=self.per)

    @classmethod
    def joined(cls, parts: Sequence[Evaluation]) -> Evaluation:
        """Several sets of users as one; whoever is in two of them counts twice."""
        users = np.concatenate([part.users for part in parts])
        values = {
            name: np.concatenate([part.values[name] for part in parts])
            for name in parts[0].values
        }
        everyone = Groups.everyone(len(users))
        return cls(parts[0].protocol, users, values, everyone, per=parts[0].per)

    def to_json(self) -> Json:
        """Summaries in `metrics` and `groups`; every user's numbers in `people`."""
        own = {label: _plain(m) for label, m in self.by_budget().items()}
        shown = {"per": self.per, "left_out": self.left_out}
        return {
            "protocol": self.protocol,
            **(shown if self.per == "impression" else {}),
            "metrics": _plain(self.metrics()),
            "groups": {label: _plain(m) for label, m in self.by_group().items()},
            **({"budgets": own} if own else {}),
            **({} if self.chosen is None else {"chosen": self.chosen.to_json()}),
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
            # Earlier runs and comparisons know users alone, and have neither.
            per=document.get("per", "user"),
            left_out=document.get("left_out", 0),
            chosen=Chosen(**document["chosen"]) if "chosen" in document else None,
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
    pooled = {name: _pooled([table[name] for table in tables]) for name in tables[0]}
    return _of_same_impressions(evaluations, pooled)


def _of_same_impressions(
    evaluations: Sequence[Evaluation], pooled: dict[str, Pooled]
) -> dict[str, Pooled]:
    """The same with errors over users for what they are, if seeds rank the same.

    The mean over seeds of each impression is one value; its errors do not shrink with
    the number of seeds.
    """
    first = evaluations[0]
    is_same = first.per == "impression" and all(
        np.array_equal(first.users, other.users) for other in evaluations
    )
    if not is_same:
        return pooled
    averaged = {
        name: np.mean([other.values[name] for other in evaluations], axis=0)
        for name in first.values
    }
    errors = replace(first, values=averaged).metrics()
    return {
        name: replace(
            figure, se_users=errors[name].se, n_users=first.n_users, is_same=True
        )
        for name, figure in pooled.items()
    }


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
        sum(_users_of(metric) for metric in seeds),
    )


def _users_of(metric: Metric) -> int:
    return metric.n if metric.n_users is None else metric.n_users


def _kind(evaluation: Evaluation) -> dict[str, str]:
    names = ", ".join(sorted({*evaluation.values, *evaluation.totals}))
    return {"protocol": evaluation.protocol, "metrics": names}


def _plain(metrics: Mapping[str, Metric]) -> dict[str, Json]:
    return {name: metric.to_json() for name, metric in metrics.items()}
