"""A finished run as a page: its figures, gathered from the files of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import Damaged
from tacit.experiment.assemble import COULD_BE_RELEASED
from tacit.experiment.pairs import pairs_with
from tacit.experiment.privacy_card import current_card, write_card
from tacit.experiment.saved_run import SavedRun, holding_of, load
from tacit.experiment.settings import Experiment
from tacit.files import write_atomically
from tacit.method import Explainable
from tacit.release import Unit, View
from tacit.reporting.html import render
from tacit.reporting.pairs import Paired
from tacit.reporting.plain_words import released
from tacit.reporting.report_data import (
    Contender,
    Curve,
    Estimate,
    Lead,
    Report,
    User,
)
from tacit.results import Chosen, Evaluation
from tacit.runtime.run import RunDirectory
from tacit.serving.model_file import read_facts
from tacit.serving.recommender import Holding, Recommender
from tacit.statement import Statement

Json = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Finished:
    """The figures of a finished run, from memory or read from its files."""

    directory: RunDirectory
    experiment: Experiment
    result: Json
    card: Json
    n_items: int
    rounds: tuple[Json, ...]

    @classmethod
    def saved(cls, run: SavedRun) -> Finished:
        """The figures in the files of a run."""
        directory, experiment = run.directory, run.experiment
        model = read_facts(directory.model_facts)
        rounds = tuple(directory.rounds_logged())
        # A log that was cut would draw a curve that ends too early.
        if len(rounds) != model["round"]:
            problem = f"it tells of {len(rounds)} rounds, the model of {model['round']}"
            raise Damaged(directory.metrics, problem)
        return cls(
            directory,
            experiment,
            run.result,
            current_card(directory),
            model["items"],
            rounds,
        )


def write_report(
    run: Finished,
    *,
    user: str | None = None,
    beside: Mapping[str, Json] | None = None,
) -> Path:
    """Render the pages of a finished run, privacy card and report, into it."""
    # The card first: an audit may have been added since it was written.
    write_card(run.directory, dict(run.card))
    page = render(report_of(run, user=user, beside=beside))
    write_atomically(run.directory.report, page.encode(), is_private=True)
    return run.directory.report


def report_of(
    run: Finished, *, user: str | None = None, beside: Mapping[str, Json] | None = None
) -> Report:
    """What `tacit report` shows; with `user`, that user's list as well.

    `beside` has evaluations of other runs on the same users.
    """
    result, experiment = run.result, run.experiment
    name = experiment.method_name
    own = result["simulation_only"]["evaluations"] if result["simulation"] else {}
    judged = {**own, **(beside or {})}
    statements = tuple(statement_of(line) for line in run.card["totals"])
    command = "train" if result["simulation"] else "release"
    return Report(
        title=f"{name} on {experiment.data.name}",
        command=f"tacit {command} {run.directory.experiment.name}",
        simulation=bool(result["simulation"]),
        could_be_released=bool(result.get(COULD_BE_RELEASED, True)),
        lead=(_users(run),),
        facts=(*_facts(run), *_chosen_facts(judged)),
        statements=statements,
        released=tuple(released(one) for one in result.get("released_metrics", ())),
        comparison=contenders(judged, name, epsilon=_epsilon(statements)),
        differences=_differences(judged, name, ("popularity", *(beside or ()))),
        curve=_curve(run),
        groups=_groups(judged),
        budgets=_groups(judged, "budgets"),
        user=None if user is None else user_of(run, user),
    )


def _chosen_facts(judged: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for name, told in chosen_in(judged).items():
        yield f"settings of {name}", told


def user_of(run: Finished, user: str, *, k: int = 10) -> User:
    """A simulated user's history and list, as their client would show them."""
    recommender = load(run.directory.path)
    held, catalog = holding_of(recommender, run.experiment, user), recommender.catalog
    titles = tuple(catalog.titles[i] for i in catalog.indices(held.ids(catalog)))
    best = recommender.recommend(held, n=k)
    reasons = _reasons(recommender, held, [line.id for line in best])
    listed = tuple((line.title, line.score) for line in best)
    return User(user, titles, listed, reasons)


