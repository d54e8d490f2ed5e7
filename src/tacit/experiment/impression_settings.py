"""What an experiment may say where impressions are held out, and what it may not.

    [data] split = "by-time", validation_from, test_from      moments
    [data] split = "by-part", validation_part, test_part      published parts
    [evaluate] protocol = "impressions"                       theirs alone, and default

Users are neither held out nor filtered there. A filter by clicks would look at the days
that are to be predicted, so the settings that filter are refused, not ignored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from tacit.baselines import READ_TEXTS
from tacit.data.splits.by_moment import cuts
from tacit.errors import BadValue
from tacit.evaluation.impressions import METRICS
from tacit.evaluation.metrics import COVERAGE, parse

if TYPE_CHECKING:
    from tacit.experiment.settings import DataSettings, EvaluateSettings

PROTOCOL: Final = "impressions"
# The splits that hold impressions out, and the settings that each of them needs.
SPLITS = {
    "by-time": ("validation_from", "test_from"),
    "by-part": ("validation_part", "test_part"),
}
# All splits that need settings of their own; the moments are those of two.
_NEEDED = {**SPLITS, "global-cut": SPLITS["by-time"]}
_EXAMPLES = {
    "validation_from": "'2019-11-13'",
    "test_from": "'2019-11-14'",
    "validation_part": "'valid'",
    "test_part": "'test'",
}
_OF_USERS = (
    *("min_value", "min_interactions", "min_users", "validation", "test"),
    *("target_share", "construction", "subset", "selection"),
)


def problems_of(
    data: DataSettings, evaluate: EvaluateSettings, table: Mapping[str, Any]
) -> list[str]:
    """What does not go together, one sentence each; `table` is the file as it is."""
    found = [*_of_split(data)]
    if data.split in SPLITS:
        return [*found, *_of_filters(data), *_of_evaluation(data, evaluate, table)]
    if evaluate.protocol == PROTOCOL:
        found.append(
            f"evaluate.protocol = '{PROTOCOL}' goes with data.split = 'by-time' or "
            f"'by-part', not '{data.split}'"
        )
    return found


def with_defaults(
    evaluate: EvaluateSettings, table: Mapping[str, Any]
) -> EvaluateSettings:
    """The evaluation of impressions, with their metrics unless the file has others."""
    if "metrics" not in table.get("evaluate", {}):
        evaluate = dataclasses.replace(evaluate, metrics=METRICS)
    return dataclasses.replace(evaluate, protocol=PROTOCOL)


def missing_texts(
    data: DataSettings, evaluate: EvaluateSettings, baselines: tuple[str, ...]
) -> list[str]:
    """Baselines that read vectors of a text which the experiment does not make."""
    own = evaluate.baseline_settings
    read = {
        n: own.get(n, {}).get("text", "title") for n in baselines if n in READ_TEXTS
    }
    return [
        f"baseline '{name}' reads the vectors of '{text}'; add it to data.text_vectors"
        for name, text in read.items()
        if text not in data.text_vectors
    ]


def _of_split(data: DataSettings) -> Iterator[str]:
    """The settings of a split are all there, and there for no other split."""
    own = _NEEDED.get(data.split, ())
    for key, example in _EXAMPLES.items():
        is_given = getattr(data, key) is not None
        if key in own and not is_given:
            yield (
                f"data.{key} is missing; split = '{data.split}' needs it, such as "
                f"{example}"
            )
        elif key not in own and is_given:
            fitting = [f"'{split}'" for split, keys in _NEEDED.items() if key in keys]
            yield (
                f"data.{key} goes with split = {' or '.join(fitting)}, not "
                f"'{data.split}'; leave it out, or change the split"
            )
    moments = (data.validation_from, data.test_from)
    if "validation_from" in own and None not in moments:
        yield from _of_moments(data)
    parts = (data.validation_part, data.test_part)
    if data.split == "by-part" and None not in parts and parts[0] == parts[1]:
        yield f"data.validation_part = '{parts[0]}' must not be the test part"


def _of_moments(data: DataSettings) -> Iterator[str]:
    assert data.validation_from is not None
    assert data.test_from is not None
    try:
        cuts(data.validation_from, data.test_from)
    except BadValue as error:
        yield f"data: {error}"


def _of_filters(data: DataSettings) -> Iterator[str]:
    default = {f.name: f.default for f in dataclasses.fields(data)}
    for key in _OF_USERS:
        if getattr(data, key) != default[key]:
            yield (
                f"data.{key}: split = '{data.split}' keeps all users, their events and "
                "their impressions; leave it out"
            )
    if data.items == "training":
        yield (
            f"data.items = 'training': with split = '{data.split}' later news are "
            "candidates that nobody has trained on; use 'all' or 'declared'"
        )


def _of_evaluation(
    data: DataSettings, evaluate: EvaluateSettings, table: Mapping[str, Any]
) -> Iterator[str]:
    said = table.get("evaluate", {}).get("protocol", PROTOCOL)
    if said != PROTOCOL:
        yield (
            f"evaluate.protocol = '{said}' ranks users; data.split = '{data.split}' "
            f"goes with '{PROTOCOL}', which is its default"
        )
    if evaluate.full_metrics:
        yield (
            "evaluate.full_metrics rank among all items, and impressions are ranked "
            "among what was shown; leave them out"
        )
    for name in evaluate.metrics:
        measure = parse(name)
        if measure.kind == COVERAGE or measure.is_each:
            yield f"evaluate.metrics: '{name}' is not of impressions; use {METRICS[0]}"
