"""What contenders need, checked before the first of them is fitted.

A missing module, a matrix that no memory can hold or too few rounds would otherwise be
found after hours of training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec

from tacit import memory
from tacit.baselines.ranker import Ranker, SizedRanker
from tacit.errors import MissingExtra, Refused
from tacit.experiment.registry import baseline, baseline_class, method_class
from tacit.experiment.settings import EvaluateSettings, Experiment

_FAR_FEWER = 5  # times fewer than the usual rounds
_SHARE = 0.9  # of the free memory; the rest is for the data and for ranking


def refuse_few_rounds(experiment: Experiment) -> None:
    """Refuse a new run whose rounds break what its method promises of its lists."""
    run, privacy = experiment.run, experiment.privacy
    # A refresh goes on from what was learnt; rates by group leave no phase to choose.
    if run.refreshes is not None or privacy.budgets == "sample":
        return
    if privacy.target_epsilon is None:
        return
    why = experiment.method.needs_rounds(run.rounds, experiment.sampler)
    if why is not None:
        raise Refused(f"run.rounds={run.rounds} is too few: {why}")


def note_on_rounds(experiment: Experiment) -> str | None:
    """A sentence if a run has far fewer rounds than its method usually takes.

    FedVAE in 3 rounds on an invented world: NDCG@100 .12, where random lists have .11.
    """
    rounds, usual = experiment.run.rounds, experiment.method.usual_rounds
    if experiment.run.refreshes is not None or rounds * _FAR_FEWER > usual:
        return None
    return (
        f"run.rounds={rounds}: {experiment.method_name} usually takes {usual}, and "
        "learns next to nothing in so few; leave rounds out, or set "
        f"run.rounds={usual}"
    )


def refuse_missing_extras(methods: Iterable[str], baselines: Iterable[str]) -> None:
    """Refuse methods and baselines whose optional modules are not installed."""
    classes: dict[str, type] = {name: method_class(name) for name in methods}
    classes |= {name: baseline_class(name) for name in baselines}
    for name, one in classes.items():
        extras: Mapping[str, str] = getattr(one, "EXTRAS", {})
        for module, extra in extras.items():
            if find_spec(module) is None:
                raise MissingExtra(f"{module}, which {name} needs,", extra)


def refuse_too_large(
    names: Sequence[str],
    settings: EvaluateSettings,
    *,
    n_users: int,
    n_items: int,
    option: Callable[[Sequence[str]], str],
) -> None:
    """Refuse baselines that need more memory than there is, all of them at once.

    `option` says how a command is told to take only the baselines that are left.
    """
    free, own = memory.available(), settings.baseline_settings
    rankers = {name: baseline(name, own.get(name)) for name in names}
    problems = {
        name: said
        for name, ranker in rankers.items()
        if (said := _problem(name, ranker, n_users, n_items, free)) is not None
    }
    if problems:
        left = [name for name in names if name not in problems]
        raise Refused(
            f"{'; '.join(problems.values())}: leave {' and '.join(problems)} out "
            f"with {option(left)}"
        )


def _problem(
    name: str, ranker: Ranker, n_users: int, n_items: int, free: int | None
) -> str | None:
    """A sentence if the baseline does not fit, else None."""
    if not isinstance(ranker, SizedRanker):
        return None
    needed = ranker.memory_bytes(n_users=n_users, n_items=n_items)
    sizes = f"{name} needs {memory.in_words(needed)} for {n_items:,} items"
    if needed > ranker.MOST_BYTES:
        return f"{sizes}, and at most {memory.in_words(ranker.MOST_BYTES)} are allowed"
    if free is not None and needed > _SHARE * free:
        return f"{sizes}, and {memory.in_words(free)} are free"
    return None