def _reasons(
    recommender: Recommender, held: Holding, items: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """The titles that speak most for each item; none where the method cannot say."""
    if not isinstance(recommender.method, Explainable):
        return ()
    history = held.ids(recommender.catalog)
    return tuple(
        tuple(reason.title for reason in recommender.why(history, item))
        for item in items
    )


def contenders(
    judged: Mapping[str, Json], own: str, *, epsilon: float | None = None
) -> tuple[Contender, ...]:
    """A comparison from evaluations as they stand in `result.json`.

    `epsilon` is that of the run itself, where one is proven.
    """
    return tuple(
        Contender(
            name,
            _estimates(found["metrics"]),
            is_this_run=name == own,
            epsilon=epsilon if name == own else None,
        )
        for name, found in judged.items()
    )


def chosen_in(judged: Mapping[str, Json]) -> dict[str, str]:
    """The settings that were chosen on validation users, by contender."""
    return {
        name: str(Chosen(**found["chosen"]))
        for name, found in judged.items()
        if "chosen" in found
    }


def statement_of(line: Json) -> Statement:
    """A line of the account from its JSON."""
    return Statement.from_json(line)


def _epsilon(statements: Sequence[Statement]) -> float | None:
    """The largest of any group, for a whole history, against who sees the model."""
    lines = [s for s in statements if (s.unit, s.view) == (Unit.USER, View.RELEASE)]
    found = [s.epsilon for s in lines if s.standing.has_epsilon]
    figures = [epsilon for epsilon in found if epsilon is not None]
    return max(figures) if figures and len(figures) == len(lines) else None


def _differences(
    judged: Mapping[str, Json], own: str, references: Sequence[str]
) -> tuple[Paired, ...]:
    """The run beside each reference that was ranked for the same users."""
    if own not in judged:
        return ()
    each = {name: Evaluation.from_json(dict(one)) for name, one in judged.items()}
    return pairs_with(own, each, [name for name in references if name in judged])


def _users(run: Finished) -> Lead:
    """How many users the promise is made to, and on what it was tried."""
    about = f"{run.n_items:,} items of {run.experiment.data.name}."
    return Lead("users who may take part", f"{run.card['data']['people']:,}", about)


def _estimates(metrics: Mapping[str, Json]) -> dict[str, Estimate]:
    return {name: Estimate(m["mean"], m["se"]) for name, m in metrics.items()}


def _curve(run: Finished) -> Curve | None:
    """The first metric on the validation users, round by round."""
    if run.experiment.is_release:  # nobody is looked at round by round
        return None
    metric = run.experiment.evaluate.metrics[0]
    lines = [
        (line["round"] + 1, line["simulation_only"]["validation"][metric])
        for line in run.rounds
        if "validation" in line["simulation_only"]
    ]
    if not lines:
        return None
    values = tuple(Estimate(m["mean"], m["se"]) for _, m in lines)
    return Curve(f"{metric} on validation users", tuple(r for r, _ in lines), values)


def _groups(
    judged: Mapping[str, Json], kind: str = "groups"
) -> dict[str, dict[str, dict[str, Estimate]]]:
    """Estimates by group label, metric and method; empty if one has no such groups."""
    if not all(kind in evaluation for evaluation in judged.values()):
        return {}
    first: Json = next(iter(judged.values()), {kind: {}})
    return {
        label: {
            metric: {
                name: Estimate(
                    e[kind][label][metric]["mean"], e[kind][label][metric]["se"]
                )
                for name, e in judged.items()
            }
            for metric in metrics
        }
        for label, metrics in first[kind].items()
    }


def _facts(run: Finished) -> tuple[tuple[str, str], ...]:
    experiment, rounds, result = run.experiment, run.rounds, run.result
    if experiment.is_release:
        return (
            ("data", experiment.data.name),
            ("rounds", str(len(rounds))),
        )
    # Who was asked, bytes and speed follow from private users, so only a simulation
    # counts them.
    asked = sum(line["simulation_only"]["asked"] for line in rounds)
    counted = result["simulation_only"]
    speed = counted["clients_per_second"]
    return (
        ("data", experiment.data.name),
        ("split", experiment.data.split),
        ("seed", str(experiment.run.seed)),
        ("rounds", str(len(rounds))),
        ("clients asked, all rounds", f"{asked:,}"),
        ("clients per second", "–" if speed is None else f"{speed:,.0f}"),
        ("sent by clients", _bytes(counted["bytes_up"])),
        ("sent to clients", _bytes(counted["bytes_down"])),
    )


def _bytes(n: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            break
        n /= 1000
    return f"{n:,.0f} {unit}" if unit == "bytes" else f"{n:,.1f} {unit}"
