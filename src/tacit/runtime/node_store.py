"""What a node keeps on its disk: its users' private state, their counts, its answers.

    run      the terms of each run: agreement, share and data; secrets of a release
    array    private state and counts after the last round and its answer, in pieces
    answer   which question each round was asked, and whether it was answered

A round has two transactions. The first notes the question, before any history is read;
the second keeps state, counts and answer together, before anything is sent. Killed in
between, the node computes the round again from the same state and with the same draws.
Asked the same again it sends the same bytes; asked something else in that round it says
no. So a round is answered once, and nothing is counted twice.

Only the last answer is kept: a server that goes on has its checkpoint after the others.

*Copies.* A backup that is put back, or a file that was deleted, would answer other
questions in rounds that were answered, with the same secrets and coins; a count that
was set back by hand would ask users past their caps. So the file is a `Store`, whose
anchor knows the names of all runs that were begun. What the anchor does not know is
refused, until the node's operator decides: opened with `is_restored`, all of those runs
are over.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float64, Int64
from safetensors.numpy import load, save

from tacit.errors import Refused
from tacit.files import state_folder
from tacit.runtime.checkpoint import parts_of, tree_of
from tacit.runtime.declined import NoMoreRuns
from tacit.runtime.secrets import Secrets
from tacit.storage.anchor import Anchor, Mark, others_at, place_of
from tacit.storage.store import Store
from tacit.text import nth_round
from tacit.tree import Array, Tree

FORMAT = 4  # raised whenever the tables or the names of arrays change
_EARLIER = (2, 3)  # without checksums; in 2 an answer is in one row
_PIECE = 2**26  # bytes of an array in one row; SQLite has a limit of 10⁹
_STATE, _TAKEN, _SPENT, _ANSWER = "state/", "taken", "spent", "answer"
_IN_PIECES = b""  # in place of an answer, which is kept as pieces
_RUNS = "runs"  # in the anchor: the names of all that were begun
_TABLES = """
CREATE TABLE run (
    name TEXT PRIMARY KEY, terms TEXT NOT NULL, round INTEGER NOT NULL,
    secret_run BLOB, secret_round BLOB, is_over INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE array (
    run TEXT NOT NULL, name TEXT NOT NULL, piece INTEGER NOT NULL,
    content BLOB NOT NULL, PRIMARY KEY (run, name, piece)
) STRICT;
CREATE TABLE answer (
    run TEXT NOT NULL, round INTEGER NOT NULL, asked BLOB NOT NULL, content BLOB,
    PRIMARY KEY (run, round)
) STRICT;
"""


@dataclass(frozen=True)
class _EarlierAnchor(Anchor):
    """An anchor of the formats before checksums: marks without a key."""

    def drop(self) -> None:
        (state_folder() / self.kind / f"{self.id}.json").unlink(missing_ok=True)


def _earlier_anchors() -> Iterator[_EarlierAnchor]:
    for path in (state_folder() / NodeStore.kind).glob("*.json"):
        with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError):
            body = json.loads(path.read_bytes())
            notes = {_RUNS: [*map(str, body.get("names", ()))]}
            current, following = (str(body[name]) for name in ("current", "next"))
            yield _EarlierAnchor(
                *(NodeStore.kind, path.stem, str(body["place"]), b""),
                current=Mark(0, current, notes) if current else None,
                pending=Mark(0, following, notes),
            )


@dataclass(frozen=True)
class Kept:
    """What the users of a node have after its last round."""

    state: Tree
    taken: Int64[np.ndarray, "clients parts"]
    spent: Float64[np.ndarray, "clients"]
    secrets: Secrets | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Asked:
    """A question that a node was asked in a round, and its answer if it has one."""

    digest: bytes
    content: bytes | None = field(repr=False)


class NodeStore(Store):
    """The file of one node; several processes may use it by turns.

    With `is_restored` a copy is taken for the file, and all runs before are over.
    """

    kind: ClassVar[str] = "nodes"
    has_log: ClassVar[bool] = False
    is_shared: ClassVar[bool] = True
    voids_copies: ClassVar[bool] = False
    remedy: ClassVar[str] = (
        "it could answer a second time, in other words, what was answered. If its runs "
        "are given up, start the node once with --restored: they are over then, and "
        "count"
    )

    def __init__(self, path: Path, *, is_restored: bool = False) -> None:
        super().__init__(path, "node", _TABLES, format=FORMAT, is_restored=is_restored)

    def others_here(self, path: Path) -> tuple[Anchor, ...]:
        """The anchors of files that were last written here, of earlier formats too."""
        earlier = (one for one in _earlier_anchors() if one.place == place_of(path))
        found = super().others_here(path)
        return (*found, *(one for one in earlier if one.current is not None))

    def adopt(self) -> tuple[str, tuple[Anchor, ...]]:
        """Goes on with a store of an earlier format that its anchor knows."""
        if self.format not in _EARLIER:
            return super().adopt()
        [(own, mark)] = self.file.execute("SELECT id, mark FROM own")
        known = tuple(one for one in _earlier_anchors() if one.id == own)
        self.file.execute("DROP TABLE own")
        if not any(one.knows(0, mark) for one in known):
            return "is not as this machine has left it", known
        if others_at(self.path, known[0], self.others_here(self.path)):
            return "has replaced another one", known
        return "", known

    def void(self, file: sqlite3.Connection, known: Sequence[Anchor]) -> None:
        """Every run that was ever begun is over."""
        names = {
            name for one in known for mark in one.marks for name in mark.notes[_RUNS]
        }
        for name in sorted(names):
            file.execute(
                "INSERT OR IGNORE INTO run (name, terms, round) VALUES (?, '', -1)",
                (name,),
            )
        file.execute(
            "UPDATE run SET is_over = 1, secret_run = NULL, secret_round = NULL"
        )
        file.execute("DELETE FROM array")
        file.execute("UPDATE answer SET content = NULL")

    def notes(self) -> Mapping[str, Any]:
        """The names of all runs that were begun."""
        names = self.file.execute("SELECT name FROM run ORDER BY name")
        return {_RUNS: [name for (name,) in names]}

    def join(
        self,
        run: str,
        terms: str,
        enrol: Callable[[], Kept],
        *,
        most_runs: int | None = None,
    ) -> None:
        """Begin a run under these terms; one that was begun stays as it is.

        `enrol` gives what users begin with, which is drawn for everyone: once. Of
        processes that begin runs at the same time, `most_runs` at most succeed.
        """
        self.check_run(run, terms, most_runs=most_runs)
        if self.has(run):
            return
        with self.changing() as file:
            # Another process may have been quicker.
            self.check_run(run, terms, most_runs=most_runs)
            if not self.has(run):
                file.execute(
                    "INSERT INTO run (name, terms, round) VALUES (?, ?, -1)",
                    (run, terms),
                )
                self._write(run, enrol())

    def check_run(self, run: str, terms: str, *, most_runs: int | None = None) -> None:
        """Refuse a run that may not be begun here, or cannot go on; begins none."""
        found = self.file.execute(
            "SELECT terms, is_over FROM run WHERE name = ?", (run,)
        ).fetchone()
        if found is None:
            self._refuse_more_runs(most_runs)
            return
        began, is_over = found
        if is_over:
            raise Refused(
                f"run '{run}' is over on this node: {self.path} was put back from a "
                "backup, or was gone; begin another run"
            )
        if began != terms:
            raise Refused(
                f"{self.path} has run '{run}' over other users, another share or "
                f"another plan: {began} then, {terms} now; restore the data, or "
                "give the run another name"
            )

    def _refuse_more_runs(self, most: int | None) -> None:
        if most is None or self.n_runs < most:
            return
        raise NoMoreRuns(
            f"this node's users were trained on {self.n_runs} times, and its operator "
            f"allows {most}; each run spends their budget again: allow another with "
            "--runs"
        )

    def has(self, run: str) -> bool:
        """Whether the run was begun here."""
        found = self.file.execute("SELECT 1 FROM run WHERE name = ?", (run,))
        return found.fetchone() is not None

    @property
    def n_runs(self) -> int:
        """How many runs were begun here."""
        [n] = self.file.execute("SELECT COUNT(*) FROM run").fetchone()
        return int(n)

    def last_round(self, run: str) -> int:
        """The last round that was answered; -1: none was."""
        found = self.file.execute("SELECT round FROM run WHERE name = ?", (run,))
        row = found.fetchone()
        return -1 if row is None else int(row[0])

    def rounds(self, run: str) -> list[int]:
        """The rounds in which this node was asked, answered or not."""
        found = self.file.execute(
            "SELECT round FROM answer WHERE run = ? ORDER BY round", (run,)
        )
        return [number for (number,) in found]

    def kept(self, run: str) -> Kept:
        """State and counts after the last round that was answered."""
        arrays = self._arrays(run)
        state = {
            n.removeprefix(_STATE): a for n, a in arrays.items() if n.startswith(_STATE)
        }
        first, second = self.file.execute(
            "SELECT secret_run, secret_round FROM run WHERE name = ?", (run,)
        ).fetchone()
        secrets = None if first is None else Secrets(first, second)
        return Kept(tree_of(state), arrays[_TAKEN], arrays[_SPENT], secrets)

    def asked(self, run: str, round: int) -> Asked | None:
        """What was asked in a round, and the answer; None if nothing was."""
        row = self.file.execute(
            "SELECT asked, content FROM answer WHERE run = ? AND round = ?",
            (run, round),
        ).fetchone()
        if row is None:
            return None
        digest, content = row
        if content == _IN_PIECES:
            content = self._whole(run, _ANSWER)
        return Asked(digest, content)

    def begin(self, run: str, round: int, question: bytes) -> None:
        """Note on the disk what a round asks, before any history is read."""
        if self.asked(run, round) is not None:
            return
        with self.changing():
            self.file.execute(
                "INSERT OR IGNORE INTO answer VALUES (?, ?, ?, NULL)",
                (run, round, digest_of(question)),
            )

    def keep(self, run: str, round: int, *, answer: bytes, kept: Kept) -> bytes:
        """Keep a round's answer with the state after it; the answer to be sent.

        Of two processes that answer the same round the first one's is kept: the state
        never goes back.
        """
        with self.changing():
            asked = self.asked(run, round)
            if asked is not None and asked.content is not None:
                return asked.content
            if self.last_round(run) >= round:
                raise Refused(f"{nth_round(round)} of run '{run}' is over")
            self._write(run, kept)
            self.file.execute(
                "UPDATE answer SET content = NULL WHERE run = ? AND round < ?",
                (run, round),
            )
            self.file.execute(
                "UPDATE answer SET content = ? WHERE run = ? AND round = ?",
                (_IN_PIECES, run, round),
            )
            self._write_pieces(run, _ANSWER, answer)
            self.file.execute("UPDATE run SET round = ? WHERE name = ?", (round, run))
            return answer

    def _write(self, run: str, kept: Kept) -> None:
        arrays = {_STATE + n: a for n, a in parts_of(kept.state).items()}
        arrays |= {_TAKEN: kept.taken, _SPENT: kept.spent}
        self.file.execute("DELETE FROM array WHERE run = ?", (run,))
        for name, value in arrays.items():
            self._write_pieces(run, name, save({"": np.asarray(value, order="C")}))
        secrets = kept.secrets
        # The secret of a round is overwritten in the step that keeps its answer.
        self.file.execute(
            "UPDATE run SET secret_run = ?, secret_round = ? WHERE name = ?",
            (None, None, run) if secrets is None else (secrets.run, secrets.round, run),
        )

    def _write_pieces(self, run: str, name: str, content: bytes) -> None:
        for piece, start in enumerate(range(0, len(content), _PIECE)):
            row = (run, name, piece, content[start : start + _PIECE])
            self.file.execute("INSERT INTO array VALUES (?, ?, ?, ?)", row)

    def _arrays(self, run: str) -> dict[str, Array]:
        names = self.file.execute(
            "SELECT DISTINCT name FROM array WHERE run = ? AND name != ?",
            (run, _ANSWER),
        )
        return {name: load(self._whole(run, name))[""] for (name,) in [*names]}

    def _whole(self, run: str, name: str) -> bytes:
        """What was written in pieces."""
        pieces = self.file.execute(
            "SELECT content FROM array WHERE run = ? AND name = ? ORDER BY piece",
            (run, name),
        )
        return b"".join(content for (content,) in pieces)


def digest_of(question: bytes) -> bytes:
    """Sixteen bytes that tell one question from another."""
    return hashlib.blake2b(question, digest_size=16).digest()
