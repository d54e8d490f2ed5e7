"""Train an experiment into a run directory, resumable at every moment."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol

import tomli_w

from tacit import memory
from tacit.data.digest import content_digest, input_digest
from tacit.data.splits import HeldoutPart
from tacit.data.text_vectors import Progress
from tacit.documents import read_document, write_document
from tacit.errors import BadRun, Damaged, Diverged, Refused
from tacit.evaluation.ranking import Scorer
from tacit.experiment.assemble import COULD_BE_RELEASED, Assembled, assemble
from tacit.experiment.build_report import Finished, write_report
from tacit.experiment.evaluate import (
    contenders_of,
    evaluate_among_all,
    evaluate_method,
    evaluate_scores,
    scorers,
)
from tacit.experiment.kept_evaluations import KeptEvaluations, Ranked
from tacit.experiment.needs import (
    note_on_rounds,
    refuse_few_rounds,
    refuse_missing_extras,
    refuse_too_large,
)
from tacit.experiment.privacy_card import draw_card, with_progress, write_card
from tacit.experiment.saved_run import SavedRun
from tacit.experiment.settings import (
    Experiment,
    method_settings,
    privacy_settings,
)
from tacit.files import write_atomically
from tacit.method import Server, SumMethod
from tacit.plans import Plan
from tacit.release import Unit, View
from tacit.results import Chosen, Evaluation
from tacit.runtime.checkpoint import load_checkpoint
from tacit.runtime.federation import NodeTally
from tacit.runtime.rounds import State, Tally
from tacit.runtime.run import ONLY, Facts, RunDirectory, play
from tacit.serving.model_file import Model, save_model
from tacit.statement import Account, Statement

AMONG_ALL = "evaluations_among_all"  # by evaluate.full_metrics
_MEMORY = "memory_bytes"  # the most that a round took on top of what was there before
# How methods call the sizes of their steps, of clients, servers and devices.
_STEPS = frozenset(
    ["rate", "step", "local_rate", "server_rate", "learning_rate", "adapt_rate"]
)
_COUNTED = ("asked", "took_part", "bytes_up", "bytes_down")  # of a round's tally


Gather = Callable[[Experiment], Assembled]


class Watch(Protocol):
    """What is told of the progress of a training, such as a progress bar."""

    def say(self, text: str) -> None:
        """Called when a step begins, with its name."""
        ...

    def texts(self, done: int, total: int) -> None:
        """Called while texts become vectors, with the texts done and in all."""
        ...

    def step(self, done: int, total: int, what: str) -> None:
        """Called while a step goes on, with what is counted."""
        ...

    def round(self, done: int, planned: int, facts: Facts) -> None:
        """Called after each round, with the rounds done and planned."""
        ...


class Nobody:
    """A watch that shows nothing."""

    def say(self, text: str) -> None:
        """Ignore that a step begins."""

    def texts(self, done: int, total: int) -> None:
        """Ignore that texts become vectors."""

    def step(self, done: int, total: int, what: str) -> None:
        """Ignore how far a step has come."""

    def round(self, done: int, planned: int, facts: Facts) -> None:
        """Ignore that a round is over."""


def reading(watch: Watch) -> Progress:
    """What tells a watch how much of a table has been read."""
    return lambda done, total: watch.step(done, total, "of the table read")


@dataclass(frozen=True, eq=False)
class Outcome:
    """The data, the evaluations and the result of a finished run."""

    assembled: Assembled
    state: State
    evaluations: dict[str, Evaluation]  # the method under its name, then baselines
    run: Finished

    @property
    def directory(self) -> RunDirectory:
        """The directory with the files of the run."""
        return self.run.directory

    @property
    def document(self) -> Mapping[str, Any]:
        """The content of result.json."""
        return self.run.result


def train(
    experiment: Experiment,
    out: Path,
    *,
    resume: bool = False,
    watch: Watch | None = None,
    page: bool = True,
    gather: Gather | None = None,
    warm: bool = False,
) -> Outcome:
    """Train, evaluate on the test users and write every file of the run.

    Interrupted at any moment, the same call with `resume=True` continues bit for bit.
    Without a `page` the charts of report.html are not drawn, which takes longer than a
    small run: `tacit report` draws them from the other files when somebody asks.
    `gather` gets data and users together, by default on this machine. Where the users
    are elsewhere, nobody is held out here and nobody is ranked for. With `warm`, rounds
    of a simulation are played and thrown away before any is measured (`warm_up`).
    """
    watch, directory = watch or Nobody(), RunDirectory(out)
    with directory.locked():  # until the last file: nobody else writes in between
        if not directory.experiment.exists():  # one that has begun may end
            refuse_few_rounds(experiment)
        experiment = _begun(experiment, directory, resume=resume)
        if (note := note_on_rounds(experiment)) is not None:
            watch.say(f"note: {note}")
        watch.say("preparing the data")
        if gather is None:
            assembled = assemble(
                experiment,
                selected=_selected(directory),
                progress=watch.texts,
                reading=reading(watch),
            )
        else:
            assembled = gather(experiment)
        if (left_out := assembled.dataset.left_out) is not None:
            for sentence in left_out.sentences():
                watch.say(sentence)
        refuse_past_target(assembled)
        if experiment.is_release:
            assembled.simulation.refuse_played_channel()
            refuse_unproven(assembled)
        elif not assembled.has_users:
            watch.say("the users are on nodes: nobody is ranked for here")
        elif not len(assembled.split.test.users):
            raise Refused(
                f"data.split = '{experiment.data.split}' holds nobody out, and a "
                "simulation is there to rank for somebody; use another split, or make "
                "a model to publish with `tacit release`"
            )
        else:
            _refuse_impossible_baselines(assembled)
        inputs = _inputs(assembled)
        _refuse_other_inputs(inputs, directory)  # before any noise is drawn again
        card = _write_down(assembled, directory, inputs)
        if warm:
            warm_up(assembled)
        state = _train(assembled, directory, watch)
        save_model(
            finished_model(assembled, state.server),
            directory.model,
            directory.model_facts,
        )
        ranked: dict[str, Ranked] = {}
        kept = KeptEvaluations.of(experiment, directory)
        if not experiment.is_release and assembled.has_users:
            watch.say("ranking for the test users")
            with _naming_steps(assembled):
                ranked = _evaluate_test_users(assembled, state, watch, kept)
        evaluations = {name: one.own for name, one in ranked.items()}
        among_all = {n: one.among_all for n, one in ranked.items() if one.among_all}
        rounds = tuple(directory.rounds_logged())
        document = (
            released_result(assembled, state.server)
            if experiment.is_release
            else _result(assembled, state, rounds, evaluations, among_all)
        )
        n_items = len(assembled.split.catalog)
        current = _progress(assembled, directory, card, begun=assembled.plan.rounds)
        run = Finished(directory, experiment, document, current, n_items, rounds)
        if page:
            write_report(run)
        else:
            write_card(directory, current)
        kept.drop()  # before the result, so that a finished run never has any
        # The last file: where it stands, the run is finished.
        write_document(directory.result, document, is_private=True)
    return Outcome(assembled, state, evaluations, run)


def evaluate_all(
    assembled: Assembled,
    state: State,
    heldout: HeldoutPart,
    *,
    watch: Watch | None = None,
) -> dict[str, Evaluation]:
    """Evaluations of the method and of each baseline, on the same held-out part."""
    watch = watch or Nobody()
    return {
        name: _evaluate_one(assembled, name, score, chosen, heldout, watch)
        for name, score, chosen in scorers(assembled, state)
    }


def _evaluate_one(
    assembled: Assembled,
    name: str,
    score: Scorer,
    chosen: Chosen | None,
    heldout: HeldoutPart,
    watch: Watch,
) -> Evaluation:
    """The evaluation of one contender; the watch is told how far it has come."""
    found = evaluate_scores(
        assembled,
        score,
        heldout,
        progress=lambda done, total: watch.step(done, total, f"ranked by {name}"),
    )
    return replace(found, chosen=chosen)


def _evaluate_test_users(
    assembled: Assembled, state: State, watch: Watch, kept: KeptEvaluations
) -> dict[str, Ranked]:
    """By the experiment's protocol and, where it has `full_metrics`, among all items.

    One contender is fitted at a time: a baseline may fill the memory. What was ranked
    before the run was stopped is not ranked again.
    """
    names, heldout = contenders_of(assembled.experiment), assembled.split.test
    done = {name: one for name in names if (one := kept.find(name)) is not None}
    for name, score, chosen in scorers(assembled, state, but=done):
        own = _evaluate_one(assembled, name, score, chosen, heldout, watch)
        ranked = Ranked(own, evaluate_among_all(assembled, score, heldout))
        kept.keep(name, ranked)
        done[name] = ranked
    return {name: done[name] for name in names}


def last_state(assembled: Assembled, directory: RunDirectory) -> State:
    """The state of a run's last checkpoint."""
    if not directory.checkpoint.exists():
        raise BadRun(f"{directory.path} has no checkpoint; train into it first")
    start = assembled.simulation.start()
    digest = assembled.experiment.digest
    return load_checkpoint(directory.checkpoint, start, digest=digest)


