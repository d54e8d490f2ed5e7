"""Titles as content for Gram: sentence vectors, alone and beside what else is known.

    TACIT_DATA=… python -m benchmarks.gram_titles --sets ml-1m ml-100k steam --draws 2
    TACIT_DATA=… python -m benchmarks.gram_titles --sets steam --part test

NDCG@100, mean over seeds and draws. A difference to the line "none" or, where a set has
other content, to the line of all of that, with its standard error over users, each of
whom has the mean over draws. A weight is that of a title's vector of norm 1 beside the
indicators of genres, which have the norm √(number of genres).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.gram_floor import EXPERIMENT, METRIC, SETS, SMALL
from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Text, Vectors
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import evaluate_method
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import CentralGaussian
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.results import Metric
from tacit.runtime.simulate import Simulation

VECTORS = "title_vector"
Content = tuple[Catalog, tuple[str, ...]]


def _others(catalog: Catalog) -> tuple[str, ...]:
    return tuple(name for name in catalog.features if name != VECTORS)


def _titles(catalog: Catalog, *, is_centred: bool = False) -> np.ndarray:
    """Vectors of norm 1; centred, what all titles have in common is taken out."""
    column = catalog.features[VECTORS]
    assert isinstance(column, Vectors)
    rows = column.values - (column.values.mean(axis=0) if is_centred else 0)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)


def _beside(weight: float, **how: bool) -> Callable[[Catalog], Content]:
    """Titles of this weight in one cosine with genres; numbers as they are."""

    def made(catalog: Catalog) -> Content:
        others = _others(catalog)
        labels = [f for f in catalog.features.values() if isinstance(f, Categories)]
        rows = [*(f.indicator() for f in labels), weight * _titles(catalog, **how)]
        mixed = Vectors(np.concatenate(rows, axis=1).astype(np.float32))
        numbers = [n for n in others if catalog.features[n] not in labels]
        return _with(catalog, mixed=mixed), ("mixed", *numbers)

    return made


def _with(catalog: Catalog, **features: Vectors | Text) -> Catalog:
    return Catalog(catalog.ids, catalog.titles, {**catalog.features, **features})


def _words(catalog: Catalog) -> Content:
    return _with(catalog, words=Text(catalog.titles)), ("words",)


VARIANTS: dict[str, Callable[[Catalog], Content]] = {
    "none": lambda catalog: (catalog, ()),
    "others": lambda catalog: (catalog, _others(catalog)),
    "others, titles 1/4": _beside(0.25),
    "others, titles 1/2": _beside(0.5),
    "others, titles 1": _beside(1.0),
    "others, centred 1/2": _beside(0.5, is_centred=True),
    "titles": lambda catalog: (catalog, (VECTORS,)),
    "titles by words": _words,
}
BARE = ("none", "others", "titles by words")  # need no vectors


def measured(
    place: Assembled,
    content: Content,
    epsilon: float,
    *,
    delta: float,
    draw: int,
    part: str,
) -> np.ndarray:
    """The metric of every held-out user of this part."""
    catalog, names = content
    split = replace(place.split, catalog=catalog)
    plan = Plan(
        len(split.train),
        rounds=3,
        channel="secure_sum",
        delta=delta,
        target_epsilon=epsilon,
    )
    method = Gram(privacy=CentralGaussian(), content=names).calibrated(plan)
    people = split.profiles.take(split.users)
    key = Key.from_seed(draw)
    simulation = Simulation(method, plan, catalog, people, split.train, key)
    *_, (state, _) = simulation.run(simulation.start())
    judged = replace(place, simulation=simulation, split=split)
    return evaluate_method(judged, state, getattr(split, part)).values[METRIC]


def rows(name: str, asked: argparse.Namespace) -> Iterator[str]:
    """One line per epsilon and variant."""
    changes = SETS[name]
    assert isinstance(changes, tuple)
    if not {*asked.variants} <= {*BARE}:
        changes = (*changes, 'data.text_vectors=["title"]')
    found: dict[tuple[float, str], list[np.ndarray]] = {}
    has_others = True
    for seed in range(asked.seeds):
        settings = read_experiment(asked.experiment, [*changes, f"run.seed={seed}"])
        place = assemble(settings)
        has_others = bool(_others(place.split.catalog))
        for epsilon in asked.epsilons:
            for variant in _fitting(asked.variants, has_others):
                content = VARIANTS[variant](place.split.catalog)
                how = {"delta": 1e-5 if name in SMALL else 1e-6, "part": asked.part}
                draws = [
                    measured(place, content, epsilon, draw=100 * seed + draw, **how)
                    for draw in range(asked.draws)
                ]
                found.setdefault((epsilon, variant), []).append(np.mean(draws, axis=0))
    against = "others" if has_others else "none"
    for (epsilon, variant), values in found.items():
        own = np.concatenate(values)
        shown = f"{name:8} {epsilon:3g}  {variant:20} {own.mean():.4f}"
        if variant != against and (epsilon, against) in found:
            apart = Metric.of(own - np.concatenate(found[epsilon, against]))
            shown += f"  {apart.mean:+.4f} ± {apart.se:.4f}"
        yield shown


def _fitting(variants: list[str], has_others: bool) -> list[str]:
    return [v for v in variants if has_others or not v.startswith("others")]


def main() -> None:
    """Print what each variant finds, and how far that is from the set's own content."""
    asked = _options()
    for name in asked.sets:
        for row in rows(name, asked):
            print(row, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gram_titles")
    named = [name for name, kind in SETS.items() if isinstance(kind, tuple)]
    parser.add_argument("--sets", nargs="+", choices=named, default=["ml-1m"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 2.0])
    parser.add_argument(
        "--variants", nargs="+", choices=[*VARIANTS], default=[*VARIANTS]
    )
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--part", choices=["validation", "test"], default="validation")
    return parser.parse_args()


if __name__ == "__main__":
    main()
