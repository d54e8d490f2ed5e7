"""`tacit plan`: what would be revealed, before anything is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import console
from tacit.cli.options import Changes, ExperimentFile, Json, Refreshed, refreshing
from tacit.text import shown

if TYPE_CHECKING:
    from tacit.experiment.planning import PlannedExperiment


def plan(
    experiment: ExperimentFile,
    changes: Changes = [],  # noqa: B006
    target_epsilon: Annotated[
        float | None,
        typer.Option(
            help="A target instead of privacy.target_epsilon.", show_default=False
        ),
    ] = None,
    earlier: Refreshed = None,
    runs: Annotated[
        int,
        typer.Option(min=1, help="The number of trainings to compose in the totals."),
    ] = 1,
    long: Annotated[
        bool, typer.Option("--long", help="Every release, with all fields of its line.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what an experiment would reveal, to whom, and what it costs a client.

    Nothing is trained and nothing leaves this machine. Where nothing can be proven it
    says NONE and why.

    Example: tacit plan exp.toml --target-epsilon 2
    """
    from tacit.experiment.planning import plan_experiment
    from tacit.experiment.settings import read_experiment

    if target_epsilon is not None:
        changes = [*changes, f"privacy.target_epsilon={target_epsilon}"]
    settings = read_experiment(experiment, refreshing(changes, earlier))
    with console.Bar("plan") as bar:  # seen only while texts become vectors
        planned = plan_experiment(settings, runs=runs, progress=bar.texts)
    if json:
        console.print_json(planned.document())
        return
    _print(planned, long=long)


def _print(planned: PlannedExperiment, *, long: bool) -> None:
    from tacit.reporting.guarantees import in_full, in_short
    from tacit.reporting.plain_words import consenting, groups_as_one, purpose
    from tacit.reporting.tables import by_days
    from tacit.reporting.terminal import wrapped

    told, cost, assembled = planned.account, planned.cost, planned.assembled
    out = console.out()
    is_release = assembled.experiment.is_release
    could_be_released = assembled.could_be_released
    out.print(
        purpose(is_release=is_release, could_be_released=could_be_released),
        markup=False,
        style="bold",
    )
    out.print(
        f"{assembled.experiment.method_name} on {shown(assembled.dataset.name)}",
        style="bold",
    )
    if planned.absent_events is not None:
        out.print(
            f"no event is read: {shown(str(planned.absent_events))} is not here, and "
            f"the {len(assembled.split.catalog):,} declared items and the declared "
            "population are enough",
        )
    out.print(
        f"clients: {cost['population']:,}; rounds: {cost['rounds']:,}; asked in each: "
        f"about {cost['cohort_size']:,.0f}; channel: {assembled.plan.channel}"
    )
    out.print(
        f"a client answers in {cost['rounds_a_device_expected']:,.2g} rounds on "
        f"average, in {cost['rounds_a_device_at_most']:,} at most; in all it then "
        f"sends at most {cost['bytes_up_at_most']:,} bytes and receives at most "
        f"{cost['bytes_down_at_most']:,} (in one round {cost['bytes_up_a_round']:,} "
        f"and {cost['bytes_down_a_round']:,}); the finished model has "
        f"{cost['bytes_model']:,}"
    )
    if planned.outlook is not None:
        out.print(f"outlook: {planned.outlook}", markup=False)
    if planned.people is not None:
        out.print(f"people: {planned.people}", markup=False)
    if planned.note is not None:
        out.print(f"note: {planned.note}", markup=False)
    served = assembled.experiment.serve.note
    if served is not None:
        out.print(f"serving: {served}", markup=False)
    one = assembled.as_one_epsilon
    if one is not None:
        out.print(groups_as_one(assembled.plan.groups, one), markup=False)
    if (weight := assembled.consent_weight) is not None:
        plan = assembled.plan
        said = consenting(plan.groups, plan.consenting, weight)
        out.print(said, markup=False)
    out.print()
    width = console.width()
    console.tell(in_short(told.totals, width))
    if told.both:
        out.print("\nwith the earlier runs", style="bold")
        console.tell(in_short(told.both, width))
    for days, lines in by_days(planned.serving).items():
        alone = " in this run alone" if told.both else ""
        title = f"taking part{alone}, and being served for {days} days"
        out.print(f"\n{title}", style="bold")
        console.tell(wrapped(f"a query: {planned.serving['query']}", width))
        console.tell(in_short(lines, width))
    if not long:
        out.print("\nall fields of every release: --long; for programs: --json")
        return
    parts = {
        "each release": told.releases,
        "all of them together": told.totals,
        "the earlier runs alone": told.earlier,
        "the earlier runs and this one": told.both,
    }
    for title, statements in parts.items():
        if statements:
            out.print(f"\n{title}", style="bold")
        console.tell(in_full(statements, width))