def statements(lines: Sequence[Statement]) -> list[dict[str, Any]]:
    """The lines of an account as plain data for JSON."""
    return [asdict(statement) for statement in lines]


def plan_account(assembled: Assembled, *, runs: int = 1) -> Account:
    """The account of what the experiment will reveal in so many runs."""
    simulation = assembled.simulation
    return simulation.account if runs == 1 else simulation.account_of(runs=runs)


def _begun(
    experiment: Experiment, directory: RunDirectory, *, resume: bool
) -> Experiment:
    """The experiment as the files of its run know it, if it has begun.

    Refuses to overwrite a run, or to continue one of another experiment. Other
    baselines are no other experiment: they are ranked beside the same model.
    """
    if not directory.experiment.exists():
        return experiment
    if not resume:
        raise BadRun(
            f"{directory.path} holds a run already; continue it with --resume, or "
            "train into another directory"
        )
    began = SavedRun(directory).experiment
    if not began.is_same_as(experiment):
        raise BadRun(
            f"{directory.path} was begun by another experiment: "
            f"{_different(began.resolved(), experiment.resolved())}; "
            "train into another directory"
        )
    return replace(experiment, known_as=began.known_as)


def _selected(directory: RunDirectory) -> list[str] | None:
    """The items that the release here has selected already."""
    path = directory.selected_items
    if not directory.experiment.exists() or not path.exists():
        return None
    # A list with an item more or less would be another release than the one accounted.
    items = read_document(path, needs_checksum=True).get("items")
    if not isinstance(items, list):
        raise Damaged(path, "it has no list of items")
    return [str(one) for one in items]


