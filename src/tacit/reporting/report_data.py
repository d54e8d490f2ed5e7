"""All that a report shows, as plain data; `html.render` turns it into one page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.errors import BadValue
from tacit.reporting.pairs import Paired
from tacit.reporting.verdict import Verdict
from tacit.statement import Statement


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error; None where there is none, as with one seed."""

    mean: float
    se: float | None = None

    def __str__(self) -> str:
        return f"{self.mean:.4f}" + ("" if self.se is None else f" ± {self.se:.4f}")


@dataclass(frozen=True)
class Lead:
    """A fact that a page begins with: a large value, and what it covers."""

    label: str
    value: str
    detail: str = ""
    is_promise: bool = False  # an epsilon that is proven and small stands in color


@dataclass(frozen=True)
class Contender:
    """One method or baseline in a comparison, with its metrics."""

    method: str
    metrics: Mapping[str, Estimate]
    is_this_run: bool = False  # the one that the report is about
    # The proven one, of a user's whole history against who sees the model.
    epsilon: float | None = None


@dataclass(frozen=True)
class Curve:
    """A metric after each of some rounds."""

    metric: str
    rounds: tuple[int, ...]
    values: tuple[Estimate, ...]

    def __post_init__(self) -> None:
        if len(self.rounds) != len(self.values) or not self.rounds:
            raise BadValue(
                f"a curve of {len(self.rounds)} rounds and {len(self.values)} values; "
                "there must be one value a round, and at least one"
            )


@dataclass(frozen=True)
class User:
    """One user's history and list, as the client shows them."""

    name: str
    history: tuple[str, ...]
    recommended: tuple[tuple[str, float], ...]  # (title, score), best first
    # For each line of the list the titles of the history that speak most for it; empty
    # where the method cannot say, or where only popularity does.
    reasons: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Tradeoff:
    """A metric against epsilon, and what the metric is without privacy."""

    metric: str
    series: Mapping[str, tuple[tuple[float, Estimate], ...]]  # method -> (epsilon, …)
    references: Mapping[str, Estimate]


@dataclass(frozen=True)
class Costs:
    """What a contender costs; None where nothing is sent or nothing was measured.

    Bytes and `client_seconds` are of one client over a whole training; `seconds` is
    what a warm training took here, `memory_bytes` the most that it took for itself.
    """

    method: str
    bytes_up: float | None
    bytes_down: float | None
    client_seconds: float | None
    seconds: float | None
    memory_bytes: float | None


Groups = Mapping[str, Mapping[str, Mapping[str, Estimate]]]  # label, metric, method


@dataclass(frozen=True)
class Report:
    """All figures of a run for its page; what is empty is left out."""

    title: str
    command: str  # what was typed to make it
    simulation: bool  # seeds were used: no figure holds for a real release
    could_be_released: bool = True  # else no release could follow
    lead: tuple[Lead, ...] = ()  # what stands first, beside the epsilon
    facts: tuple[tuple[str, str], ...] = ()
    statements: tuple[Statement, ...] = ()
    released: tuple[str, ...] = ()  # a sentence for each metric that was released
    comparison: tuple[Contender, ...] = ()
    tradeoff: Tradeoff | None = None
    differences: tuple[Paired, ...] = ()
    verdict: Verdict | None = None  # what to use; `verdict.sentences` has its words
    costs: tuple[Costs, ...] = ()
    curve: Curve | None = None
    groups: Groups | None = None
    budgets: Groups | None = None  # public groups with budgets of their own
    user: User | None = None
