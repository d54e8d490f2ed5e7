"""What an experiment would reveal and cost, before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.data.text_vectors import Progress
from tacit.experiment.assemble import (
    COULD_BE_RELEASED,
    Assembled,
    assemble,
    assemble_public,
    declared_catalog,
)
from tacit.experiment.needs import note_on_rounds, refuse_few_rounds
from tacit.experiment.privacy_card import serving_of
from tacit.experiment.settings import (
    Experiment,
    method_settings,
    privacy_settings,
)
from tacit.experiment.training import plan_account
from tacit.reporting.plain_words import in_words
from tacit.runtime.traffic import Traffic
from tacit.statement import Account

# People without noise whose lists are as good as those of 5,034 at each epsilon; the
# table stands in docs/personal_budgets.md.
WORTH_OF_ALL = {1.0: "about 130", 4.0: "about 475", 8.0: "about 840"}


@dataclass(frozen=True, eq=False)
class PlannedExperiment:
    """An experiment that is ready to run, with its account and its cost.

    `cost` has the rounds and bytes of one client, `serving` how users will be served
    and what that costs with taking part, as the privacy card has it.
    """

    assembled: Assembled
    account: Account
    cost: dict[str, Any]
    serving: dict[str, Any]
    absent_events: Path | None = None  # the table that is not here, and not needed

    @property
    def outlook(self) -> str | None:
        """What the method says of its chances with these numbers, if anything."""
        assembled = self.assembled
        return assembled.method.outlook(assembled.plan, assembled.split.catalog)

    @property
    def people(self) -> str | None:
        """What a budget like this costs in people, for the method that was measured.

        None where there is no one target for all, as of groups.
        """
        target = self.assembled.plan.target_epsilon
        if self.assembled.experiment.method_name != "gram" or target is None:
            return None
        return None if isinstance(target, Mapping) else worth_in_people(target)

    @property
    def note(self) -> str | None:
        """What to know of its rounds, if there are far fewer than usual."""
        return note_on_rounds(self.assembled.experiment)

    def document(self) -> dict[str, Any]:
        """Everything as plain data, as `tacit plan --json` prints it."""
        assembled, told = self.assembled, self.account
        method, name = assembled.method, assembled.experiment.method_name
        return {
            "purpose": assembled.experiment.run.purpose,
            COULD_BE_RELEASED: assembled.could_be_released,
            "releases": told.releases,
            "totals": told.totals,
            "earlier": told.earlier,
            "both": told.both,
            "words": in_words(told.totals),
            "method": method_settings(name, assembled.learner),
            "privacy": privacy_settings(method),
            "cost": self.cost,
            "outlook": self.outlook,
            "people": self.people,
            "note": self.note,
            "serving": self.serving,
            "groups": assembled.plan.groups,
            "as_one_epsilon": assembled.as_one_epsilon,
            "consenting": assembled.plan.consenting,
            "consent_weight": assembled.consent_weight,
            "absent_events": self.absent_events,
        }


def worth_in_people(epsilon: float) -> str:
    """What noise cost in people where that was measured, at the nearest epsilon.

    >>> worth_in_people(3.0).split("; ")[1]
    'in invented worlds noise cost less the more people there were'
    """
    nearest = min(WORTH_OF_ALL, key=lambda one: abs(math.log(one / epsilon)))
    return (
        f"on MovieLens 1M, lists of 5,034 people at epsilon {nearest:g} were as good "
        f"as those of {WORTH_OF_ALL[nearest]} without noise; in invented worlds "
        "noise cost less the more people there were"
    )


def plan_experiment(
    experiment: Experiment, *, runs: int = 1, progress: Progress | None = None
) -> PlannedExperiment:
    """Calibrate the noise, and say what so many runs would reveal.

    Where items and population are declared and the table of events is not here, as with
    an operator whose clients keep them, the plan follows from what is declared.
    `progress` is told how many texts have become vectors, if any must.
    """
    refuse_few_rounds(experiment)
    absent = _absent_events(experiment)
    if absent is None:
        assembled = assemble(experiment, progress=progress)
    else:
        assembled = assemble_public(experiment, declared_catalog(experiment))
    account = plan_account(assembled, runs=runs)
    serving = serving_of(assembled, runs=runs)
    return PlannedExperiment(assembled, account, _cost(assembled), serving, absent)


def _absent_events(experiment: Experiment) -> Path | None:
    """The table of events that is not here, if the plan does not need it."""
    table, data = experiment.table, experiment.data
    if table is None or table.items is None or table.path.exists():
        return None
    needs_users = experiment.privacy.groups or experiment.run.refreshes
    needs_more = data.text_vectors or experiment.metadata
    is_declared = data.population is not None and not needs_users and not needs_more
    return table.path if is_declared else None


def _cost(assembled: Assembled) -> dict[str, Any]:
    """Rounds and bytes of one client; the keys of `--json` keep their old words."""
    method, plan = assembled.method, assembled.plan
    traffic = Traffic.of(method, plan, assembled.split.catalog)
    most, up, down = plan.sampler.most_participations(plan), traffic.up, traffic.down
    return {
        "population": plan.population,
        "rounds": traffic.rounds,
        "cohort_size": plan.cohort_size,
        "bytes_up_a_round": up.a_round,
        "bytes_down_a_round": down.a_round,
        "bytes_up_at_most": up.of_a_client,
        "bytes_down_at_most": down.of_a_client,
        "bytes_model": traffic.model,
        "rounds_a_device_expected": traffic.rounds * plan.cohort_size / plan.population,
        "rounds_a_device_at_most": min(most, traffic.rounds),
        "bytes_up_expected": round(up.expected),
        "bytes_down_expected": round(down.expected),
    }