def _inputs(assembled: Assembled) -> dict[str, Any]:
    """Digests that tell these data from any others."""
    dataset, split = assembled.dataset, assembled.split
    if not assembled.has_users:  # every node compares its own users
        agreed = assembled.method.agreement(assembled.plan, split.catalog).digest
        return {
            "digest": f"{agreed.hex()} {content_digest(split.catalog)}",
            "people": assembled.plan.population,
            "items": len(split.catalog),
        }
    return {
        "digest": input_digest(dataset, split),
        "people": len(split.users),  # the key that runs begun earlier have
        "items": len(split.catalog),
    }


def _refuse_other_inputs(inputs: dict[str, Any], directory: RunDirectory) -> None:
    """Refuse to continue a run over other data: its noise could be subtracted.

    The same round over two data sets with the same noise shows their difference. A run
    that was begun by an earlier version did not write its inputs down.
    """
    if not directory.experiment.exists() or not directory.inputs.exists():
        return
    began = read_document(directory.inputs)
    if not began.keys() >= inputs.keys():
        raise Damaged(directory.inputs, f"it lacks one of {sorted(inputs)}")
    known = {key: began[key] for key in inputs}
    if known != inputs:
        sizes = "{people:,} users and {items:,} items"
        raise BadRun(
            f"{directory.path} was begun with other data: {sizes.format(**known)} "
            f"then, {sizes.format(**inputs)} now, and not the same; the same noise "
            "over both would show the difference: restore the data, or train into "
            "another directory"
        )


def _different(began: dict[str, Any], asked: dict[str, Any]) -> str:
    """The settings two experiments differ in, with both values."""
    pairs = [
        (f"{section}.{key}", began[section].get(key), asked[section].get(key))
        for section in began.keys() & asked.keys()
        for key in sorted({*began[section], *asked[section]})
    ]
    return ", ".join(f"{name} ({a!r}, now {b!r})" for name, a, b in pairs if a != b)


def refuse_past_target(assembled: Assembled) -> None:
    """Refuse a run whose account passes its target, before it begins."""
    plan, totals = assembled.plan, plan_account(assembled).totals
    for line in totals:
        if (line.unit, line.view) != (Unit.USER, plan.calibrated_view):
            continue
        target = (
            plan.target_of(line.group) if line.group in plan.groups else _least(plan)
        )
        spent = line.epsilon
        # 1e-6, relative: calibration may end a rounding above its target.
        if target is not None and (spent is None or spent > target * (1 + 1e-6)):
            shown = "no provable epsilon" if spent is None else f"epsilon {spent:.4f}"
            raise Refused(
                f"the plan has {shown} for {line.group} and the target is {target}: "
                "raise the noise or the target, or leave the target out; `tacit plan` "
                "shows why"
            )


