"""Ledger files and terms as the first format had them; what they say still counts."""

import json
import sqlite3

from tacit.accounting.serialization import event_to_json
from tacit.ledger.schema import APPLICATION
from tacit.ledger.terms import Terms
from tacit.release import Cell, Release

TABLES = """
CREATE TABLE runs (
    run TEXT PRIMARY KEY, joined TEXT NOT NULL, terms TEXT NOT NULL,
    key BLOB, state BLOB,
    CHECK ((key IS NULL) = (state IS NULL))
);
CREATE TABLE answers (
    run TEXT NOT NULL REFERENCES runs, round INTEGER NOT NULL CHECK (round >= 0),
    asked BLOB NOT NULL, report BLOB, sent TEXT,
    PRIMARY KEY (run, round)
);
CREATE TABLE entries (
    run TEXT NOT NULL, round INTEGER NOT NULL, release TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (run, round, release),
    FOREIGN KEY (run, round) REFERENCES answers
);
CREATE TABLE caps (
    unit TEXT, view TEXT, epsilon REAL NOT NULL, delta REAL NOT NULL,
    PRIMARY KEY (unit, view)
);
CREATE TABLE refusals (
    run TEXT, reason TEXT, times INTEGER NOT NULL, last TEXT NOT NULL,
    PRIMARY KEY (run, reason)
);
"""

_SUM = (
    '{"adjacency": "zero_out", "assumes": "trusted aggregator", "covers": "run", '
    '"event": {"SelfComposedDpEvent": {"count": 3, "event": {"PoissonSampledDpEvent": '
    '{"event": {"GaussianDpEvent": {"noise_multiplier": 4.0}}, '
    '"sampling_probability": 0.5}}}}, "reason": "sampled", "unit": "%s", '
    '"view": "release"}, '
    '{"adjacency": "zero_out", "assumes": "trusted aggregator", "covers": "round", '
    '"event": {"GaussianDpEvent": {"noise_multiplier": 4.0}}, "reason": "counted", '
    '"unit": "%s", "view": "server"}, '
    '{"adjacency": "zero_out", "assumes": "nothing", "covers": "round", "event": null, '
    '"reason": "an aggregator that colludes shows all", "unit": "%s", '
    '"view": "collusion"}'
)
TRAINING = (  # of small.training(0.5, 4.0, 3), letter by letter
    f'{{"charges": [{{"promises": [{_SUM % (("user",) * 3)}, '
    f'{_SUM % (("item",) * 3)}], "seen_by": "server", "what": "noisy sum"}}], '
    '"group": "everyone", "most": 3, "population": 1, "rounds": 3}'
)


_WORDS = {"trusted_aggregator": "trusted aggregator"}  # as it was said then


def first_text(terms: Terms) -> str:
    """These terms as the first format wrote them."""
    document = {
        "charges": [_charge(release) for release in terms.releases],
        "rounds": terms.rounds,
        "most": terms.most,
        "population": terms.population,
        "group": terms.group,
    }
    return json.dumps(document, sort_keys=True, ensure_ascii=False)


def make_file(path) -> sqlite3.Connection:
    """An empty ledger of the first format."""
    file = sqlite3.connect(path, isolation_level=None)
    file.executescript(TABLES)
    file.execute(f"PRAGMA application_id = {APPLICATION}")
    file.execute("PRAGMA user_version = 1")
    return file


def _charge(release: Release) -> dict:
    held = {
        "what": release.what,
        "seen_by": release.seen_by,
        "promises": [
            {"unit": str(unit), "view": str(view), **_promise(cell)}
            for (unit, view), cell in release.cells.items()
        ],
    }
    if release.rounds is not None:
        held["rounds"] = [release.rounds.start, release.rounds.stop]
    return held


def _promise(cell: Cell) -> dict:
    covers_run = cell.has_epsilon and cell.each is None
    return {
        "event": event_to_json(cell.event if covers_run else cell.each),
        "adjacency": str(cell.adjacency),
        "covers": "run" if covers_run else "round",
        "assumes": "; ".join(_WORDS[code.name] for code in cell.assumes) or "nothing",
        "reason": cell.reason,
    }
