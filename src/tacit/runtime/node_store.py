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
questions in rounds that were answered, with the same secrets and coins. So every change
also changes a mark in an anchor outside of the file (`tacit.file_marks`), which knows
the names of all runs that were begun. What the anchor does not know is refused, until
the node's operator decides: opened with `is_restored`, all of those runs are over.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets as system_secrets
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int64
from safetensors.numpy import load, save

from tacit.errors import BadRun, Damaged, Refused, TacitError
from tacit.file_marks import MarkAnchor, Marks, anchors_at, place_of
from tacit.runtime.checkpoint import parts_of, tree_of
from tacit.runtime.declined import NoMoreRuns
from tacit.runtime.secrets import Secrets
from tacit.tree import Array, Tree

FORMAT = 3  # raised whenever the tables or the names of arrays change
_READ = (0, 2, FORMAT)  # 2 has an answer in one row; it is read, and written as 3
_PIECE = 2**26  # bytes of an array in one row; SQLite has a limit of 10⁹
_STATE, _TAKEN, _SPENT, _ANSWER = "state/", "taken", "spent", "answer"
_IN_PIECES = b""  # in place of an answer, where it is kept as pieces
_ANCHORS = "nodes"  # the folder of stores' anchors
_TABLES = (
    "CREATE TABLE own (id TEXT NOT NULL, mark TEXT NOT NULL) STRICT",
    """CREATE TABLE run (
    name TEXT PRIMARY KEY, terms TEXT NOT NULL, round INTEGER NOT NULL,
    secret_run BLOB, secret_round BLOB, is_over INTEGER NOT NULL DEFAULT 0
) STRICT""",
    """CREATE TABLE array (
    run TEXT NOT NULL, name TEXT NOT NULL, piece INTEGER NOT NULL,
    content BLOB NOT NULL, PRIMARY KEY (run, name, piece)
) STRICT""",
    """CREATE TABLE answer (
    run TEXT NOT NULL, round INTEGER NOT NULL, asked BLOB NOT NULL, content BLOB,
    PRIMARY KEY (run, round)
) STRICT""",
)
_DECIDE = (
    "it could answer a second time, in other words, what was answered. If its runs are "
    "given up, start the node once with --restored: they are over then, and count"
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


class NodeStore:
    """The file of one node; readable by its owner alone.

    With `is_restored` a copy is taken for the file, and all runs before are over.
    """

    def __init__(self, path: Path, *, is_restored: bool = False) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Made by us first, so that it is never readable by others.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        # One thread at a time uses it, but the last reference may go in another one.
        self._file = sqlite3.connect(
            path, isolation_level=None, timeout=60.0, check_same_thread=False
        )
        self._end = weakref.finalize(self, self._file.close)
        try:
            self._open(is_restored=is_restored)
        except sqlite3.DatabaseError as error:
            self.close()
            raise Damaged(path, f"it is no store of a node: {error}") from error
        except TacitError:
            self.close()
            raise

    def _open(self, *, is_restored: bool) -> None:
        self._file.execute("PRAGMA synchronous = FULL")
        self._file.execute("PRAGMA secure_delete = ON")  # a secret that went is gone
        [found] = self._file.execute("PRAGMA user_version").fetchone()
        if found not in _READ:
            raise BadRun(
                f"{self.path} has format {found}, this program reads {FORMAT}: finish "
                "the run with the version that began it, or give another file"
            )
        others = [*anchors_at(_ANCHORS, self.path)]
        with self._transaction():
            [n_tables] = self._file.execute(
                "SELECT count(*) FROM sqlite_master"
            ).fetchone()
            if not n_tables:
                self._make(others, is_restored=is_restored)
            elif is_restored:
                self._replace(others)
            else:
                self._refuse_copy(others)
            if found != FORMAT:
                self._file.execute(f"PRAGMA user_version = {FORMAT}")
        self._settle()
        if is_restored:
            for anchor, _ in others:
                if anchor.id != self.id:
                    anchor.drop()

    def close(self) -> None:
        """Close the file of the store; it is closed with the last reference too."""
        self._end()

    @property
    def id(self) -> str:
        """32 random digits of this file, which no other store has."""
        return self._own()[0]

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

        def check() -> None:  # another process may have been quicker
            self.check_run(run, terms, most_runs=most_runs)

        check()
        if self.has(run):
            return
        with self._changing(run, check=check):
            if not self.has(run):
                self._file.execute(
                    "INSERT INTO run (name, terms, round) VALUES (?, ?, -1)",
                    (run, terms),
                )
                self._write(run, enrol())

    def check_run(self, run: str, terms: str, *, most_runs: int | None = None) -> None:
        """Refuse a run that may not be begun here, or cannot go on; begins none."""
        found = self._file.execute(
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
        found = self._file.execute("SELECT 1 FROM run WHERE name = ?", (run,))
        return found.fetchone() is not None

    @property
    def n_runs(self) -> int:
        """How many runs were begun here."""
        [n] = self._file.execute("SELECT COUNT(*) FROM run").fetchone()
        return int(n)

    def last_round(self, run: str) -> int:
        """The last round that was answered; -1: none was."""
        found = self._file.execute("SELECT round FROM run WHERE name = ?", (run,))
        row = found.fetchone()
        return -1 if row is None else int(row[0])

    def rounds(self, run: str) -> list[int]:
        """The rounds in which this node was asked, answered or not."""
        found = self._file.execute(
            "SELECT round FROM answer WHERE run = ? ORDER BY round", (run,)
        )
        return [number for (number,) in found]

    def kept(self, run: str) -> Kept:
        """State and counts after the last round that was answered."""
        arrays = self._arrays(run)
        state = {
            n.removeprefix(_STATE): a for n, a in arrays.items() if n.startswith(_STATE)
        }
        first, second = self._file.execute(
            "SELECT secret_run, secret_round FROM run WHERE name = ?", (run,)
        ).fetchone()
        secrets = None if first is None else Secrets(first, second)
        return Kept(tree_of(state), arrays[_TAKEN], arrays[_SPENT], secrets)

    def asked(self, run: str, round: int) -> Asked | None:
        """What was asked in a round, and the answer; None if nothing was."""
        row = self._file.execute(
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
        with self._changing(run):
            self._file.execute(
                "INSERT OR IGNORE INTO answer VALUES (?, ?, ?, NULL)",
                (run, round, digest_of(question)),
            )

    def keep(self, run: str, round: int, *, answer: bytes, kept: Kept) -> bytes:
        """Keep a round's answer with the state after it; the answer to be sent.

        Of two processes that answer the same round the first one's is kept: the state
        never goes back.
        """
        with self._changing(run):
            asked = self.asked(run, round)
            if asked is not None and asked.content is not None:
                return asked.content
            if self.last_round(run) >= round:
                raise Refused(f"round {round} of run '{run}' is over")
            self._write(run, kept)
            self._file.execute(
                "UPDATE answer SET content = NULL WHERE run = ? AND round < ?",
                (run, round),
            )
            self._file.execute(
                "UPDATE answer SET content = ? WHERE run = ? AND round = ?",
                (_IN_PIECES, run, round),
            )
            self._write_pieces(run, _ANSWER, answer)
            self._file.execute("UPDATE run SET round = ? WHERE name = ?", (round, run))
            return answer

    # copies

    def _make(
        self, others: Sequence[tuple[MarkAnchor, Marks]], *, is_restored: bool
    ) -> None:
        """The tables of a new file; refuses to replace one that is gone."""
        if others and not is_restored:
            raise Refused(
                f"{self.path} is gone, and a new one would be empty: {_DECIDE}"
            )
        for table in _TABLES:
            self._file.execute(table)
        self._file.execute("INSERT INTO own VALUES ('', '')")
        self._replace(others)

    def _replace(self, others: Sequence[tuple[MarkAnchor, Marks]]) -> None:
        """Another id and mark, under which every run that was ever begun is over."""
        own, mark = system_secrets.token_hex(16), system_secrets.token_hex(16)
        before = MarkAnchor(_ANCHORS, self.id).read()
        known = [marks for _, marks in others] + ([before] if before else [])
        names = {name for marks in known for name in marks.names}
        names |= {name for (name,) in self._file.execute("SELECT name FROM run")}
        made = Marks("", mark, place_of(self.path), tuple(sorted(names)))
        MarkAnchor(_ANCHORS, own).write(made)  # it counts once the file has the mark
        for name in sorted(names):
            self._file.execute(
                "INSERT OR IGNORE INTO run (name, terms, round) VALUES (?, '', -1)",
                (name,),
            )
        self._file.execute(
            "UPDATE run SET is_over = 1, secret_run = NULL, secret_round = NULL"
        )
        self._file.execute("DELETE FROM array")
        self._file.execute("UPDATE answer SET content = NULL")
        self._file.execute("UPDATE own SET id = ?, mark = ?", (own, mark))

    def _refuse_copy(self, others: Sequence[tuple[MarkAnchor, Marks]] = ()) -> Marks:
        """What the anchor says of the file; refuses a file that it does not know."""
        own, mark = self._own()
        marks = MarkAnchor(_ANCHORS, own).read()
        if marks is None or not marks.knows(mark):
            raise Refused(
                f"{self.path} is not as this machine has left it: a backup was put "
                f"back, or another machine has used it; {_DECIDE}"
            )
        is_moved = marks.place != place_of(self.path)
        if is_moved and any(anchor.id != own for anchor, _ in others):
            raise Refused(f"{self.path} has replaced another store: {_DECIDE}")
        return marks

    @contextlib.contextmanager
    def _changing(
        self, run: str, *, check: Callable[[], None] | None = None
    ) -> Iterator[None]:
        """A change that the anchor knows of too, on the disk when this ends.

        `check` may refuse it, once nobody else can change the file.
        """
        with self._transaction():
            marks = self._refuse_copy()
            if check is not None:
                check()
            own, mark = self._own()
            following = system_secrets.token_hex(16)
            names = tuple(sorted({*marks.names, run}))
            expected = Marks(mark, following, place_of(self.path), names)
            MarkAnchor(_ANCHORS, own).write(expected)
            yield
            self._file.execute("UPDATE own SET mark = ?", (following,))
        self._settle()

    def _settle(self) -> None:
        """Let the anchor know the mark of the file alone.

        Within a transaction, so that no other process changes the file meanwhile.
        """
        with self._transaction():
            own, mark = self._own()
            anchor = MarkAnchor(_ANCHORS, own)
            marks = anchor.read()
            if marks is not None and {marks.current, marks.following} != {mark}:
                place = place_of(self.path)
                anchor.write(Marks(mark, mark, place, marks.names))

    def _own(self) -> tuple[str, str]:
        """The id and the mark of the file."""
        own, mark = self._file.execute("SELECT id, mark FROM own").fetchone()
        return str(own), str(mark)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")

    def _write(self, run: str, kept: Kept) -> None:
        arrays = {_STATE + n: a for n, a in parts_of(kept.state).items()}
        arrays |= {_TAKEN: kept.taken, _SPENT: kept.spent}
        self._file.execute("DELETE FROM array WHERE run = ?", (run,))
        for name, value in arrays.items():
            self._write_pieces(run, name, save({"": np.asarray(value, order="C")}))
        secrets = kept.secrets
        # The secret of a round is overwritten in the step that keeps its answer.
        self._file.execute(
            "UPDATE run SET secret_run = ?, secret_round = ? WHERE name = ?",
            (None, None, run) if secrets is None else (secrets.run, secrets.round, run),
        )

    def _write_pieces(self, run: str, name: str, content: bytes) -> None:
        for piece, start in enumerate(range(0, len(content), _PIECE)):
            row = (run, name, piece, content[start : start + _PIECE])
            self._file.execute("INSERT INTO array VALUES (?, ?, ?, ?)", row)

    def _arrays(self, run: str) -> dict[str, Array]:
        names = self._file.execute(
            "SELECT DISTINCT name FROM array WHERE run = ? AND name != ?",
            (run, _ANSWER),
        )
        return {name: load(self._whole(run, name))[""] for (name,) in [*names]}

    def _whole(self, run: str, name: str) -> bytes:
        """What was written in pieces."""
        pieces = self._file.execute(
            "SELECT content FROM array WHERE run = ? AND name = ? ORDER BY piece",
            (run, name),
        )
        return b"".join(content for (content,) in pieces)


def digest_of(question: bytes) -> bytes:
    """Sixteen bytes that tell one question from another."""
    return hashlib.blake2b(question, digest_size=16).digest()
