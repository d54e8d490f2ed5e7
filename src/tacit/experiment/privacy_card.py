"""The privacy card of a run: what a data-protection officer asks, answered from files.

draw_card      before anyone is asked: data kinds, releases, totals, budget
current_card   the same, with what has happened since: rounds begun, audit, contact
write_card     privacy-card.json and privacy-card.html, in the run directory
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tacit.documents import (
    read_document,
    write_document,
)
from tacit.errors import BadRun, Damaged
from tacit.experiment.assemble import COULD_BE_RELEASED, Assembled
from tacit.experiment.settings import (
    method_settings,
    plain_settings,
    privacy_settings,
    read_table,
)
from tacit.files import write_atomically
from tacit.release import Release, Unit
from tacit.reporting.privacy_card import render
from tacit.runtime.run import RunDirectory
from tacit.version import __version__

Json = dict[str, Any]

RUNS = (2, 4)  # repeated trainings whose composed epsilon the card shows
_DRAWN = {"simulation", "data", "releases", "totals", "both", "budget"}
_CHECK = {"name", "claimed", "measured", "ok"}


def draw_card(assembled: Assembled) -> Json:
    """What a run will reveal, under which guarantees, and to whom."""
    plan, method = assembled.plan, assembled.method
    releases, found = assembled.simulation.releases, assembled.simulation.account
    experiment = assembled.experiment
    return {
        "tacit": __version__,
        "simulation": not experiment.is_release,
        COULD_BE_RELEASED: assembled.could_be_released,
        "title": f"{experiment.method_name} on {experiment.data.name}",
        "plan": plan.digest.hex(),
        "data": {
            "source": experiment.data.name,
            "people": plan.population,  # the key that earlier cards have
            "items": len(assembled.split.catalog),
            "kinds": [*_kinds(assembled)],
        },
        "method": method_settings(experiment.method_name, assembled.learner),
        "privacy": privacy_settings(method),
        "leaves": [line for release in releases for line in _leaving(release)],
        "releases": [asdict(line) for line in found.releases],
        "totals": [asdict(line) for line in found.totals],
        "earlier": [asdict(line) for line in found.earlier],
        "both": [asdict(line) for line in found.both],
        "budget": {
            "target_epsilon": plan.target_epsilon,
            "delta": plan.delta,
            "channel": plan.channel,
            "sampler": type(plan.sampler).__name__,
            "cohort_size": plan.cohort_size,
            "groups": dict(plan.groups),
            "as_one_epsilon": assembled.as_one_epsilon,
            "consenting": plan.consenting,
            "consent_weight": assembled.consent_weight,
            "rounds": plan.rounds,
            "most_participations": plan.sampler.most_participations(plan),
            "retraining": [
                asdict(line) | {"runs": runs}
                for runs in RUNS
                for line in assembled.simulation.account_of(runs=runs).totals
                if line.unit is Unit.USER
            ],
        },
        "serving": serving_of(assembled),
    }


def serving_of(assembled: Assembled, *, runs: int = 1) -> Json:
    """How users will be served, and what that costs with taking part `runs` times."""
    serve, method = assembled.experiment.serve, assembled.method
    queries = serve.queries_of(method)
    found = serve.statements(assembled.simulation.terms, method=method, runs=runs)
    return {
        **plain_settings(serve),
        **({} if queries is None else {"query": queries.reason}),
        "statements": [
            asdict(line) | {"days": days}
            for days, told in found.items()
            for line in told
        ],
    }


def current_card(directory: RunDirectory) -> Json:
    """The card of a run directory, with what is in it now."""
    card = _entries(directory.privacy_card, _DRAWN)
    begun = 0
    if directory.ledger.exists():
        begun = _entries(directory.ledger, {"rounds_begun"})["rounds_begun"]
    # Not checked as an experiment: only the contact may be edited after a run began.
    contact = read_table(directory.experiment).get("privacy", {}).get("contact")
    return with_progress(card, directory, rounds_begun=begun, contact=contact)


def _entries(path: Path, wanted: set[str]) -> Json:
    """A document with at least these entries."""
    found = read_document(path)
    if missing := wanted - found.keys():
        raise Damaged(path, f"it lacks {', '.join(sorted(missing))}")
    return found


def with_progress(
    card: Json, directory: RunDirectory, *, rounds_begun: int, contact: str | None
) -> Json:
    """The card with what has happened since it was drawn."""
    return card | {
        "rounds_begun": rounds_begun,
        "audit": _audit(directory.path / "audit.json"),
        "contact": contact,
    }


def write_card(directory: RunDirectory, card: Json | None = None) -> Path:
    """Write the card as JSON and as a page; without `card`, bring it up to date.

    Returns the path of the page.
    """
    current = current_card(directory) if card is None else card
    write_document(directory.privacy_card, current)
    page = directory.privacy_card.with_suffix(".html")
    write_atomically(page, render(current).encode())
    return page


def _kinds(assembled: Assembled) -> Iterator[Json]:
    """Every kind of data, who keeps it, and whether it is personal."""
    dataset, table = assembled.dataset, assembled.experiment.table
    log = dataset.interactions
    yield _kind("items a user chose", "the client", personal=True)
    # Where all values are the same, they say no more than that there was an event.
    has_several = len(log) and float(log.values.min()) != float(log.values.max())
    # No user is here where nodes hold them; the table's columns are known.
    is_named = not assembled.has_users and table is not None and table.value_column
    if has_several or is_named:
        yield _kind("how much: ratings or counts", "the client", personal=True)
    if log.times is not None:
        yield _kind("when: times of choices", "the client", personal=True)
    if dataset.impressions is not None:
        yield _kind("what was shown, and clicked", "the client", personal=True)
    for name in log.contexts:
        yield _kind(f"context of a choice: {name}", "the client", personal=True)
    for name in dataset.profiles.features:
        yield _kind(f"profile: {name}", "the client", personal=True)
    described = ", ".join(["titles", *dataset.catalog.features])
    yield _kind(f"items: {described}", "everyone", personal=False)


def _kind(what: str, held_by: str, *, personal: bool) -> Json:
    return {"what": what, "held_by": held_by, "personal": personal}


def _leaving(release: Release) -> Iterator[Json]:
    """One line per phase."""
    for part in release.leaving():
        yield {
            "what": part.what,
            "seen_by": release.seen_by,
            "when": part.when,
            "group": release.group,
        }


def _audit(path: Path) -> Json | None:
    """The checks of an audit, if there was one."""
    if not path.exists():
        return None
    document = read_document(path)
    checks = document.get("checks")
    if not isinstance(checks, list) or not all(_is_check(one) for one in checks):
        raise BadRun(
            f"{path} is damaged: 'checks' must be a list of tables with name, claimed, "
            "measured and ok; make it again with: tacit audit RUN"
        )
    kept = [{"subject": one.get("subject"), **_kept(one)} for one in checks]
    # An audit that made no check has shown nothing, so it is not ok.
    ok = bool(kept) and all(one["ok"] for one in kept)
    return {"ok": ok, "checks": kept, "scope": _scope(path, document)}


def _scope(path: Path, document: Json) -> Json:
    """What the audit looked at, and what not; nothing of an earlier version's."""
    found = {name: document.get(name, []) for name in ("looked_at", "not_looked_at")}
    for name, lines in found.items():
        if not isinstance(lines, list) or not all(map(_is_aspect, lines)):
            raise BadRun(
                f"{path} is damaged: {name} must be a list of tables with subject, "
                "kind and name; make it again with: tacit audit RUN"
            )
    return found


def _is_aspect(one: object) -> bool:
    words = {"subject", "kind", "name"}
    return isinstance(one, dict) and all(isinstance(one.get(n), str) for n in words)


def _kept(one: Json) -> Json:
    return {key: one[key] for key in sorted(_CHECK)}


def _is_check(one: object) -> bool:
    return isinstance(one, dict) and one.keys() >= _CHECK
