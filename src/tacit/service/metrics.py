"""Counts of what a server was asked, as text for Prometheus; nothing of any query."""

from __future__ import annotations

import time
from collections import Counter

_HELP = {
    "tacit_requests_total": "counter: requests by endpoint and status",
    "tacit_ranking_seconds_total": "counter: time spent on decoding and ranking",
    "tacit_queries_open": "gauge: queries that are being read or ranked",
    "tacit_up_seconds": "gauge: time since the server began",
}


class Metrics:
    """Counters of one server; they are lost when it ends."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.ranking_seconds = 0.0
        self.open = 0
        self._began = time.monotonic()

    def count(self, endpoint: str, status: int) -> None:
        """Count one answer of an endpoint."""
        self.requests[endpoint, status] += 1

    def text(self) -> str:
        """All counters in the text format of Prometheus."""
        values = {
            "tacit_requests_total": [
                (f'{{endpoint="{endpoint}",status="{status}"}}', str(count))
                for (endpoint, status), count in sorted(self.requests.items())
            ],
            "tacit_ranking_seconds_total": [("", f"{self.ranking_seconds:.6f}")],
            "tacit_queries_open": [("", str(self.open))],
            "tacit_up_seconds": [("", f"{time.monotonic() - self._began:.0f}")],
        }
        lines = []
        for name, rows in values.items():
            kind, _, meaning = _HELP[name].partition(": ")
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{labels} {value}" for labels, value in rows]
        return "\n".join(lines) + "\n"
