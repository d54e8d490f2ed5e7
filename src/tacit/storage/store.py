"""What a service or a node keeps on its disk: a file that knows when it is a copy.

    writing     a transaction
    changing    a transaction that the anchor knows of too: a change that counts

*Checksums.* Every row is in a checksum under the anchor's key (`checksums`), which each
transaction brings up to date and each opening computes anew. A file with a row that was
not written here is refused.

*Copies.* What is put back from a backup would say a second time, in other words, what
it may have said already. So a random head changes with every change that counts, in the
file and in its anchor (`anchor`). A file whose head the anchor does not know is a copy;
`void` undoes what was open in it, and it has another anchor from then on. Where copies
are not voided without a word, they are refused until the operator says `is_restored`.
A file that is gone while an anchor names its place is refused in the same way: a new
one would be empty, and what the old one has acknowledged would be lost without a word.

*Two processes.* The one that opened the file last has it: its start changed the head,
and the other one writes nothing more. A file `is_shared` if several may write by turns.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from tacit.errors import BadRun, Damaged, Refused
from tacit.storage import anchor as anchors
from tacit.storage.anchor import Anchor, Mark
from tacit.storage.checksums import Checksums
from tacit.storage.sqlite_file import SqliteFile, in_one_sentence

_OWN = """CREATE TABLE store (role TEXT NOT NULL, id TEXT NOT NULL,
    starts INTEGER NOT NULL, head TEXT NOT NULL, total TEXT NOT NULL,
    link TEXT NOT NULL)"""


def _new_head() -> str:
    return secrets.token_hex(16)


_ALTERED = "its rows are not those that were written"


@dataclass(frozen=True)
class _State:
    """The one row of the table `store`."""

    role: str
    id: str
    starts: int
    head: str  # random, and another one after every change that counts
    total: str = ""  # the sum of the rows' digests
    link: str = ""  # the HMAC of everything before

    @property
    def facts(self) -> tuple[object, ...]:
        return self.role, self.id, self.starts, self.head

    def following(self, *, starts: int = 0) -> _State:
        return replace(self, starts=self.starts + starts, head=_new_head())


class Store(SqliteFile):
    """One SQLite file with the tables of one role, and an anchor outside of it."""

    kind: ClassVar[str] = "services"  # the folder of anchors
    has_log: ClassVar[bool] = True
    _anchor: Anchor | None = None  # as this process saw it last
    is_shared: ClassVar[bool] = False
    voids_copies: ClassVar[bool] = True  # else they are refused
    remedy: ClassVar[str] = (
        "what it had acknowledged is lost with it. Put it back, or start the service "
        "once with --restored: its rounds are void then"
    )

    def __init__(
        self,
        path: Path,
        role: str,
        tables: str,
        *,
        format: int,
        is_restored: bool = False,
    ) -> None:
        self.role, self._place = role, anchors.place_of(path)
        self._tables, self._format = tables, format
        # First the anchors: another process may make the file just now.
        others = self.others_here(path)
        super().__init__(path, has_log=self.has_log)
        try:
            with self.transaction():
                replaced = self._begin(others, is_restored=is_restored)
            self._settle()
            for anchor in replaced:  # other copies have none from now on
                anchor.drop()
            anchors.drop_unfinished(self.kind, path, keep=self.id)
            if self.has_log:
                self.tidy()  # a process that was killed may have left what it deleted
        except BaseException:
            self.close()
            raise

    @property
    def file(self) -> sqlite3.Connection:
        """The connection of the thread that writes, to read by."""
        return self.connection

    @property
    def id(self) -> str:
        """32 random digits of this file, which no other store has."""
        return self._state.id

    @property
    def starts(self) -> int:
        """How often the service was started, with this one."""
        return self._state.starts

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All of what happens inside, on the disk when it ends; or nothing."""
        with self.transaction() as file:
            state = self._check()
            yield file
            self._put(state)

    @contextlib.contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """The same for a change that the anchor knows of too.

        The anchor expects the new head before the file has it, and forgets the old one
        afterwards: killed in between, the file is at one of the two.
        """
        with self.transaction() as file:
            state = self._check()
            anchor = self._known(state)
            if anchor is None:
                raise Refused(
                    f"{self.path}: another process has used a copy of it, or its "
                    "anchor is gone: nothing more is signed, taken or published here; "
                    "stop one of the two"
                )
            yield file
            following = state.following()
            self._expect(anchor, state, following)
            self._put(following)
        self._state = following
        self._settle()

    # of each role

    def void(self, file: sqlite3.Connection, known: Sequence[Anchor]) -> None:
        """Undo, in a copy or in place of a lost file, what may have been said since.

        `known` are the anchors of the files that were here.
        """

    def notes(self) -> Mapping[str, Any]:
        """What an anchor must know even if the file is gone, as plain JSON."""
        return {}

    def others_here(self, path: Path) -> tuple[Anchor, ...]:
        """The anchors of files that were last written here."""
        return anchors.at_place(self.kind, path)

    def adopt(self) -> tuple[str, tuple[Anchor, ...]]:
        """Give a file of an older format the tables of this one, but for the own one.

        Why the file is not relied on, and its anchors; refused unless a role can.
        """
        raise BadRun(
            f"{self.path} has format {self.format}; this program reads {self._format}: "
            "use the version that made it until its rounds are over"
        )

    # opening

    def _begin(
        self, others: Sequence[Anchor], *, is_restored: bool
    ) -> tuple[Anchor, ...]:
        """Make or check the file as its only writer; the anchors that are replaced."""
        self.is_copy = False
        if not self.n_tables and not self.format:
            if others and not is_restored:
                said = f"{self.path} is gone, and a new one would be empty"
                raise Refused(f"{said}: {self.remedy}")
            for table in (_OWN, *self._tables.split(";")):
                self.connection.execute(table)
            self.connection.execute(f"PRAGMA user_version = {self._format}")
            self._begin_anew(others, starts=0, is_void=bool(others))
            return tuple(others)
        is_older = self.format != self._format
        if is_older:
            starts, (doubt, known) = 0, self.adopt()
            self.connection.execute(_OWN)
            self.connection.execute(f"PRAGMA user_version = {self._format}")
        else:
            state = self._read()
            anchor, doubt = self._judge(state, others)
            starts, known = state.starts, () if anchor is None else (anchor,)
        if doubt and not is_restored and not self.voids_copies:
            raise Refused(f"{self.path} {doubt}: {self.remedy}")
        self.is_copy = bool(doubt) or is_restored
        if self.is_copy or is_older:
            known = tuple({one.id: one for one in (*known, *others)}.values())
            self._begin_anew(known, starts=starts, is_void=self.is_copy)
            return known
        self._state = state
        self._checksums.watch()
        if not self.is_shared:
            following = state.following(starts=1)
            self._expect(known[0], state, following)
            self._put(following)
            self._state = following
        return ()

    def _judge(
        self, state: _State, others: Sequence[Anchor]
    ) -> tuple[Anchor | None, str]:
        """The anchor of the file, and why it is not relied on; refuses damage."""
        if state.role != self.role:
            raise BadRun(
                f"{self.path} is the file of a {state.role}, and a {self.role} is "
                "started; give each role a folder of its own"
            )
        try:
            anchor = anchors.find(self.kind, state.id)
        except Damaged:
            return None, "has an anchor that cannot be read"
        if anchor is None:
            return None, "is not known here: another machine has used it"
        self._checksums = Checksums(self.connection, anchor.key, without=("store",))
        self._checksums.take_whole()
        if state.total != f"{self._checksums.total:064x}":
            raise Damaged(self.path, _ALTERED)
        self._check_link(state)
        [*problems] = self.connection.execute("PRAGMA integrity_check(1)")
        if problems != [("ok",)]:
            raise Damaged(self.path, f"{problems[0][0]}")
        if not anchor.knows(state.starts, state.head):
            said = "is not as this machine has left it: a backup was put back, or "
            return anchor, said + "another machine has used it"
        if anchors.others_at(self.path, anchor, others):
            return anchor, "has replaced another one"
        return anchor, ""

    def _begin_anew(
        self, known: Sequence[Anchor], *, starts: int, is_void: bool
    ) -> None:
        """Another id, key and head; in a copy everything that was open is void.

        The file before the anchor is final: killed in between, it is a copy still.
        """
        anchor = Anchor.fresh(self.kind, self.path)
        self._checksums = Checksums(self.connection, anchor.key, without=("store",))
        self._checksums.take_whole()
        self._checksums.watch()
        self._state = _State(self.role, anchor.id, starts + 1, _new_head())
        self.connection.execute("DELETE FROM store")
        self.connection.execute(
            "INSERT INTO store VALUES (?, ?, ?, ?, ?, ?)", astuple(self._state)
        )
        if is_void:
            self.void(self.connection, known)
        self._expect(anchor, None, self._state)
        self._put(self._state)

    # every transaction

    def _read(self) -> _State:
        rows = self.connection.execute("SELECT * FROM store").fetchall()
        kinds = (str, str, int, str, str, str)
        if len(rows) != 1 or not all(map(isinstance, rows[0], kinds)):
            raise Damaged(self.path, "its own row cannot be read")
        return _State(*rows[0])

    def _check(self) -> _State:
        """The state of the file; refuses what another process has opened since."""
        state = self._read()
        is_own = state.id == self.id
        if not self.is_shared:
            is_own = state.head == self._state.head
        if not is_own:
            raise Refused(
                f"another process has opened {self.path}, so this one writes nothing "
                "more; stop one of the two"
            )
        self._checksums.total = int(state.total, 16)
        self._check_link(state)
        return state

    def _check_link(self, state: _State) -> None:
        link = self._checksums.link(*state.facts)
        if not hmac.compare_digest(link.encode(), state.link.encode()):
            raise Damaged(self.path, _ALTERED)

    def _put(self, state: _State) -> None:
        """Write the state with the checksum of the rows as they are now."""
        link, total = self._checksums.link(*state.facts), self._checksums.total
        self.connection.execute(
            "UPDATE store SET starts = ?, head = ?, total = ?, link = ?",
            (state.starts, state.head, f"{total:064x}", link),
        )

    # the anchor

    def _known(self, state: _State) -> Anchor | None:
        """The anchor, if it expects the file as it is; not if it is damaged."""
        with contextlib.suppress(Damaged):
            self._anchor = anchors.find(self.kind, state.id, last=self._anchor)
            if self._anchor and self._anchor.knows(state.starts, state.head):
                return self._anchor
        return None

    def _expect(self, anchor: Anchor, before: _State | None, after: _State) -> None:
        """Let the anchor know the state that the file will have."""
        marks = [m for m in anchor.marks if before and m.head == before.head]
        pending = Mark(after.starts, after.head, self.notes())
        current = marks[0] if marks else None
        self._save(replace(anchor, place=self._place, current=current, pending=pending))

    def _save(self, anchor: Anchor) -> None:
        anchor.save()
        self._anchor = anchor

    def _settle(self) -> None:
        """Let the anchor know the state of the file alone.

        Within a transaction, so that no other process changes the file meanwhile.
        """
        with self.transaction():
            state = self._read()
            anchor = self._known(state)
            if anchor is None:
                return
            [mark] = {m.head: m for m in anchor.marks if m.head == state.head}.values()
            settled = replace(anchor, place=self._place, current=mark, pending=None)
            if settled != anchor:
                self._save(settled)


class _Beside(Store):
    """The file of a running service, which goes on with it."""

    is_shared = True

    def __init__(self, path: Path, *, state: Path | None) -> None:
        SqliteFile.__init__(self, path, has_log=True)
        with in_one_sentence(path):
            self._state = self._read()
        anchor = anchors.find(self.kind, self.id, state=state)
        if anchor is None:
            self.close()
            raise Refused(
                f"the anchor of {path} is not here: give this command where the "
                "service runs, as its user and with its $TACIT_STATE"
            )
        self._checksums = Checksums(self.connection, anchor.key, without=("store",))
        self._checksums.watch()


@contextlib.contextmanager
def writing_beside(
    path: Path, *, state: Path | None = None
) -> Iterator[sqlite3.Connection]:
    """A transaction in the file of a running service, which goes on with it.

    `state` is the folder of the service's anchors, if it is not this process's.
    """
    store = _Beside(path, state=state)
    try:
        with store.writing() as file:
            yield file
    finally:
        store.close()
