"""From how many users on private training beats content: tables and plot of a page.

    python -m benchmarks.news_users --users 5000 50000 [--epsilons 1 5 inf]
        [--learns gradients] [--seeds 0] [--set method.prior=0.2] [--kept FILE]
        [--plot FILE]
    python -m benchmarks.news_users --experiment experiments/mind-privaterec.toml

PrivateRec on invented weeks of news that differ in nothing but their number of users,
from `experiments/synthetic-news-privaterec.toml`: a seed makes a week and the noise. Or
on the data of another experiment: there a seed makes the noise. With an experiment of
`privaterec_local` it has no choice of what is learnt.
AUC of what was shown on the days of validation and of the test, and the difference to
the untrained model on the latter, paired over impressions, with standard errors
clustered by user; then that difference for each seed. The last column is the share of
what the true probabilities of a click have over .5, where these are known.
With `--kept` finished runs are not run again; delete it when the code has changed.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks import plots
from benchmarks.kept_values import KeptValues, Values
from tacit.data.impressions import Impressions
from tacit.data.news_split import by_time
from tacit.data.synthetic.news_world import NewsWorld
from tacit.evaluation.impressions import evaluate_impressions
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import evaluate_method
from tacit.experiment.settings import Experiment, check_experiment, read_table
from tacit.results import Evaluation, Metric

EXPERIMENT = (
    Path(__file__).parents[1] / "experiments" / "synthetic-news-privaterec.toml"
)
LEARNS = ("clicks and gradients", "gradients", "clicks")
PARTS = ("validation", "test")


@dataclass(frozen=True)
class Cell:
    """One training: how many users, what is learnt, and the epsilon or infinity."""

    file: str
    users: int | None  # of an invented world; None: as the experiment has it
    learns: str | None  # None: the method has no choice
    epsilon: float
    changes: tuple[str, ...] = ()  # of the experiment's file, as with `--set`

    def experiment(self, seed: int) -> Experiment:
        """The experiment's file with these settings, on the week of this seed."""
        table = read_table(Path(self.file), self.changes)
        if self.users is not None:
            table["data"]["world"] |= {"users": self.users, "seed": seed}
        if self.learns is not None:
            table["method"]["learns"] = self.learns
        table["run"]["seed"] = seed
        table["evaluate"] = {"every": table["run"]["rounds"], "metrics": ["auc"]}
        if self.learns == "clicks":  # a single release
            table["run"]["rounds"] = table["evaluate"]["every"] = 1
        if math.isinf(self.epsilon):
            table["privacy"] = {"mechanism": "none"}
        else:
            table["privacy"]["target_epsilon"] = self.epsilon
        return check_experiment(table)


