"""An overview as text for Prometheus; what is hidden has no sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tacit.service.federation.overview import Budget, Outcome, Overview, Traffic
from tacit.statement import Statement

PROMETHEUS = "text/plain; version=0.0.4"
Sample = tuple[Mapping[str, str], float | None]
# Gauges throughout: a count that is floored may be lower after a restart.
_MEANING = {
    "tacit_up_seconds": "time since the service was started",
    "tacit_starts": "how often the service was started",
    "tacit_disk_free_bytes": "room on the disk, down to 256 MiB",
    "tacit_peer_answers": "1 if another service answered when it was last asked",
    "tacit_peer_answer_age_seconds": "time since another service last answered",
    "tacit_round": "the number of the newest round",
    "tacit_round_state": "1 for the state of the newest round",
    "tacit_round_opens_seconds": "when the newest round opens, since 1970",
    "tacit_round_closes_seconds": "when the newest round closes, since 1970",
    "tacit_round_reports": "reports of the newest round, down to 50; none if too few",
    "tacit_refusals": "refused reports by status since the start, down to 50",
    "tacit_batches": "batches since the start, down to 50",
    "tacit_last_commit_seconds": "the hour of the last commit, since 1970",
    "tacit_commit_seconds": "how long a commit takes",
    "tacit_queue_bytes": "reports that wait to be counted, down to a step of many",
    "tacit_epsilon": "proven epsilon of a view, planned and spent",
    "tacit_released_models": "models of this run that are published",
    "tacit_withheld_models": "models of this run that are not published",
    "tacit_released_metric": "what was measured on users within their budget",
}


def metrics_text(seen: Overview, *, up_seconds: float) -> str:
    """All samples of a service in the text format of Prometheus."""
    lines: list[str] = []
    for name, samples in _samples(seen, up_seconds).items():
        found = [(labels, value) for labels, value in samples if value is not None]
        if found:
            lines += [f"# HELP {name} {_MEANING[name]}", f"# TYPE {name} gauge"]
        lines += [f"{name}{_labelled(labels)} {value:.15g}" for labels, value in found]
    return "\n".join(lines) + "\n"


def _samples(seen: Overview, up_seconds: float) -> dict[str, Iterable[Sample]]:
    found: dict[str, Iterable[Sample]] = {
        "tacit_up_seconds": [({"role": seen.role}, up_seconds // 1)],
        "tacit_starts": [({}, seen.starts)],
        "tacit_disk_free_bytes": [({}, seen.disk_free)],
        "tacit_peer_answers": [
            ({"peer": name}, peer.answers) for name, peer in seen.peers.items()
        ],
        "tacit_peer_answer_age_seconds": [
            ({"peer": name}, peer.seconds) for name, peer in seen.peers.items()
        ],
    }
    if seen.rounds:
        newest = seen.rounds[0]
        found |= {
            "tacit_round": [({"run": newest.run}, newest.number)],
            "tacit_round_state": [({"state": newest.state}, 1)],
            "tacit_round_opens_seconds": [({}, newest.opens)],
            "tacit_round_closes_seconds": [({}, newest.closes)],
            "tacit_round_reports": [({}, newest.reports)],
        }
    if seen.traffic is not None:
        found |= _traffic(seen.traffic)
    if seen.budget is not None:
        found["tacit_epsilon"] = [*_epsilons(seen.budget)]
    if seen.outcome is not None:
        found |= _outcome(seen.outcome)
    return found


def _traffic(traffic: Traffic) -> dict[str, Iterable[Sample]]:
    median, slowest = traffic.commit_seconds or (None, None)
    return {
        "tacit_refusals": [({"status": s}, n) for s, n in traffic.refusals.items()],
        "tacit_batches": [({}, traffic.batches)],
        "tacit_last_commit_seconds": [({}, traffic.last_commit)],
        "tacit_commit_seconds": [
            ({"quantile": "0.5"}, median),
            ({"quantile": "0.99"}, slowest),
        ],
        "tacit_queue_bytes": [({}, traffic.queue_bytes)],
    }


def _epsilons(budget: Budget) -> Iterator[Sample]:
    for kind, lines in (("planned", budget.planned), ("spent", budget.spent)):
        for said in lines:
            # Without a guarantee there is no epsilon, and no sample.
            if said.standing.has_epsilon:
                yield {"kind": kind, **_terms(said)}, said.epsilon


def _terms(said: Statement) -> dict[str, str]:
    return {
        "view": str(said.view),
        "unit": str(said.unit),
        "group": said.group,
        "adjacency": str(said.adjacency),
        "delta": f"{said.delta}",
        "accountant": said.accountant,
        "standing": str(said.standing),
    }


def _outcome(outcome: Outcome) -> dict[str, Iterable[Sample]]:
    return {
        "tacit_released_models": [({}, len(outcome.models))],
        "tacit_withheld_models": [({}, bool(outcome.withheld))],
        "tacit_released_metric": [
            ({"name": one["name"], "bound": bound}, one[bound])
            for one in outcome.metrics
            for bound in ("value", "low", "high")
        ],
    }


def _labelled(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped(text)}"' for name, text in labels.items())
    return f"{{{','.join(pairs)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
