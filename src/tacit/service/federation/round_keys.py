"""The private keys of rounds, one file each, under the name of the public key.

Whoever deletes one has it deleted on the disk, too, so that nobody opens a seal of that
round any more. The folder may hold other keys, under other names; they are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tacit.files import flush_directory, make_folders, write_atomically
from tacit.system_errors import explained

_NAME = re.compile("[0-9a-f]{64}")  # of a key's file, without its end


@dataclass(frozen=True)
class RoundKeys:
    """A folder of private keys, readable by their owner alone."""

    folder: Path

    def keep(self, public: bytes, private: bytes) -> None:
        """Have a key on the disk."""
        with explained():
            make_folders(self.folder)
            write_atomically(self._file(public), private, is_private=True)

    def get(self, public: bytes) -> bytes | None:
        """A private key; None if it is not there any more."""
        with explained():
            file = self._file(public)
            return file.read_bytes() if file.is_file() else None

    def delete(self, public: bytes) -> None:
        """Delete a key, if it is there."""
        with explained():
            self._file(public).unlink(missing_ok=True)
            self._flush()

    def delete_all_but(self, needed: Collection[bytes]) -> None:
        """Delete keys that no round needs.

        A process may have been killed before it did, or a disk has lost a deletion.
        """
        names = {one.hex() for one in needed}
        with explained():
            for path in self.folder.glob("*.key"):
                if _NAME.fullmatch(path.stem) and path.stem not in names:
                    path.unlink()
            self._flush()

    def _file(self, public: bytes) -> Path:
        return self.folder / f"{public.hex()}.key"

    def _flush(self) -> None:
        if self.folder.is_dir():
            flush_directory(self.folder)
