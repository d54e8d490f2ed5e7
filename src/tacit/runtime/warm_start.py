"""A finished run that another one goes on from: its server's state and its releases.

The releases stand in its ledger as events, so that a later run can compose them without
the data, the plan or the method that made them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.accounting.serialization import release_from_json, release_to_json
from tacit.documents import read_document
from tacit.errors import BadRun
from tacit.statement import Past
from tacit.tree import Arrays

Json = dict[str, Any]

# Whatever reading JSON of another shape may raise: the file may be anybody's.
NO_ACCOUNT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


@dataclass(frozen=True, eq=False)
class Earlier:
    """The weights, memory and releases of the run that another one starts from."""

    weights: Arrays
    memory: Arrays
    spent: tuple[Past, ...]  # by the run itself, last, and by those before it


def read_spent(file: Path) -> tuple[Past, ...]:
    """The releases in the ledger of a run: of earlier runs first, then its own."""
    ledger = read_document(file)
    try:
        if "account" in ledger:
            return tuple(map(read_past, (*ledger["earlier"], ledger["account"])))
    except NO_ACCOUNT as error:
        raise BadRun(f"{file} is damaged: {error!r}; train that run again") from error
    raise BadRun(
        f"{file} does not say what was released in a form that composes; it was "
        "written by an earlier version: train that run again"
    )


def plain_past(past: Past) -> Json:
    """The releases of a past run as JSON for a ledger."""
    releases = [release_to_json(release) for release in past.releases]
    return {"population": past.population, "releases": releases}


def read_past(document: Mapping[str, Any]) -> Past:
    """The past run that `plain_past` wrote down."""
    releases = tuple(release_from_json(one) for one in document["releases"])
    return Past(int(document["population"]), releases)