def _refuse_impossible_baselines(assembled: Assembled) -> None:
    """Refuse baselines that cannot be fitted here, before anything is trained."""
    experiment, split = assembled.experiment, assembled.split
    names = experiment.evaluate.baselines
    refuse_missing_extras([experiment.method_name], names)
    refuse_too_large(
        names,
        experiment.evaluate,
        n_users=len(split.users),
        n_items=len(split.catalog),
        option=lambda left: f"--set 'evaluate.baselines={json.dumps([*left])}'",
    )


def refuse_unproven(assembled: Assembled) -> None:
    """Refuse a release without a proven guarantee for the published model.

    Members of a group that accepts that nothing is promised to it have none.
    """
    totals = plan_account(assembled).totals
    for line in totals:
        is_model = (line.unit, line.view) == (Unit.USER, View.RELEASE)
        has_consented = line.group in assembled.plan.consenting
        if is_model and not line.standing.has_epsilon and not has_consented:
            raise Refused(
                f"nothing is proven about what the model tells of {line.group}: "
                f"{line.reason}; a release needs a protection, such as privacy."
                "mechanism = 'central' with privacy.target_epsilon"
            )


def _least(plan: Plan) -> float | None:
    """The smallest target of any group, which releases common to all must meet."""
    targets = plan.target_epsilon
    if not isinstance(targets, Mapping):
        return targets
    return min(target for target in targets.values() if target is not None)


def _write_down(
    assembled: Assembled, directory: RunDirectory, inputs: dict[str, Any]
) -> dict[str, Any]:
    """Write the data's digest, the resolved experiment and the privacy card.

    They are written before anyone is asked, and the digest first: every run that can be
    resumed has one. Items that a release selected come even before it, so that they are
    never drawn again.
    """
    if assembled.experiment.is_release and assembled.experiment.selection:
        items = [*assembled.split.catalog.ids]
        write_document(directory.selected_items, {"items": items})
    write_document(directory.inputs, inputs, is_private=True)
    # A run of another version keeps its file, by which its ledger knows it.
    if assembled.experiment.known_as is None:
        write_experiment(assembled.experiment, directory)
    card = draw_card(assembled)
    current = _progress(assembled, directory, card, begun=0)
    write_document(directory.privacy_card, current)
    return card


def write_experiment(experiment: Experiment, directory: RunDirectory) -> None:
    """Write down every setting, defaults included."""
    settings = tomli_w.dumps(experiment.resolved())
    write_atomically(directory.experiment, settings.encode())


def _progress(
    assembled: Assembled, directory: RunDirectory, card: dict[str, Any], *, begun: int
) -> dict[str, Any]:
    contact = assembled.experiment.privacy.contact
    return with_progress(card, directory, rounds_begun=begun, contact=contact)


def _train(assembled: Assembled, directory: RunDirectory, watch: Watch) -> State:
    experiment, meter = assembled.experiment, memory.Meter.started()
    started = time.perf_counter()

    def observe(state: State, tally: Tally) -> Facts:
        nonlocal started
        seconds, taken = time.perf_counter() - started, meter.taken
        nodes = _node_facts(tally)
        if experiment.is_release:
            return nodes  # in a release every count would be one over private users
        with _naming_steps(assembled, round=tally.round):
            looked = _look(assembled, state, tally)
        if looked:  # looking does not count as training
            memory.settle()
        started = time.perf_counter()
        counted = {name: getattr(tally, name) for name in _COUNTED}
        seen = counted | {_MEMORY: taken} | looked
        return {"seconds": seconds, **nodes, ONLY: seen}

    planned, every = assembled.plan.rounds, experiment.run.checkpoint_every
    rounds = play(
        assembled.simulation,
        directory,
        digest=experiment.digest,
        observe=observe,
        every=every,
    )
    state = None
    with _naming_steps(assembled):
        for state, facts in rounds:
            watch.round(state.server.round, planned, facts)
    # None: all rounds were played before, and the run was killed after the last one.
    return last_state(assembled, directory) if state is None else state


def warm_up(assembled: Assembled) -> None:
    """Play a round of every phase and forget them: libraries and kernels are loaded.

    The rounds themselves are the same as ever afterwards: they follow from the state.
    """
    simulation, method = assembled.simulation, assembled.method
    assert not assembled.experiment.is_release, "its noise is drawn once"
    phases = method.phases(assembled.plan) if isinstance(method, SumMethod) else ()
    last = max((phase.rounds.start for phase in phases), default=0)
    for state, _ in simulation.run(simulation.start()):
        if state.server.round > last:
            return


@contextmanager
def _naming_steps(assembled: Assembled, *, round: int | None = None) -> Iterator[None]:
    """Say of a divergence inside in which round it was, and which steps to lower."""
    try:
        yield
    except Diverged as error:
        known = round if error.round is None else error.round
        lower = error.lower or _steps_of(assembled.learner)
        raise Diverged(error.problem, known, lower) from error


