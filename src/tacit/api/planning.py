"""`tacit.plan`: what would be revealed, before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.api.given_data import Columns, MethodChoice, Settings, given_data
from tacit.api.statement import PrivacyStatement
from tacit.experiment.planning import PlannedExperiment, plan_experiment
from tacit.reporting import elements
from tacit.reporting.guarantees import WIDTH, in_short
from tacit.reporting.tables import by_days, served
from tacit.reporting.terminal import wrapped
from tacit.system_errors import explained
from tacit.text import shown


@dataclass(frozen=True, eq=False)
class Planned:
    """What an experiment would reveal, to whom, and what it costs a client."""

    statement: PrivacyStatement
    releases: PrivacyStatement
    planned: PlannedExperiment

    @classmethod
    def of(cls, planned: PlannedExperiment) -> Planned:
        """What a planned experiment would reveal and cost."""
        told, assembled = planned.account, planned.assembled
        purpose = assembled.experiment.is_release, assembled.could_be_released
        return cls(
            PrivacyStatement(told.totals, *purpose),
            PrivacyStatement(told.releases, *purpose),
            planned,
        )

    @property
    def cost(self) -> dict[str, Any]:
        """The rounds and bytes of one client, and the users and rounds in all."""
        return self.planned.cost

    @property
    def outlook(self) -> str | None:
        """What the method says of its chances with so many users, if anything."""
        return self.planned.outlook

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, as `tacit plan --json` prints it."""
        return self.planned.document()

    @property
    def serving(self) -> dict[str, Any]:
        """How users will be served, and what that costs with taking part."""
        return self.planned.serving

    def __str__(self) -> str:
        heads = [line for head in self._heads() for line in wrapped(head, WIDTH)]
        served = [
            line
            for days, lines in by_days(self.serving).items()
            for title in [f"taking part, and being served for {days} days"]
            for line in ("", title, *in_short(lines))
        ]
        return "\n".join([*heads, "", str(self.statement), *served])

    def _repr_html_(self) -> str:
        heads = "".join(map(elements.paragraph, self._heads()))
        said = heads + self.statement._repr_html_()
        if not by_days(self.serving):
            return said
        return said + elements.table(served(self.serving))

    def _heads(self) -> list[str]:
        assembled, cost = self.planned.assembled, self.cost
        name, data = assembled.experiment.method_name, assembled.dataset.name
        found = [
            f"{name} on {shown(data)}: {cost['population']:,} clients, "
            f"{cost['rounds']:,} rounds; a client sends at most "
            f"{cost['bytes_up_at_most']:,} bytes in all"
        ]
        told = {"outlook": self.outlook, "note": self.planned.note}
        return found + [f"{name}: {one}" for name, one in told.items() if one]


def plan(
    data: object,
    *,
    user: str | None = None,
    item: str | None = None,
    time: str | None = None,
    value: str | None = None,
    title: str | None = None,
    min_value: float | None = None,
    items: object | None = None,
    method: MethodChoice | None = None,
    epsilon: float | None = None,
    settings: Settings | None = None,
    runs: int = 1,
) -> Planned:
    """Say what training would reveal, to whom, and what it costs; nothing is trained.

    Args:
        data: A table of events or an experiment, as in [`tacit.train`][tacit.train].
        user: The column with the user's id, by default `"user"`.
        item: The column with the item's id, by default `"item"`.
        time: The column with the time of an event, if there is one.
        value: The column that says how much, such as stars.
        title: The column with the item's title; in `items`, if that is given.
        min_value: The least value of an event that counts as liking.
        items: A table of all items, which makes the catalog public.
        method: The method's name, or a table with its name and hyper-parameters.
        epsilon: The target; `math.inf` plans without privacy. By default it is that
            of the experiment; for a table of events it is 4 from 500 users on.
        settings: Sections of an experiment on top of these, such as
            `{"run": {"rounds": 5}}`.
        runs: How many trainings the totals are for.

    Returns:
        The plan: print it, or look at `statement`, `releases` and `cost`.

    Raises:
        TacitError: What was given cannot be planned; the message says what to do.

    """
    with explained():
        columns = Columns(user, item, time, value, title, min_value, items)
        given = given_data(data, columns)
        given = given.changed(method=method, epsilon=epsilon, settings=settings)
        experiment = given.experiment()
        found = plan_experiment(experiment, runs=runs)
    return Planned.of(found)
