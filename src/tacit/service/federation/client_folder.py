"""The files of one client of one run; all of them are its user's alone.

    client.json   where the coordinator is, which keys sign, which rounds were seen
    invitation    what was agreed, byte for byte
    history.json  the user's items and what was shown, in their order; never sent
    ledger.db     what was said, and what is to be sent (or wherever --ledger says)
    model/        public files of the published model

Whatever must not be forgotten is on the disk before it is relied on: a round is noted
before it is answered, so a second manifest for it is seen as a fork after any crash.
"""

from __future__ import annotations

import contextlib
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tacit.documents import read_bytes, read_document, write_document
from tacit.errors import BadRun, Damaged, Refused
from tacit.files import locked, make_folders, remove_directory, write_atomically
from tacit.service.federation.history import History
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.rotation import SigningKeys

FORMAT = 1


@dataclass(frozen=True)
class SeenRound:
    """A manifest that was accepted: its digest, and where and when to send."""

    id: bytes
    leader: str  # the URL of whom the report is sent to
    closes: int
    due: float  # when the report is sent, in seconds since 1970
    look: float = 0.0  # when the next round is looked for


@dataclass(frozen=True)
class Membership:
    """What a client keeps of a run beside invitation, history and ledger."""

    url: str
    invitation: str  # SHA-256 in hexadecimal
    keys: SigningKeys
    ledger: Path
    group: str | None = None
    ticket: bytes | None = None
    own_round: int | None = None  # the only one to answer, if clients report once
    rounds: Mapping[int, SeenRound] = field(default_factory=dict)
    least_uploads: int | None = None  # the owner's floor for the minimum of a round

    @property
    def known(self) -> dict[int, bytes]:
        """The round_id of every round that was seen, by its number."""
        return {number: one.id for number, one in self.rounds.items()}

    def having_seen(self, rounds: Mapping[int, SeenRound]) -> Membership:
        """The same with these rounds added; one that was seen before stays."""
        return replace(self, rounds={**rounds, **self.rounds})


@dataclass(frozen=True)
class ClientFolder:
    """A folder with the files of one client, or an empty one."""

    path: Path

    @property
    def model(self) -> Path:
        """The folder of the published model's files."""
        return self.path / "model"

    @property
    def default_ledger(self) -> Path:
        """The ledger, unless another file was chosen."""
        return self.path / "ledger.db"

    @property
    def is_joined(self) -> bool:
        """Whether a client is here."""
        return self._document.exists()

    @property
    def _document(self) -> Path:
        return self.path / "client.json"

    @property
    def _invitation(self) -> Path:
        return self.path / "invitation"

    @property
    def _history(self) -> Path:
        return self.path / "history.json"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep out other processes that would work in this folder."""
        make_folders(self.path)
        os.chmod(self.path, 0o700)
        try:
            with locked(self.path / "lock"):
                yield
        except BlockingIOError:
            raise Refused(
                f"another process works in {self.path}; let it end first"
            ) from None

    def join(self, membership: Membership, invitation: bytes, history: History) -> None:
        """Write all files; with the last one there is a client."""
        write_atomically(self._invitation, invitation, is_private=True)
        write_document(self._history, history.to_json(), is_private=True)
        self.write(membership)

    def write(self, membership: Membership) -> None:
        """Replace what is kept of the run, in one step."""
        write_document(self._document, _to_json(membership), is_private=True)

    def membership(self) -> Membership:
        """What is kept of the run; refuses a folder without a client."""
        if not self.is_joined:
            raise self._is_empty()
        document = read_document(self._document, needs_checksum=True)
        try:
            return _from_json(document)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise Damaged(self._document, f"it is no client's: {error!r}") from error

    def invitation(self, digest: str) -> Invitation:
        """What was agreed; refuses a file that is not the one that was joined."""
        found = Invitation.decode(read_bytes(self._invitation))
        if found.digest.hex() != digest:
            raise Damaged(self._invitation, "it is another one than was agreed to")
        return found

    def history(self) -> History:
        """The user's items in their order, and what was shown."""
        document = read_document(self._history, needs_checksum=True)
        try:
            return History.from_json(document)
        except (LookupError, TypeError, AttributeError) as error:
            raise Damaged(self._history, f"it is no history: {error!r}") from error

    def refuse_without_files(self) -> None:
        """Refuse a folder that has no file of a client, not even a part of one."""
        if not any(one.exists() for one in (self._history, *self._rest)):
            raise self._is_empty()

    def clear(self) -> None:
        """Erase everything but a ledger; the history first, whatever fails then.

        Cut off anywhere, it can be done again: what tells that a client is here goes
        last.
        """
        self._history.unlink(missing_ok=True)
        if self.model.exists():
            remove_directory(self.model)
        for file in self._rest:
            file.unlink(missing_ok=True)

    @property
    def _rest(self) -> tuple[Path, ...]:
        return self._invitation, self._document

    def _is_empty(self) -> BadRun:
        return BadRun(
            f"{self.path} holds no client; make one with: tacit client join URL "
            f"--history FILE --folder {self.path}"
        )


def _to_json(made: Membership) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "url": made.url,
        "invitation": made.invitation,
        "leader": b64encode(made.keys.leader).decode(),
        "helper": b64encode(made.keys.helper).decode(),
        "rotation": made.keys.number,
        "ledger": str(made.ledger),
        "group": made.group,
        "ticket": None if made.ticket is None else made.ticket.hex(),
        "own_round": made.own_round,
        "least_uploads": made.least_uploads,
        "rounds": {
            str(number): {
                "id": one.id.hex(),
                "leader": one.leader,
                "closes": one.closes,
                "due": one.due,
                "look": one.look,
            }
            for number, one in sorted(made.rounds.items())
        },
    }


def _from_json(told: Mapping[str, Any]) -> Membership:
    if told["format"] != FORMAT:
        raise ValueError(f"format {told['format']!r}; this program reads {FORMAT}")
    ticket = told["ticket"]
    return Membership(
        told["url"],
        told["invitation"],
        SigningKeys(
            b64decode(told["leader"]), b64decode(told["helper"]), told["rotation"]
        ),
        Path(told["ledger"]),
        told["group"],
        None if ticket is None else bytes.fromhex(ticket),
        told.get("own_round"),
        {
            int(number): SeenRound(
                bytes.fromhex(one["id"]),
                one["leader"],
                one["closes"],
                one["due"],
                one.get("look", one["due"]),  # an earlier version had none
            )
            for number, one in told["rounds"].items()
        },
        told.get("least_uploads"),
    )