def _steps_of(learner: object) -> tuple[str, ...]:
    """The settings of a method that are sizes of steps, with their values."""
    found = {
        field.name: getattr(learner, field.name)
        for field in fields(learner)  # type: ignore[arg-type]
        if field.name in _STEPS
    }
    return tuple(
        f"method.{name} (left out)" if value is None else f"method.{name} = {value:g}"
        for name, value in found.items()
    )


def _node_facts(tally: Tally) -> dict[str, Any]:
    """Which nodes answered and why others did not count; nothing of their users."""
    if not isinstance(tally, NodeTally):
        return {}
    told = {"answered": [*tally.answered], "dropped": {**tally.dropped}}
    return {"nodes": told}


def _look(assembled: Assembled, state: State, tally: Tally) -> dict[str, Any]:
    """The validation users' metrics, every few rounds and after the last."""
    done, settings = tally.round + 1, assembled.experiment.evaluate
    is_last = assembled.method.is_over(state.server)
    if not assembled.has_users or (done % settings.every and not is_last):
        return {}
    found = evaluate_method(assembled, state, assembled.split.validation).metrics()
    return {"validation": {name: metric.to_json() for name, metric in found.items()}}


def finished_model(assembled: Assembled, server: Server) -> Model:
    """What is published of a run: the learner, its weights and the catalog."""
    learner = assembled.learner
    return Model(
        method_settings(assembled.experiment.method_name, learner),
        privacy_settings(learner),
        assembled.method.broadcast(server),
        assembled.split.catalog,
    )


def _metrics(assembled: Assembled, server: Server) -> dict[str, Any]:
    """The metrics that were released under noise, if any were."""
    if assembled.measured is None:
        return {}
    found = assembled.measured.all_released(server)
    return {"released_metrics": [asdict(one) for one in found]}


def _without_noise(assembled: Assembled, state: State) -> dict[str, Any]:
    """The same metrics without noise, which only a simulation can know."""
    measured, simulation = assembled.measured, assembled.simulation
    if measured is None or not assembled.has_users:
        return {}
    last = simulation.population.keys.at("round", state.server.round - 1)
    broadcast, keys = measured.broadcast(state.server), last.at("local_update")
    tally = measured.tally(broadcast, state.clients, simulation.shards, keys)
    exact = measured.figures(tally.sum(axis=0).tolist(), deviation=0.0)
    return {"released_metrics": [asdict(one) for one in exact]}


def _result(
    assembled: Assembled,
    state: State,
    rounds: Sequence[Facts],
    evaluations: dict[str, Evaluation],
    among_all: dict[str, Evaluation],
) -> dict[str, Any]:
    seconds = sum(line["seconds"] for line in rounds)
    counted = {n: sum(line[ONLY][n] for line in rounds) for n in _COUNTED}
    name = assembled.experiment.method_name
    told = plan_account(assembled)
    return {
        "method": name,
        "simulation": True,
        COULD_BE_RELEASED: assembled.could_be_released,
        "epsilons": statements(told.totals),
        "epsilons_with_earlier": statements(told.both),
        **_metrics(assembled, state.server),
        "seconds": seconds,
        ONLY: {
            "metrics": evaluations[name].to_json()["metrics"] if evaluations else {},
            **_without_noise(assembled, state),
            **counted,
            "clients_per_second": counted["took_part"] / seconds if seconds else None,
            _MEMORY: _largest(line[ONLY].get(_MEMORY) for line in rounds),
            "evaluations": {n: e.to_json() for n, e in evaluations.items()},
            AMONG_ALL: {n: e.to_json() for n, e in among_all.items()},
        },
    }


def _largest(figures: Iterable[int | None]) -> int | None:
    """The largest figure; None where a round has none, as in earlier versions."""
    found = [*figures]
    known = [one for one in found if one is not None]
    return max(known) if known and len(known) == len(found) else None


def released_result(assembled: Assembled, server: Server) -> dict[str, Any]:
    """The result of a release: nothing about private users but under noise."""
    told = plan_account(assembled)
    return {
        "method": assembled.experiment.method_name,
        "simulation": False,
        "epsilons": statements(told.totals),
        "epsilons_with_earlier": statements(told.both),
        **_metrics(assembled, server),
    }


def in_short(document: Mapping[str, Any]) -> dict[str, Any]:
    """A result without the numbers of each user."""
    if not document["simulation"]:
        return {**document}
    per_user = ("evaluations", AMONG_ALL)
    simulated = {k: v for k, v in document[ONLY].items() if k not in per_user}
    return {**document, ONLY: simulated}
