"""`tacit plan`: what would be revealed, before anything is trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from tacit.cli import console
from tacit.cli.options import Changes, ExperimentFile, Json, Refreshed, refreshing
from tacit.text import shown


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
    from tacit.experiment.assemble import assemble
    from tacit.experiment.settings import (
        method_settings,
        privacy_settings,
        read_experiment,
    )
    from tacit.experiment.training import plan_account
    from tacit.reporting.plain_words import in_words

    if target_epsilon is not None:
        changes = [*changes, f"privacy.target_epsilon={target_epsilon}"]
    settings = read_experiment(experiment, refreshing(changes, earlier))
    with console.Bar("plan") as bar:  # seen only while texts become vectors
        assembled = assemble(settings, progress=bar.texts)
    method, name = assembled.method, assembled.experiment.method_name
    told = plan_account(assembled, runs=runs)
    cost = _cost(assembled)
    if json:
        console.print_json(
            {
                "purpose": assembled.experiment.run.purpose,
                "releases": told.releases,
                "totals": told.totals,
                "earlier": told.earlier,
                "both": told.both,
                "words": in_words(told.totals),
                "method": method_settings(name, assembled.learner),
                "privacy": privacy_settings(method),
                "cost": cost,
                "outlook": method.outlook(assembled.plan, assembled.split.catalog),
                "groups": assembled.plan.groups,
                "as_one_epsilon": assembled.as_one_epsilon,
            }
        )
        return
    _print(told, cost, assembled, long=long)


def _most_rounds(assembled: Any) -> int:
    """The rounds that a run can have: with few users Gram counts once and is over."""
    from tacit.method import SumMethod

    method, plan = assembled.method, assembled.plan
    if not isinstance(method, SumMethod):
        return int(plan.rounds)
    last = max(phase.rounds.stop for phase in method.phases(plan))
    return int(min(plan.rounds, last))


def _cost(assembled: Any) -> dict[str, Any]:
    """Rounds and bytes of one client; the keys of `--json` keep their old words."""
    from tacit.transport.channels import report_size
    from tacit.transport.codec import broadcast_size

    method, plan = assembled.method, assembled.plan
    start = method.start(plan, assembled.split.catalog, assembled.simulation.key)
    catalog, rounds = assembled.split.catalog, _most_rounds(assembled)
    layouts = (method.layout(plan, catalog, round=r) for r in range(rounds))
    sizes = [report_size(plan.channel, layout) for layout in layouts]
    # Phases differ in size, so a round's bytes are a mean over all rounds.
    up = sum(sizes) / len(sizes)
    down = broadcast_size(method.broadcast(start))  # the first round's
    # A server that says all rounds are over broadcasts a model of the final size.
    model = broadcast_size(method.broadcast(replace(start, round=plan.rounds)))
    expected = rounds * plan.cohort_size / plan.population
    return {
        "population": plan.population,
        "rounds": rounds,
        "cohort_size": plan.cohort_size,
        "bytes_up_a_round": round(up),
        "bytes_up_at_most": max(sizes),
        "bytes_down_a_round": down,
        "bytes_model": model,
        "rounds_a_device_expected": expected,
        "rounds_a_device_at_most": plan.sampler.most_participations(plan),
        "bytes_up_expected": round(up * expected),
        "bytes_down_expected": round(down * expected),
    }


def _print(told: Any, cost: dict[str, Any], assembled: Any, *, long: bool) -> None:
    from tacit.reporting.guarantees import in_full, in_short
    from tacit.reporting.plain_words import groups_as_one, purpose

    out = console.out()
    is_release = assembled.experiment.is_release
    out.print(purpose(is_release=is_release), markup=False, style="bold")
    out.print(
        f"{assembled.experiment.method_name} on {shown(assembled.dataset.name)}",
        style="bold",
    )
    out.print(
        f"clients: {cost['population']:,}; rounds: {cost['rounds']:,}; asked in each: "
        f"about {cost['cohort_size']:,.0f}; channel: {assembled.plan.channel}"
    )
    out.print(
        f"a client answers in {cost['rounds_a_device_expected']:,.2g} rounds on "
        f"average, in {cost['rounds_a_device_at_most']:,} at most; each time it sends "
        f"{cost['bytes_up_a_round']:,} bytes and receives "
        f"{cost['bytes_down_a_round']:,}; the finished model has "
        f"{cost['bytes_model']:,}"
    )
    outlook = assembled.method.outlook(assembled.plan, assembled.split.catalog)
    if outlook is not None:
        out.print(f"outlook: {outlook}", markup=False)
    one = assembled.as_one_epsilon
    if one is not None:
        out.print(groups_as_one(assembled.plan.groups, one), markup=False)
    out.print()
    for line in in_short(told.totals):
        out.print(line, markup=False)
    if told.both:
        out.print("\nwith the earlier runs", style="bold")
        for line in in_short(told.both):
            out.print(line, markup=False)
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
        for line in in_full(statements):
            out.print(line, markup=False)
