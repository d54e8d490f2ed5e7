"""A small harness that puts a paper's published tables beside ours.

    cells       an experiment file × changes × seeds, through the same `train`
    study       the tables of a paper and the cells each needs; finding and loading them
    estimates   how long that takes here, by timing one run of each kind
    published   the figures that a paper prints, read from published.toml
    claims      that one contender is above another, paired, on the same users
    chance      the best of twenty random lists, which every such claim must pass
    tables      rows, claims and charts as data
    page        the same as one HTML file

The studies themselves are in `reproductions/<paper>/`, outside the package: study.py,
published.toml and experiment files. What does not belong here: a paper's settings or
numbers, and a second way to train.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tacit import check
from tacit.errors import BadValue
from tacit.reproduction.estimates import Estimate
from tacit.reproduction.study import SCALES as SCALES
from tacit.reproduction.study import Scale as Scale
from tacit.reproduction.study import Study, find_studies, load_study
from tacit.reproduction.study import papers as studied
from tacit.reproduction.tables import Reproduction

if TYPE_CHECKING:
    from tacit.experiment.training import Watch


def papers(studies: Path | None = None) -> tuple[str, ...]:
    """The papers that can be reproduced, as they are called on the command line."""
    found = (name.replace("_", "-") for name in studied(find_studies(studies)))
    return tuple(sorted(found))


def reproduce(
    paper: str,
    *,
    table: int | str | None = None,
    scale: Scale = "quick",
    out: Path | None = None,
    studies: Path | None = None,
    watch: Watch | None = None,
    retry_diverged: bool = False,
) -> Reproduction:
    """A paper's tables and figures, or one of them by its number in the paper.

    `smoke` takes seconds on an invented world, `quick` minutes, `full` may take hours.
    Runs are kept in `out`, and the same call goes on from them; without it they are
    thrown away. With `retry_diverged`, trainings that diverged are done anew.
    """
    study, place = _study(paper, scale, studies), _place(out)
    with place as folder:
        return study.reproduced(
            Path(folder),
            table=_number(table),
            watch=watch,
            retry_diverged=retry_diverged,
        )


def estimate(
    paper: str,
    *,
    table: int | str | None = None,
    scale: Scale = "full",
    out: Path | None = None,
    studies: Path | None = None,
    watch: Watch | None = None,
    retry_diverged: bool = False,
) -> Estimate:
    """How long the same call of `reproduce` would take on this machine.

    A few rounds are trained for it; what was timed is kept in `out`.
    """
    study, place = _study(paper, scale, studies), _place(out)
    with place as folder:
        return study.estimated(
            Path(folder),
            table=_number(table),
            watch=watch,
            retry_diverged=retry_diverged,
        )


def _study(paper: str, scale: Scale, studies: Path | None) -> Study:
    check.one_of(SCALES, scale=scale)
    if paper.replace("_", "-") not in papers(studies):
        raise BadValue(f"paper {check.unknown(paper, papers(studies))}")
    return load_study(paper, find_studies(studies), scale)


def _place(out: Path | None) -> AbstractContextManager[str]:
    return TemporaryDirectory() if out is None else nullcontext(str(out))


def _number(table: int | str | None) -> str | None:
    return None if table is None else str(table)
