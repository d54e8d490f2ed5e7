"""Every store of the package, with a change that counts and a look at its rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ledger.small import gaussian

from tacit.errors import Refused
from tacit.ledger.durable import ClientLedger
from tacit.runtime.node_store import Kept, NodeStore
from tacit.runtime.secrets import Secrets
from tacit.service.federation.coordinator import _TABLES as COORDINATOR
from tacit.service.federation.stepwise_run import RunStore
from tacit.service.federation.store import AggregatorStore
from tacit.service.relay.collector import _TABLES as COLLECTOR
from tacit.service.relay.relay_store import RelayStore
from tacit.storage.store import Store
from tacit.tree import Dense, Tree

WORDS = b"very words of a report"


@dataclass(frozen=True)
class Subject:
    """One kind of store."""

    name: str
    file: str
    begin: Callable[..., Any]  # folder, is_restored
    change: Callable[[Any, int, bytes], object]  # the nth, with these bytes
    refuses_copies: bool = False
    is_shared: bool = False
    has_restored: bool = True

    def open(self, folder: Path, *, is_restored: bool = False) -> Any:
        options = {"is_restored": True} if is_restored else {}
        return self.begin(folder, **options)

    def path(self, folder: Path) -> Path:
        return folder / self.file

    def rows(self, store: Any) -> Mapping[str, object]:
        """All rows that count; refuses those of a ledger in doubt."""
        if isinstance(store, ClientLedger):
            if store.doubt is not None:
                raise Refused(store.doubt)
            reports = [one.report for one in store.pending()]
            return {**store._look().rows, "reports": reports}
        names = store.file.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        )
        return {
            name: store.file.execute(f"SELECT * FROM {name}").fetchall()
            for (name,) in names.fetchall()
            if name != "store"
        }

    def outcome(self, folder: Path, before: Mapping[str, object]) -> str:
        """'same', or 'void' where a copy was voided; another change is an error.

        What is refused raises.
        """
        with closing(self.open(folder)) as store:
            rows = self.rows(store)
            if getattr(store, "is_copy", False):
                return "void"
            assert rows == before
            return "same"


def _aggregate(store: AggregatorStore, n: int, words: bytes) -> None:
    row = (bytes([n]) * 32, bytes(16), n, words, "open", None, b"noise", None)
    with store.changing() as file:
        file.execute("INSERT INTO rounds VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        file.execute("INSERT INTO seen VALUES (?, ?)", (row[0], bytes(16)))
        file.execute("INSERT INTO totals VALUES (?, ?, 1)", (row[0], words))


def _relay(store: RelayStore, n: int, words: bytes) -> None:
    row = (bytes([n]) * 32, bytes(16), n, words, "signed", None, None, None, 0)
    with store.changing() as file:
        file.execute("INSERT INTO epochs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _run(store: RunStore, n: int, words: bytes) -> None:
    table = "rounds" if store.role == "coordinator" else "epochs"
    query = f"INSERT INTO {table} (number, state, document, broadcast) VALUES "
    with store.changing() as file:
        file.execute(query + "(?, 'open', ?, ?)", (n, b"document", words))


def _node(store: NodeStore, n: int, words: bytes) -> None:
    state = Tree({"state": Dense(np.frombuffer(words, np.uint8).astype(float)[None])})
    taken, spent = np.array([[n], [3]]), np.array([0.5, 1.0])
    kept = Kept(state, taken, spent, Secrets(b"R" * 32, b"r" * 32))
    with store.changing():
        store.file.execute(
            "INSERT INTO run (name, terms, round) VALUES (?, 'terms', -1)", (f"{n}",)
        )
        store._write(f"{n}", kept)


def _ledger(ledger: ClientLedger, n: int, words: bytes) -> None:
    if ledger.joined("run") is None:
        ledger.join("run", gaussian(5.0, most=30), state=b"state")
    with ledger.transaction():
        ledger.permits("run", n, asked=b"broadcast")
        ledger.keep("run", n, report=words, state=words)


def _run_store(role: str, tables: str) -> Callable[..., RunStore]:
    def begin(folder: Path) -> RunStore:
        return RunStore(folder / f"{role}.db", role, tables, format=9)

    return begin


SUBJECTS = {
    one.name: one
    for one in (
        *(
            Subject(
                role,
                "aggregator.db",
                lambda folder, role=role, **options: AggregatorStore(
                    folder, role, **options
                ),
                _aggregate,
            )
            for role in ("leader", "helper")
        ),
        Subject("relay", "relay.db", RelayStore, _relay),
        Subject(
            *("collector", "collector.db", _run_store("collector", COLLECTOR), _run),
            has_restored=False,
        ),
        Subject(
            "coordinator",
            "coordinator.db",
            _run_store("coordinator", COORDINATOR),
            _run,
            has_restored=False,
        ),
        Subject(
            "node",
            "node.db",
            lambda folder, **options: NodeStore(folder / "node.db", **options),
            _node,
            refuses_copies=True,
            is_shared=True,
        ),
        Subject(
            "ledger",
            "ledger.db",
            lambda folder: ClientLedger(folder / "ledger.db"),
            _ledger,
            refuses_copies=True,
            is_shared=True,
            has_restored=False,
        ),
    )
}


def backup(store: Any, path: Path) -> None:
    """A backup as SQLite makes it, of a service that runs."""
    file = store.file if isinstance(store, Store) else store._file
    with closing(sqlite3.connect(path)) as copy:
        file.backup(copy)