def main() -> None:
    """Print the table, and draw the plot if it is asked for."""
    asked = _options()
    kept = KeptValues(asked.kept)
    named = ("users", "learns", "ε", *PARTS, "over content", "by seed", "of Bayes")
    print(f"| {' | '.join(named)} |")
    print("|---" * len(named) + "|")
    gains: dict[str, list[tuple[float, float, float]]] = {}
    for cell in _cells(asked):
        runs = [kept.of(*_run(cell, seed)) for seed in asked.seeds]
        found = _over_seeds(runs, is_same=cell.users is None)
        by_seed = [float(run["gain"][0]) for run in runs]
        print(_row(cell, found, by_seed), flush=True)
        gains.setdefault(_label(cell), []).append((cell.users or 0, *found["gain"]))
    print(f"peak memory {_peak_gib():.1f} GiB", file=sys.stderr)
    if asked.plot is not None:
        asked.plot.write_text(_drawn(gains))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.news_users")
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--users", type=int, nargs="+", default=[None])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 5.0])
    parser.add_argument("--learns", nargs="+", choices=LEARNS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--set", action="append", default=[], dest="changes")
    parser.add_argument("--kept", type=Path, help="where finished runs are kept")
    parser.add_argument("--plot", type=Path, help="an SVG file to write")
    asked = parser.parse_args()
    if asked.plot is not None and None in asked.users:
        parser.error("--plot is by number of users and needs --users")
    if read_table(asked.experiment)["method"]["name"] == "privaterec":
        asked.learns = asked.learns or [LEARNS[0]]
    elif asked.learns:
        parser.error(f"the method of {asked.experiment} has no setting `learns`")
    else:
        asked.learns = [None]
    return asked


def _cells(asked: argparse.Namespace) -> Iterator[Cell]:
    for users, learns in product(asked.users, asked.learns):
        for epsilon in asked.epsilons:
            file, changes = str(asked.experiment), tuple(asked.changes)
            yield Cell(file, users, learns, epsilon, changes)


def _run(cell: Cell, seed: int) -> tuple[dict[str, object], Callable[[], Values]]:
    """What a run is called, and what computes it."""
    return {**asdict(cell), "seed": seed}, partial(measured, cell, seed)


def measured(cell: Cell, seed: int) -> Values:
    """Means and standard errors of one training, of content, and of their difference.

    `bayes` is the AUC of the test impressions by the world's own probabilities, if it
    has them.
    """
    assembled = assemble(cell.experiment(seed))
    simulation = assembled.simulation
    untrained = simulation.start()
    *_, (trained, _) = simulation.run(untrained)
    found: Values = {}
    for part in PARTS:
        heldout = getattr(assembled.split, part)
        own = evaluate_method(assembled, trained, heldout)
        content = evaluate_method(assembled, untrained, heldout)
        found[part], found[f"content {part}"] = _pair(own), _pair(content)
        found["gain"] = _figures(own.minus(content)["auc"])  # of the test, the last
    return found if cell.users is None else {**found, "bayes": _bayes(assembled)}


def _bayes(assembled: Assembled) -> np.ndarray:
    data = assembled.experiment.data
    world = NewsWorld(**data.world)
    assert data.validation_from is not None
    assert data.test_from is not None
    # As the world has numbered its news: an experiment drops those that nobody has.
    days = {"validation_from": data.validation_from, "test_from": data.test_from}
    test = by_time(world.load(), **days).test
    assert isinstance(test, Impressions)
    return _pair(evaluate_impressions(world.truth, test, metrics=("auc",)))


def _pair(found: Evaluation) -> np.ndarray:
    return _figures(found.metrics()["auc"])


def _figures(found: Metric) -> np.ndarray:
    return np.array([found.mean, found.se])


def _over_seeds(runs: Sequence[Values], *, is_same: bool) -> Values:
    """Means over seeds and their errors: of the same users, or of independent weeks."""
    return {
        name: np.array(
            [
                np.mean([run[name][0] for run in runs]),
                _joint_error([run[name][1] for run in runs], is_same=is_same),
            ]
        )
        for name in runs[0]
    }


def _joint_error(errors: Sequence[float], *, is_same: bool) -> float:
    together = sum(errors) if is_same else math.hypot(*errors)
    return together / len(errors)


def _row(cell: Cell, found: Values, by_seed: Sequence[float]) -> str:
    """A line of the table."""
    scores = [f"{found[part][0]:.4f} ± {found[part][1]:.4f}" for part in PARTS]
    gain = f"{found['gain'][0]:+.4f} ± {found['gain'][1]:.4f}"
    share = ""
    if "bayes" in found:
        share = f"{(found['test'][0] - 0.5) / (found['bayes'][0] - 0.5):.3f}"
    users = "" if cell.users is None else f"{cell.users:,}"
    named = [users, cell.learns or "", f"{cell.epsilon:g}"]
    each = ", ".join(f"{one:+.4f}" for one in by_seed)
    return "| " + " | ".join([*named, *scores, gain, each, share]) + " |"


def _label(cell: Cell) -> str:
    noise = "no noise" if math.isinf(cell.epsilon) else f"epsilon {cell.epsilon:g}"
    return noise if cell.learns in (LEARNS[0], None) else f"{cell.learns}, {noise}"


def _drawn(gains: Mapping[str, Sequence[tuple[float, float, float]]]) -> str:
    """The gains by number of users, as an SVG."""
    axes = {"x": "users", "y": "test AUC over content"}
    return plots.lines("news users", gains, **axes, levels={"content": 0.0}) + "\n"


def _peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # from KiB


if __name__ == "__main__":
    main()
